# SPDX-License-Identifier: Apache-2.0
"""Node lists as people paste them: the output of commands, reduced to its node lists.

`pieces` recognises by content the tables of ``squeue``, ``sinfo`` and
``sacct``, the records of ``scontrol show job|node|step|reservation|partition``, PBS's
``exec_host``, Grid Engine's PE_HOSTFILE and Flux's R, and returns the stretches of host list text
in them; anything else is host list text as a whole. `read_list` fetches the text that a
command-line argument means.

Rows of tables are taken apart from both ends, because the name of a job may hold
blanks: where a row has more words than the header, the last column is still
the last word. What the last column shows in brackets is the reason why a job
waits, and no node.
"""

from __future__ import annotations

import bisect
import json
import os
import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from nidmap.placement.errors import ParseError
from nidmap.placement.names.hostlist import TextPiece, compile_pattern, with_lines
from nidmap.placement.support.prompts import without_prompts
from nidmap.placement.support.reading import read_bytes

_HEAD = compile_pattern(r"^[^\S\n]*+([^\s#][^\n]*)", re.ASCII | re.M)
_EXEC = compile_pattern(
    r"^[ \t]*+exec_host[ \t]*+=[ \t]*+([^\n]*+(?:\n(?:\t|[ ]{8})[^\n]*+)*+)", re.M
)
_QSTAT_JSON = re.compile(r'"(?:exec_host|Jobs)"\s*:')
_RANK_FILE = re.compile(r"rank\s+\d+\s*=", re.ASCII)
_PBS_JOB = re.compile(r"^Job Id: ", re.M)
_PBS_STATE = re.compile(r"^[ \t]+job_state[ \t]*=[ \t]*(\w)", re.M)
_SLOTS = re.compile(r"[A-Za-z0-9_][\w.\-]*/\d[\w.\-/*+,\s]*", re.ASCII)
#: The field with the nodes, for each kind of record.
_FIELDS = {
    **dict.fromkeys(("JobId", "StepId"), "NodeList"),
    "NodeName": "NodeName",
    **dict.fromkeys(("ReservationName", "PartitionName"), "Nodes"),
}
#: A line of Grid Engine's PE_HOSTFILE (sge_pe(5)): host, slots, queue, processors.
_PE_HOST = re.compile(r"(\S+)\s+(\d{1,9})\s+(?:\S+@\S+|<?NULL>?|UNDEFINED)(?:\s+\S+)*\s*", re.A)
#: LSF's exec_host: hosts with their slots before them, or each once per slot.
_LSF_HOSTS = re.compile(
    r"(?=[^:]*\*|[^:]*:)(?![\da-fA-F:]+$)(?:\d{1,9}\*)?[A-Za-z][\w.\-]*"
    r"(?::(?:\d{1,9}\*)?[A-Za-z][\w.\-]*)*",
    re.ASCII,
)
_BEGIN = re.compile(rf"^[ \t]*({'|'.join(_FIELDS)})=", re.M)
_NONE = ("", "(null)", "None")
_JOB_STATE = re.compile(r"\s(?:Job)?State=(\S+)")
_SLOT = re.compile(
    r"([A-Za-z0-9_][\w.\-]*)/(?:(\d+)\*(\d{1,9})|(\d{1,9}(?:-\d{1,9})?(?:,\d{1,9}(?:-\d{1,9})?)*))",
    re.ASCII,
)

_LISTS = ("NODELIST", "NODELIST(REASON)", "HOSTNAMES")
#: Columns whose text may hold blanks.
_BLANKS = {"NAME", "JOBNAME", "REASON", "COMMENT", "COMMAND", "WORK_DIR"}
_ALONE = "paste the table with its header, or the node lists alone, as squeue -h -o %N prints them"
_WAITING = {"PD", "PENDING"}
_STATE_WORDS = ("ST", "STATE")
_JOB_WORDS = ("JOBID", "USER")
_COUNT = re.compile(r"\d{1,8}", re.ASCII)
_DATE = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}")
_WORD = re.compile(r"\S+")
_LINE = re.compile(r"[^\n]+")
_STATES = (
    "allocated|alloc|blocked|boot|completing|comp|down|drained|draining|drain|drng|error|failing"
    "|failg|fail|future|futr|idle|inval|maint|mixed|mix|no_respond|npc|perfctrs|planned|plnd"
    "|power_down|power_up|pow_dn|pow_up|powered_down|powering_down|reboot|reserved|resv|unknown|unk"
)
#: A word of a row whose header was cut off: a state as sinfo prints it, the time of a job.
_TELLING = re.compile(rf"(?:{_STATES})[*~#$@^!%+\-]*|(?:\d+-)?\d+:\d\d(?::\d\d)?", re.ASCII)


def pieces(text: str, source: str) -> tuple[list[TextPiece], bool]:
    """Find the host lists in a text.

    Returns `pieces`: in the order of the text. Returns `once`: True where the text lists a node
    again without meaning it twice, as ``sinfo -N`` does once per partition.
    """
    text = without_prompts(text.removeprefix("\ufeff"))
    first = _HEAD.search(text)
    if first is None:
        return [TextPiece(text)], False
    head, source = first[1], source or "node list"
    if _BEGIN.match(head):
        return scontrol(text, source), False
    if head[0] == "{" and '"R_lite"' in text:
        return flux_resource_set(text, source), False
    if head[0] == "{" and _QSTAT_JSON.search(text):
        return qstat_json(text, source), False
    if head[0] == "{":
        what = "JSON, but neither a Flux R nor from qstat"
        raise ParseError(source, 1, what, "squeue -h -o %N prints one; -m FILE reads Slurm's JSON")
    if _RANK_FILE.match(head):
        what = "a rankfile of Open MPI, not a plain list of nodes"
        raise ParseError(source, 1, what, "--order FILE --format openmpi reads it")
    if "exec_host" in text or _SLOTS.fullmatch(head):
        return _pbs_hosts(text, source, head), False
    if _PE_HOST.fullmatch(head):
        return pe_hosts(text, source), False
    if _LSF_HOSTS.fullmatch(head.rstrip()):
        return lsf_hosts(text), False
    listing = table(text, source) if len(text) > len(head) or " " in head else None
    return listing or ([TextPiece(text)], False)


def _pbs_hosts(text: str, source: str, head: str) -> list[TextPiece]:
    """Read a job's nodes as PBS writes them; host list text otherwise."""
    matches = [*with_lines(_EXEC.finditer(text), text)]
    if not matches and not _SLOTS.fullmatch(head):
        return [TextPiece(text)]
    begins = [match.start() for match in _PBS_JOB.finditer(text)]
    values = [
        ("".join(match[1].split()), line, _pbs_state(text, begins, match.start()))
        for match, line in matches
    ] or [("".join(text.split()), 1, "")]
    return [piece for value, at, state in values for piece in exec_host(value, at, source, state)]


def _pbs_state(text: str, begins: list[int], at: int) -> str:
    """Return the state of the job whose record contains a position; '' if it has none."""
    k = bisect.bisect_right(begins, at)
    start, end = begins[k - 1] if k else 0, begins[k] if k < len(begins) else len(text)
    state = _PBS_STATE.search(text, start, end)
    return state[1] if state else ""


def pe_hosts(text: str, source: str) -> list[TextPiece]:
    """Return the nodes in Grid Engine's PE_HOSTFILE, each with its slots."""
    text_pieces: list[TextPiece] = []
    for line, row in enumerate(text.split("\n"), start=1):
        match = _PE_HOST.fullmatch(row)
        if match:
            text_pieces.append(TextPiece(f"{match[1]}:{match[2]}", line))
        elif row.strip() and not row.lstrip().startswith("#"):
            what = f"'{row.strip()}' is not a line of Grid Engine's PE_HOSTFILE"
            raise ParseError(source, line, what, "a line is: host slots queue processors")
    return text_pieces


def lsf_hosts(text: str) -> list[TextPiece]:
    """Return the nodes of ``bjobs -o exec_host``: ``16*hosta:16*hostb``, or each once per slot.

    A line that is of another kind stays host list text.
    """
    text_pieces: list[TextPiece] = []
    for line, row in enumerate(text.split("\n"), start=1):
        parts = row.strip().split(":") if _LSF_HOSTS.fullmatch(row.strip()) else []
        for slots, _, name in (part.rpartition("*") for part in parts):
            text_pieces.append(TextPiece(f"{name}:{slots}" if slots else name, line))
        text_pieces += [] if parts else [TextPiece(row, line)]
    return text_pieces


def scontrol(text: str, source: str) -> list[TextPiece]:
    """Return the node lists in the output of ``scontrol show job``, ``node``, ``step``, ….

    A job that has no nodes yet has ``NodeList=(null)``; ``ReqNodeList`` and
    ``ExcNodeList`` are what it asked for, not what it has.
    """
    return [
        piece
        for begin, line, record in split_records(text, _BEGIN)
        for piece in _read_record(record, begin[1], line, source)
    ]


def split_records(text: str, begin: re.Pattern[str]) -> Iterator[tuple[re.Match[str], int, str]]:
    """Yield start, line and full text of each record of a text."""
    begins = list(begin.finditer(text))
    ends = [match.start() for match in begins[1:]] + [len(text)]
    for (match, line), end in zip(with_lines(begins, text), ends[: len(begins)], strict=True):
        yield match, line, text[match.start() : end]


def _read_record(record: str, kind: str, line: int, source: str) -> list[TextPiece]:
    field = _FIELDS[kind]
    fields = re.finditer(rf"(?:^|(?<=\s)){field}=(\S*)", record)
    values = [
        (value[1], line + record.count("\n", 0, value.start()))
        for value in islice(fields, 2)  # a second one is refused
    ]
    if len(values) > 1:
        hint = "a job's name may hold anything: paste the output of squeue -h -j ID -o %N"
        raise ParseError(
            source, values[1][1], f"{field}= is given twice in one {kind} record", hint
        )
    state = _JOB_STATE.search(record) if field == "NodeList" else None
    named = state[1] if state else ""
    return [TextPiece(value, at, state=named) for value, at in values if value not in _NONE]


def exec_host(value: str, line: int, source: str, state: str = "") -> list[TextPiece]:
    """Return the nodes of PBS's ``exec_host``, each once per slot.

    `value`: ``n1/0*24+n2/0*24`` (PBS: index and count), ``n1/0+n1/1`` or ``n1/0-23`` (Torque:
    slots by number), without white space.
    """
    text_pieces: list[TextPiece] = []
    for part in value.split("+"):
        match = _SLOT.fullmatch(part)
        if match is None:
            what = f"'{part}' is not part of a PBS host list"
            raise ParseError(source, line, what, "an entry looks like node1/0*24")
        slots = _count_slots(match)
        words = match[1] if slots == 1 else f"{match[1]}:{slots}"
        text_pieces.append(TextPiece(words, line, state=state))
    return text_pieces


def _count_slots(match: re.Match[str]) -> int:
    """Return the number of slots in one part of ``exec_host``."""
    if match[3]:
        return int(match[3])
    ends = (item.partition("-") for item in match[4].split(","))
    return sum(int(high) - int(low) + 1 if dash else 1 for low, dash, high in ends)


def qstat_json(text: str, source: str) -> list[TextPiece]:
    """Return the nodes of the jobs in ``qstat -f -F json``; waiting jobs have none."""
    try:
        jobs = json.loads(text)["Jobs"].values()
        begun = [job for job in jobs if job.get("exec_host")]
        packed = [("".join(job["exec_host"].split()), job.get("job_state", "")) for job in begun]
    except (ValueError, RecursionError):
        raise ParseError(source, 0, "not JSON that qstat printed", "is it complete?") from None
    except (KeyError, TypeError, AttributeError):
        what = "the JSON of qstat has no Jobs with an exec_host"
        raise ParseError(source, 0, what, "use qstat -f -F json") from None
    return [piece for value, state in packed for piece in exec_host(value, 1, source, state)]


def flux_resource_set(text: str, source: str) -> list[TextPiece]:
    """Return the nodes of Flux's R, as ``flux job info ID R`` or ``flux resource R`` print it."""
    try:
        nodelist = json.loads(text)["execution"]["nodelist"]
    except (ValueError, RecursionError):
        raise ParseError(source, 0, "not the JSON of a Flux R", "is it complete?") from None
    except (KeyError, TypeError):
        raise ParseError(
            source, 0, "the Flux R has no execution.nodelist", "is it complete?"
        ) from None
    if not isinstance(nodelist, list) or not all(isinstance(name, str) for name in nodelist):
        raise ParseError(source, 0, "the Flux R's nodelist is not a list of names")
    return [TextPiece(names) for names in nodelist]


class _TableLine(NamedTuple):
    """A line of a table, with its number."""

    line: int
    text: str


def table(text: str, source: str) -> tuple[list[TextPiece], bool] | None:
    """Return a table's node lists, and whether nodes occur repeatedly without significance.

    None where the text is not a table of Slurm's.
    """
    lines = with_lines(_LINE.finditer(text), text)
    rows = (_TableLine(line, match[0].rstrip()) for match, line in lines if match[0].strip())
    first = next((row for row in rows if not _DATE.fullmatch(row.text.strip())), None)
    if first is None:
        return None
    if "|" in first.text:
        return _read_barred(first.text, rows, source)
    words = first.text.split()
    at = next((k for k, word in enumerate(words) if word.upper() in _LISTS), None)
    if at is not None and all(word[0].isalpha() for word in words):
        return _read_headed(_TableHeader(first.text, words, at), rows, source)
    if any(map(_TELLING.fullmatch, words[1:])):
        what = f"'{first.text.strip()}' is a row of a table without its header"
        raise ParseError(source, first.line, what, _ALONE)
    return None


class _TableHeader:
    """A table's header: the position of each column."""

    def __init__(self, text: str, words: list[str], at: int) -> None:
        self.words = upper = [word.upper() for word in words]
        self.starts = [match.start() for match in _WORD.finditer(text)]
        self.at = at
        self.state_at = next((k for k, word in enumerate(upper) if word in _STATE_WORDS), -1)
        self.nodes = upper.index("NODES") if "NODES" in upper else -1
        named = {"AVAIL", "TIMELIMIT", "HOSTNAMES"} & set(upper)
        states = {"PARTITION", "STATE"} <= set(upper) and "JOBID" not in upper
        self.sinfo = bool(named) or states

    def cell(self, row: str) -> tuple[str, int] | None:
        """Return a row's node list and node count; None if it has no list."""
        words = [(match.group(), match.start()) for match in _WORD.finditer(row)]
        if self.at == len(self.words) - 1 and (row.endswith(")") or row.endswith("None assigned")):
            return None
        extra = len(words) - len(self.words)
        if extra < 0 and _WAITING & {word for word, _ in words}:
            return None
        shift = self._shift(extra, self.at)
        if shift is None:
            start = self.starts[self.at]
            cell = next((word for word, begin in words if begin == start), None)
            return None if cell is None and extra < 0 else (cell or "", 0)
        count = words[self.nodes + shift][0] if self.nodes >= 0 else ""
        return words[self.at + shift][0], int(count) if _COUNT.fullmatch(count) else 0

    def state(self, row: str) -> str:
        """Return the state of a row's job; '' if the table has no such column."""
        words = row.split()
        shift = self._shift(len(words) - len(self.words), self.state_at)
        return words[self.state_at + shift] if self.state_at >= 0 and shift is not None else ""

    def _shift(self, extra: int, at: int) -> int | None:
        """Return by how many words column `at` is shifted; None if unknown."""
        before = bool(_BLANKS & set(self.words[:at]))
        after = bool(_BLANKS & set(self.words[at + 1 :]))
        if extra == 0 or (extra > 0 and after and not before):
            return 0
        last = at == len(self.words) - 1
        return extra if extra > 0 and (last or (before and not after)) else None


def _read_headed(
    header: _TableHeader, rows: Iterator[_TableLine], source: str
) -> tuple[list[TextPiece], bool]:
    """Read the rows below a header."""
    text_pieces: list[TextPiece] = []
    once = header.sinfo
    for row in rows:
        if set(row.text) <= {"-", " "}:
            once = True  # sacct: a job, its batch step and its steps name the same nodes
            continue
        if row.text.split() == header.words:
            continue  # printed again by --iterate
        if header.words[0] == "JOBID" and not row.text.lstrip()[0].isdigit():
            raise _refuse_row(row, source)
        cell = header.cell(row.text)
        if cell is None:
            continue
        if not re.match(r"[A-Za-z0-9_\[(]", cell[0]):
            raise _refuse_row(row, source)
        if cell[0][0] != "(":
            expected = 0 if _is_leaving(row.text) else cell[1]
            text_pieces.append(TextPiece(cell[0], row.line, expected, header.state(row.text)))
    return text_pieces, once


def _read_barred(
    header: str, rows: Iterator[_TableLine], source: str
) -> tuple[list[TextPiece], bool] | None:
    """Read a table of ``sacct -P`` or ``squeue -o "%i|%N"``; None if it has no node lists."""
    names = [name.strip() for name in header.split("|")]
    columns = {name.upper(): k for k, name in reversed([*enumerate(names)])}
    at = next((columns[name] for name in _LISTS if name in columns), None)
    if at is None or not set(_STATE_WORDS + _JOB_WORDS) & columns.keys():
        return None
    state_at = next((columns[name] for name in _STATE_WORDS if name in columns), None)
    text_pieces: list[TextPiece] = []
    for row in rows:
        cells = [cell.strip() for cell in row.text.split("|")]
        if cells == names:
            continue
        if len(cells) != len(names):
            raise _refuse_row(row, source)
        if cells[at] and cells[at] != "None assigned" and cells[at][0] != "(":
            state = "" if state_at is None else cells[state_at].partition(" ")[0]
            text_pieces.append(TextPiece(cells[at], row.line, state=state))
    return text_pieces, names[at] != names[at].upper()  # sacct's: steps name their job's nodes


def _is_leaving(row: str) -> bool:
    """Tell whether a job is releasing its nodes: its list is shorter than its count."""
    return " CG " in row or " COMPLETI" in row


def _refuse_row(row: _TableLine, source: str) -> ParseError:
    what = f"this row does not fit the table above it: '{row.text.strip()}'"
    return ParseError(source, row.line, what, _ALONE)


def read_list(argument: str, option: str = "") -> tuple[str, str]:
    """Fetch the text that an argument refers to: standard input, a file, or itself.

    ``-`` is standard input, ``@FILE`` and the path of an existing file are
    read, gzip too; everything else is the list itself. A node called like a file in the
    working directory is therefore taken for the file.

    `option`: name of the option, the source of a list given directly. Returns `source`: ``-``
    (behind the option's name), the file's path, or `option`.
    """
    if argument == "-":
        reader = f"{option} -".lstrip()
        return read_bytes("-", reader).decode(errors="replace"), reader
    path = argument.removeprefix("@") or argument
    is_text = not argument or not os.path.exists(argument) or os.path.isdir(argument)
    if is_text and not argument.startswith("@"):
        return argument, option
    # bytes that are not text become a mark that no name may hold
    return read_bytes(path).decode(errors="replace"), path
