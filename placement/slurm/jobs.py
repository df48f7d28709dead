"""Which jobs run where, and which ran."""

from __future__ import annotations

import json
import math
import os
import re
from typing import Any

from placement.accounting.tables import read_table
from placement.errors import LaunchError, NidmapError, ParseError
from placement.nodelist import NodeList
from placement.readers.job_list import BUSY
from placement.records import JobRecord
from placement.slurm.command import Deadline, ask, slurm_deadline

__all__ = ["accounted_jobs", "jobs_in", "running_jobs"]


#: Seconds that the accounting database may take for a week of a busy machine.
_ACCOUNTING = 60.0

#: What is asked of the accounting, names that users write last.
_COLUMNS = "JobID,User,Partition,State,Start,End,NodeList,JobName"

_TEXT = re.compile(r"(\d+(?:[_+][0-9]+)?)\|(\S*)")


def running_jobs() -> tuple[JobRecord, ...]:
    """Ask Slurm which jobs hold which nodes.

    Returns
    -------
    tuple of JobRecord
        By ``squeue --json``; where that is not to be had, ids and nodes only.

    Raises
    ------
    LaunchError
        Slurm is missing, down, slow, or prints what is not squeue's.
    """
    deadline = slurm_deadline()
    answer = ask(["squeue", "--json"], deadline=deadline, fails=True)
    jobs = None if answer.code else jobs_in(answer.output)
    return _by_text(deadline) if jobs is None else jobs


def jobs_in(text: str) -> tuple[JobRecord, ...] | None:
    """Return the jobs that hold nodes in what ``squeue --json`` printed.

    Parameters
    ----------
    text : str
        The JSON of Slurm 22.05, or of 23.11 and later.

    Returns
    -------
    tuple of JobRecord or None
        None where the text is not a list of jobs.

    Raises
    ------
    LaunchError
        A job without an id, or nodes that cannot be read.

    Examples
    --------
    >>> jobs_in('{"jobs": [{"job_id": 7, "job_state": ["RUNNING"], "nodes": "n[1-2]"}]}')[0].nodes
    NodeList.parse('n[1-2]')
    >>> jobs_in("JOBID PARTITION NAME") is None
    True
    """
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    jobs = answer.get("jobs") if isinstance(answer, dict) else None
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        return None
    return tuple(job for row in jobs if (job := _job(row)) is not None)


def _job(row: dict[str, Any]) -> JobRecord | None:
    """Read one job in the JSON of Slurm 22.05 or of 23.11 and later; None where it holds no node.

    Examples
    --------
    >>> _job({"job_id": 7, "job_state": "RUNNING", "nodes": "n[1-2]", "name": "a|b"}).nodes
    NodeList.parse('n[1-2]')
    >>> _job({"job_id": 7, "job_state": ["PENDING"], "nodes": ""}) is None
    True
    """
    states, listed = row.get("job_state"), row.get("nodes")
    state_words = states if isinstance(states, list) else [states]
    holding = any(isinstance(word, str) and word in BUSY for word in state_words)
    if not holding or not isinstance(listed, str) or not listed:
        return None
    number = _number(row.get("job_id"))
    if not isinstance(number, int):
        raise LaunchError("squeue --json prints a job without an id")
    begun = _number(row.get("start_time"))
    start = float(begun) if isinstance(begun, (int, float)) and begun > 0 else math.nan
    words = [row.get(key) for key in ("name", "user_name", "partition")]
    name, user, partition = (word if isinstance(word, str) else "" for word in words)
    state = next((word for word in state_words if isinstance(word, str)), "")
    return JobRecord(str(number), _nodes(listed), name, user, partition, start, state=state)


def _number(value: Any) -> Any:
    """Return a number as Slurm 22.05 writes it, and as 23.11 and later do.

    Examples
    --------
    >>> _number(7), _number({"set": True, "infinite": False, "number": 7}), _number({"set": False})
    (7, 7, None)
    """
    if isinstance(value, dict):
        return value.get("number") if value.get("set", True) and not value.get("infinite") else None
    return value


def _nodes(listed: str) -> NodeList:
    try:
        return NodeList.parse(listed)
    except NidmapError as error:
        raise LaunchError(f"squeue prints bad nodes: {error}") from None


def _by_text(deadline: Deadline) -> tuple[JobRecord, ...]:
    """Ask for ids and nodes only: what a user can write is left out."""
    answer = ask(["squeue", "-h", "-a", "--states=R,CG,CF,S", "-o", "%i|%N"], deadline=deadline)
    jobs = []
    for line in answer.output.splitlines():
        if not line.strip() or line.startswith("CLUSTER:"):
            continue
        match = _TEXT.fullmatch(line.strip())
        if not match:
            raise LaunchError(f"squeue printed {line!r}", "is it Slurm's own squeue?")
        if match[2]:
            jobs.append(JobRecord(match[1], _nodes(match[2])))
    return tuple(jobs)


def accounted_jobs(since: str) -> tuple[JobRecord, ...]:
    """Ask Slurm's accounting for the jobs of all users that have had nodes.

    Columns are parted by what nobody could have written into the name of a job.

    Parameters
    ----------
    since : str
        As ``sacct --starttime`` takes it: ``now-7days``, ``2024-05-01``.

    Returns
    -------
    tuple of JobRecord
        Those that ran at some time since then, and those that run.

    Raises
    ------
    LaunchError
        Slurm is missing, down or slow, keeps no accounts, or prints what is not sacct's.
    """
    mark = f"<{os.urandom(8).hex()}>"
    command = ["sacct", "--allusers", "--allocations", "--parsable2", f"--delimiter={mark}"]
    command += [f"--starttime={since}", "--endtime=now", f"--format={_COLUMNS}"]
    answer = ask(command, deadline=Deadline(_ACCOUNTING), fails=True)
    if answer.code:
        what = f"sacct failed (exit code {answer.code}): {answer.complaint or 'no message'}"
        raise LaunchError(what, "`squeue --json | nidmap jobs -` judges the jobs that run now")
    try:
        return tuple(read_table(answer.output, "sacct", mark))
    except ParseError as error:
        raise LaunchError(f"sacct printed an unreadable table: {error}") from None
