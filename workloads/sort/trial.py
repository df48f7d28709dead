# SPDX-License-Identifier: Apache-2.0
"""The trial shared by all sorts: what is timed and verified of MP-sort, merge sort and ISx."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from nidmap.placement.support.array_types import Array
from nidmap.workloads.sort.data import refuse_faults, sort_faults
from nidmap.workloads.sort.ranks import Ranks
from nidmap.workloads.trials import Phases
from nidmap.workloads.world import Comm, raise_together


class SortTrial(ABC):
    """Data on every rank that is sorted anew in each repetition. Collective."""

    name: ClassVar[str]  # as errors name it
    phases: ClassVar[tuple[str, ...]]  # in order
    exchanged: ClassVar[tuple[str, ...]]  # those of them that are communication

    def __init__(self, comm: Comm) -> None:
        self.comm, self.ranks = comm, Ranks(comm)
        self.result: Array | None = None
        self.before = np.zeros(0, np.uint64)  # sums of the data's hashes

    def prepare(self, watch: Phases) -> None:  # noqa: B027  # most have nothing to prepare
        """Do the part of a repetition that does not count towards its total."""

    @abstractmethod
    def sort(self, watch: Phases) -> Array:
        """Sort once and return this rank's part."""

    @abstractmethod
    def expected(self) -> int:
        """Return how many items this rank must end up with."""

    @abstractmethod
    def keys(self, result: Array) -> Array:
        """Return the keys by which a result is ordered."""

    @abstractmethod
    def own_faults(self, result: Array, keys: Array) -> list[str]:
        """Return further faults of a result. Collective."""

    def run(self) -> dict[str, float]:
        """Sort once and return this rank's seconds."""
        self.result = None  # free it before the next one is made
        watch = Phases(self.phases)
        self.prepare(watch)
        began = time.perf_counter()
        self.result = self.sort(watch)
        total = time.perf_counter() - began
        talk = sum(watch.seconds[name] for name in self.exchanged)
        return {"total": total, "communication": talk, **watch.seconds}

    def verify(self) -> None:
        """Raise on all ranks if the last result is wrong; not timed.

        In order on and over ranks, as many as there must be, none lost, doubled or altered.
        """
        if self.result is None:
            return
        keys = self.keys(self.result)
        faults = sort_faults(self.ranks, self.before, self.result, [keys], self.expected())
        faults += self.own_faults(self.result, keys)
        with raise_together(self.comm):
            refuse_faults(faults, self.name)
