"""Slots: the places for ranks on a job's nodes, numbered node by node.

A node's first slot comes after all slots of the nodes before it, in the order
in which the nodes were given. That order is the only thing that gives a slot
its number: not the NID, and not the order in which a launcher takes nodes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import ParseError, PlanError, UsageError, printable
from placement.support.array_types import Array, Ints, Strs

if TYPE_CHECKING:
    from placement.machine import Machine
    from placement.nodelist import NodeList

    #: Nodes as a user of Python may name them.
    Nodes = str | NodeList | Sequence[str] | Ints | None

__all__ = ["MOST_SLOTS", "Slots", "parse_counts", "slots_of"]

#: More ranks than any machine has cores; beyond it a count is a slip.
MOST_SLOTS = 1 << 25

#: A repeat count behind a node: ``*3``, ``:3`` or `` slots=3``.
_REPEAT = re.compile(r"(?:[*:]|\s+slots=)[0-9]+")
_COUNT = re.compile(r"([0-9]{1,9})(?:\*([0-9]{1,9})|\(x([0-9]{1,9})\))?")


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """The slots of a job (s in all) on its nodes (n of them).

    Attributes
    ----------
    names : str (n,)
        Host names in the order that numbers the slots.
    counts : int64 (n,)
        Slots of each node, at least 1.
    machine : Machine or None
        What the nodes belong to, for orders that look at distances; None
        where only names are known (inside an allocation).
    rows : int64 (n,) or None
        The same nodes as rows of `machine`.

    Examples
    --------
    >>> slots = Slots(np.array(["nid00007", "nid00002"]), np.array([3, 2]))
    >>> len(slots), slots.first.tolist(), slots.node.tolist()
    (5, [0, 3], [0, 0, 0, 1, 1])
    """

    names: Strs
    counts: Ints
    machine: Machine | None = None
    rows: Ints | None = None

    def __post_init__(self) -> None:
        """Refuse counts that give no layout.

        Raises
        ------
        UsageError
            No node, a node without a slot, or more slots than any machine has.
        """
        if len(self.names) != len(self.counts):
            raise UsageError(f"{len(self.counts)} counts of ranks for {len(self.names)} nodes")
        if not len(self.names):
            raise UsageError("no nodes given")
        if self.counts.min() < 1:
            empty = self.names[int(np.argmin(self.counts))]
            raise UsageError(f"no ranks for node {empty}", "leave it out of the list")
        if float(self.counts.sum(dtype=np.float64)) > MOST_SLOTS:
            total = sum(self.counts.tolist())
            raise UsageError(f"{total} slots, at most {MOST_SLOTS} are supported")

    def __len__(self) -> int:
        return int(self.counts.sum())

    def __eq__(self, other: object) -> bool:
        """Two layouts are equal when names and counts are."""
        if not isinstance(other, Slots):
            return NotImplemented
        return np.array_equal(self.names, other.names) and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]  # columns are arrays: equal layouts must not be keys

    @property
    def first(self) -> Ints:
        """First slot of each node, int64 (n,)."""
        return np.asarray(np.cumsum(self.counts) - self.counts)

    @property
    def node(self) -> Ints:
        """Node of each slot as an index of `names`, int64 (s,)."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @property
    def ppn(self) -> int | None:
        """Slots a node where all nodes have as many, else None."""
        return int(self.counts[0]) if (self.counts == self.counts[0]).all() else None

    def sorted(self) -> Slots:
        """Return the same nodes in the order that native Slurm gives every allocation.

        Whatever list was asked for, a job's nodes stand in the order of
        Slurm's node table (`placement.scheduler.node_order`). For nodes named by NID
        that is NID order.
        """
        return self.take(self.sorting())

    def sorting(self) -> Ints:
        """Return the positions of the nodes in Slurm's order, int64 (n,)."""
        from placement.scheduler.node_order import slurm_order

        return slurm_order(self.names)

    def take(self, positions: Ints) -> Slots:
        """Return the layout of the nodes at `positions`, in that order."""
        rows = None if self.rows is None else self.rows[positions]
        return Slots(self.names[positions], self.counts[positions], self.machine, rows)

    def words(self) -> str:
        """Return nodes and ranks a node for a person: ``4 nodes x 24``.

        Examples
        --------
        >>> Slots(np.array(["a1", "a2"]), np.array([24, 12])).words()
        '2 nodes, 12 to 24 ranks each'
        """
        nodes = "1 node" if len(self.counts) == 1 else f"{len(self.counts)} nodes"
        if self.ppn is not None:
            return f"{nodes} x {self.ppn}"
        return f"{nodes}, {self.counts.min()} to {self.counts.max()} ranks each"


def slots_of(
    machine: Machine | None,
    nodes: Nodes = None,
    ppn: str | int | Sequence[int] | None = None,
    source: str = "",
    repeats: bool = False,
) -> Slots:
    """Return the slots on nodes of a machine.

    Parameters
    ----------
    machine : Machine or None
        None where only the nodes' names are known: then they must be names.
    nodes : str, NodeList, names, int64 rows (n,) or None
        The nodes in the order that numbers the slots: a text as ``--nodes``
        takes it (names, cnames, NIDs, ``#`` indices, folded), names, or rows
        of the machine. None: all free compute nodes in NID order.
    ppn : str, int, sequence of int or None
        Ranks on each node: one number, or one a node (``24,24,12``). None:
        as often as the list names a node (``nid00045*3``), else 1.
    source : str
        File that the text came from, for error messages.
    repeats : bool
        True for the text of a host file, where a node stands once a rank; in
        any other text only ``*3`` repeats a node.

    Raises
    ------
    UsageError
        No nodes, a node with no rank, or numbers that do not fit the nodes.
    ParseError
        A node that the machine does not have, or one that is given twice.
    PlanError
        No nodes are given and none is free.

    Examples
    --------
    >>> import nidmap
    >>> m = nidmap.load_machine("torus:4x4x4")
    >>> slots_of(m, "nid[00008,00003]", 2).names.tolist()
    ['nid00008', 'nid00003']
    """
    repeating = ppn is None and (
        repeats or not isinstance(nodes, str) or _REPEAT.search(nodes) is not None
    )
    nodes_listed: Array = (
        _rows(machine, nodes, source, repeating) if machine else _names(nodes, source)
    )
    if repeating and not repeats and isinstance(nodes, str):
        # Only *3 repeats a node: written twice it is a slip, and refused as one.
        slots_of(machine, _REPEAT.sub("", nodes), 1, source)
    # Each node once, in order of first appearance, and how often it stands there.
    once, first, counts = np.unique(nodes_listed, return_index=True, return_counts=True)
    order = np.argsort(first)
    once, counts = once[order], counts[order].astype(np.int64)
    if len(once) < len(nodes_listed) and not repeating:
        twice = once[int(np.argmax(counts > 1))]
        name = printable(str(machine.names[twice] if machine else twice), 40)
        raise ParseError(source or "--nodes", 0, f"{name} is given twice")
    if ppn is not None:
        counts = parse_counts(ppn, len(once))
    if machine is None:
        return Slots(once, counts)
    return Slots(machine.names[once], counts, machine, once)


def parse_counts(ppn: str | int | Sequence[int], nodes: int, what: str = "--ppn") -> Ints:
    """Return the ranks of each of so many nodes.

    Parameters
    ----------
    ppn : str, int or sequence of int
        One number for all nodes, or one for each: ``24,24,12``, also
        shortened as ``24*2,12`` or, as in Slurm's variables, ``24(x2),12``.
    nodes : int
    what : str
        What to call the text in an error.

    Raises
    ------
    UsageError
        A number that is none, or not as many as there are nodes.

    Examples
    --------
    >>> parse_counts("24*2,12", 3).tolist()
    [24, 24, 12]
    """
    if not isinstance(ppn, str):
        alike = groupby([ppn] if isinstance(ppn, int) else ppn)
        runs = [(value, len(list(same))) for value, same in alike]
        ppn = ",".join(str(value) if times == 1 else f"{value}*{times}" for value, times in runs)
    counts, times = [], []
    for text in ppn.split(","):
        match = _COUNT.fullmatch(text.strip())
        if not match or int(match[1]) < 1:
            raise UsageError(
                f"{what}: '{printable(text, 30)}' is not a number of ranks", "write 24 or 24,24,12"
            )
        counts.append(int(match[1]))
        times.append(int(match[2] or match[3] or 1))
    if ppn.strip().isdigit():
        times = [nodes]
    if sum(times) != nodes:
        have = "1 node" if nodes == 1 else f"{nodes} nodes"
        raise UsageError(f"{what} has {sum(times)} numbers, but there are {have}")
    return np.repeat(np.array(counts, dtype=np.int64), times)


def _rows(machine: Machine, nodes: Nodes, source: str, repeats: bool) -> Ints:
    if nodes is None:
        rows = np.flatnonzero(machine.free)
        if not len(rows):
            hint = "name the nodes by --nodes"
            raise PlanError(f"{machine.name} has no free compute node", hint)
        return rows
    if isinstance(nodes, np.ndarray):
        return nodes.astype(np.int64)
    from placement.lookup import rows_of
    from placement.nodelist import NodeList

    text = nodes if isinstance(nodes, str | NodeList) else NodeList(nodes)
    return rows_of(machine, text, source=source, repeats=repeats)


def _names(nodes: Nodes, source: str) -> Strs:
    """Return the names of nodes of which no more is known."""
    if nodes is None or isinstance(nodes, np.ndarray):
        raise UsageError("no nodes given, and no machine to take them from")
    from placement.nodelist import NodeList

    names = list(NodeList.parse(nodes, source) if isinstance(nodes, str) else nodes)
    number = next((name for name in names if not name[:1].isalpha()), None)
    if number is not None:
        raise UsageError(f"{printable(number, 30)} is not a node's name", "NIDs need a machine: -m")
    return np.array(names)
