# SPDX-License-Identifier: Apache-2.0
"""Past and running jobs: from any job table, or from Slurm's own accounting.

Lists are tables under a header, squeue's JSON and PBS's log. Columns go by what is above
them, in any order. Rows of job steps, and of jobs that have had no node or have not begun, are
left out.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from typing import Any

from nidmap.placement.errors import LaunchError, NidmapError, ParseError
from nidmap.placement.names.pasted import exec_host
from nidmap.placement.nodelist import NodeList
from nidmap.placement.readers import split_lines
from nidmap.placement.readers.job_list import BUSY
from nidmap.placement.records import JobRecord
from nidmap.placement.slurm.command import ask_slurm, slurm_deadline
from nidmap.placement.support.child import Deadline
from nidmap.placement.support.prompts import without_messages, without_prompts
from nidmap.placement.support.reading import LIMIT

#: Possible names of a job's columns, the most reliable first; case, blanks and _ are ignored.
COLUMNS = {
    "id": ("jobid", "jobidraw", "job", "id"),
    "name": ("jobname", "name"),
    "user": ("user", "username"),
    "partition": ("partition", "queue"),
    "nodes": ("nodelist", "hosts", "hostlist", "exechost", "nodes"),
    "start": ("start", "starttime"),
    "end": ("end", "endtime"),
    "elapsed": ("elapsed", "elapsedraw", "runtime"),
    "state": ("state", "jobstate"),
    "submit": ("submit", "submittime"),
    "limit": ("timelimit", "limit"),
}

#: Columns requested from sacct, with those that users can set last.
_COLUMNS = "JobID,User,Partition,State,Start,End,NodeList,JobName"
_WANTED = f"sacct -a -X -P -o {_COLUMNS}"

#: A job step: the job's batch script, or what srun started.
_JOB_STEP = re.compile(r"\d+(?:[_+]\d+)?\.(?:batch|extern|interactive|\d+(?:\+\d+)?)")

_NO_NODES = {"", "none assigned", "none", "(null)", "n/a"}


def head_of(line: str, delimiter: str = "") -> tuple[dict[str, int], str] | None:
    """Return the index of each job column in a header, and the column separator.

    `delimiter`: what parts them; '' for one of ``|``, ``,``, ``;`` and TAB. None where the line
    is no header of a job table.
    """
    for mark in [delimiter] if delimiter else ["|", ",", ";", "\t"]:
        words = [re.sub(r"[\s_\"]", "", cell).lower() for cell in line.split(mark)]
        places = {
            column: words.index(next(filter(words.__contains__, names)))
            for column, names in COLUMNS.items()
            if not set(names).isdisjoint(words)
        }
        if {"id", "nodes"} <= places.keys() and len(words) > 2:
            return places, mark
    return None


def read_table(text: str, source: str, delimiter: str = "") -> Iterator[JobRecord]:
    r"""Yield the jobs of a table under its header.

    `delimiter`: what separates the columns, and cannot be part of a name; '' for one
    of ``|``, ``,``, ``;`` and TAB.
    """
    lines = split_lines(text, source, LIMIT) or [""]
    first = next((k for k, line in enumerate(lines) if line.strip()), 0)
    head = head_of(lines[first], delimiter)
    if head is None:
        raise ParseError(source, first + 1, "no header of a job table", f"try {_WANTED}")
    places, mark = head
    _refuse_incomplete(places, source, first + 1)
    width = len(lines[first].split(mark))
    numbered = enumerate(lines[first + 1 :], first + 2)
    plain = ((number, row.split(mark)) for number, row in numbered if row.strip())
    quoted = mark != "|" and not delimiter
    for line, cells in _csv_rows(lines, first + 1, mark, source) if quoted else plain:
        if delimiter and len(cells) < width:
            continue  # the rest of a name that contains a line break
        job = _table_job(_by_column(cells, places, width, source, line), source, line)
        if job is not None:
            yield job


def _refuse_incomplete(places: dict[str, int], source: str, line: int) -> None:
    missing = [name for name in ("start",) if name not in places]
    missing += ["end"] if not {"end", "elapsed"} & places.keys() else []
    if missing:
        what = f"the table has no column {' and no '.join(missing)}"
        raise ParseError(source, line, what, f"try {_WANTED}")


def _csv_rows(
    lines: Sequence[str], begin: int, mark: str, source: str
) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of each CSV row; a job name may hold commas and newlines."""
    rows = csv.reader((f"{line}\n" for line in lines[begin:]), delimiter=mark)
    last = begin
    try:
        for cells in rows:
            if any(cell.strip() for cell in cells):
                yield last + 1, cells
            last = begin + rows.line_num
    except csv.Error as error:
        raise ParseError(source, begin + rows.line_num, f"is not valid CSV: {error}") from None


def _by_column(
    cells: list[str], places: dict[str, int], width: int, source: str, line: int
) -> dict[str, str]:
    """Return the cells of a row by column; surplus words belong to the job's name."""
    more = len(cells) - width
    name = places.get("name", width)
    if more < 0 or (more > 0 and name == width):
        what = f"{len(cells)} columns, the header has {width}"
        hint = "a name may hold anything: print JobName as the last column"
        raise ParseError(source, line, what, hint)
    record = {
        column: cells[place + more * (place > name)].strip() for column, place in places.items()
    }
    if name < width:
        record["name"] = "|".join(cells[name : name + more + 1])
    return record


def _table_job(cells: dict[str, str], source: str, line: int) -> JobRecord | None:
    """Return a row's job; None for a job step, a job without nodes, or one that did not begin."""
    if _JOB_STEP.fullmatch(cells["id"]) or cells["nodes"].lower() in _NO_NODES:
        return None
    if not cells["id"]:
        raise ParseError(source, line, "this row has no job ID")
    start = _read_cell(cells, "start", parse_moment, source, line)
    if start is None:
        return None
    end = _read_cell(cells, "end", parse_moment, source, line)
    if end is None and "end" not in cells:
        lasted = _read_cell(cells, "elapsed", parse_duration, source, line)
        end = None if lasted is None else start + lasted
    if end is not None and end < start:
        hint = "did the clocks change? print all times in one zone: TZ=UTC sacct …"
        raise ParseError(source, line, f"job {cells['id']} ends before it starts", hint)
    submit = _read_cell(cells, "submit", parse_moment, source, line)
    limit = _read_cell(cells, "limit", _parse_limit, source, line)
    return JobRecord(
        cells["id"],
        _read_nodes(cells["nodes"], source, line),
        cells.get("name", ""),
        cells.get("user", ""),
        cells.get("partition", ""),
        start,
        math.inf if end is None else end,
        cells.get("state", "").split(" ")[0],
        submit=math.nan if submit is None else submit,
        limit=math.nan if limit is None else limit,
    )


def _read_cell(
    cells: dict[str, str], column: str, parse: Callable[[str], float | None], source: str, line: int
) -> float | None:
    """Return the value of a cell; None where the cell is empty or the column is missing."""
    text = cells.get(column, "")
    try:
        return parse(text)
    except (ValueError, OverflowError):
        what = f"{column} '{text}' is not a time"
        hint = "2024-05-01T12:00:00, with +02:00 or without, or seconds since 1970"
        raise ParseError(source, line, what, hint) from None


def _parse_limit(text: str) -> float | None:
    """Return a time limit in seconds; None where the job has no limit of its own."""
    if text.strip().lower() in {"unlimited", "partition_limit", "infinite"}:
        return None
    return parse_duration(text)


def _read_nodes(text: str, source: str, line: int) -> NodeList:
    try:
        return NodeList.parse(text).unique
    except NidmapError as error:
        raise ParseError(source, line, f"bad node list: {error.message}", error.hint) from None


# --- points in time and durations as accounting writes them

#: What is printed for a time that is unknown, or not known yet.
_NO_TIME = {"", "unknown", "none", "n/a", "null", "invalid", "0"}

_NUMBER = re.compile(r"\d{1,11}(?:\.\d{1,9})?", re.ASCII)
_DURATION = re.compile(r"(?:(\d{1,5})-)?(?:(\d{1,5}):)?(\d{1,5}):(\d{1,2})(?:\.\d+)?", re.ASCII)


def parse_moment(text: str) -> float | None:
    """Return a timestamp in Unix seconds; None where the text stands for no time.

    A date without a zone is taken for UTC, so that it can only be compared with others
    of the same zone.
    """
    words = text.strip()
    if words.lower() in _NO_TIME:
        return None
    if _NUMBER.fullmatch(words):
        return float(words)
    read = datetime.fromisoformat(_plain_zone(words))
    return (read if read.tzinfo else read.replace(tzinfo=timezone.utc)).timestamp()


def _plain_zone(text: str) -> str:
    """Rewrite a date's time zone so that Python 3.10 can parse it too."""
    if text[-1] in "zZ":
        return f"{text[:-1]}+00:00"
    return re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", text) if len(text) > 19 else text


def parse_duration(text: str) -> float | None:
    """Return ``[DAYS-]HOURS:MINUTES:SECONDS``, or a number of seconds, as seconds."""
    words = text.strip()
    if words.lower() in _NO_TIME - {"0"}:
        return None
    if _NUMBER.fullmatch(words):
        return float(words)
    match = _DURATION.fullmatch(words)
    if match is None:
        raise ValueError(f"{text!r} is not a duration")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


_HINT = (
    f"use the output of sacct -X -P -o {_COLUMNS} or "
    "of squeue --json, PBS's accounting log, or CSV with a header: jobid,nodelist,start,end"
)


def read_jobs(text: str, source: str) -> Iterator[JobRecord]:
    r"""Yield the jobs in a text that have or had nodes, in the order listed.

    `text`: what ``sacct -P`` or ``squeue --json`` printed, PBS's accounting log, or CSV with a
    header.
    """
    text = without_messages(without_prompts(text))[0]
    head = text.lstrip()
    line = head.split("\n", 1)[0]
    if not head:
        raise ParseError(source, 0, "lists no jobs", _HINT)
    if head[0] == "{":
        return _read_queue(text, source)
    if RECORD.match(line):
        return read_log(text, source)
    if head_of(line) is not None:
        return read_table(text, source)
    at = text.count("\n", 0, len(text) - len(head)) + 1
    words = line.split()
    if {"JobID", "NodeList"} <= set(words):
        raise ParseError(source, at, "the table's columns are cut off", "use sacct -P")
    raise ParseError(source, at, f"'{line}' is not the start of a job list", _HINT)


def _read_queue(text: str, source: str) -> Iterator[JobRecord]:
    """Yield the jobs of ``squeue --json`` that hold nodes."""
    try:
        jobs = jobs_in(text)
    except LaunchError as error:
        raise ParseError(source, 0, error.message, error.hint) from None
    if jobs is None:
        raise ParseError(source, 0, "is JSON, but not from squeue --json", _HINT)
    yield from jobs


def jobs_in(text: str) -> tuple[JobRecord, ...] | None:
    """Return the jobs that hold nodes, from the output of ``squeue --json``.

    `text`: the JSON of Slurm 22.05, or of 23.11 and later. None where the text is not a list of
    jobs.
    """
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    jobs = answer.get("jobs") if isinstance(answer, dict) else None
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        return None
    return tuple(job for row in jobs if (job := _queued_job(row)) is not None)


def _queued_job(row: dict[str, Any]) -> JobRecord | None:
    """Read a job in the JSON of Slurm 22.05 or of 23.11 and later; None where it holds no node."""
    states, listed = row.get("job_state"), row.get("nodes")
    state_words = states if isinstance(states, list) else [states]
    holding = any(isinstance(word, str) and word in BUSY for word in state_words)
    if not holding or not isinstance(listed, str) or not listed:
        return None
    number = _set_number(row.get("job_id"))
    if not isinstance(number, int):
        raise LaunchError("squeue --json printed a job without an ID")
    begun = _set_number(row.get("start_time"))
    start = float(begun) if isinstance(begun, (int, float)) and begun > 0 else math.nan
    words = [row.get(key) for key in ("name", "user_name", "partition")]
    name, user, partition = (word if isinstance(word, str) else "" for word in words)
    state = next((word for word in state_words if isinstance(word, str)), "")
    nodes = queued_nodes(listed)
    ppn = _queued_ppn(row, len(nodes))
    return JobRecord(str(number), nodes, name, user, partition, start, state=state, ppn=ppn)


def _queued_ppn(row: dict[str, Any], nodes: int) -> int:
    """Return a job's ranks per node; 0 where its row does not say.

    Slurm counts one task per node where a user names none, so that one alone says nothing.
    """
    stated, tasks = _set_number(row.get("tasks_per_node")), _set_number(row.get("tasks"))
    if isinstance(stated, int) and stated > 0:
        return stated
    even = isinstance(tasks, int) and nodes and tasks > nodes and tasks % nodes == 0
    return tasks // nodes if even else 0


def _set_number(value: Any) -> Any:
    """Return a number, plain as in Slurm 22.05 or wrapped in an object as since 23.11."""
    if isinstance(value, dict):
        return value.get("number") if value.get("set", True) and not value.get("infinite") else None
    return value


def queued_nodes(listed: str) -> NodeList:
    """Return the nodes that squeue lists; raise `LaunchError` if they cannot be read."""
    try:
        return NodeList.parse(listed)
    except NidmapError as error:
        raise LaunchError(f"squeue printed a bad node list: {error}") from None


#: How a record begins: when it was written, its kind, and the job's id.
RECORD = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d(?:\.\d+)?;([A-Za-z]);([^;]*);")

_FIELD = re.compile(r'(?:^|\s)([\w.]+)=("[^"]*"|\S*)')


def read_log(text: str, source: str) -> Iterator[JobRecord]:
    r"""Yield the finished jobs in a PBS accounting log."""
    for line, row in enumerate(split_lines(text, source, LIMIT), 1):
        if not row.strip():
            continue
        begin = RECORD.match(row)
        if begin is None:
            what = f"'{row}' is not a PBS accounting record"
            raise ParseError(
                source, line, what, "a record looks like 05/01/2024 12:00:00;E;7.pbs;…"
            )
        if begin[1] == "E":
            job = _logged_job(begin[2], row[begin.end() :], source, line)
            if job is not None:
                yield job


def _logged_job(number: str, message: str, source: str, line: int) -> JobRecord | None:
    """Return the job of an accounting record; None where it never had nodes."""
    fields = {name: value.strip('"') for name, value in _FIELD.findall(message)}
    if not fields.get("exec_host") or fields.get("start") == "0":
        return None
    try:
        start, end = float(fields["start"]), float(fields["end"])
    except (KeyError, ValueError):
        what = f"job {number} has no start= and end= in seconds"
        raise ParseError(source, line, what, "is the record complete?") from None
    if not start <= end < 1e12:
        raise ParseError(source, line, f"job {number} ends before it starts")
    parts = exec_host(fields["exec_host"], line, source)
    names = dict.fromkeys(part.text.partition(":")[0] for part in parts)
    name, user, queue = (fields.get(key, "") for key in ("jobname", "user", "queue"))
    return JobRecord(number, NodeList(names), name, user, queue, start, end, "COMPLETED")


# --- queries to Slurm ----------------------------------------------------------------------

#: Seconds that the accounting database may take for a week of a busy machine.
_ACCOUNTING = 60.0

_TEXT = re.compile(r"(\d+(?:[_+][0-9]+)?)\|(\S*)")


def running_jobs() -> tuple[JobRecord, ...]:
    """Ask Slurm which jobs hold which nodes.

    By ``squeue --json``; where that is not to be had, ids and nodes only.
    """
    deadline = slurm_deadline()
    answer = ask_slurm(["squeue", "--json"], deadline=deadline, fails=True)
    jobs = None if answer.code else jobs_in(answer.output)
    return _by_text(deadline) if jobs is None else jobs


def _by_text(deadline: Deadline) -> tuple[JobRecord, ...]:
    """Ask for job ids and nodes only, leaving out all text that users can set."""
    answer = ask_slurm(
        ["squeue", "-h", "-a", "--states=R,CG,CF,S", "-o", "%i|%N"], deadline=deadline
    )
    jobs = []
    for line in answer.output.splitlines():
        if not line.strip() or line.startswith("CLUSTER:"):
            continue
        match = _TEXT.fullmatch(line.strip())
        if not match:
            raise LaunchError(f"squeue printed {line!r}", "is it Slurm's own squeue?")
        if match[2]:
            jobs.append(JobRecord(match[1], queued_nodes(match[2])))
    return tuple(jobs)


def accounted_jobs(since: str) -> tuple[JobRecord, ...]:
    """Ask Slurm's accounting for all users' jobs that have had nodes.

    Columns are separated by what cannot be part of a job's name.

    `since`: as ``sacct --starttime`` takes it: ``now-7days``, ``2024-05-01``. Those that ran at
    some time since then, and those that run.
    """
    mark = f"<{os.urandom(8).hex()}>"
    command = ["sacct", "--allusers", "--allocations", "--parsable2", f"--delimiter={mark}"]
    command += [f"--starttime={since}", "--endtime=now", f"--format={_COLUMNS}"]
    answer = ask_slurm(command, deadline=Deadline(_ACCOUNTING), fails=True)
    if answer.code:
        what = f"sacct failed (exit code {answer.code}): {answer.complaint or 'no message'}"
        raise LaunchError(what, "`squeue --json | nidmap jobs -` judges the jobs that run now")
    try:
        return tuple(read_table(answer.output, "sacct", mark))
    except ParseError as error:
        raise LaunchError(f"sacct printed an unreadable table: {error}") from None
