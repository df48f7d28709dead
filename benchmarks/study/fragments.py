# SPDX-License-Identifier: Apache-2.0
"""A machine as jobs find it: other jobs on it, and holes between them.

No paper publishes what ran beside its runs. Here jobs of random sizes come
and go, each on the first free nodes, until the holes between them look as
they do on a machine in use; the seed is all that differs between two of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nidmap.placement.errors import PlanError
from nidmap.placement.plan import plan
from nidmap.rankmap.predict.background import Other

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine
    from nidmap.placement.support.array_types import Ints, Mask


#: Nodes of the largest other job.
LARGEST = 512
#: Jobs that come before the machine is looked at.
TURNS = 2000


@dataclass(slots=True, eq=False)
class Busy:
    """A machine with jobs on it.

    Attributes
    ----------
    machine : Machine
    free : bool (n,)
        Rows on which nothing runs.
    jobs : list of Other
        What runs, in the order in which it will end.
    """

    machine: Machine
    free: Mask
    jobs: list[Other]

    def room(self, count: int) -> Ints:
        """Return the nodes that Slurm gives a job, ending others until it can start.

        Raises
        ------
        PlanError
            Where even the empty machine has no such nodes.
        """
        while True:
            try:
                return plan(self.machine, count, strategy="slurm-none", candidates=self.free).rows
            except PlanError:
                if not self.jobs:
                    raise
                self.end()

    def contiguous(self, count: int) -> Ints:
        """Return the first `count` consecutive free nodes in Slurm's node table.

        That has compute nodes only: service nodes between them part nothing.

        Raises
        ------
        PlanError
            Where the machine has not so many nodes.
        """
        table = np.flatnonzero(self.machine.compute)
        while True:
            taken = np.append(0, np.cumsum(~self.free[table]))
            starts = np.flatnonzero(taken[count:] == taken[: len(taken) - count])
            if len(starts):
                return table[starts[0] : starts[0] + count]
            if not self.jobs:
                raise PlanError(f"no {count} nodes in a row on {self.machine.name}")
            self.end()

    def end(self) -> None:
        """End the next job."""
        self.free[self.jobs.pop().rows] = True

    def copy(self) -> Busy:
        """Return a copy of the machine in its present state."""
        return Busy(self.machine, self.free.copy(), list(self.jobs))


def busy(machine: Machine, seed: int, share: float, load: float = 1.0) -> Busy:
    """Return a machine on which other jobs have come and gone.

    Parameters
    ----------
    machine : Machine
    seed : int
    share : float
        Share of the free nodes on which jobs run.
    load : float
        GB/s that each of their nodes sends.

    Examples
    --------
    >>> import nidmap
    >>> found = busy(nidmap.load_machine("torus:8x8x8"), 1, 0.9)
    >>> sum(len(job.rows) for job in found.jobs) + int(found.free.sum())
    512
    """
    key = ("study", "busy", seed, share, load)
    kept: dict[Any, Any] = machine._cache
    if key not in kept:
        kept[key] = _busy(machine, seed, share, load)
    found: Busy = kept[key]
    return found.copy()


def _busy(machine: Machine, seed: int, share: float, load: float) -> Busy:
    lots = np.random.default_rng(seed)
    places = np.flatnonzero(machine.free)
    empty = np.ones(len(places), dtype=bool)
    least = (1 - share) * len(places)
    running: list[Ints] = []
    for _ in range(TURNS):
        size = int(2 ** lots.uniform(0, np.log2(min(LARGEST, max(2, len(places) // 4)))))
        while running and empty.sum() - size < least:
            empty[running.pop(int(lots.integers(len(running))))] = True
        taken = np.flatnonzero(empty)[:size]
        empty[taken] = False
        running.append(taken)
    ends = lots.permutation(len(running))
    free = np.zeros(len(machine), dtype=bool)
    free[places[empty]] = True
    return Busy(machine, free, [Other(places[running[k]], load) for k in ends])


def first_free(one: Busy, count: int) -> Ints:
    """Return the first free nodes in NID order, as ALPS allocates them; jobs end as needed."""
    while one.free.sum() < count and one.jobs:
        one.end()
    return np.flatnonzero(one.free)[:count]
