# SPDX-License-Identifier: Apache-2.0
"""One replay: the events of a trace under one policy, with the network that jobs share."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.machine import Machine
from nidmap.placement.planners import nested_units
from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.workloads.replay.policies import SiteView, fragmentation, make_policy
from nidmap.workloads.replay.scheduler import Rules, Scheduler
from nidmap.workloads.replay.sharing import Footprint, JobTraffic, Network, Sharing
from nidmap.workloads.replay.trace import Trace

#: Number of moments at which the busy nodes are noted, and the least time between two, seconds.
_MOMENTS, _SHORTEST = 1000, 60.0

#: Smaller relative changes of a job's pace are ignored.
_CHANGE = 1e-3

#: Footprints of candidates that are kept: one of them is soon the job's own.
_KEPT = 16

#: Pattern of jobs whose own does not fit their number of ranks.
_FALLBACK = "stencil:auto"


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """When and where the jobs of a trace ran."""

    # start, end: (n,) seconds since the first submission
    start: Floats
    end: Floats
    # slowdown: (n,) communication time of each job at its start over that alone on the best nodes
    slowdown: Floats
    rows: Ints  # (m,), nodes of all jobs, one job after the other
    first: Ints  # (n + 1,), where the nodes of each job begin in `rows`
    moment: Floats  # (t,) seconds, at even distances
    busy: Ints  # (t, units) busy nodes of each outermost unit
    broken: Floats  # (t,) `fragmentation` of the free nodes
    past_limit: int  # jobs that ran past their limit, slowed down; a site would kill them

    def of(self, job: int) -> Ints:
        """Return the nodes of a job."""
        return self.rows[self.first[job] : self.first[job + 1]].astype(np.int64)


class Replay:
    """A trace on a machine under one policy."""

    def __init__(
        self, machine: Machine, trace: Trace, policy: str, rules: Rules, up: Mask,
        applications: list[JobTraffic] | None = None, network: Network | None = None,
    ) -> None:  # fmt: skip
        self.trace, self.applications = trace, applications or []
        self.network = network or (Network(machine) if applications else None)
        self.sharing = Sharing(self.network) if self.network and applications else None
        judge = self._judge if self.sharing else None
        site = SiteView(machine, trace.nodes.tolist(), trace.submit.tolist(), up, judge)
        self.policy = make_policy(policy, site)
        self.scheduler = Scheduler(trace, up, rules, self.policy)
        jobs = len(trace)
        self.start, self.end = np.full(jobs, np.nan), np.full(jobs, np.inf)
        self.pace, self.slowdown = np.ones(jobs), np.ones(jobs)
        self.share = np.array([app.share for app in applications or ()])
        self._footprints: dict[Any, Footprint] = {}
        self.rows: list[Ints] = [np.empty(0, dtype=np.int32)] * jobs
        self.unit = nested_units(machine, np.arange(len(machine)))[0]
        self.up = up
        self._ending: list[tuple[float, int]] = []
        self._again: list[float] = []
        self._moments: list[tuple[float, Ints, float]] = []
        span = float(trace.submit[-1]) + 1.0
        self._every = max(_SHORTEST, span / _MOMENTS)

    def run(self, told: Callable[[float], None] | None = None) -> Outcome:
        """Replay the entire trace."""
        submit = self.trace.submit.tolist()
        jobs, place, now = len(submit), 0, 0.0
        while place < jobs or self._ending or self._again or self.scheduler.reserved < math.inf:
            upcoming = min(
                submit[place] if place < jobs else math.inf,
                self._ending[0][0] if self._ending else math.inf,
                self._again[0] if self._again else math.inf,
            )
            if upcoming == math.inf:
                upcoming = max(now, self.scheduler.reserved)
            self._note_moments(upcoming)
            now = upcoming
            changed = self._finish(now)
            while place < jobs and submit[place] <= now:
                self._submit(place, now)
                place += 1
                if told is not None and not place % 200:
                    told(place / jobs)
            while self._again and self._again[0] <= now:
                heapq.heappop(self._again)
                self.scheduler.plan_anew()
            for job, rows in self.scheduler.starts(now):
                changed |= self._begin(job, rows, now)
            if changed and self.sharing is not None and self.sharing.jobs:
                self._share(now)
        if self.scheduler.queue:
            left = len(self.scheduler.queue)
            raise UsageError(f"{left} jobs never start under this policy", "are their nodes up?")
        return self._outcome()

    def _submit(self, job: int, now: float) -> None:
        again = self.policy.submitted(job, self.scheduler.open, now)
        if again < math.inf:
            heapq.heappush(self._again, again)
        self.scheduler.submit(job)

    def _finish(self, now: float) -> bool:
        """Free the nodes of jobs that end; return whether others get more of the links."""
        changed = False
        while self._ending and self._ending[0][0] <= now:
            _, job = heapq.heappop(self._ending)
            self.scheduler.finish(job, self.rows[job])
            changed |= self.sharing is not None and self.sharing.remove(job)
        return changed

    def _begin(self, job: int, rows: Ints, now: float) -> bool:
        """Start a job; return whether others get less of the links."""
        self.policy.begun(job)
        self.rows[job] = rows.astype(np.int32)
        self.start[job] = now
        shares = False
        if self.sharing is not None and len(rows) > 1:
            footprint = self._footprint(job, rows)
            app, slowdown = self.applications[job], self.sharing.slowdown(footprint)
            self.slowdown[job], self.pace[job] = slowdown, app.pace(slowdown)
            shares = self.sharing.add(job, footprint, app.share)
        self.end[job] = now + float(self.trace.run[job]) * float(self.pace[job])
        heapq.heappush(self._ending, (float(self.end[job]), job))
        return shares

    def _footprint(self, job: int, rows: Ints) -> Footprint:
        assert self.network is not None
        app = self.applications[job]
        key = app[:3], rows.tobytes()
        if key not in self._footprints:
            if len(self._footprints) >= _KEPT:
                self._footprints.clear()
            try:
                self._footprints[key] = self.network.footprint(app, rows)
            except UsageError:  # not a pattern for this many ranks
                self.applications[job] = app._replace(pattern=_FALLBACK, bytes=None)
                return self._footprint(job, rows)
        return self._footprints[key]

    def _judge(self, job: int, rows: Ints) -> float:
        assert self.sharing is not None
        return self.sharing.slowdown(self._footprint(job, rows))

    def _share(self, now: float) -> None:
        """Update the pace of all jobs that share links."""
        assert self.sharing is not None
        jobs = np.fromiter(self.sharing.jobs, np.int64)
        share = self.share[jobs]
        pace = 1 - share + share * self.sharing.slowdowns()
        changed = np.abs(pace - self.pace[jobs]) > _CHANGE * self.pace[jobs]
        jobs, pace = jobs[changed], pace[changed]
        left = (self.end[jobs] - now) / self.pace[jobs]
        self.pace[jobs] = pace
        self.end[jobs] = now + left * pace
        self._ending = [(float(self.end[job]), job) for _, job in self._ending]
        heapq.heapify(self._ending)

    def _note_moments(self, until: float) -> None:
        """Note the busy nodes at all moments before the next event."""
        while (when := len(self._moments) * self._every) < until < math.inf:
            free = self.scheduler.free
            busy = np.bincount(self.unit[self.up & ~free], minlength=int(self.unit.max()) + 1)
            size = int(np.bincount(self.unit[self.up]).max(initial=1))
            self._moments.append((when, busy, fragmentation(self.unit, free, size)))

    def _outcome(self) -> Outcome:
        first = np.cumsum([0, *map(len, self.rows)], dtype=np.int64)
        moment, busy, broken = zip(*self._moments, strict=True) if self._moments else ((), (), ())
        run = self.end - self.start
        over = (run > self.trace.limit * (1 + 1e-9)) & (self.trace.run < run)
        return Outcome(
            self.start, self.end, self.slowdown, np.concatenate(self.rows), first,
            np.array(moment), np.array(busy, dtype=np.int32), np.array(broken), int(over.sum()),
        )  # fmt: skip
