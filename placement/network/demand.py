"""Who sends how many bytes to whom, node by node: what a network has to carry.

A demand is a sum of listed pairs (a stencil, a graph, a measured matrix) and
of all-to-alls in product form (`placement.network.lines`), so that an
all-to-all of 100,000 nodes needs no table of all pairs. Nodes count by their
rows of the machine; what a node sends to itself never leaves it and is not
part of a demand.

A node with k network interfaces on several switches sends and receives an
equal share by each: bytes between two nodes are split equally over all pairs
of their attachments (k x k).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from placement.errors import NidmapError, UsageError
from placement.machine import Machine
from placement.network.lines import NO_LINES, Lines
from placement.network.model import attachment_counts
from placement.support.array_types import Floats, Ints, Mask
from placement.support.arrays import sum_by_pair, summed
from placement.topologies import router_count

Pairs = tuple[Ints, Ints, Floats]

__all__ = ["Demand"]

#: Router pairs of one block of `Demand.blocks` (more where one router has more).
BLOCK = 1 << 22

#: Kinds of network whose routing looks at the destination node: d-mod-k, and
#: ``single`` among switches that make no tree.
BY_NODE = ("fattree", "tree")


@dataclass(frozen=True, slots=True, eq=False)
class Messages:
    """Bytes from nodes `a` to nodes `b`, a != b; rows of the machine (m,).

    Attributes
    ----------
    a, b : int64 (m,)
    amount : float64 (m,)
    """

    a: Ints
    b: Ints
    amount: Floats

    def times(self, factor: float) -> Messages:
        """Return the messages with `factor` times the bytes."""
        return replace(self, amount=self.amount * factor)

    def reversed(self) -> Messages:
        """Return the messages sent the other way."""
        return replace(self, a=self.b, b=self.a)


@dataclass(frozen=True, slots=True, eq=False)
class Everyone:
    """All-to-alls, one a line: every rank to every rank of the line on another node.

    Attributes
    ----------
    line, row : int64 (e,)
        Line and node of each entry, each pair once, sorted by line.
    ranks : float64 (e,)
        Ranks of the line on the node.
    amount : float
        Bytes from each rank to each other.
    """

    line: Ints
    row: Ints
    ranks: Floats
    amount: float

    def times(self, factor: float) -> Everyone:
        """Return the all-to-alls with `factor` times the bytes."""
        return replace(self, amount=self.amount * factor)

    def reversed(self) -> Everyone:
        """Return the same: an all-to-all is symmetric."""
        return self


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """Bytes between the nodes of a machine.

    Made by `pairs`, `complete` and `lines`; demands of one machine add, and
    a number times a demand is a demand.

    Attributes
    ----------
    routers : int
        Routers of the machine.
    out, into : float64 (n,)
        Bytes that leave and enter each node.
    source, target : int64 (m,)
        Listed router pairs, ascending, source != target.
    amount : float64 (m,)
        Their bytes. What an all-to-all counts too much between two switches
        of one node is subtracted here, so a sum alone means something.
    within : Lines
        The all-to-alls.
    nodewise : tuple of Messages and Everyone
        The same node by node, on machines whose routing looks at the
        destination node (fat trees); else empty.
    """

    routers: int
    out: Floats
    into: Floats
    source: Ints
    target: Ints
    amount: Floats
    within: Lines = NO_LINES
    nodewise: tuple[Messages | Everyone, ...] = ()

    @classmethod
    def pairs(cls, machine: Machine, a: Ints, b: Ints, amount: Floats | float) -> Demand:
        """Return the demand of messages from nodes `a` to nodes `b`.

        Parameters
        ----------
        machine : Machine
        a, b : int (m,)
            Rows of the machine; a pair may come more than once, and is
            dropped where a == b.
        amount : float64 (m,) or float
            Bytes of each.

        Returns
        -------
        Demand

        Raises
        ------
        NidmapError
            Where a node is attached to no router that the machine knows.

        Examples
        --------
        >>> import numpy as np
        >>> from placement.specs import parse_spec
        >>> m = parse_spec("torus:4,nodes=2")
        >>> found = Demand.pairs(m, np.array([0, 0, 2]), np.array([1, 2, 2]), 10.0)
        >>> found.out.tolist(), found.source.tolist(), found.target.tolist()
        ([20.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0], [1])
        """
        a, b = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
        each = np.broadcast_to(np.asarray(amount, dtype=np.float64), a.shape)
        if (a == b).any():
            apart = a != b
            a, b, each = a[apart], b[apart], each[apart]
        out, into = (summed(end, each, len(machine)) for end in (a, b))
        _require_routers(machine, np.flatnonzero((out != 0) | (into != 0)))
        listed = [(s, t, each[kept] * share) for s, t, kept, share in _ends(machine, a, b)]
        routers = router_count(machine)
        by_node = machine.topology.kind in BY_NODE and len(a)
        nodewise = (Messages(a, b, each),) if by_node else ()
        return cls(routers, out, into, *_between_routers(routers, listed), nodewise=nodewise)

    @classmethod
    def complete(cls, machine: Machine, rows: Ints, ranks: Ints | int, amount: float) -> Demand:
        """Return the demand of an all-to-all: every ordered pair of ranks on different nodes.

        Parameters
        ----------
        machine : Machine
        rows : int (k,)
            Rows of the machine, each once.
        ranks : int (k,) or int
            Ranks on each.
        amount : float
            Bytes from each rank to each other.

        Returns
        -------
        Demand

        Raises
        ------
        NidmapError
            Where a node is attached to no router that the machine knows.

        Examples
        --------
        >>> import numpy as np
        >>> from placement.specs import parse_spec
        >>> m = parse_spec("torus:4,nodes=2")
        >>> found = Demand.complete(m, np.array([0, 1, 2]), np.array([1, 1, 2]), 1.0)
        >>> found.out.tolist()[:4], found.total
        ([3.0, 3.0, 4.0, 0.0], 10.0)
        """
        return cls.lines(machine, np.zeros(len(rows), dtype=np.int64), rows, ranks, amount)

    @classmethod
    def lines(
        cls, machine: Machine, line: Ints, row: Ints, ranks: Ints | int, amount: float
    ) -> Demand:
        """Return the demand of one all-to-all a line, as an FFT's rows and columns have.

        Parameters
        ----------
        machine : Machine
        line : int (e,)
            Line of each entry, any numbers.
        row : int (e,)
            Row of the machine; a (line, row) that comes twice counts as one
            entry with the ranks of both.
        ranks : int (e,) or int
            Ranks of that line on that node.
        amount : float
            Bytes from each rank of a line to each other.

        Returns
        -------
        Demand

        Raises
        ------
        NidmapError
            Where a node is attached to no router that the machine knows.

        Examples
        --------
        >>> import numpy as np
        >>> from placement.specs import parse_spec
        >>> m = parse_spec("torus:4,nodes=2")
        >>> found = Demand.lines(m, np.array([0, 0, 1, 1]), np.array([0, 2, 4, 5]), 1, 8.0)
        >>> [(s.tolist(), t.tolist(), x.tolist()) for s, t, x in found.blocks()]
        [([0, 1], [1, 0], [8.0, 8.0])]
        """
        count = np.broadcast_to(np.asarray(ranks, dtype=np.float64), np.shape(row))
        line, row, count = _once(np.asarray(line), np.asarray(row), count, len(machine))
        _require_routers(machine, row)
        total = summed(line, count)
        sent = amount * count * (total[line] - count)
        out = summed(row, sent, len(machine))
        within, twice = _on_routers(machine, line, row, count, float(amount))
        routers = router_count(machine)
        by_node = machine.topology.kind in BY_NODE and len(row)
        nodewise = (Everyone(line, row, count, float(amount)),) if by_node else ()
        return cls(routers, out, out, *_between_routers(routers, twice), within, nodewise)

    @property
    def total(self) -> float:
        """Bytes that leave all nodes together."""
        return float(self.out.sum())

    def __add__(self, other: Demand) -> Demand:
        if self.routers != other.routers or len(self.out) != len(other.out):
            raise UsageError("demands of two different machines cannot be added")
        listed = [(d.source, d.target, d.amount) for d in (self, other) if len(d.source)]
        merged = listed[0] if len(listed) == 1 else _between_routers(self.routers, listed)
        return Demand(
            self.routers,
            self.out + other.out,
            self.into + other.into,
            *merged,
            self.within.joined(other.within),
            self.nodewise + other.nodewise,
        )

    def __mul__(self, factor: float) -> Demand:
        return replace(
            self,
            out=self.out * factor,
            into=self.into * factor,
            amount=self.amount * factor,
            within=replace(self.within, scale=self.within.scale * factor),
            nodewise=tuple(part.times(factor) for part in self.nodewise),
        )

    __rmul__ = __mul__

    def refuse_other(self, machine: Machine) -> None:
        """Raise UsageError where this is the demand of another machine."""
        if len(machine) != len(self.out) or router_count(machine) != self.routers:
            raise UsageError("the demand is that of another machine")

    def routers_used(self) -> Ints:
        """Return the routers that send or get anything, ascending."""
        used = np.zeros(self.routers, dtype=bool)
        for routers in (self.source, self.target, self.within.router):
            used[routers] = True
        return np.flatnonzero(used)

    def key(self) -> int:
        """Return a number that tells this demand from others of the machine."""
        lines = self.within
        columns = [self.source, self.target, self.amount, self.out, self.into]
        columns += [lines.line, lines.router, lines.weight, lines.scale]
        for part in self.nodewise:
            ends = (
                (part.a, part.b)
                if isinstance(part, Messages)
                else (part.line, part.row, part.ranks)
            )
            columns += [*ends, np.asarray(part.amount)]
        return hash(tuple(column.tobytes() for column in columns))

    def blocks(self) -> Iterator[Pairs]:
        """Yield all router pairs with their bytes, block by block, sources ascending.

        Yields
        ------
        source, target : int64 (b,)
            source != target; each pair comes once over all blocks.
        bytes : float64 (b,)
            More than 0.
        """
        if len(self.within):
            step = max(1, BLOCK // max(1, self.routers))
            for low in range(0, self.routers, step):
                table = self.table(low, min(low + step, self.routers))
                place = np.flatnonzero(table)
                if len(place):
                    source, target = np.divmod(place, self.routers)
                    yield source + low, target, table.reshape(-1)[place]
            return
        for first in range(0, len(self.source), BLOCK):
            some = slice(first, first + BLOCK)
            kept = self.amount[some] > 0
            source, target = (x[some][kept] for x in (self.source, self.target))
            yield source, target, self.amount[some][kept]

    def table(self, low: int = 0, high: int | None = None) -> Floats:
        """Return the bytes from the routers low … high-1 to every router.

        Parameters
        ----------
        low : int
        high : int or None
            None: the last.

        Returns
        -------
        float64 (high - low, routers)
            0 from a router to itself.
        """
        high = self.routers if high is None else high
        out = self.folded(np.arange(self.routers), self.routers, low, high)
        out[np.arange(high - low), np.arange(low, high)] = 0
        np.maximum(out, 0, out=out)
        return out

    def folded(self, label: Ints, count: int, low: int = 0, high: int | None = None) -> Floats:
        """Return the bytes from the routers low … high-1 to all routers of each label together.

        What a router would send to itself is left out.

        Parameters
        ----------
        label : int64 (routers,)
            0 … count-1, e.g. the group of each router.
        count, low : int
        high : int or None
            None: the last.

        Returns
        -------
        float64 (high - low, count)

        Examples
        --------
        >>> import numpy as np
        >>> from placement.specs import parse_spec
        >>> m = parse_spec("torus:4")
        >>> Demand.complete(m, np.arange(4), 1, 1.0).folded(np.array([0, 0, 1, 1]), 2).tolist()
        [[1.0, 2.0], [1.0, 2.0], [2.0, 1.0], [2.0, 1.0]]
        """
        high = self.routers if high is None else high
        first, last = np.searchsorted(self.source, [low, high])
        key = (self.source[first:last] - low) * count + label[self.target[first:last]]
        size = (high - low) * count
        out = summed(key, self.amount[first:last], size).reshape(high - low, count)
        if len(self.within):
            out += self.within.fold(label, count, low, high)
            here = np.arange(low, high)
            out[here - low, label[here]] -= self.within.own(self.routers)[low:high]
        return out

    def leaving(self, label: Ints, count: int) -> tuple[Floats, Floats]:
        """Return the bytes that leave and that enter the routers of each label.

        Parameters
        ----------
        label : int64 (routers,)
            0 … count-1; -1 for a router of no part.
        count : int

        Returns
        -------
        out, into : float64 (count,)

        Examples
        --------
        >>> import numpy as np
        >>> from placement.specs import parse_spec
        >>> m = parse_spec("torus:4")
        >>> parts = np.array([0, 0, 1, 1])
        >>> [x.tolist() for x in Demand.complete(m, np.arange(3), 1, 1.0).leaving(parts, 2)]
        [[2.0, 2.0], [2.0, 2.0]]
        """
        a, b = label[self.source], label[self.target]
        both = self.within.leaving(label, count)
        out, into = (
            both + summed(end[rows], self.amount[rows], count)
            for end in (a, b)
            for rows in [np.flatnonzero((a != b) & (end >= 0))]
        )
        return np.maximum(out, 0.0), np.maximum(into, 0.0)

    def reversed(self) -> Demand:
        """Return the demand with every message sent the other way."""
        turned = _between_routers(self.routers, [(self.target, self.source, self.amount)])
        back = tuple(part.reversed() for part in self.nodewise)
        return Demand(self.routers, self.into, self.out, *turned, self.within, back)


def _require_routers(machine: Machine, rows: Ints) -> None:
    """Raise where a node has no router."""
    lost = (machine.router[rows] < 0).all(axis=1)
    if lost.any():
        name = machine.names[rows[int(np.argmax(lost))]]
        raise NidmapError(
            f"{name} is attached to no router that is known, so its traffic cannot be placed",
            "is the machine's dump whole?",
        )


def _ends(
    machine: Machine, a: Ints, b: Ints
) -> Iterator[tuple[Ints, Ints, Mask | slice, Floats | float]]:
    """Yield for each pair of attachments the routers, which messages have it, and their share."""
    table = machine.router
    if table.shape[1] == 1:
        yield table[a, 0].astype(np.int64), table[b, 0].astype(np.int64), slice(None), 1.0
        return
    nics = attachment_counts(machine)
    for i in range(table.shape[1]):
        for j in range(table.shape[1]):
            s, t = table[a, i].astype(np.int64), table[b, j].astype(np.int64)
            kept = (s >= 0) & (t >= 0)
            yield s[kept], t[kept], kept, 1 / (nics[a[kept]] * nics[b[kept]])


def _between_routers(
    routers: int, listed: list[tuple[Ints, Ints, Floats]]
) -> tuple[Ints, Ints, Floats]:
    """Return each router pair once with all its bytes, ascending; s == t dropped."""
    none = np.zeros(0, dtype=np.int64)
    columns = zip((none, none, np.zeros(0)), *listed, strict=True)
    source, target, amount = (np.concatenate(column) for column in columns)
    apart = source != target
    if not apart.all():
        source, target, amount = source[apart], target[apart], amount[apart]
    return sum_by_pair(source, target, amount, routers)


def _once(line: Ints, row: Ints, count: Floats, nodes: int) -> tuple[Ints, Ints, Floats]:
    """Return each (line, row) once, sorted, the lines numbered from 0."""
    line, row = line.astype(np.int64), row.astype(np.int64)
    if line.min(initial=0) < 0 or line.max(initial=0) >= 4 * len(line):
        _, line = np.unique(line, return_inverse=True)
    kept = count > 0
    line, row, count = sum_by_pair(line[kept], row[kept], count[kept], nodes)
    present = np.bincount(line) > 0
    return (np.cumsum(present) - 1)[line], row, count


def _on_routers(
    machine: Machine, line: Ints, row: Ints, count: Floats, amount: float
) -> tuple[Lines, list[tuple[Ints, Ints, Floats]]]:
    """Return the lines over routers, and what they count too much between a node's own switches."""
    lines = int(line[-1]) + 1 if len(line) else 0
    share = count / attachment_counts(machine)[row]
    columns = [column[row].astype(np.int64) for column in machine.router.T]
    ends = [(line[c >= 0], c[c >= 0], share[c >= 0]) for c in columns]
    places, at, weight = (np.concatenate(column) for column in zip(*ends, strict=True))
    routers = router_count(machine)
    within = Lines(*sum_by_pair(places, at, weight, routers), np.full(lines, amount)).merged()
    twice = [
        (s[both], t[both], -amount * (share * share)[both])
        for i, s in enumerate(columns)
        for j, t in enumerate(columns)
        if i != j
        for both in [(s >= 0) & (t >= 0) & (s != t)]
    ]
    return within, twice
