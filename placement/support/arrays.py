# SPDX-License-Identifier: Apache-2.0
"""Sums by key, even samples, and matrix products on a single core."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nidmap.placement.support.array_types import Array, Floats, Ints

#: A table of this many numbers is filled rather than the keys sorted.
_TABLE = 1 << 16

#: Multiplications up to which OpenBLAS stays on one core.
_ONE_CORE = 1 << 18


def add_by_key(key: Ints, amount: Floats, size: int = 0) -> Floats:
    """Return the sum of amounts for each key 0 … `size`-1 (or the largest key)."""
    if not len(key):
        return np.zeros(size)
    return np.bincount(key, amount, minlength=size).astype(np.float64, copy=False)


def count_distinct(values: Ints) -> int:
    """Count distinct values without numpy's `unique`, which loads masked arrays."""
    ordered = np.sort(values)
    return int((ordered[1:] != ordered[:-1]).sum()) + min(1, len(ordered))


def each_once(values: Ints) -> Ints:
    """Return each value once, in the order of first occurrence."""
    return values[np.sort(np.unique(values, return_index=True)[1])]


def sum_by_key(key: Ints, *columns: Array) -> tuple[Array, ...]:
    """Return the distinct keys in ascending order, followed by the sums of each column."""
    if not len(key):
        return key, *columns
    order = np.argsort(key, kind="stable")
    key = key[order]
    differs = key[1:] != key[:-1]
    if differs.all():
        return key, *(column[order] for column in columns)
    first = np.flatnonzero(np.append(True, differs))
    return key[first], *(np.add.reduceat(column[order], first) for column in columns)


def sum_by_pair(row: Ints, column: Ints, amount: Floats, columns: int) -> tuple[Ints, Ints, Floats]:
    """Return the distinct (row, column) pairs in ascending order, with summed amounts.

    Sums of 0 may be left out.
    """
    key, size = row * columns + column, (int(row.max(initial=-1)) + 1) * columns
    if size <= 16 * len(key) + _TABLE:
        table = add_by_key(key, amount, size)
        key = np.flatnonzero(table)
        amount = table[key]
    elif not (np.diff(key) > 0).all():
        key, amount = sum_by_key(key, amount)
    return *np.divmod(key, max(1, columns)), amount


def connected_components(count: int, a: Ints, b: Ints) -> Ints:
    """Return, for each of `count` items, the lowest item connected to it by pairs (a, b)."""
    label = np.arange(count)
    while True:
        low, before = np.minimum(label[a], label[b]), label.copy()
        np.minimum.at(label, a, low)
        np.minimum.at(label, b, low)
        label = label[label]
        if (label == before).all():
            return label


def find_sorted(keys: Array, wanted: Array) -> Ints:
    """Return the index of each wanted key in sorted `keys`; -1 if missing."""
    if not len(keys):
        return np.full(len(wanted), -1)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1)


def rank_within(unit: Array, *before: Array) -> Ints:
    """Return each member's rank within its unit.

    `unit` (k,): unit of each member. `before` (k,): sorting keys, the most important first;
    members equal in all keep their order. Returns (k,): 0 for the first of each unit.
    """
    order = np.lexsort((*before[::-1], unit))
    ordered = unit[order]
    rank = np.empty(len(unit), dtype=np.int64)
    rank[order] = np.arange(len(unit)) - np.searchsorted(ordered, ordered)
    return rank


def ragged_ranges(first: Ints, many: Ints) -> tuple[Ints, Ints]:
    """Return `many[i]` pairs (i, first[i]), (i, first[i] + 1), … for each i, as two columns."""
    which = np.repeat(np.arange(len(many)), many)
    return which, np.arange(len(which)) + (first - np.cumsum(many) + many)[which]


def product(a: Floats, b: Floats) -> Floats:
    """Return ``a @ b`` of stacked matrices, in pieces that BLAS multiplies on one core.

    OpenBLAS starts all its threads for anything larger. On a machine that
    has other work, waiting for them costs a hundred times what they save.

    `a` (…, m, k). `b` (…, k, n). Returns (…, m, n).
    """
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    if k == 1:
        return np.asarray(a * b)
    if k and b.ndim == 2 < a.ndim:  # one table rather than a stack of small ones
        return product(a.reshape(-1, k), b).reshape(*a.shape[:-1], n)
    if m * k * n <= _ONE_CORE:
        return np.asarray(a @ b)
    rows, depth, columns = _piece_shape(m, k, n)
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = np.zeros((*stack, m, n))
    for row in range(0, m, rows):
        for column in range(0, n, columns):
            piece = out[..., row : row + rows, column : column + columns]
            for inner in range(0, k, depth):
                left = a[..., row : row + rows, inner : inner + depth]
                piece += left @ b[..., inner : inner + depth, column : column + columns]
    return out


def _piece_shape(m: int, k: int, n: int) -> tuple[int, int, int]:
    """Return rows, depth and columns of a piece, as square as the limit permits."""
    depth = min(k, _ONE_CORE // 256)
    columns = min(n, max(16, int((_ONE_CORE // depth) ** 0.5)))
    if m < 16:
        columns = min(n, _ONE_CORE // (depth * m))
    return min(m, _ONE_CORE // (depth * columns)), depth, columns


def mix_bits(number: Ints) -> Ints:
    """Return pseudo-random numbers that depend only on the input numbers (SplitMix64).

    Sums of them (modulo 2^64) tell sets apart. numpy.random is slow to import.
    """
    x = (number.view(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    return finish_bits(x).view(np.int64)


def finish_bits(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply SplitMix64's finaliser: every output bit depends on every input bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def sample_evenly(count: int, most: int) -> tuple[list[int], list[float]]:
    """Return at most this many of the numbers 1 … count, and how many each represents.

    One of each of equal stretches, at places that follow no power of two. The first is not 1:
    the first step of an exchange is between neighbours, and stands for no other.
    """
    if count <= most:
        return list(range(1, count + 1)), [1.0] * count
    edges = [count * k // most for k in range(most + 1)]
    sizes = [high - low for low, high in pairwise(edges)]
    golden = (5**0.5 - 1) / 2
    at = [int((k + 1) * golden % 1 * size) for k, size in enumerate(sizes)]
    return [1 + low + a for low, a in zip(edges, at, strict=False)], [float(s) for s in sizes]


def sum_boxes(grid: Ints, sides: tuple[int, ...]) -> Ints:
    """Return the sum over a box of these sides at every corner, wrapping round the torus."""
    for axis, side in enumerate(sides):
        twice = np.concatenate([grid, grid], axis=axis)
        sums = np.cumsum(twice, axis=axis)
        below = np.concatenate([np.zeros_like(sums.take([0], axis)), sums], axis=axis)
        size = grid.shape[axis]
        low = np.arange(size)
        grid = below.take(low + side, axis) - below.take(low, axis)
    return grid
