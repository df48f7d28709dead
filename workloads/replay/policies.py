# SPDX-License-Identifier: Apache-2.0
"""Placement policies: how all jobs of a site get their nodes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nidmap.placement import planners
from nidmap.placement.errors import PlanError, UsageError
from nidmap.placement.machine import Machine
from nidmap.placement.planners import Request
from nidmap.placement.scheduler.baseline import baseline_of, touched_parts
from nidmap.placement.scheduler.kinds import of_same_kinds
from nidmap.placement.support.array_types import Ints, Mask
from nidmap.placement.switch_tree import slurm_switches
from nidmap.rankmap.past_jobs import quick_choices

#: Longest wait for few leaf switches with ``--switches``, seconds (max_switch_wait's default).
PATIENCE = 300.0

#: A plan that gains a smaller share than this is not worth a constraint.
_GAIN = 0.01

#: Returns how many times as long a job communicates on the given nodes as alone on the best.
Judge = Callable[[int, Ints], float]


@dataclass(frozen=True, slots=True, eq=False)
class SiteView:
    """What a policy knows about the site."""

    machine: Machine
    count: list[int]  # (n,) nodes of each job
    submit: list[float]
    up: Mask  # (n,) nodes that take jobs
    judge: Judge | None  # None without a network: policies then choose as the scheduler does


class Policy:
    """The scheduler's own choice, with one of Slurm's topology plugins."""

    def __init__(self, site: SiteView, strategy: str) -> None:
        self.site = site
        self.plan = planners.find(strategy)
        self._inside: dict[int, Mask] = {}  # by waiting job: the nodes that it is restricted to

    def part(self, job: int, free: Mask) -> Mask | None:
        """Return the nodes that a job restricts itself to when it is submitted; None: any."""
        return None

    def submitted(self, job: int, free: Mask, now: float) -> float:
        """Let a job plan when it is submitted; return when to look at it again, or inf."""
        if self.site.count[job] > 1 and self.site.judge is not None:
            part = self.part(job, free)
            if part is not None:
                self._inside[job] = part
        return math.inf

    def begun(self, job: int) -> None:
        """Forget the plan of a job that starts."""
        self._inside.pop(job, None)

    def allowed(self, job: int) -> Mask | None:
        """Return the nodes that a job may have; None for all."""
        return self._inside.get(job)

    def choose(self, job: int, usable: Mask, now: float) -> Ints | None:
        """Return the nodes that a job gets; None if it waits."""
        return self.usual(job, usable)

    def usual(self, job: int, usable: Mask) -> Ints | None:
        """Return the scheduler's choice; None if there is none."""
        try:
            return self.plan(self.site.machine, Request(self.site.count[job], usable))
        except PlanError:
            return None

    def best(self, job: int, usable: Mask) -> Ints | None:
        """Return the nodes on which a job communicates fastest; on a tie the scheduler's."""
        usual = self.usual(job, usable)
        judge, count = self.site.judge, self.site.count[job]
        if count == 1 or judge is None or usual is None:
            return usual
        best, least = usual, judge(job, usual) * (1 - _GAIN)
        for _, rows in quick_choices(self.site.machine, usable, count):
            if least <= 1:
                break
            if (cost := judge(job, rows)) < least:
                best, least = rows, cost
        return best


class FewSwitches(Policy):
    """``--switches``: jobs wait up to `PATIENCE` for as few leaf switches as possible."""

    def __init__(self, site: SiteView, strategy: str) -> None:
        super().__init__(site, strategy)
        self.leaf_of = slurm_switches(site.machine).leaf_of
        sizes = np.bincount(self.leaf_of[site.up & (self.leaf_of >= 0)])
        self.most = np.cumsum(np.sort(sizes)[::-1])

    def submitted(self, job: int, free: Mask, now: float) -> float:
        """Let a job plan when it is submitted; return when to look at it again, or inf."""
        return now + PATIENCE

    def choose(self, job: int, usable: Mask, now: float) -> Ints | None:
        """Return the nodes that a job gets; None if it waits."""
        rows = self.usual(job, usable)
        if rows is None or now - self.site.submit[job] >= PATIENCE:
            return rows
        fewest = int(np.searchsorted(self.most, self.site.count[job])) + 1
        return rows if len(np.unique(self.leaf_of[rows])) <= fewest else None


class Auto(Policy):
    """The best choice of the quick planners and the scheduler among the free nodes."""

    def choose(self, job: int, usable: Mask, now: float) -> Ints | None:
        """Return the nodes that a job gets; None if it waits."""
        return self.best(job, usable)


class Soft(Policy):
    """Jobs exclude the groups that their plan does not use, as a line in the job script does.

    Only if the plan can be made of what is free at submission, and if the scheduler's own choice
    is then faster than its choice among all nodes.
    """

    def part(self, job: int, free: Mask) -> Mask | None:
        """Return the nodes that a job restricts itself to; None: any."""
        machine, judge = self.site.machine, self.site.judge
        rows, usual = self.best(job, free), self.usual(job, free)
        if rows is None or usual is None or judge is None:
            return None
        least = judge(job, usual) * (1 - _GAIN)
        same = of_same_kinds(machine, rows)
        for unit, _ in touched_parts(machine, rows):
            choice = self.usual(job, free & unit & same)
            if choice is not None and judge(job, choice) < least:
                return unit & same & self.site.up
        return None


class Pin(Policy):
    """``--nodelist``: jobs wait for exactly the nodes that they planned at submission.

    A job that found too few free nodes to plan takes any.
    """

    def part(self, job: int, free: Mask) -> Mask | None:
        """Return the nodes of the plan."""
        rows = self.best(job, free)
        if rows is None:
            return None
        inside = np.zeros(len(free), dtype=bool)
        inside[rows] = True
        return inside


class Fixed(Pin):
    """``--nodelist``: jobs wait for the nodes of a plan made on the empty machine."""

    def part(self, job: int, free: Mask) -> Mask | None:
        """Return the nodes of the plan."""
        return super().part(job, self.site.up)


#: By name: class, planner of the scheduler's own choice ('': the site's), description.
_KINDS: dict[str, tuple[type[Policy], str, str]] = {
    "slurm": (Policy, "", "the scheduler's own choice"),
    "none": (Policy, "slurm-none", "Slurm's choice with topology/none"),
    "tree": (Policy, "slurm-tree", "Slurm's choice with topology/tree"),
    "switches": (
        FewSwitches,
        "slurm-tree",
        "topology/tree and --switches, with waits of up to 5 minutes",
    ),
    "soft": (Soft, "", "jobs exclude the groups that their plan does not use"),
    "pin": (Pin, "", "jobs wait for the nodes that they planned among those free at submission"),
    "fixed": (Fixed, "", "jobs wait for the nodes of a plan made on the empty machine"),
    "auto": (Auto, "", "the best of quick plans among the free nodes"),
}

NAMES = tuple(_KINDS)


def describe_policies(names: tuple[str, ...]) -> dict[str, str]:
    """Return the descriptions of policies, by name."""
    return {name: _KINDS[name][2] for name in names}


def make_policy(name: str, site: SiteView) -> Policy:
    """Return a policy for one replay."""
    if name not in _KINDS:
        raise UsageError(f"unknown policy {name!r}", f"choose from {', '.join(_KINDS)}")
    kind, strategy, _ = _KINDS[name]
    return kind(site, strategy or baseline_of(site.machine).strategy)


def fragmentation(unit: Ints, free: Mask, size: int) -> float:
    """Return how scattered free nodes are: 0 where one unit has as many of them as it can."""
    counts = np.bincount(unit[free])
    most = min(int(counts.sum()), size)
    return 1 - int(counts.max(initial=0)) / most if most else 0.0
