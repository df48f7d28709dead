# SPDX-License-Identifier: Apache-2.0
"""Which jobs start now: first come, first served, with backfill by requested times.

``easy`` reserves nodes for the first job that has to wait, ``conservative`` for all of them, as
Slurm's ``sched/backfill`` does. Reservations are numbers of nodes and are made anew whenever a
job ends; a job restricted to some nodes (``--exclude``, ``--nodelist``) reserves those of them
that will be free first. Two rules of other schedulers are options: backfilled jobs may not use
nodes that a reservation leaves over (`Rules.spare`), and a reservation stays though jobs end
early (`Rules.renewed`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.workloads.replay.policies import Policy
from nidmap.workloads.replay.profile import Profile
from nidmap.workloads.replay.trace import Trace


@dataclass(frozen=True, slots=True)
class Rules:
    """How jobs are scheduled."""

    backfill: str = "conservative"  # ``easy``, ``conservative``, or ``none``: no overtaking
    tested: int = 500  # waiting jobs that backfill tries (Slurm's bf_max_job_test)
    # resolution: seconds to which expected ends are rounded up (Slurm's bf_resolution); 0: none
    resolution: float = 60.0
    # spare: whether a backfilled job that lasts longer may use nodes beyond the reservation
    spare: bool = True
    renewed: bool = True  # whether the reservation moves when jobs end before their limits

    @property
    def depth(self) -> float:
        """Most jobs that have a reservation."""
        return {"none": 0, "easy": 1}.get(self.backfill, math.inf)

    def rounded(self, time: float) -> float:
        """Round a time up to the resolution."""
        return math.ceil(time / self.resolution) * self.resolution if self.resolution else time


class Scheduler:
    """The queue of a machine, and which of its nodes are taken until when."""

    def __init__(self, trace: Trace, up: Mask, rules: Rules, policy: Policy) -> None:
        self.rules, self.policy = rules, policy
        self.count: list[int] = trace.nodes.tolist()
        self.limit: list[float] = trace.limit.tolist()
        self.queue: list[int] = []
        self.free: Mask = up.copy()
        self.left = int(up.sum())
        self.release: Floats = np.where(up, -np.inf, np.inf)
        self.expected: dict[int, float] = {}
        self._kept: tuple[int, float] | None = None
        self._promised: Mask | None = None
        self.plan_anew()

    def plan_anew(self) -> None:
        """Try the whole queue next time and make all reservations anew."""
        self._seen = self._reserved = self._tested = 0
        self._barrier = math.inf
        self._profile: Profile | None = None
        self._held: Floats | None = None

    @property
    def open(self) -> Mask:
        """Free nodes that no restricted job waits for."""
        return self.free if self._promised is None else self.free & ~self._promised

    @property
    def reserved(self) -> float:
        """When the reservation that stays begins; inf for none."""
        return self._kept[1] if self._kept is not None else math.inf

    def submit(self, job: int) -> None:
        """Append a job to the queue."""
        self.queue.append(job)

    def finish(self, job: int, rows: Ints) -> None:
        """Release a job's nodes."""
        del self.expected[job]
        self.free[rows] = True
        self.release[rows] = -np.inf
        self.left += len(rows)
        self.plan_anew()

    def starts(self, now: float) -> list[tuple[int, Ints]]:
        """Return the jobs that start now with their nodes, and take them off the queue."""
        if self._kept is not None and now >= self._kept[1]:
            self.plan_anew()
        if self._profile is not None:
            self._profile.advance(now)
        begun: dict[int, tuple[int, Ints]] = {}
        place, last = self._seen, self._last_small(self._seen)
        while place <= last and self._tested <= self.rules.tested:
            if self._reserved >= self.rules.depth and self._profile is not None:
                place = self._next_small(place)
                if place > last or not self.rules.depth:
                    break
            job = self.queue[place]
            rows = self._try(job, now)
            if rows is None:
                self._wait(job, now)
            else:
                begun[place] = job, rows
                self._begin(job, rows, now)
                last = self._last_small(place + 1)
            self._tested += self._profile is not None
            place += 1
        self._promised = None if self._held is None else self._held < np.inf
        self._seen = place - len(begun)
        if begun:
            self.queue = [job for at, job in enumerate(self.queue) if at not in begun]
        return list(begun.values())

    def _last_small(self, place: int) -> int:
        """Return the last place from `place` on of a job no larger than what is free; -1: none.

        No job after it can start, so that their reservations do not matter.
        """
        if not self.rules.renewed and self._kept is None:
            return len(self.queue) - 1  # the first that cannot start is to keep its reservation
        left, count = self.left, self.count
        places = range(len(self.queue) - 1, place - 1, -1) if left else ()
        return next((at for at in places if count[self.queue[at]] <= left), -1)

    def _next_small(self, place: int) -> int:
        """Return the next place in the queue of a job no larger than what is free."""
        queue, left, count = self.queue, self.left, self.count
        last = min(len(queue), place + self.rules.tested - self._tested)
        return next((at for at in range(place, last) if count[queue[at]] <= left), len(queue))

    def _try(self, job: int, now: float) -> Ints | None:
        """Return the nodes on which a job can start now without delaying a reservation."""
        count, kept = self.count[job], self._kept  # which waits until its reservation begins
        if count > self.left or (kept is not None and kept[0] == job and now < kept[1]):
            return None
        end = self.rules.rounded(now + self.limit[job])
        if self._profile is not None and not (
            end <= self._barrier or (self.rules.spare and self._profile.fits(count, end))
        ):
            return None
        usable, allowed = self.free, self.policy.allowed(job)
        if self._held is not None:
            usable = usable & (self._held >= end)
        if allowed is not None:
            usable = usable & allowed
        if usable is not self.free and int(np.count_nonzero(usable)) < count:
            return None
        return self.policy.choose(job, usable, now)

    def _begin(self, job: int, rows: Ints, now: float) -> None:
        end = self.rules.rounded(now + self.limit[job])
        self.free[rows] = False
        self.release[rows] = end
        self.expected[job] = end
        self.left -= len(rows)
        if self._profile is not None:
            self._profile.take(now, end, len(rows))
        if self._kept is not None and self._kept[0] == job:
            self._kept = None

    def _wait(self, job: int, now: float) -> None:
        """Reserve nodes for a job that cannot start, unless enough jobs have reservations."""
        if self._profile is None:
            soon = now + max(1.0, self.rules.resolution)  # of a job that is past its limit
            ends = ((max(end, soon), self.count[k]) for k, end in self.expected.items())
            self._profile = Profile(now, self.left, ends)
        if self._reserved >= self.rules.depth:
            return
        begin = self._reservation(job, now)
        self._reserved += 1
        if not math.isfinite(begin):
            return
        if not self.rules.renewed:
            if self._kept is None:
                self._kept = job, begin
            begin = self._kept[1]
        self._barrier = min(self._barrier, begin)
        end = self.rules.rounded(begin + self.limit[job])
        if begin >= self._profile.times[0]:
            self._profile.take(begin, end, self.count[job])

    def _reservation(self, job: int, now: float) -> float:
        """Return when a waiting job can start; if it is restricted, hold its nodes."""
        assert self._profile is not None
        count, allowed = self.count[job], self.policy.allowed(job)
        later = float(self._profile.times[1])
        later = later if later < math.inf else now
        if allowed is None:
            after = later if count <= self.left else now
            return self._profile.earliest(count, self.limit[job], after)
        rows = np.flatnonzero(allowed)
        rows = rows[np.argsort(self.release[rows], kind="stable")[:count]]
        free_at = float(self.release[rows].max(initial=-np.inf)) if len(rows) == count else math.inf
        if not math.isfinite(max(free_at, now)):
            return math.inf
        after = max(free_at, now) if count > self.left or free_at > now else later
        begin = self._profile.earliest(count, self.limit[job], after)
        if self._held is None:
            self._held = np.full(len(self.free), np.inf)
        self._held[rows] = np.minimum(self._held[rows], begin)
        return begin
