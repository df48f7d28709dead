# SPDX-License-Identifier: Apache-2.0
"""A placement: a job's nodes, the ranks on each, and the slot of every rank.

A node's slots are the places for its ranks. They are numbered node by node in the order of the
nodes: a node's first slot comes after all slots of the nodes before it. That order is the only
thing that gives a slot its number: not the NID, and not the order in which a launcher takes nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from nidmap.placement.errors import PlanError, UsageError
from nidmap.placement.machine import Machine
from nidmap.placement.network.demand import Demand
from nidmap.placement.permutation import inverse, why_broken
from nidmap.placement.support.array_types import Ints, Strs
from nidmap.placement.support.quantities import counted
from nidmap.placement.switch_tree import slurm_order
from nidmap.placement.traffic import Traffic

#: More ranks than any machine has cores; beyond it a count is a slip.
MOST_RANKS = 1 << 25


@dataclass(frozen=True, slots=True)
class Origin:
    """How a placement's order came about.

    Attributes
    ----------
    strategy : str
        What made it; '' for one read from a file.
    pattern : str
        The pattern it was made for; '' where none is known.
    remark : str
        What its maker has to say of it, in one line; ''.
    optimised : dict or None
        What it was chosen by, with its figures and the default's, as JSON
        takes it; None where nothing was compared.
    """

    strategy: str = ""
    pattern: str = ""
    remark: str = ""
    optimised: dict[str, Any] | None = None


def _no_rows() -> Ints:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Placement:
    """Nodes in the order that numbers the slots, the ranks of each, and the slot of every rank.

    It is always valid: every rank has one slot of its own and no slot is left over, or there is
    an error instead of a placement.

    Attributes
    ----------
    names : str (n,)
        Host names, each once.
    counts : int64 (n,)
        Ranks, and so slots, of each node, at least 1.
    machine : Machine or None
        What the nodes belong to, for whoever looks at distances; None where only names are
        known (inside an allocation).
    rows : int64 (n,)
        The nodes as rows of `machine`; none where that is None.
    order : int64 (ranks,) or None
        Slot of each rank, read-only; None: rank r has slot r. `slot_of_rank` is the same as an
        array in any case.
    origin : Origin
        How the order came about; it makes no difference between placements.

    Examples
    --------
    >>> nodes = np.array(["nid00003", "nid00009"])
    >>> three = Placement(nodes, np.array([2, 1]), order=np.array([2, 0, 1]))
    >>> three.ranks, three.rank_at_slot.tolist(), three.host_of_rank.tolist()
    (3, [1, 2, 0], ['nid00009', 'nid00003', 'nid00003'])
    """

    names: Strs
    counts: Ints
    machine: Machine | None = None
    rows: Ints = field(default_factory=_no_rows)
    order: Ints | None = None
    origin: Origin = Origin()

    def __post_init__(self) -> None:
        """Refuse a placement without ranks, and keep a private copy of the order."""
        for column in (self.counts, self.names if self.machine is None else self.rows):
            if len(column) != len(self.names):
                what = "counts of ranks" if column is self.counts else "rows"
                raise UsageError(f"{len(column)} {what} for {len(self.names)} nodes")
        if not len(self.names):
            raise UsageError("no nodes given")
        if self.counts.min() < 1:
            empty = self.names[int(np.argmin(self.counts))]
            raise UsageError(f"node {empty} has no ranks", "leave it out of the list")
        if float(self.counts.sum(dtype=np.float64)) > MOST_RANKS:
            total = sum(self.counts.tolist())
            raise UsageError(f"{total} slots, at most {MOST_RANKS} are supported")
        if self.order is not None:
            object.__setattr__(self, "order", _checked_order(self.order, self.ranks))

    @classmethod
    def on_rows(
        cls, machine: Machine, rows: Ints, counts: Ints, order: Ints | None = None
    ) -> Placement:
        """Place ranks on rows of a machine.

        Examples
        --------
        >>> import nidmap
        >>> m = nidmap.load_machine("torus:4x4")
        >>> two = Placement.on_rows(m, np.array([7, 8]), np.array([2, 1]), np.array([2, 0, 1]))
        >>> two.ppn, two.node_of_rank.tolist(), two.rows[two.node_of_rank].tolist()
        (None, [1, 0, 0], [8, 7, 7])
        """
        return cls(machine.names[rows], counts, machine, rows, order)

    def __eq__(self, other: object) -> bool:
        """Placements are equal if every rank has the same slot of the same nodes."""
        if not isinstance(other, Placement):
            return NotImplemented
        return self.on_same_nodes(other) and np.array_equal(self.slot_of_rank, other.slot_of_rank)

    __hash__ = None  # type: ignore[assignment]  # columns are arrays: see `key`

    def on_same_nodes(self, other: Placement) -> bool:
        """Tell whether another placement has the same nodes, order of nodes and rank counts."""
        return np.array_equal(self.names, other.names) and np.array_equal(self.counts, other.counts)

    @cached_property
    def ranks(self) -> int:
        """Number of the job's ranks, which is also its number of slots."""
        return int(self.counts.sum())

    @property
    def ppn(self) -> int | None:
        """Ranks per node if all nodes have equally many, else None."""
        return int(self.counts[0]) if (self.counts == self.counts[0]).all() else None

    @property
    def first_slot(self) -> Ints:
        """First slot of each node, int64 (n,)."""
        return np.asarray(np.cumsum(self.counts) - self.counts)

    @property
    def node_of_slot(self) -> Ints:
        """Node of each slot as an index of `names`, int64 (ranks,)."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @property
    def slot_of_rank(self) -> Ints:
        """Slot of each rank, int64 (ranks,)."""
        return np.arange(self.ranks) if self.order is None else self.order

    @property
    def rank_at_slot(self) -> Ints:
        """Rank at each slot, int64 (ranks,): the inverse of `slot_of_rank`."""
        return inverse(self.slot_of_rank)

    @cached_property
    def node_of_rank(self) -> Ints:
        """Node of each rank as an index of `names`, int64 (ranks,)."""
        return self.node_of_slot if self.order is None else self.node_of_slot[self.order]

    @property
    def host_of_rank(self) -> Strs:
        """Host name of each rank, str (ranks,)."""
        return self.names[self.node_of_rank]

    @property
    def known_machine(self) -> Machine:
        """The machine; raises if there is none.

        Raises
        ------
        UsageError
            Only the nodes' names are known.
        """
        if self.machine is None:
            raise UsageError("these nodes are not part of any known machine")
        return self.machine

    @property
    def key(self) -> tuple[int, int]:
        """A key that identifies this placement on the machine: of its nodes, and of its order."""
        return hash(self.rows.tobytes()), self.order_key

    @property
    def order_key(self) -> int:
        """A key that identifies the order of the ranks; bytes of a million slots would add up."""
        return 0 if self.order is None else hash(self.order.tobytes())

    def words(self) -> str:
        """Describe nodes and ranks per node: ``4 nodes x 24``.

        Examples
        --------
        >>> Placement(np.array(["a1", "a2"]), np.array([24, 12])).words()
        '2 nodes, 12 to 24 ranks each'
        """
        nodes = counted(len(self.counts), "node")
        if self.ppn is not None:
            return f"{nodes} x {self.ppn}"
        return f"{nodes}, {self.counts.min()} to {self.counts.max()} ranks each"

    def demand(self, traffic: Traffic) -> Demand:
        """Return the network demand of traffic between these nodes, by node positions."""
        return Demand.of(self.known_machine, traffic.at(self.rows))

    def with_order(self, order: Ints | None, origin: Origin = Origin()) -> Placement:
        """Return the same nodes with another rank order; None: rank r on slot r."""
        return replace(self, order=order, origin=origin)

    def with_ranks_on(self, node: Ints) -> Placement:
        """Return the same nodes with rank r on node ``node[r]``, ascending within each node.

        Examples
        --------
        >>> two = Placement(np.array(["nid00003", "nid00009"]), np.array([2, 2]))
        >>> two.with_ranks_on(np.array([1, 0, 1, 0])).slot_of_rank.tolist()
        [2, 0, 3, 1]
        """
        return self.with_order(inverse(np.argsort(node, kind="stable")))

    def with_origin(self, **changes: Any) -> Placement:
        """Return the same placement with changes to its `Origin`."""
        return replace(self, origin=replace(self.origin, **changes))

    def on_nodes(self, rows: Ints) -> Placement:
        """Return the same rank order on other nodes, slot by slot."""
        return Placement.on_rows(self.known_machine, rows, self.counts, self.order)

    def take(self, positions: Ints) -> Placement:
        """Return some of the nodes, in the given order, with rank r on slot r.

        Parameters
        ----------
        positions : int64 (k,)
            Which nodes, as indices of `names`.
        """
        rows = self.rows if self.machine is None else self.rows[positions]
        return Placement(self.names[positions], self.counts[positions], self.machine, rows)

    def renumbered(self, positions: Ints) -> Placement:
        """Return the same placement with its nodes, and therefore its slots, renumbered.

        Parameters
        ----------
        positions : int64 (n,)
            A permutation of the nodes: the node at ``positions[0]`` comes first.

        Examples
        --------
        >>> one = Placement(np.array(["a", "b"]), np.array([1, 1]))
        >>> one.renumbered(np.array([1, 0])).slot_of_rank.tolist()
        [1, 0]
        """
        nodes, node = self.take(positions), self.node_of_rank
        first = nodes.first_slot[inverse(positions)[node]]
        return nodes.with_order(first + self.slot_of_rank - self.first_slot[node], self.origin)

    def sorting(self) -> Ints:
        """Return the nodes' indices in the order that native Slurm gives them, int64 (n,).

        Whatever list was asked for, a job's nodes are in the order of Slurm's node table
        (`nidmap.placement.switch_tree`). For nodes named by NID that is NID order.
        """
        return slurm_order(self.names)

    def sorted(self) -> Placement:
        """Return the same placement with its node list sorted as native Slurm does."""
        return self.renumbered(self.sorting())

    def listed_as(self, rows: Ints) -> Placement:
        """Return the same placement with its nodes and slots numbered in the order of `rows`.

        Parameters
        ----------
        rows : int64 (n,)
            The same nodes in another order.
        """
        ascending = np.argsort(self.rows)
        return self.renumbered(ascending[np.searchsorted(self.rows, rows, sorter=ascending)])

    def canonical(self) -> Placement:
        """Return the same placement with its nodes ordered by their lowest rank.

        Where all nodes have equally many ranks the places are alike, so the order of the nodes can
        say most of the order of the ranks: with one rank a node all of it. Where counts differ
        nothing is changed.

        Examples
        --------
        >>> import nidmap
        >>> m = nidmap.load_machine("torus:4x4")
        >>> ones = np.ones(2, dtype=np.int64)
        >>> plain = Placement.on_rows(m, np.array([7, 8]), ones, np.array([1, 0])).canonical()
        >>> plain.rows.tolist(), plain.order
        ([8, 7], None)
        """
        if self.order is None or self.ppn is None:
            return self
        node = self.node_of_rank
        lowest = np.full(len(self.rows), len(node))
        np.minimum.at(lowest, node, np.arange(len(node)))
        positions = np.argsort(lowest)
        return self.take(positions).with_ranks_on(inverse(positions)[node])


def _checked_order(order: Ints, slots: int) -> Ints | None:
    """Return a read-only copy of an order; None if rank r has slot r."""
    order = np.array(order, dtype=np.int64)
    if len(order) != slots:
        raise PlanError(f"{len(order)} ranks for {slots} slots")
    inside = order.min() >= 0 and order.max() < slots
    if not inside or (np.bincount(order, minlength=slots) != 1).any():
        raise PlanError(_fault_of(order))
    order.flags.writeable = False
    return None if (order == np.arange(slots)).all() else order


def _fault_of(order: Ints) -> str:
    """Describe what keeps an order from being a permutation."""
    fault = why_broken(order, len(order))
    assert fault is not None  # callers have detected a fault
    if fault.kind == "outside":
        return f"rank {fault.at} has slot {fault.value} of 0 to {len(order) - 1}"
    return f"slot {fault.value} is given to ranks {fault.first} and {fault.at}"
