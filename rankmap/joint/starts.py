"""Node sets to start from: what the planners choose, and families between packed and spread.

The planners' own answers come first, Slurm's default before all. Between
"as packed" and "as spread as can be" lies a family for each level of the
machine: the job spread evenly over the k freest groups (chassis, leaves …).
On tori it is boxes of every shape at the place where they are freest.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from placement import planners
from placement.errors import PlanError, UsageError
from placement.plan import DEFAULT, counted
from placement.planners._units import nested

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.request import Request

    Ints = NDArray[np.int64]

__all__ = ["boxes", "default", "held", "levels", "starts"]

#: Planners that are asked, each with what of the request is changed.
ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("compact", {}),
    ("spread", {}),
    ("level-spread", {}),
    ("hilbert", {}),
    ("morton", {}),
    ("hilbert-groups", {}),
    ("slurm-tree", {}),
    ("slurm-dragonfly", {}),
    ("blades", {"per_blade": 4}),
    ("blades", {"per_blade": 2}),
    ("blades", {"per_blade": 1}),
    ("blades-linked", {}),
    ("random", {}),
)  # fmt: skip

#: Numbers of units tried at each level, at most.
MOST_COUNTS = 10

#: Boxes tried on a torus.
MOST_BOXES = 16


def default(machine: Machine, request: Request) -> Ints | None:
    """Return what Slurm would take by itself; None where it would take nothing."""
    try:
        return planners.find(DEFAULT)(machine, request)
    except PlanError:
        return None


def starts(machine: Machine, request: Request) -> Iterator[tuple[str, Ints]]:
    """Yield the name and the rows of each node set, no set twice.

    Every set is a valid answer to the request: the count, only free nodes,
    all that are included.
    """
    seen: set[bytes] = set()
    for name, rows in itertools.chain(_planned(machine, request), levels(machine, request)):
        key = np.sort(rows).tobytes()
        if key not in seen:
            seen.add(key)
            yield name, rows


def _planned(machine: Machine, request: Request) -> Iterator[tuple[str, Ints]]:
    for name, change in ASKED:
        try:
            rows = planners.find(name)(machine, replace(request, **change))
        except (PlanError, UsageError):
            continue  # does not apply to this machine, or has too few nodes of its kind
        yield name, rows


def levels(machine: Machine, request: Request) -> Iterator[tuple[str, Ints]]:
    """Yield the job spread over the k freest units of each level, for several k.

    Examples
    --------
    >>> from placement.request import Request
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("dragonfly:groups=4,chassis=1,blades=2,nodes=2")
    >>> found = dict(levels(m, Request(count=4, free=m.free)))
    >>> found["1 group"].tolist(), found["2 groups"].tolist()
    ([0, 1, 2, 3], [0, 2, 4, 6])
    """
    if machine.topology.kind == "torus":
        yield from boxes(machine, request)
        return
    rows = request.rows()
    words = machine.topology.levels
    for depth, unit in enumerate(nested(machine, rows)):
        size = np.bincount(unit)
        must = np.isin(rows, request.include)
        forced = np.bincount(unit[must], minlength=len(size)) > 0
        freest = np.lexsort((-size, ~forced))
        for k in _counts(np.cumsum(size[freest]), request.count, int(forced.sum())):
            within = np.isin(unit, freest[:k])
            yield counted(k, words[depth]), _spread(machine, request, rows[within])


def _counts(room: Ints, count: int, least: int) -> list[int]:
    """Return numbers of units to try: the fewest that hold the job, all, and some between.

    Examples
    --------
    >>> _counts(np.array([4, 8, 12, 16]), 6, 0)
    [2, 3, 4]
    """
    low = max(1, least, int(np.searchsorted(room, count)) + 1)
    high = min(len(room), count)
    if high < low:
        return []
    if high - low < MOST_COUNTS:
        return list(range(low, high + 1))
    return list(dict.fromkeys(np.geomspace(low, high, MOST_COUNTS).round().astype(int).tolist()))


def _spread(machine: Machine, request: Request, rows: Ints) -> Ints:
    """Return the job spread evenly over some of the free rows."""
    free = np.zeros(len(machine), dtype=bool)
    free[rows] = True
    return planners.find("spread")(machine, replace(request, free=free))


def boxes(machine: Machine, request: Request) -> Iterator[tuple[str, Ints]]:
    """Yield the nodes of boxes of a torus, each where most of its nodes are free.

    The shapes are those that hold the job with least on the busiest axis of
    an all-to-all inside; a box with nodes to spare gives those nearest to its
    middle.

    Examples
    --------
    >>> from placement.request import Request
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("torus:6x6")
    >>> next(boxes(m, Request(count=4, free=m.free)))
    ('box 2x2', array([0, 1, 6, 7]))
    """
    axes = machine.topology.router_levels
    extents = np.array(machine.topology.extents[:axes])
    rows = request.rows()
    coords = machine.coords[rows, :axes].astype(np.int64)
    grid = np.zeros(extents, dtype=np.int64)
    np.add.at(grid, tuple(coords.T), 1)
    found = 0
    for shape in _shapes(machine, extents, grid, request.count):
        free = held(grid, shape)
        corner = np.array(np.unravel_index(int(np.argmax(free)), free.shape))
        if free.max() < request.count:
            continue
        away = (coords - corner) % extents
        inside = (away < shape).all(axis=1) | np.isin(rows, request.include)
        middle = np.abs(2 * away[inside] - (np.array(shape) - 1)).max(axis=1)
        must = np.isin(rows[inside], request.include)
        order = np.lexsort((middle, ~must))[: request.count]
        yield f"box {'x'.join(map(str, shape))}", np.sort(rows[inside][order])
        found += 1
        if found == MOST_BOXES:
            return


def _shapes(
    machine: Machine, extents: Ints, grid: NDArray[np.int64], count: int
) -> list[tuple[int, ...]]:
    """Return shapes of boxes that may hold the job, the best for an all-to-all first."""
    a_router = grid.mean()
    kinds = machine.topology.levels
    gbs = [machine.topology.bandwidth.get(kind, 1.0) for kind in kinds[: len(extents)]]
    best: dict[tuple[int, ...], float] = {}
    for shape in _all_shapes(extents, count):
        if math.prod(shape) * a_router < 0.6 * count:
            continue
        if math.prod(shape) * a_router > 4 * count + 8:
            continue
        rings = [
            (side / 8 if side == whole else side / 4) / rate if side > 1 else 0.0
            for side, whole, rate in zip(shape, extents, gbs, strict=True)
        ]
        best[shape] = max(rings) * (1 + 0.1 * math.prod(shape) * a_router / count)
    return sorted(best, key=lambda shape: (best[shape], shape))[: 6 * MOST_BOXES]


def _all_shapes(extents: Ints, count: int) -> Iterator[tuple[int, ...]]:
    """Yield the sides of boxes; of long axes only some sides."""
    sides = [_sides(int(extent)) for extent in extents]
    yield from itertools.product(*sides)


def _sides(extent: int) -> list[int]:
    if extent <= 12:
        return list(range(1, extent + 1))
    return sorted({*range(1, 9), *(round(extent * k / 8) for k in range(1, 9))})


def held(grid: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the free nodes in the box at every corner, round the torus.

    Examples
    --------
    >>> held(np.array([1, 0, 2]), (2,)).tolist()
    [1, 2, 3]
    """
    for axis, side in enumerate(shape):
        twice = np.concatenate([grid, grid], axis=axis)
        sums = np.cumsum(twice, axis=axis)
        whole = np.concatenate([np.zeros_like(sums.take([0], axis)), sums], axis=axis)
        size = grid.shape[axis]
        low = np.arange(size)
        grid = whole.take(low + side, axis) - whole.take(low, axis)
    return grid
