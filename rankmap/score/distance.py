"""How far apart two nodes are: the distance that J is made of, and the blocks that nodes share.

What a distance is depends on the network; it is 0 only inside a node:

============  ==================================================================
network       distance of two different nodes
============  ==================================================================
tree          the machine's ``dist`` of the level at which the nodes part
fat tree      the level at which they part: 1 below one leaf, 2 below one
              switch of the next level, …
dragonfly     router-to-router links on a minimal path, plus 1: 1 on one
              router (an Aries blade), 2 on two that are linked (one chassis,
              one slot of a group), 3 elsewhere in a group, 2 to 6 between
              groups, by the real links: at most one between groups where the
              groups are joined at all
torus         hops with wrap-around; 1/2 on one router (the two nodes of a
              Gemini), which no hop separates but a network interface does
no machine    1
============  ==================================================================

Every network has *blocks* too, nested sets of nodes (blade, chassis, group,
…): what a tree of switches is, and what an order may walk from the outside in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import NidmapError
from placement.support.array_types import Array, Floats, Ints
from rankmap.score.paths import UNREACHED, paths
from rankmap.slots import Slots

if TYPE_CHECKING:
    from placement.machine import Machine

__all__ = ["Distance", "Levels", "Routers", "Torus", "job_distance", "machine_distance"]

#: Distance of two nodes on one torus router.
ONE_ROUTER = 0.5

#: Routers whose distances to each other are kept in a table (150 MB) at most.
MOST_TABLED = 12288

#: Links that are assumed to a node whose router is unknown: one more than the longest path.
LOST = 6


class Distance(ABC):
    """Distances between the nodes of a machine, or of a job.

    Parameters
    ----------
    blocks : int64 (n, k)
        Nested blocks of each node, innermost first: numbers that two nodes
        share when they are in one block. The last column is the whole machine.
    names : tuple of str, length k
        What a block of each column is called (``blade``, …, ``system``).
    level_distance : float64 (k + 1,)
        Distance of nodes by the level at which they meet (see `level`): 0
        inside a node first. Where the distance is more than the level says
        (`exact` False), the least there is.

    Attributes
    ----------
    exact : bool
        True where the level alone decides the distance.
    coords : int64 (n, d) or None
        Router coordinates of the nodes on a torus; None elsewhere.
    extents : tuple of int
        Extents of the torus; empty elsewhere.
    """

    exact = False
    coords: Ints | None = None
    extents: tuple[int, ...] = ()

    def __init__(self, blocks: Ints, names: tuple[str, ...], level_distance: Floats) -> None:
        self.blocks = blocks
        self.names = names
        self.level_distance = level_distance

    def __len__(self) -> int:
        return len(self.blocks)

    @abstractmethod
    def between(self, a: Ints, b: Ints) -> Floats:
        """Return the distance of the nodes `a` from the nodes `b`, element by element.

        Parameters
        ----------
        a, b : int64, shapes that broadcast
            Nodes as indices of this object.
        """

    @abstractmethod
    def hops(self, a: Ints, b: Ints) -> Ints:
        """Return the links between routers on a minimal path, element by element."""

    @abstractmethod
    def take(self, nodes: Ints) -> Distance:
        """Return the distances between the nodes at these indices only, in this order."""

    def level(self, a: Ints, b: Ints) -> Ints:
        """Return the level at which nodes meet: 0 one node, 1 one innermost block, … k.

        Examples
        --------
        >>> import nidmap
        >>> d = machine_distance(nidmap.load_machine("tree:4x2x2"))
        >>> d.level(np.zeros(4, int), np.array([0, 3, 4, 8])).tolist()
        [0, 1, 2, 3]
        """
        a, b = np.broadcast_arrays(np.asarray(a), np.asarray(b))
        met = (a != b).astype(np.int64)
        for column in self.blocks.T[:-1]:
            met += column[a] != column[b]
        return np.asarray(met)

    def from_hops(self, hops: float, by_level: Floats) -> float:
        """Return J from the weight times hops and the weight by level (`level`)."""
        return float(by_level @ self.level_distance)

    def rows(self) -> Iterator[Floats]:
        """Yield the distances of each node from all, float64 (n,)."""
        every = np.arange(len(self))
        return (self.between(np.full(len(self), node), every) for node in every)

    def matrix(self) -> Floats:
        """Return all distances, float64 (n, n)."""
        return np.stack(list(self.rows()))


class Levels(Distance):
    """Distances that the blocks alone decide: trees, fat trees, and nodes without a machine.

    Examples
    --------
    >>> import nidmap
    >>> d = machine_distance(nidmap.load_machine("tree:4x16x6,dist=1:2:5"))
    >>> d.between(np.zeros(4, int), np.array([0, 3, 4, 383])).tolist()
    [0.0, 1.0, 2.0, 5.0]
    """

    exact = True

    def between(self, a: Ints, b: Ints) -> Floats:
        """Return the distance of the level at which the nodes meet."""
        return self.level_distance[self.level(a, b)]

    def hops(self, a: Ints, b: Ints) -> Ints:
        """Return the links between switches, up to the one that both share and down."""
        return np.maximum(2 * (self.level(a, b) - 1), 0)

    def take(self, nodes: Ints) -> Levels:
        """Return the distances between these nodes only."""
        return Levels(self.blocks[nodes], self.names, self.level_distance)


class Torus(Distance):
    """Hops on a torus, the shorter way round each axis.

    Parameters
    ----------
    coords : int64 (n, d)
    extents : tuple of int, length d
    router : int64 (n,)
        A number that only the nodes of one router share.

    Examples
    --------
    >>> import nidmap
    >>> d = machine_distance(nidmap.load_machine("torus:8x8x6"))
    >>> d.between(np.zeros(4, int), np.array([1, 7, 8, 4 + 8 * 4 + 64 * 3])).tolist()
    [1.0, 1.0, 1.0, 11.0]
    """

    coords: Ints

    def __init__(self, coords: Ints, extents: tuple[int, ...], router: Ints) -> None:
        blocks = np.column_stack([router, np.zeros_like(router)])
        super().__init__(blocks, ("router", "system"), np.array([0, ONE_ROUTER, 1]))
        self.coords = coords
        self.extents = extents

    def between(self, a: Ints, b: Ints) -> Floats:
        """Return the hops, 1/2 between two nodes of one router."""
        hops = self.hops(a, b).astype(np.float64)
        return np.where((hops == 0) & (np.asarray(a) != np.asarray(b)), ONE_ROUTER, hops)

    def from_hops(self, hops: float, by_level: Floats) -> float:
        """Return J: the hops, and 1/2 for what stays on a router but leaves its node."""
        return hops + ONE_ROUTER * float(by_level[1])

    def hops(self, a: Ints, b: Ints) -> Ints:
        """Return the hops the shorter way round each axis."""
        apart = (np.abs(column[a] - column[b]) for column in self.coords.T)
        hops = (np.minimum(x, e - x) for x, e in zip(apart, self.extents, strict=True))
        return np.asarray(sum(hops), dtype=np.int64)

    def take(self, nodes: Ints) -> Torus:
        """Return the distances between these nodes only."""
        return Torus(self.coords[nodes], self.extents, self.blocks[nodes, 0])


class Routers(Distance):
    """Links on a minimal path of a dragonfly, plus 1 between different nodes.

    Parameters
    ----------
    blocks, names
        See `Distance`.
    router : int64 (n,)
        Router of each node as an index of the machine's routers; -1: unknown.
    machine : Machine

    Examples
    --------
    >>> import nidmap
    >>> d = machine_distance(nidmap.load_machine("dragonfly:groups=3,chassis=2,blades=4,nodes=2"))
    >>> d.between(np.zeros(5, int), np.array([0, 1, 2, 8, 10])).tolist()
    [0.0, 1.0, 2.0, 2.0, 3.0]
    """

    def __init__(
        self, blocks: Ints, names: tuple[str, ...], router: Ints, machine: Machine
    ) -> None:
        super().__init__(blocks, names, np.minimum(np.arange(len(names) + 1.0), 2))
        self.router = router
        self.machine = machine
        self._table: tuple[Ints, Array] | None = None

    def between(self, a: Ints, b: Ints) -> Floats:
        """Return the links on a minimal path, plus 1 between different nodes."""
        apart = np.asarray(a) != np.asarray(b)
        return np.asarray(self.hops(a, b) + apart, dtype=np.float64)

    def from_hops(self, hops: float, by_level: Floats) -> float:
        """Return J: the hops, and 1 for what leaves a node."""
        return hops + float(by_level[1:].sum())

    def hops(self, a: Ints, b: Ints) -> Ints:
        """Return the links on a minimal path."""
        a, b = np.broadcast_arrays(np.asarray(a), np.asarray(b))
        tabled = self._tabled()
        if tabled is not None:
            place, table = tabled
            return np.where(a == b, 0, table[place[a], place[b]]).astype(np.int64)
        found = paths(self.machine).pairs(self.router[a], self.router[b])
        lost = (found == UNREACHED) | (self.router[a] < 0) | (self.router[b] < 0)
        return np.where(a == b, 0, np.where(lost, LOST, found))

    def _tabled(self) -> tuple[Ints, Array] | None:
        """Return each node's place in a table of lengths, and that; None where it is too large."""
        if self._table is None:
            once, place = np.unique(self.router, return_inverse=True)
            if len(once) > MOST_TABLED:
                return None
            table = paths(self.machine).lengths(once)
            if len(once) < table.shape[1] or once[0] < 0:
                table = table[:, once]
            table[table == UNREACHED] = LOST
            lost = once < 0
            table[lost] = table[:, lost] = LOST
            self._table = place, table
        return self._table

    def take(self, nodes: Ints) -> Routers:
        """Return the distances between these nodes only."""
        return Routers(self.blocks[nodes], self.names, self.router[nodes], self.machine)


def machine_distance(machine: Machine) -> Distance:
    """Return the distances between all nodes of a machine (indices are its rows).

    Parameters
    ----------
    machine : Machine

    Returns
    -------
    Distance
        Made once a machine.
    """
    if "distance" not in machine._cache:
        torus = machine.topology.kind == "torus"
        machine._cache["distance"] = _torus(machine) if torus else _by_blocks(machine)
    found: Distance = machine._cache["distance"]
    return found


def job_distance(slots: Slots) -> Distance:
    """Return the distances between the nodes of a job (indices are positions in ``names``).

    Where only the nodes' names are known, all are 1 apart.

    Examples
    --------
    >>> import nidmap
    >>> from rankmap.slots import slots_of
    >>> m = nidmap.load_machine("tree:2x2,dist=1:4")
    >>> job_distance(slots_of(m, "nid0000[3,0,2]", 8)).between(0, np.arange(3)).tolist()
    [0.0, 4.0, 1.0]
    """
    if slots.machine is None or slots.rows is None:
        flat = np.zeros((len(slots.counts), 1), dtype=np.int64)
        return Levels(flat, ("system",), np.array([0.0, 1.0]))
    return machine_distance(slots.machine).take(slots.rows)


def _torus(machine: Machine) -> Distance:
    axes = machine.topology.router_levels
    coords = machine.coords[:, :axes].astype(np.int64)
    return Torus(coords, machine.topology.extents[:axes], _nested_prefixes(coords)[:, 0])


def _by_blocks(machine: Machine) -> Distance:
    """Return links on a dragonfly whose links are known, else distances by level.

    These are as the machine states them, else the number of the level itself.
    """
    depth = machine.topology.router_levels
    nested = _nested_prefixes(machine.coords[:, :depth].astype(np.int64))
    blocks = np.concatenate([nested, np.zeros((len(machine), 1), dtype=np.int64)], axis=1)
    names = (*reversed(machine.topology.levels[:depth]), "system")
    far = np.arange(len(names) + 1, dtype=np.float64)
    if machine.topology.kind.startswith("dragonfly"):
        try:
            paths(machine)
            return Routers(blocks, names, machine.router[:, 0].astype(np.int64), machine)
        except NidmapError:  # links that no rule can make: the levels are all there is
            return Levels(blocks, names, far)
    stated = tuple(machine.topology.parameters.get("dist", ()))[: len(names)]
    far[1 : len(stated) + 1] = stated
    return Levels(blocks, names, far)


def _nested_prefixes(coords: Ints) -> Ints:
    """Return one number a node for each prefix of its coordinates, the longest first.

    A node without a coordinate is in no block with any other.
    """
    n, depth = coords.shape
    out = np.zeros((n, depth), dtype=np.int64)
    above = np.zeros(n, dtype=np.int64)
    lost = (coords < 0).any(axis=1)
    for k in range(depth):
        key = above * (int(coords[:, k].max(initial=0)) + 2) + coords[:, k] + 1
        key[lost] = -1 - np.flatnonzero(lost)
        above = np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)
        out[:, depth - 1 - k] = above
    return out
