"""Which jobs run where."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from placement.errors import LaunchError, NidmapError, printable
from placement.nodelist import NodeList
from placement.slurm.command import Deadline, ask, slurm_deadline

__all__ = ["RunningJob", "jobs_in", "running_jobs"]

#: States of a job that holds its nodes.
_HOLDING = {"RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING"}

_TEXT = re.compile(r"(\d+(?:[_+][0-9]+)?)\|(\S*)")


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that holds nodes.

    Attributes
    ----------
    id : str
        ``4711``.
    nodes : NodeList
    name, user : str
        As the user wrote them: any characters, to be escaped wherever they
        are shown. '' where only squeue's text could be had, which can be
        forged by a job's name.
    partition : str
    """

    id: str
    nodes: NodeList
    name: str = ""
    user: str = ""
    partition: str = ""


def running_jobs() -> tuple[RunningJob, ...]:
    """Ask Slurm which jobs hold which nodes.

    Returns
    -------
    tuple of RunningJob
        By ``squeue --json``; where that is not to be had, ids and nodes only.

    Raises
    ------
    LaunchError
        Slurm is missing, down, slow, or prints what is not squeue's.
    """
    deadline = slurm_deadline()
    answer = ask(["squeue", "--json"], deadline=deadline, fails=True)
    found = None if answer.code else jobs_in(answer.output)
    return _by_text(deadline) if found is None else found


def jobs_in(text: str) -> tuple[RunningJob, ...] | None:
    """Return the jobs that hold nodes in what ``squeue --json`` printed.

    Parameters
    ----------
    text : str
        The JSON of Slurm 22.05, or of 23.11 and later.

    Returns
    -------
    tuple of RunningJob or None
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
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    jobs = found.get("jobs") if isinstance(found, dict) else None
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        return None
    return tuple(job for row in jobs if (job := _job(row)) is not None)


def _job(row: dict[str, Any]) -> RunningJob | None:
    """Read one job in the JSON of Slurm 22.05 or of 23.11 and later; None where it holds no node.

    Examples
    --------
    >>> _job({"job_id": 7, "job_state": "RUNNING", "nodes": "n[1-2]", "name": "a|b"}).nodes
    NodeList.parse('n[1-2]')
    >>> _job({"job_id": 7, "job_state": ["PENDING"], "nodes": ""}) is None
    True
    """
    states, listed = row.get("job_state"), row.get("nodes")
    said = states if isinstance(states, list) else [states]
    holding = any(isinstance(word, str) and word in _HOLDING for word in said)
    if not holding or not isinstance(listed, str) or not listed:
        return None
    number = row.get("job_id")
    if isinstance(number, dict):  # {"set": true, "number": 7}
        number = number.get("number")
    if not isinstance(number, int):
        raise LaunchError("squeue --json prints a job without an id")
    words = [row.get(key) for key in ("name", "user_name", "partition")]
    name, user, partition = (word if isinstance(word, str) else "" for word in words)
    return RunningJob(str(number), _nodes(listed), name, user, partition)


def _nodes(listed: str) -> NodeList:
    try:
        return NodeList.parse(listed)
    except NidmapError as error:
        raise LaunchError(f"squeue prints bad nodes: {error}") from None


def _by_text(deadline: Deadline) -> tuple[RunningJob, ...]:
    """Ask for ids and nodes only: what a user can write is left out."""
    answer = ask(["squeue", "-h", "-a", "--states=R,CG,CF,S", "-o", "%i|%N"], deadline=deadline)
    jobs = []
    for line in answer.output.splitlines():
        if not line.strip() or line.startswith("CLUSTER:"):
            continue
        match = _TEXT.fullmatch(line.strip())
        if not match:
            raise LaunchError(f"squeue printed {printable(line)!r}", "is it Slurm's own squeue?")
        if match[2]:
            jobs.append(RunningJob(match[1], _nodes(match[2])))
    return tuple(jobs)
