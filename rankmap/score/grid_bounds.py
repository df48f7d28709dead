"""Bounds on J that the pattern's own shape gives: no order of it can be below.

J is the sum over levels of what one level farther costs, times the weight
that leaves the level's units (`rankmap.score.bounds.by_level_bound`). What leaves is
all there is, less what units of these sizes can have inside at most:
isoperimetry for stencils and rings, Lindsey's theorem for all-to-alls along
the lines of a grid. Where distances are not the levels', all-to-alls have
another: a rank has so many partners, and only so many slots are near.

Isoperimetry: of the lines along one dimension, every one that meets a set of s cells
has at most one edge fewer inside the set than it has cells there. So the edges inside
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
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from placement.support.array_types import Floats, Ints, Shape
from rankmap.grid.boxes import inside
from rankmap.pattern import Pattern
from rankmap.pattern.structured import GridPattern, Lines, Step
from rankmap.score.bounds import Bound, by_level_bound, capacities
from rankmap.score.distance import Distance
from rankmap.slots import Slots

__all__ = ["fewest", "grid_bound", "lindsey", "most_inside", "shadows"]

#: Sets of more cells are bounded by their shadows instead of their slices (time is size squared).
MOST_SLICED = 6144
MOST_SLICED_PERIODIC = 2048

#: Nodes of which all distances are looked at.
MOST_NODES = 1024


def grid_bound(pattern: Pattern, slots: Slots, distance: Distance) -> Bound | None:
    """Return the bound of a pattern on a grid; None where it has none.

    Parameters
    ----------
    pattern : Pattern
        Fitted to the slots.
    slots : Slots
    distance : Distance
        Of the slots' nodes.

    Examples
    --------
    >>> import nidmap
    >>> from rankmap.score.distance import job_distance
    >>> from rankmap.slots import slots_of
    >>> from rankmap.pattern.structured import Stencil
    >>> on = slots_of(nidmap.load_machine("tree:4x16x6,dist=1:2:3"), None, 24)
    >>> grid_bound(Stencil((24, 24, 16)), on, job_distance(on))
    Bound(value=14520.0, why='isoperimetric')
    """
    if not isinstance(pattern, GridPattern) or not pattern.dims:
        return None
    sizes = capacities(slots, distance)
    whole = float(inside(pattern, np.array([pattern.dims]))[0])
    parted = [s for s in sizes if len(s) > 1]  # nothing leaves the system as a whole
    most = most_inside(pattern, np.concatenate([[1], *map(np.unique, parted)]))
    cuts = []
    for capacity in sizes:
        values, counts = np.unique(capacity, return_counts=True)
        if len(capacity) > 1:
            held = zip(values.tolist(), counts.tolist(), strict=True)
            cuts.append(max(0.0, whole - math.fsum(n * most[v] for v, n in held)))
        else:
            cuts.append(0.0)
    why = "Lindsey" if isinstance(pattern, Lines) else "isoperimetric"
    by_level = Bound(by_level_bound(np.array(cuts), distance), why)
    if isinstance(pattern, Lines) and not distance.exact:
        near = Bound(_near(pattern, slots, distance), "counting")
        return max(by_level, near, key=lambda one: one.value)
    return by_level


def most_inside(pattern: GridPattern, sizes: Ints) -> dict[int, float]:
    """Return the most weight that the edges inside a set of each size can have.

    Examples
    --------
    >>> from rankmap.pattern.structured import Stencil
    >>> most_inside(Stencil((24, 24, 16)), np.array([24, 96, 1536]))
    {24: 46.0, 96: 224.0, 1536: 4204.0}
    """
    wanted = np.unique(sizes).tolist()
    if isinstance(pattern, Lines):
        return {s: pattern.weight * lindsey(pattern.dims or (), s) for s in wanted}
    lost = _least_lost(pattern, wanted)
    every = sum(weight for offset, weight in pattern.steps() if _moves(pattern, offset))
    return {s: max(0.0, float(every * s - lost(s))) for s in wanted}


def _moves(pattern: GridPattern, offset: Shape) -> bool:
    """Return False where every cell would be its own neighbour, or has none."""
    sides = list(zip(offset, pattern.dims or (), pattern.periodic, strict=True))
    if any(step and extent <= abs(step) and not wraps for step, extent, wraps in sides):
        return False
    return any(step % extent for step, extent, _ in sides)


def _least_lost(pattern: GridPattern, wanted: Sequence[int]) -> Callable[[int], float]:
    """Return what a set of a size has at least fewer than all its cells' edges, as a function."""
    along: dict[int, float] = {}
    across: list[Step] = []
    for offset, weight in pattern.steps():
        axes = [k for k, step in enumerate(offset) if step]
        if not weight or not _moves(pattern, offset):
            continue
        if len(axes) == 1:
            along[axes[0]] = along.get(axes[0], 0.0) + weight
        elif not any(pattern.periodic[k] for k in axes):
            across.append((offset, weight))
    straight = _straight(pattern, along, wanted)
    groups = _independent(across)
    dims, weights = pattern.dims or (), [weight for _, weight in pattern.steps()]
    # The least weight where all eight neighbours of an open plane are talked to.
    plane = len(dims) == 2 and min(dims) > 1 and not any(pattern.periodic)
    king = min(weights) if plane and len(weights) == 4 else 0.0
    return lambda size: max(
        straight(size) + sum(_least_slanting(dims, g, size) for g in groups), king * _kings(size)
    )


def _kings(size: int) -> int:
    """Return by how many edges a set of cells with eight neighbours each is short of 4 a cell.

    No n points of the plane have more than 4n - sqrt(28n - 12) pairs at
    distance 1 by the larger coordinate (Brass, Erdős distance problems in
    normed spaces, 1996).

    Examples
    --------
    >>> [4 * n - _kings(n) for n in (1, 2, 4, 9, 12)]
    [0, 1, 6, 20, 30]
    """
    root = math.isqrt(28 * size - 12)
    return root + (root * root < 28 * size - 12)


def _straight(
    pattern: GridPattern, along: dict[int, float], wanted: Sequence[int]
) -> Callable[[int], float]:
    """Return the least weight of lines along the axes that a set loses, as a function of size."""
    dims = pattern.dims or ()
    axes = [k for k, extent in enumerate(dims) if extent > 1]
    if not axes:
        return lambda size: 0.0
    extents = tuple(dims[k] for k in axes)
    weights = tuple(along.get(k, 0.0) for k in axes)
    closes = tuple(pattern.periodic[k] for k in axes)
    limit = MOST_SLICED_PERIODIC if any(closes) else MOST_SLICED
    table = fewest(extents, weights, closes, max((s for s in wanted if s <= limit), default=1))

    def least(size: int) -> float:
        if size < len(table):
            return float(table[size])
        whole = sum(w * (size // e) for w, e, c in zip(weights, extents, closes, strict=True) if c)
        return max(0.0, shadows(extents, weights, size) - whole)

    return least


def _independent(offsets: list[Step]) -> list[list[Step]]:
    """Return slanting offsets in groups of linearly independent ones."""
    groups: list[list[Step]] = []
    for one in offsets:
        for group in groups:
            rows = np.array([offset for offset, _ in [*group, one]])
            if np.linalg.matrix_rank(rows) == len(rows):
                group.append(one)
                break
        else:
            groups.append([one])
    return groups


def _least_slanting(dims: Shape, group: list[Step], size: int) -> float:
    """Return the least weight of slanting lines that meet a set.

    Independent offsets span a lattice, or several side by side; in each the
    lines are those of a grid without end, and one lattice is the cheapest.
    """
    if len(group) == 1:
        offset, weight = group[0]
        longest = min(extent for extent, step in zip(dims, offset, strict=True) if step)
        return weight * -(-size // longest)
    return shadows((size,) * len(group), [weight for _, weight in group], size)


def _near(pattern: Lines, slots: Slots, distance: Distance) -> float:
    """Return the bound that each rank's partners take the slots nearest to it."""
    partners = sum(extent - 1 for extent in pattern.dims or ())
    nodes = len(slots.counts)
    if nodes > MOST_NODES or not partners:
        return 0.0
    total = 0.0
    for node, (count, far) in enumerate(zip(slots.counts.tolist(), distance.rows(), strict=True)):
        order = np.argsort(far, kind="stable")
        room = slots.counts[order] - (order == node)
        before = np.minimum(np.cumsum(room) - room, partners)
        taken = np.minimum(room, partners - before)
        total += count * float(taken @ far[order])
    return pattern.weight * total / 2


@lru_cache(maxsize=64)  # an order, its score and its choice all ask for the same
def fewest(
    dims: Shape, weights: tuple[float, ...], periodic: tuple[bool, ...], most: int
) -> Floats:
    """Return the least weight of lines that sets of 0 … `most` cells lose, float64 (most + 1,).

    A number that no set is below; infinite where there are not so many cells.

    Parameters
    ----------
    dims : tuple of int
        Extents of the grid.
    weights : tuple of float
        What a line along each dimension weighs.
    periodic : tuple of bool
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
