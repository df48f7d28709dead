# SPDX-License-Identifier: Apache-2.0
"""All-to-alls in product form: within a line, s sends scale · w(s) · w(t) bytes to t.

A line is a set of ends (nodes or routers) with a weight each (the ranks there):
the whole job in an all-to-all, a row or a column of the process grid in an FFT.
Kept like this, 100,000 nodes are a few arrays and not a table of all pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.arrays import (
    add_by_key,
    mix_bits,
    product,
    ragged_ranges,
    sum_by_pair,
)

Entries = tuple[Ints, Ints, Floats]

#: Maximum size of one dense table of lines.
_TABLE = 1 << 22

#: Number of pairs that are expanded at once.
_EXPANDED = 1 << 21

#: What expanding one pair costs, in multiplications of a matrix product.
_DEAR = 100


@dataclass(frozen=True, slots=True, eq=False)
class AllToAlls:
    """All-to-alls, one per line: every rank sends to all ranks of its line at other ends."""

    line: Ints  # (e,), line of each entry; each (line, end) once, sorted by line and then end
    end: Ints  # (e,), node or router
    weight: Floats  # (e,), ranks of the line there
    scale: Floats  # (l,), bytes from each rank to each other, line by line

    @classmethod
    def of(cls, line: Ints, end: Ints, ranks: Floats, size: float, ends: int) -> AllToAlls:
        """Build all-to-alls from entries in any order; a (line, end) may occur repeatedly.

        `line`, `end` (e,): any numbers, and 0 … ends-1. `ranks` (e,): entries without ranks are
        left out. `size`: bytes from each rank of a line to each other.
        """
        line, end = line.astype(np.int64), end.astype(np.int64)
        if line.min(initial=0) < 0 or line.max(initial=0) >= 4 * len(line):
            _, line = np.unique(line, return_inverse=True)
        kept = ranks > 0
        line, end, ranks = sum_by_pair(line[kept], end[kept], ranks[kept], ends)
        present = np.bincount(line) > 0
        number = np.cumsum(present) - 1
        return cls(number[line], end, ranks, np.full(int(present.sum()), size))

    def __len__(self) -> int:
        return len(self.scale)

    def __mul__(self, factor: float) -> AllToAlls:
        return replace(self, scale=self.scale * factor)

    def moved(self, place: Ints, ends: int) -> AllToAlls:
        """Return the traffic with end e at place[e], 0 … ends-1; ranks at one place add up."""
        return AllToAlls(*sum_by_pair(self.line, place[self.end], self.weight, ends), self.scale)

    def joined(self, other: AllToAlls) -> AllToAlls:
        """Return the lines of both."""
        return AllToAlls(
            line=np.concatenate([self.line, other.line + len(self)]),
            end=np.concatenate([self.end, other.end]),
            weight=np.concatenate([self.weight, other.weight]),
            scale=np.concatenate([self.scale, other.scale]),
        )

    def merged(self) -> AllToAlls:
        """Return the lines with identical ones merged, their scales summed.

        The lines of a process grid are alike wherever all ranks of some
        nodes follow each other.
        """
        if len(self) < 2:
            return self
        digest = mix_bits(mix_bits(self.end) + self.weight.view(np.int64))
        first = np.searchsorted(self.line, np.arange(len(self)))
        look = np.add.reduceat(digest, first)
        _, kept, which = np.unique(look, return_index=True, return_inverse=True)
        if len(kept) == len(self):
            return self
        rank = np.full(len(self), -1)
        rank[kept] = np.arange(len(kept))
        some = rank[self.line] >= 0
        line, order = rank[self.line[some]], np.argsort(rank[self.line[some]], kind="stable")
        end, weight = self.end[some][order], self.weight[some][order]
        return AllToAlls(line[order], end, weight, add_by_key(which, self.scale))

    def table(self, place: Ints, size: int) -> Floats:
        """Return the bytes between all places 0 … size-1, where end e is at place[e].

        Returns (size, size): a place's bytes to itself are in it.
        """
        if len(self) == 1:  # the most common case, which needs no sorting
            ranks = np.bincount(place[self.end], self.weight, minlength=size)
            return self.scale * ranks * ranks[:, None]
        side = self.line, place[self.end], self.weight
        return product_over_lines(side, side, self.scale, size, size)

    def between(self, a: Ints, b: Ints, ends: int) -> Floats:
        """Return the bytes from each end a[k] to another end b[k], float64 (k,)."""
        here = np.bincount(self.end, self.weight, ends)
        if len(self) == 1:  # most often
            return self.scale * here[b] * here[a]
        both = np.flatnonzero(here[a] * here[b])
        used = np.flatnonzero(here)
        place = np.searchsorted(used, [a[both], b[both]])
        amount = np.zeros(len(a))
        amount[both] = self.table(np.searchsorted(used, np.arange(ends)), len(used))[
            place[0], place[1]
        ]
        return amount

    def sent(self, ends: int) -> Floats:
        """Return the bytes that each end sends to, and receives from, all others."""
        total = add_by_key(self.line, self.weight)
        others = total[self.line] - self.weight
        return add_by_key(self.end, self.scale[self.line] * self.weight * others, ends)

    def messages(self, ends: int) -> Floats:
        """Return how many messages each end sends to all others, float64 (ends,)."""
        total = add_by_key(self.line, self.weight)
        return add_by_key(self.end, self.weight * (total[self.line] - self.weight), ends)

    def inside(self, ends: int) -> Floats:
        """Return the bytes that ranks at the same end send each other, float64 (ends,)."""
        pairs = self.weight * (self.weight - 1)
        return add_by_key(self.end, self.scale[self.line] * pairs, ends)

    def largest_pair(self, ends: int) -> float:
        """Return an upper bound on the bytes from any end to any other."""
        order = np.lexsort((self.weight, self.line))
        line, weight = self.line[order], self.weight[order]
        last = np.append(line[1:] != line[:-1], True)[: len(line)]
        top = np.flatnonzero(last)[line]
        before = np.maximum(top - 1, 0)
        second = np.where(line[before] == line, weight[before], 0.0)
        others = np.where(last, second, weight[top])
        amount = self.scale[line] * weight * others
        return float(add_by_key(self.end[order], amount, ends).max(initial=0.0))

    def pairs(self) -> tuple[Ints, Ints, Floats, Floats]:
        """Return (source, target, bytes, messages) of each pair of different ends, line by line."""
        last = np.cumsum(np.bincount(self.line, minlength=len(self)))
        first = np.append(0, last)[self.line]
        here, there = ragged_ranges(first, np.diff(last, prepend=0)[self.line])
        apart = here != there
        here, there = here[apart], there[apart]
        messages = self.weight[here] * self.weight[there]
        return self.end[here], self.end[there], self.scale[self.line[here]] * messages, messages

    def leaving(self, label: Ints, count: int) -> Floats:
        """Return the bytes that leave the ends with each label (-1: none); as many enter."""
        total = add_by_key(self.line, self.weight, len(self))
        inside = label[self.end] >= 0
        entries = self.line[inside], label[self.end[inside]], self.weight[inside]
        line, part, weight = sum_by_pair(*entries, count)
        return add_by_key(part, self.scale[line] * weight * (total[line] - weight), count)

    def rows(self, low: int, high: int, ends: int) -> Floats:
        """Return the bytes from the ends low … high-1 to all ends 0 … `ends`-1.

        An end's bytes to itself are in it.

        Returns (high - low, ends).
        """
        here = (self.end >= low) & (self.end < high)
        used = np.bincount(self.line[here], minlength=len(self)) > 0
        there, rank = used[self.line], np.cumsum(used) - 1
        left = rank[self.line[here]], self.end[here] - low, self.weight[here]
        right = rank[self.line[there]], self.end[there], self.weight[there]
        return product_over_lines(left, right, self.scale[used], high - low, ends)


def product_over_lines(
    left: Entries, right: Entries, scale: Floats, rows: int, columns: int
) -> Floats:
    """Return the product of two sparse tables, lines x rows and lines x columns, over the lines.

    `left`, `right` (e,): line, row or column, and weight of each entry, sorted by line. `scale`
    (l,): factor of each line. Returns (rows, columns): each line has been multiplied the way that
    is cheaper for it.
    """
    right = sum_by_pair(*right, columns)
    lengths = [np.bincount(side[0], minlength=len(scale)) for side in (left, right)]
    short = lengths[0] * lengths[1] * _DEAR < rows * columns
    out = np.zeros(rows * columns)
    if short.any():
        _add_listed(left, right, np.where(short, scale, 0), out, columns)
    if not short.all():
        _add_dense(left, right, np.where(short, 0, scale), out.reshape(rows, columns))
    return out.reshape(rows, columns)


def _add_dense(left: Entries, right: Entries, scale: Floats, out: Floats) -> None:
    """Add up the lines with a nonzero scale as dense tables, several at a time."""
    used = np.flatnonzero(scale)
    rank = np.full(len(scale), -1)
    rank[used] = np.arange(len(used))
    sides = []
    for (line, column, weight), columns in zip((left, right), out.shape, strict=True):
        kept = rank[line] >= 0
        sides.append((rank[line[kept]], column[kept], weight[kept], columns))
    lines = max(1, _TABLE // sum(out.shape))
    for low in range(0, len(used), lines):
        some = scale[used[low : low + lines], None]
        tables = []
        for line, column, weight, columns in sides:
            first, last = np.searchsorted(line, [low, low + len(some)])
            key = (line[first:last] - low) * columns + column[first:last]
            table = add_by_key(key, weight[first:last], len(some) * columns)
            tables.append(table.reshape(len(some), columns))
        out += product((tables[0] * some).T, tables[1])


def _add_listed(left: Entries, right: Entries, scale: Floats, out: Floats, columns: int) -> None:
    """Add up the lines with a nonzero scale, pair by pair of their entries."""
    chosen = np.flatnonzero(scale[left[0]])
    line, row, weight = left[0][chosen], left[1][chosen], left[2][chosen]
    start = np.searchsorted(right[0], np.arange(len(scale) + 1))
    for entry, other in match_lines(line, start):
        amount = (weight * scale[line])[entry] * right[2][other]
        key = row[entry] * columns + right[1][other]
        if len(out) > 8 * len(key):  # avoid walking through a table much larger than the keys
            np.add.at(out, key, amount)
        else:
            out += add_by_key(key, amount, len(out))


def match_lines(line: Ints, start: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Pair each entry with every entry of a second list on the same line, in blocks.

    `line` (e,): of the first list's entries. `start` (l + 1,): where the entries of each line
    begin in the second list. Yields `entry, other` (m,).
    """
    matches = np.diff(start)[line]
    batch = np.cumsum(matches) // _EXPANDED
    for some in np.split(np.arange(len(line)), np.flatnonzero(np.diff(batch)) + 1):
        repeats = matches[some]
        entry = np.repeat(some, repeats)
        place = np.arange(len(entry)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        yield entry, start[line[entry]] + place


_NONE = np.zeros(0, dtype=np.int64)

#: No lines at all.
NO_ALL_TO_ALLS = AllToAlls(_NONE, _NONE, np.zeros(0), np.zeros(0))
