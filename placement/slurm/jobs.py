"""Which jobs run where, and which ran."""

from __future__ import annotations

import os
import re

from placement.accounting.reading import jobs_in, queued_nodes, read_table
from placement.errors import LaunchError, ParseError
from placement.records import JobRecord
from placement.slurm.command import Deadline, ask_slurm, slurm_deadline

__all__ = ["accounted_jobs", "running_jobs"]


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
    answer = ask_slurm(["squeue", "--json"], deadline=deadline, fails=True)
    jobs = None if answer.code else jobs_in(answer.output)
    return _by_text(deadline) if jobs is None else jobs


def _by_text(deadline: Deadline) -> tuple[JobRecord, ...]:
    """Ask for ids and nodes only: what a user can write is left out."""
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
    answer = ask_slurm(command, deadline=Deadline(_ACCOUNTING), fails=True)
    if answer.code:
        what = f"sacct failed (exit code {answer.code}): {answer.complaint or 'no message'}"
        raise LaunchError(what, "`squeue --json | nidmap jobs -` judges the jobs that run now")
    try:
        return tuple(read_table(answer.output, "sacct", mark))
    except ParseError as error:
        raise LaunchError(f"sacct printed an unreadable table: {error}") from None
