# SPDX-License-Identifier: Apache-2.0
"""Jobs' nodes as rows of a machine, and the nodes that were free when each job began."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.nodelist import NodeList
from nidmap.placement.records import JobRecord
from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.placement.support.hosts import HostNames


@dataclass(frozen=True, slots=True, eq=False)
class JobNodes:
    """Jobs on the nodes of a machine."""

    jobs: tuple[JobRecord, ...]  # without their nodes, which are in `rows`
    rows: Ints  # (m,), rows of the machine, job by job, each job's ascending
    first: Ints  # (jobs), where each job's rows begin
    # start, end: (jobs), unix time; inf for the end of a job that runs
    start: Floats
    end: Floats
    strangers: int = 0  # nodes that the machine does not have

    def __len__(self) -> int:
        return len(self.jobs)

    def of(self, job: int) -> Ints:
        """Return the rows of one job."""
        return self.rows[self.first[job] : self.first[job + 1]]

    @property
    def counts(self) -> Ints:
        """Number of nodes of each job, int64 (len(jobs),)."""
        return np.diff(self.first)

    @property
    def node_hours(self) -> Floats:
        """Return each job's node-hours; running jobs count up to the last timestamp listed.

        0 where a start is not known.
        """
        known = np.concatenate([self.start, self.end])
        until = np.minimum(self.end, known[np.isfinite(known)].max(initial=0.0))
        hours: Floats = np.maximum(0.0, until - self.start) / 3600 * self.counts
        return np.where(np.isnan(hours), 0.0, hours)


def find_job_nodes(machine: Machine, records: Iterable[JobRecord]) -> JobNodes:
    """Return jobs on the rows of a machine, without jobs that have no node there.

    A job that is listed twice, with the same id and start, counts once.
    """
    hosts = HostNames(machine.names.tolist())
    row_of: dict[str, int] = {}  # -1: not of the machine
    jobs: dict[tuple[str, float], JobRecord] = {}
    rows: list[Ints] = []
    strangers = 0
    for job in records:
        for name in set(job.nodes).difference(row_of):
            row_of[name] = next(iter(hosts.find(name)), -1)
        known = sorted({row_of[name] for name in job.nodes} - {-1})
        strangers += len(set(job.nodes)) - len(known)
        if known and (job.id, job.start) not in jobs:
            jobs[job.id, job.start] = replace(job, nodes=NodeList())
            rows.append(np.array(known, dtype=np.int64))
    first = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    all_rows = np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)
    start, end = (np.array([getattr(j, key) for j in jobs.values()]) for key in ("start", "end"))
    return JobNodes(tuple(jobs.values()), all_rows, first, start, end, strangers)


def free_at_starts(
    job_nodes: JobNodes, usable: Mask, wanted: Sequence[int] | Ints
) -> Iterator[tuple[int, Mask]]:
    """Yield jobs in order of start, each with the nodes that no other job had then.

    A job has its nodes from its start up to its end: of two, one may begin at the moment
    at which the other ends. One whose start is not known has had them ever since.

    `usable` (n,): nodes that could be had at all: not those that are down, or compute nothing.
    `wanted`: the jobs that are asked about. Yields (n,): its own nodes are not among them.
    """
    start = np.where(np.isnan(job_nodes.start), -np.inf, job_nodes.start)
    lasting = np.flatnonzero(job_nodes.end > start)
    begins = lasting[np.argsort(start[lasting], kind="stable")]
    ends = lasting[np.argsort(job_nodes.end[lasting], kind="stable")]
    held = np.zeros(len(usable), dtype=np.int32)
    begun = ended = 0
    for job in sorted(map(int, wanted), key=start.__getitem__):
        now = start[job]
        while ended < len(ends) and job_nodes.end[ends[ended]] <= now:
            held[job_nodes.of(ends[ended])] -= 1
            ended += 1
        while begun < len(begins) and start[begins[begun]] <= now:
            held[job_nodes.of(begins[begun])] += 1
            begun += 1
        free = usable & (held <= 0)
        free[job_nodes.of(job)] = False
        yield job, free
