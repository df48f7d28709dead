"""Any list of jobs that says when they ran: recognised by what stands in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from placement.accounting.tables import head_of, read_table
from placement.errors import LaunchError, ParseError
from placement.lists.pasted import exec_host
from placement.nodelist import NodeList
from placement.readers.plain import split_lines
from placement.records import JobRecord
from placement.slurm.jobs import jobs_in
from placement.support.reading import LIMIT

__all__ = ["RECORD", "read_jobs", "read_log"]

_HINT = (
    "it is the output of sacct -X -P -o JobID,User,Partition,State,Start,End,NodeList,JobName or "
    "of squeue --json, PBS's accounting log, or CSV with a header: jobid,nodelist,start,end"
)


def read_jobs(text: str, source: str) -> Iterator[JobRecord]:
    r"""Yield the jobs of a text that have or had nodes, in its order.

    Parameters
    ----------
    text : str
        What ``sacct -P`` or ``squeue --json`` printed, PBS's accounting log, or
        CSV with a header.
    source : str
        File name, for errors.

    Raises
    ------
    ParseError
        At the first line that cannot be read, and where it is none of these.

    Examples
    --------
    >>> jobs = read_jobs("job,hosts,start,end\n7,n1,10,20\n", "jobs.csv")
    >>> [(job.id, job.nodes.fold(), job.start, job.end) for job in jobs]
    [('7', 'n1', 10.0, 20.0)]
    """
    head = text.lstrip()
    line = head.split("\n", 1)[0]
    if not head:
        raise ParseError(source, 0, "holds no job", _HINT)
    if head[0] == "{":
        return _read_queue(text, source)
    if RECORD.match(line):
        return read_log(text, source)
    if head_of(line) is not None:
        return read_table(text, source)
    at = text.count("\n", 0, len(text) - len(head)) + 1
    words = line.split()
    if {"JobID", "NodeList"} <= set(words):
        raise ParseError(source, at, "a table whose columns are cut off", "print it with sacct -P")
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


#: How a record begins: when it was written, its kind, and the job's id.
RECORD = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d(?:\.\d+)?;([A-Za-z]);([^;]*);")

_FIELD = re.compile(r'(?:^|\s)([\w.]+)=("[^"]*"|\S*)')

_HOSTS = ("exec_host", "exec_vnode")


def read_log(text: str, source: str) -> Iterator[JobRecord]:
    r"""Yield the jobs that ended, by an accounting log of PBS.

    Parameters
    ----------
    text : str
    source : str
        File name, for errors.

    Raises
    ------
    ParseError
        At a line that is no record, or a record of an ended job without its times.

    Examples
    --------
    >>> line = "05/01/2024 12:00:00;E;7.pbs;user=ada jobname=lmp queue=workq start=10 "
    >>> job = next(read_log(line + "exec_host=n1/0*4+n2/0*4 end=20 Exit_status=0\n", "log"))
    >>> job.id, job.user, job.nodes.fold(), job.end - job.start
    ('7.pbs', 'ada', 'n[1-2]', 10.0)
    """
    for line, row in enumerate(split_lines(text, source, LIMIT), 1):
        if not row.strip():
            continue
        begin = RECORD.match(row)
        if begin is None:
            what = f"'{row}' is not a PBS accounting record"
            raise ParseError(source, line, what, "one looks like 05/01/2024 12:00:00;E;7.pbs;…")
        if begin[1] == "E":
            job = _job(begin[2], row[begin.end() :], source, line)
            if job is not None:
                yield job


def _job(number: str, message: str, source: str, line: int) -> JobRecord | None:
    """Return the job of a record; None where it never had a node."""
    fields = {name: value.strip('"') for name, value in _FIELD.findall(message)}
    hosts = next((key for key in _HOSTS if fields.get(key)), "")
    if not hosts or fields.get("start") == "0":
        return None
    try:
        start, end = float(fields["start"]), float(fields["end"])
    except (KeyError, ValueError):
        what = f"job {number} has no start= and end= in seconds"
        raise ParseError(source, line, what, "is the record complete?") from None
    if not start <= end < 1e12:
        raise ParseError(source, line, f"job {number} ends before it starts")
    parts = exec_host(fields[hosts], line, source, vnodes=hosts == "exec_vnode")
    names = dict.fromkeys(part.text.partition(":")[0] for part in parts)
    name, user, queue = (fields.get(key, "") for key in ("jobname", "user", "queue"))
    return JobRecord(number, NodeList(names), name, user, queue, start, end, "COMPLETED")
