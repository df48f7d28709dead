"""PBS's accounting log: the records of jobs that have ended.

``date time;E;id;key=value key=value …`` (PBS Professional, OpenPBS and Torque); of
all records only those of ended jobs, ``E``, say when they began and when they ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from placement.accounting.record import JobRecord
from placement.errors import ParseError
from placement.lists.pasted import exec_host
from placement.nodelist import NodeList
from placement.readers.plain import split_lines
from placement.support.reading import LIMIT

__all__ = ["RECORD", "read_log"]

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
