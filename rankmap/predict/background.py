# SPDX-License-Identifier: Apache-2.0
"""Other jobs' traffic on the links that a job shares with them.

A job next to ours is its node list. What it sends is not known: it is assumed
to exchange `load` GB/s per node with all its own nodes alike. A channel is then
shared as fair queues would share it: the others take what they want, but our
job keeps at least an equal share, 1 of 1 + the number of jobs on that channel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nidmap.placement.accounting import running_jobs
from nidmap.placement.errors import ParseError, UsageError, printable
from nidmap.placement.job_nodes import find_job_nodes
from nidmap.placement.lookup import rows_of
from nidmap.placement.machine import Machine
from nidmap.placement.network import Demand, channels, loads
from nidmap.placement.options import MOST
from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.placement.traffic import Traffic

#: GB/s that each node of another job sends, if not stated [assumed].
USUAL_LOAD = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Other:
    """Another job."""

    rows: Ints  # (n,), its nodes
    load: float = USUAL_LOAD  # GB/s that each of them sends to the others
    name: str = ""
    _kept: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Check the load."""
        if not 0 <= self.load <= MOST:
            raise UsageError(f"background load {self.load:g} GB/s: it must be 0 to {MOST:g}")

    def sent(self, machine: Machine, routing: str) -> tuple[Ints, Floats]:
        """Return the channels its nodes send over, and GB/s on each at 1 GB/s per node.

        Computed once for a machine and a routing: one job is asked about again and again.
        """
        kept = self._kept.get(routing)
        if kept is None or kept[0] is not machine:
            ones = np.ones(len(self.rows), dtype=np.int64)
            demand = Demand.of(
                machine, Traffic.everyone(self.rows, ones, 1.0 / (len(self.rows) - 1))
            )
            load = loads(machine, demand, routing).load
            where = np.flatnonzero(load)
            kept = self._kept[routing] = (machine, where, load[where])
        return kept[1], kept[2]


@dataclass(frozen=True, slots=True, eq=False)
class SharedLoads:
    """The load of other jobs on every channel."""

    rate: Floats  # (c,), GB/s
    jobs: Ints  # (c,), jobs that send over it

    def left(self, bandwidth: Floats) -> Floats:
        """Return the part of each channel's bandwidth (GB/s) left for a job."""
        return np.maximum(bandwidth - self.rate, bandwidth / (1.0 + self.jobs))


def shared_channels(machine: Machine, others: Iterable[Other], routing: str) -> SharedLoads:
    """Return the load of jobs on a machine's channels under a routing."""
    size = len(channels(machine, routing))
    rate, jobs = np.zeros(size), np.zeros(size, dtype=np.int64)
    for other in others:
        if len(other.rows) < 2 or not other.load:
            continue
        where, share = other.sent(machine, routing)
        rate[where] += share * other.load
        jobs[where] += 1
    return SharedLoads(rate, jobs)


def from_file(machine: Machine, text: str, source: str, load: float = USUAL_LOAD) -> list[Other]:
    """Read jobs from a text: a node list per line, followed by ``load=2.5`` if not the default.

    A ``#`` begins a comment, unless a digit follows it: ``#0-63`` are indices.
    """
    jobs = list(_read_jobs(machine, text, source, load))
    if not jobs:
        raise ParseError(source, 0, "lists no jobs", "write one node list per line")
    return jobs


def _read_jobs(machine: Machine, text: str, source: str, load: float) -> Iterator[Other]:
    for number, line in enumerate(text.splitlines(), 1):
        words = re.split(r"#(?!\d)", line)[0]
        if not words.strip():
            continue
        nodes, mark, load_text = words.partition("load=")
        try:
            rows = rows_of(machine, nodes.strip(), source)
        except ParseError as error:
            raise ParseError(source, number, error.text, error.hint) from None
        try:
            other = Other(rows, float(load_text) if mark else load, f"line {number}")
        except (ValueError, UsageError):
            shown = printable(load_text.strip(), 30)
            raise ParseError(
                source, number, f"load={shown} is not a number of GB/s of 0 or more"
            ) from None
        yield other


def from_slurm(machine: Machine, load: float = USUAL_LOAD) -> tuple[list[Other], list[str]]:
    """Return the jobs that Slurm reports as running, and remarks on them."""
    job_nodes = find_job_nodes(machine, running_jobs())
    jobs = [Other(job_nodes.of(k), load, f"job {job.id}") for k, job in enumerate(job_nodes.jobs)]
    lost = f"{job_nodes.strangers} nodes of running jobs are not in {machine.name}"
    return jobs, [lost] if job_nodes.strangers else []


def others_near(others: Sequence[Other], ours: Mask) -> list[Other]:
    """Return the other jobs without our own nodes, (nodes,), since Slurm may list our own job."""
    return [
        Other(other.rows[~ours[other.rows]], other.load, other.name)
        if ours[other.rows].any()
        else other
        for other in others
    ]
