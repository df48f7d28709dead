"""A placement: which nodes a job has, how many ranks each, and where every rank is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from placement.errors import UsageError
from placement.machine import Machine
from placement.network.demand import Demand
from placement.support.array_types import Ints
from placement.traffic import Traffic
from rankmap.slots import Slots

__all__ = ["Placement"]


@dataclass(frozen=True, eq=False)
class Placement:
    """Nodes in the order that numbers the slots, the ranks of each, and the slot of every rank.

    Attributes
    ----------
    machine : Machine
    rows : int64 (n,)
        Rows of the machine, each once.
    counts : int64 (n,)
        Ranks of each node, at least 1.
    slots : int64 (ranks,) or None
        Slot of each rank; None: rank r has slot r.

    Examples
    --------
    >>> import nidmap
    >>> m = nidmap.load_machine("torus:4x4")
    >>> two = Placement(m, np.array([7, 8]), np.array([2, 1]), np.array([2, 0, 1]))
    >>> two.ranks, two.ppn, two.node.tolist(), two.rows[two.node].tolist()
    (3, None, [1, 0, 0], [8, 7, 7])
    """

    machine: Machine
    rows: Ints
    counts: Ints
    slots: Ints | None = None

    def __post_init__(self) -> None:
        """Refuse what places no job.

        Raises
        ------
        UsageError
            Counts for another number of nodes, or slots for another number of ranks.
        """
        if len(self.rows) != len(self.counts):
            raise UsageError(f"{len(self.counts)} counts of ranks for {len(self.rows)} nodes")
        if self.slots is not None and len(self.slots) != self.ranks:
            ranks = len(self.slots)
            raise UsageError(f"an order of {ranks} ranks, but there are {self.ranks} slots")

    @property
    def ranks(self) -> int:
        """Ranks of the job."""
        return int(self.counts.sum())

    @property
    def ppn(self) -> int | None:
        """Ranks of a node where all nodes have as many, else None."""
        return int(self.counts[0]) if (self.counts == self.counts[0]).all() else None

    @classmethod
    def on_slots(cls, slots: Slots, order: Ints | None = None) -> Placement:
        """Return ranks on slots of a machine, each in its slot by `order`.

        Raises
        ------
        UsageError
            Slots that are known by their nodes' names alone.
        """
        if slots.machine is None or slots.rows is None:
            raise UsageError("these nodes belong to no machine that is known")
        return cls(slots.machine, slots.rows, slots.counts, order)

    @property
    def on(self) -> Slots:
        """The slots that the ranks have."""
        return Slots(self.machine.names[self.rows], self.counts, self.machine, self.rows)

    @cached_property
    def node(self) -> Ints:
        """Node of each rank as an index of `rows`, int64 (ranks,)."""
        by_slot = np.repeat(np.arange(len(self.counts)), self.counts)
        return by_slot if self.slots is None else by_slot[self.slots]

    @property
    def slot_of_rank(self) -> Ints:
        """Slot of each rank, int64 (ranks,), where `slots` is None too."""
        return np.arange(self.ranks) if self.slots is None else self.slots

    @property
    def key(self) -> bytes:
        """What tells this placement from others of the machine."""
        order = b"" if self.slots is None else self.slots.tobytes()
        return self.rows.tobytes() + b"|" + order

    def demand(self, traffic: Traffic) -> Demand:
        """Return what traffic between these nodes, by their places, asks of the network."""
        return Demand.of(self.machine, traffic.at(self.rows))

    def on_nodes(self, rows: Ints) -> Placement:
        """Return the same order of the ranks on other nodes, place by place."""
        return replace(self, rows=rows)

    def listed_as(self, rows: Ints) -> Placement:
        """Return the same placement with its nodes, and so its slots, numbered as in `rows`.

        Parameters
        ----------
        rows : int64 (n,)
            The same nodes in another order.

        Examples
        --------
        >>> import nidmap
        >>> m = nidmap.load_machine("torus:4x4")
        >>> one = Placement(m, np.array([7, 8]), np.array([1, 1]))
        >>> one.listed_as(np.array([8, 7])).slots.tolist()
        [1, 0]
        """
        ascending = np.argsort(self.rows)
        old = ascending[np.searchsorted(self.rows, rows, sorter=ascending)]
        new = np.empty_like(old)
        new[old] = np.arange(len(old))
        counts = self.counts[old]
        first, before = np.cumsum(counts) - counts, np.cumsum(self.counts) - self.counts
        node, slots = self.node, self.slot_of_rank
        return Placement(self.machine, rows, counts, first[new[node]] + slots - before[node])

    def canonical(self) -> Placement:
        """Return the same placement with its nodes listed by their lowest rank.

        Where all nodes have as many ranks the places are alike, so the order of the nodes can
        say most of the order of the ranks: with one rank a node all of it. Where counts differ
        nothing is changed.

        Examples
        --------
        >>> import nidmap
        >>> m = nidmap.load_machine("torus:4x4")
        >>> ones = np.ones(2, dtype=np.int64)
        >>> plain = Placement(m, np.array([7, 8]), ones, np.array([1, 0])).canonical()
        >>> plain.rows.tolist(), plain.slots
        ([8, 7], None)
        """
        if self.slots is None or self.ppn is None:
            return self
        node = self.node
        lowest = np.full(len(self.rows), len(node))
        np.minimum.at(lowest, node, np.arange(len(node)))
        order = np.argsort(lowest)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        ranks = np.argsort(place[node], kind="stable")
        slots = np.empty_like(ranks)
        slots[ranks] = np.arange(len(ranks))
        plain = bool((slots == np.arange(len(slots))).all())
        return Placement(self.machine, self.rows[order], self.counts, None if plain else slots)
