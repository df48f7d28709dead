"""Any list of jobs that says when they ran: recognised by what stands in it."""

from __future__ import annotations

from collections.abc import Iterator

from placement.accounting.pbs import RECORD, read_log
from placement.accounting.record import JobRecord
from placement.accounting.tables import head_of, read_table
from placement.errors import LaunchError, ParseError
from placement.slurm.jobs import jobs_in

__all__ = ["read_jobs"]

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
