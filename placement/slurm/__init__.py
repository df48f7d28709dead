"""Slurm's command line, asked: idle nodes, running jobs, topology, expected starts.

Every question is one command without a shell, in a clean environment and with
a few seconds to answer (`placement.slurm.command`); what it prints is parsed
with suspicion. A Slurm that is missing, down, slow or talks nonsense is a
`LaunchError` with a hint.
"""

from __future__ import annotations

from placement.slurm.command import TIMEOUT, Answer, Deadline, ask
from placement.slurm.jobs import RunningJob, jobs_in, running_jobs
from placement.slurm.nodes import SlurmNodes, free_nodes, topology
from placement.slurm.reservations import Reservation, reservations
from placement.slurm.starts import ExpectedStart, PlanCheck, check_plan, expected_start

__all__ = [
    "TIMEOUT",
    "Answer",
    "Deadline",
    "ExpectedStart",
    "PlanCheck",
    "Reservation",
    "RunningJob",
    "SlurmNodes",
    "ask",
    "check_plan",
    "expected_start",
    "free_nodes",
    "jobs_in",
    "reservations",
    "running_jobs",
    "topology",
]
