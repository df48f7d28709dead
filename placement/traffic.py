# SPDX-License-Identifier: Apache-2.0
"""Who sends how much to whom: the one representation, from patterns to the network.

Traffic is a list of flows between ends, ranks or nodes, and of all-to-alls in
product form that are never written out. What is sent one after the other is a
list of traffics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from nidmap.placement.all_to_alls import NO_ALL_TO_ALLS, AllToAlls
from nidmap.placement.support.array_types import Array, Floats, Ints, Mask
from nidmap.placement.support.arrays import add_by_key, sum_by_key

#: Number of pairs of ends up to which a table of all of them is filled, unless it is too sparse.
_TABLE = 1 << 21


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Who sends how much to whom."""

    # source, target: (m,), ends of each flow: ranks, nodes or rows of a machine. A pair may come
    # more than once, and an end may send to itself.
    source: Ints
    target: Ints
    # (m,), total bytes of all messages of the flow; an edge's weight if bytes are unknown
    bytes: Array
    messages: Array  # (m,), how many they are
    # What is not listed; its messages are the products of ranks
    all_to_alls: AllToAlls = NO_ALL_TO_ALLS

    @classmethod
    def of(
        cls, source: Ints, target: Ints, size: Array | float, messages: Array | float = 1.0
    ) -> Traffic:
        """Build traffic from flows; sizes and message counts may be scalars for all flows."""
        source, target = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
        return cls(
            source,
            target,
            np.broadcast_to(size, source.shape),
            np.broadcast_to(messages, source.shape),
        )

    @classmethod
    def undirected(cls, a: Ints, b: Ints, weight: Array | float) -> Traffic:
        """Build traffic from undirected edges, each a flow from its lower end."""
        return cls.of(np.minimum(a, b), np.maximum(a, b), weight)

    @classmethod
    def everyone(cls, ends: Ints, ranks: Ints | int, size: float) -> Traffic:
        """Build an all-to-all: every ordered pair of ranks at different ends.

        `ends` (k,): each once. `ranks` (k,): ranks at each. `size`: bytes from each rank to each
        other.
        """
        return cls.lines(np.zeros(len(ends), dtype=np.int64), ends, ranks, size)

    @classmethod
    def lines(cls, line: Ints, end: Ints, ranks: Ints | int, size: float) -> Traffic:
        """Build one all-to-all per line, such as an FFT's rows and columns.

        `line` (e,): line of each entry, any numbers. `end` (e,): a (line, end) that comes twice
        counts as one with the ranks of both. `ranks` (e,): ranks of that line there. `size`:
        bytes from each rank of a line to each other.
        """
        line, end = np.asarray(line), np.asarray(end)
        count = np.broadcast_to(np.asarray(ranks, dtype=np.float64), end.shape)
        ends = int(end.max(initial=-1)) + 1
        return replace(NO_TRAFFIC, all_to_alls=AllToAlls.of(line, end, count, float(size), ends))

    @property
    def columns(self) -> tuple[Ints, Ints, Array, Array]:
        """The listed flows as columns: source, target, bytes and messages."""
        return self.source, self.target, self.bytes, self.messages

    @property
    def key(self) -> int:
        """A key that identifies this traffic among others."""
        lines = self.all_to_alls
        columns = self.source, self.target, self.bytes, lines.line, lines.end, lines.weight
        return hash(tuple(column.tobytes() for column in (*columns, lines.scale)))

    def __len__(self) -> int:
        """Return the number of listed flows."""
        return len(self.source)

    def __add__(self, other: Traffic) -> Traffic:
        return join_traffic([self, other])

    def __mul__(self, times: float) -> Traffic:
        """Return this traffic scaled by a number, both bytes and messages."""
        return replace(
            self,
            bytes=self.bytes * times,
            messages=self.messages * times,
            all_to_alls=self.all_to_alls * times,
        )

    __rmul__ = __mul__

    def some(self, chosen: Mask | Ints | slice) -> Traffic:
        """Return some of the listed flows."""
        source, target, size, messages = (column[chosen] for column in self.columns)
        return Traffic(source, target, size, messages)

    def blocks(self, most: int) -> Iterator[Traffic]:
        """Yield the listed flows in blocks of limited size."""
        for low in range(0, len(self), most):
            yield self.some(slice(low, low + most))

    def sized(self, factor: float) -> Traffic:
        """Return as many messages, each `factor` times as large."""
        return replace(self, bytes=self.bytes * factor, all_to_alls=self.all_to_alls * factor)

    def reversed(self) -> Traffic:
        """Return the traffic in the opposite direction; an all-to-all is symmetric."""
        return replace(self, source=self.target, target=self.source)

    def away(self) -> Traffic:
        """Return the flows between different ends, without what ends send to themselves."""
        apart = self.source != self.target
        return self if apart.all() else replace(self.some(apart), all_to_alls=self.all_to_alls)

    def sent_and_received(self, ends: int) -> tuple[Floats, Floats]:
        """Return the bytes each end sends to, and receives from, others, float64 (ends,) each."""
        away = self.away()
        sent, received = (add_by_key(end, away.bytes, ends) for end in (away.source, away.target))
        if len(self.all_to_alls):
            both = self.all_to_alls.sent(ends)
            sent, received = sent + both, received + both
        return sent, received

    def inside(self, ends: int) -> Floats:
        """Return the bytes that each end, or its ranks, send to itself, float64 (ends,)."""
        stays = self.source == self.target
        return add_by_key(self.source[stays], self.bytes[stays], ends) + self.all_to_alls.inside(
            ends
        )

    def leaving(self, ends: int) -> Floats:
        """Return how many messages each end sends to others, float64 (ends,)."""
        apart = self.source != self.target
        listed = add_by_key(self.source[apart], self.messages[apart], ends)
        return listed + self.all_to_alls.messages(ends)

    def listed(self) -> Traffic:
        """Return the flows between different ends, with all-to-alls expanded."""
        flows = replace(self.away(), all_to_alls=NO_ALL_TO_ALLS)
        return flows + Traffic(*self.all_to_alls.pairs()) if len(self.all_to_alls) else flows

    def by_pair(self, ends: int) -> Traffic:
        """Return each ordered pair once, in ascending order, with its flows summed.

        All-to-alls stay as they are.
        """
        key = self.source * ends + self.target
        pair, size, messages = _sum_pairs(key, self.bytes, self.messages, ends * ends)
        source, target = np.divmod(pair, max(ends, 1))
        return Traffic(source, target, size, messages, self.all_to_alls)

    def at(self, place: Ints) -> Traffic:
        """Return the traffic with end e at place[e], no two at the same place."""
        lines = self.all_to_alls
        return replace(
            self,
            source=place[self.source],
            target=place[self.target],
            all_to_alls=replace(lines, end=place[lines.end]) if len(lines) else lines,
        )

    def by_node(self, node: Ints, nodes: int) -> Traffic:
        """Return the traffic between nodes, each ordered pair of nodes once.

        `node` (ends,): node of each end, 0 … nodes-1. What stays inside a node is a flow from it
        to itself; all-to-alls count pairs of ranks on different nodes.
        """
        lines = self.all_to_alls.moved(node, nodes) if len(self.all_to_alls) else NO_ALL_TO_ALLS
        moved = replace(self, source=node[self.source], target=node[self.target], all_to_alls=lines)
        return moved.by_pair(nodes)

    def largest_pair(self, ends: int) -> float:
        """Return an upper bound on the bytes from any end to any other."""
        listed = float(self.away().by_pair(ends).bytes.max(initial=0.0))
        return listed + self.all_to_alls.largest_pair(ends)


def _sum_pairs(key: Ints, size: Array, messages: Array, keys: int) -> tuple[Ints, Array, Array]:
    """Return each key once, in ascending order, with its bytes and messages summed."""
    filled = keys <= min(_TABLE, 16 * len(key))
    # A column of one number is a broadcast one, as `Traffic.of` makes it: counting will do then.
    one_size, one_message = not size.strides[0], not messages.strides[0]
    if not len(key) or not one_message or size.dtype.kind == "i" or not (filled or one_size):
        pair, size, messages = sum_by_key(key, size, messages)
        return pair, size, messages
    if filled:
        table = np.bincount(key, minlength=keys)
        pair = np.flatnonzero(table)
        count = table[pair]
    else:
        pair, count = np.unique(key, return_counts=True)
    total = count * size[0] if one_size else np.bincount(key, size, minlength=keys)[pair]
    return pair, total, count * messages[0]


def join_traffic(parts: Iterable[Traffic]) -> Traffic:
    """Merge several traffics; the same pair may occur in more than one of them."""
    several = [part for part in parts if len(part) or len(part.all_to_alls)]
    if len(several) < 2:
        return several[0] if several else NO_TRAFFIC
    lines = NO_ALL_TO_ALLS
    for part in several:
        lines = lines.joined(part.all_to_alls) if len(part.all_to_alls) else lines
    columns = zip(*(part.columns for part in several), strict=True)
    source, target, size, messages = (np.concatenate(column) for column in columns)
    return Traffic(source, target, size, messages, lines)


_NONE = np.zeros(0, dtype=np.int64)

#: No traffic at all.
NO_TRAFFIC = Traffic(_NONE, _NONE, _NONE, _NONE)
