"""How many of a grid's edges a set of so many cells can have inside it, at most.

Of the lines along one dimension, every one that meets a set of s cells has at
most one edge fewer inside the set than it has cells there. So the edges inside
are at most s for each dimension, less the lines that meet the set, and the
question is how few lines can do. On a periodic dimension a line that lies in
the set as a whole closes and loses nothing.

*Slices.* Cut the set along one dimension: the lines in that direction are at
least as many as the largest slice has cells, and those in the others are what
the slices need, each a set with one dimension less. The least over all sizes
of the slices is a knapsack (`fewest`). It asks of the slices their sizes only,
so it holds for every set; for the unweighted grid it is met (R. Ahlswede and
S. L. Bezrukov, Appl. Math. Lett. 8, 1995: there is an order of the cells in
which every first stretch is best).

*Shadows.* For sets too large for that: the product of the numbers of lines is
at least s^(d-1) (L. H. Loomis and H. Whitney, Bull. AMS 55, 1949).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from placement.support.array_types import Floats

__all__ = ["fewest", "lindsey", "shadows"]


def fewest(
    dims: Sequence[int], weights: Sequence[float], periodic: Sequence[bool], most: int
) -> Floats:
    """Return the least weight of lines that sets of 0 … `most` cells lose, float64 (most + 1,).

    A number that no set is below; infinite where there are not so many cells.

    Parameters
    ----------
    dims : sequence of int
        Extents of the grid.
    weights : sequence of float
        What a line along each dimension weighs.
    periodic : sequence of bool
        Along which dimensions a line that is whole loses nothing.
    most : int

    Examples
    --------
    >>> fewest((24, 24, 16), (1, 1, 1), (False,) * 3, 24)[[1, 8, 24]].tolist()
    [3.0, 12.0, 26.0]
    """
    by_length = sorted(range(len(dims)), key=lambda k: dims[k])
    first = by_length[0]
    size = np.arange(most + 1)
    found = np.where(size <= dims[first], float(weights[first]), math.inf)
    found[0] = 0.0
    if periodic[first] and dims[first] <= most:
        found[dims[first]] = 0.0
    cap = dims[first]
    for k in by_length[1:]:
        found = _stack_slices(found, min(cap, most), dims[k], float(weights[k]), periodic[k])
        cap *= dims[k]
    return found


def _stack_slices(flat: Floats, cap: int, extent: int, weight: float, closes: bool) -> Floats:
    """Return the least for sets that are stacks of at most `extent` slices."""
    most = len(flat) - 1
    parts = np.full(most + 1, math.inf)
    parts[0] = 0.0
    best = np.full(most + 1, math.inf)
    best[0] = 0.0
    for largest in range(1, cap + 1):
        _add_item(parts, largest, float(flat[largest]))
        last = min(most, largest * extent)
        some = slice(largest, last + 1)
        lost = parts[some] + weight * largest
        if closes:
            lost = np.minimum(lost, _close_lines(flat, parts[some], largest, extent, weight))
        np.minimum(best[some], lost, out=best[some])
    return best


def _add_item(parts: Floats, size: int, price: float) -> None:
    """Let sums be made of items of one more size, as many as wanted."""
    for low in range(size, len(parts), size):
        high = min(low + size, len(parts))
        dearer = parts[low - size : high - size] + price
        np.minimum(parts[low:high], dearer, out=parts[low:high])


def _close_lines(flat: Floats, parts: Floats, largest: int, extent: int, weight: float) -> Floats:
    """Return a least for sets that have cells in every slice, m or more in each.

    They lose `largest` lines but for the whole ones, m at most; every slice
    needs at least what a slice of m cells or more does, and all together what
    any slices of so many cells do (`parts`).
    """
    size = np.arange(largest, largest + len(parts))
    limit = size if extent == 1 else np.minimum((size - largest) // (extent - 1), size // extent)
    top = int(limit[-1])
    if top == 0:
        return np.full(len(parts), math.inf)
    least = np.minimum.accumulate(flat[: largest + 1][::-1])[::-1][: top + 1] * extent
    free = np.minimum(np.searchsorted(least, parts, side="right") - 1, limit)
    dear = np.minimum.accumulate((least - weight * np.arange(len(least)))[::-1])[::-1]
    after = np.append(dear, math.inf)
    beyond = np.where(free < limit, after[np.minimum(free + 1, len(dear))], math.inf)
    found: Floats = np.minimum(parts - weight * free, beyond)
    found[limit == 0] = math.inf
    return weight * largest + found


def shadows(dims: Sequence[int], weights: Sequence[float], size: int) -> float:
    """Return the least weight of lines that meet a set of `size` cells, by Loomis and Whitney.

    Examples
    --------
    >>> shadows((100, 100, 100), (1, 1, 1), 64_000)
    4800.0
    >>> shadows((4, 1000), (1, 1), 400)
    104.0
    """
    least = np.array([-(-size // extent) for extent in dims], dtype=np.float64)
    most = np.array([math.prod(dims) // extent for extent in dims], dtype=np.float64)
    price = np.array(weights, dtype=np.float64)
    free = price <= 0
    wanted = (len(dims) - 1) * math.log(size)

    def lines(scale: float) -> Floats:
        cheap = math.exp(scale) / np.where(free, 1.0, price)
        return np.where(free, most, np.minimum(np.maximum(cheap, least), most))

    low, high = -60.0, 120.0
    for _ in range(100):
        middle = (low + high) / 2
        few = float(np.log(lines(middle)).sum()) < wanted
        low, high = (middle, high) if few else (low, middle)
    total = float((np.where(free, 0.0, price) * lines(low)).sum())
    if (price == np.round(price)).all():  # lines are whole, so whole weights make whole sums
        return float(math.ceil(total - 1e-6 * max(1.0, total * 1e-6)))
    return total * (1 - 1e-12)


def lindsey(dims: Sequence[int], size: int) -> int:
    """Return the most pairs in common lines that `size` cells of a grid can have.

    The longest lines are filled first, then planes of them (J. H. Lindsey,
    Amer. Math. Monthly 71, 1964): exact.

    Examples
    --------
    >>> lindsey((64, 64), 24), lindsey((64, 64), 128)
    (276, 4096)
    """

    def pairs(lengths: Sequence[int], size: int) -> int:
        if not lengths or size < 2:
            return 0
        *rest, _ = lengths
        below = math.prod(rest)
        planes, left = divmod(size, below)
        along = left * math.comb(planes + 1, 2) + (below - left) * math.comb(planes, 2)
        return along + pairs(rest, left) + (planes * pairs(rest, below) if planes else 0)

    return pairs(sorted(dims, reverse=True), size)
