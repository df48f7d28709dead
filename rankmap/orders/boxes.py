"""Boxes: the process grid tiled with boxes of node size, these with boxes of blade size, and so on.

Where every unit of a level has as many slots, the best chain of nested boxes
is found exactly (each box divides the next, so the cost of a chain is a sum
over its levels). Levels whose units differ, and levels that no box tiles, are
carved out of the grid of the boxes below them, sizes kept exactly
(`rankmap.grid.carving`). On a torus the grid of boxes is laid on its routers as it
is, where that fits. Several ways are made and the cheapest is taken, the
default order among them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rankmap.grid.carving import carve
from rankmap.grid.coarse import coarse
from rankmap.grid.divisors import boxes_of, divisors
from rankmap.grid.embedding import box_of, hops, layouts
from rankmap.grid.shapes import cells_in, inside
from rankmap.order import Order
from rankmap.orders import ordering
from rankmap.orders.grid import grid_of
from rankmap.pattern.structured import GridPattern, Lines, Stencil
from rankmap.score import Bound, by_level_bound, capacities
from rankmap.score.distance import Levels, job_distance
from rankmap.score.grid_bounds import bound, most_inside
from rankmap.score.isoperimetry import shadows
from rankmap.units import bisected, typical, units_of, unwrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from rankmap.pattern import Pattern
    from rankmap.score.distance import Distance
    from rankmap.slots import Slots
    from rankmap.units import Level, Units

    Shape = tuple[int, ...]
    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["boxes"]

#: A layout on a torus with at most so many times the fewest hops is taken without more ado.
GOOD_LAYOUT = 1.05

#: Cells that may be looked at in all ways together before the best so far is taken,
#: and how many looks a cell costs that is carved.
BUDGET = 800_000
CARVING = 20

#: Ranks of an all-to-all along rows and columns up to which swaps are tried.
MOST_SWAPPED = 16384

#: Nodes of a torus that are halved together with the grid at most.
MOST_HALVED = 1024

#: Looks that a layout on a torus costs beside one for each of its boxes.
LAYOUT = 1000

#: Routers of a dragonfly up to which all distances are looked at.
MOST_ROUTERS = 1024

#: A node's box with so much of the edges inside that any set could have is not taken apart.
COMPACT = 0.97

#: An order this close to what can hardly be beaten is taken without looking further.
NEAR = 1.01

#: Boxes of one volume that are carried on to the next level, and parts of nodes that are tried.
BEAM = 6
FEW = 2


@ordering("boxes")
def boxes(pattern: Pattern, slots: Slots) -> Order:
    """Tile the process grid with nested boxes for the real level sizes of the allocation.

    Raises
    ------
    UsageError
        Where the pattern has no process grid.
    """
    grid_of(pattern, "boxes")
    distance = _judge(slots, job_distance(slots))
    best = np.arange(len(slots), dtype=np.int64)
    if isinstance(pattern, Lines) and sum(e > 1 for e in pattern.dims or ()) < 2:
        return Order(best, slots)  # all to all: every order costs the same
    from rankmap.score.traffic import cost_of

    node = slots.node
    model = _model(pattern)
    floor, sure = _floor(model, slots, distance)
    least = cost_of(pattern, node[best], distance)
    if sure and least <= floor * (1 + 1e-12):
        return Order(best, slots)
    for found in _ways(model, slots, distance):
        cost = cost_of(pattern, node[found], distance)
        if cost < least * (1 - 1e-12):
            best, least = found, cost
        if least <= NEAR * floor:
            break
    if least > floor * (1 + 1e-12):
        best = _swapped(model, best, slots, distance)
    return Order(best, slots)


def _swapped(pattern: GridPattern, best: Ints, slots: Slots, distance: Distance) -> Ints:
    """Return the order of an all-to-all along rows and columns after all swaps that pay."""
    dims = pattern.dims or ()
    few = len(best) <= MOST_SWAPPED and len(distance) <= MOST_SWAPPED // 8
    if not isinstance(pattern, Lines) or len(dims) != 2 or not few:
        return best
    from rankmap.grid.swaps import swapped

    return swapped(best.reshape(dims), slots.node, distance.matrix()).ravel()


def _judge(slots: Slots, distance: Distance) -> Distance:
    """Return the distances to go by: on a large dragonfly typical ones of its levels.

    A table of all paths between thousands of routers takes longer than all
    else here, and the levels decide between boxes.
    """
    if distance.exact or distance.coords is not None or len(distance) <= MOST_ROUTERS:
        return distance
    if len(np.unique(distance.blocks[:, 0])) <= MOST_ROUTERS:
        return distance
    return Levels(distance.blocks, distance.names, typical(distance, distance.blocks[:, :-1]))


def _floor(pattern: GridPattern, slots: Slots, distance: Distance) -> tuple[float, bool]:
    """Return a cost that is hard to beat, and whether nothing can.

    With diagonals it is what boxes of any side lengths would cost: the bound
    that is known for them is far below.
    """
    steps = () if isinstance(pattern, Lines) else tuple(pattern.steps())
    if all(sum(map(bool, offset)) == 1 for offset, _ in steps):
        return (bound(pattern, slots, distance) or Bound(0.0, "")).value, True
    dims = pattern.dims or ()
    whole = float(inside(pattern, np.array([dims]))[0])
    every = sum(weight for _, weight in steps)
    along = [sum(w for o, w in steps if o[k]) for k in range(len(dims))]
    cuts = []
    for sizes in capacities(slots, distance):
        values, counts = np.unique(sizes, return_counts=True)
        held = [every * v - shadows(dims, along, v) for v in values.tolist()]
        cuts.append(max(0.0, whole - float(counts @ np.array(held))))
    return by_level_bound(np.array(cuts), distance), False


def _model(pattern: Pattern) -> GridPattern:
    """Return a pattern on the grid that stands for this one where it is none itself."""
    if isinstance(pattern, GridPattern):
        return pattern
    model = getattr(pattern, "model", None)
    return model if isinstance(model, GridPattern) else Stencil(pattern.dims or (1,))


def _ways(pattern: GridPattern, slots: Slots, distance: Distance) -> Iterator[Ints]:
    """Yield orders worth a look (slot of each rank), the likeliest first."""
    if distance.coords is not None:
        torus = _OnTorus(slots, distance, distance.coords)
        found = torus.best(pattern) if torus.fits else None
        if found is not None:
            yield found[1]
            if found[0] < GOOD_LAYOUT:
                return
        yield from _together(pattern, slots, distance, distance.coords)
    units = _units(slots, distance)
    ways = _Ways(pattern, units)
    for cells in ways.all():
        yield units.order(cells)
        if ways.spent > BUDGET:
            return
    for cells in ways.lines():
        yield units.order(cells)
        yield _as_given(cells)
        ways.spent += 2 * len(cells)
        if ways.spent > BUDGET:
            return


def _together(
    pattern: GridPattern, slots: Slots, distance: Distance, coords: Ints
) -> Iterator[Ints]:
    """Yield orders that halve the grid of node boxes and a sparse torus allocation together."""
    if slots.ppn is None or not 1 < len(coords) <= MOST_HALVED or isinstance(pattern, Lines):
        return
    from rankmap.grid.halving import halved_together

    turned = unwrapped(coords, distance.extents)
    dims = pattern.dims or ()
    shapes = boxes_of(slots.ppn, dims)
    best = np.argsort(-inside(pattern, shapes), kind="stable")
    chains = [[tuple(box)] for box in shapes[best].tolist()]
    for chain in _distinct(pattern, chains)[:FEW]:
        model = coarse(pattern, chain[0])
        if model.steps:
            node = halved_together(model, pattern.periodic, turned, distance.extents)
            inner = cells_in(dims, chain).reshape(-1, slots.ppn)
            found = np.empty(len(slots), dtype=np.int64)
            found[inner] = slots.first[node][:, None] + np.arange(slots.ppn)
            yield found


def _as_given(cells: Ints) -> Ints:
    """Return the order whose k-th slot, as the nodes were given, has rank ``cells[k]``."""
    found = np.empty_like(cells)
    found[cells] = np.arange(len(cells))
    return found


def _units(slots: Slots, distance: Distance) -> Units:
    """Return the allocation's units; a torus is halved again and again to have some."""
    if distance.coords is None:
        return units_of(slots, distance)
    return units_of(slots, distance, bisected(unwrapped(distance.coords, distance.extents)))


class _Ways:
    """The ways to walk a grid for given units, each as its cells in the order of the slots."""

    def __init__(self, pattern: GridPattern, units: Units) -> None:
        self.pattern = pattern
        self.dims = pattern.dims or ()
        self.levels = units.levels
        self.total = len(units.slots)
        self.even = _even(units.levels)
        self.spent = 0

    def all(self) -> Iterator[Ints]:
        """Yield whole chains first, then chains with the levels above them carved."""
        chains = self._chains()
        for depth in range(len(chains), 0, -1):
            for chain in chains[depth - 1]:
                yield from self._finished(chain)
        if len(chains) < len(self.levels) and not (chains and self._compact(chains[0][0][0])):
            yield from self._uneven()

    def lines(self) -> Iterator[Ints]:
        """Yield ways that go along lines, which any sequence of nodes may do."""
        if isinstance(self.pattern, Lines):
            yield from self._stretches()
        yield from self._ploughed()

    def _chains(self) -> list[list[list[Shape]]]:
        """Return for each depth the best chains of so many nested boxes, cheapest first."""
        found: list[list[list[Shape]]] = []
        below: tuple[Ints, Floats, list[list[Shape]]] | None = None
        for level in self.even:
            size = level.size or 1
            here = boxes_of(size, self.dims)
            cost = -level.step * (self.total // size) * inside(self.pattern, here)
            below = _chained(here, cost, below)
            if not len(below[0]):
                break
            best = np.argsort(below[1], kind="stable").tolist()
            found.append(_distinct(self.pattern, [below[2][k] for k in best])[:BEAM])
        return found

    def _compact(self, box: Shape) -> bool:
        """Return True where a box of a node's ranks is about as good as any set of them."""
        most = most_inside(self.pattern, np.array([math.prod(box)]))[math.prod(box)]
        return float(inside(self.pattern, np.array([box]))[0]) >= COMPACT * most

    def _finished(self, chain: list[Shape]) -> Iterator[Ints]:
        """Yield the cells of a chain, with the levels above it carved where there are any."""
        above = self.levels[len(chain) :]
        if not above:
            self.spent += self.total
            yield cells_in(self.dims, chain)
            return
        yield self._carved(chain, above)

    def _carved(self, chain: list[Shape], above: Sequence[Level]) -> Ints:
        box = chain[-1]
        volume = math.prod(box)
        model = coarse(self.pattern, box)
        self.spent += self.total + CARVING * (self.total // volume)
        order = carve(model, [level.starts // volume for level in above])
        inner = cells_in(self.dims, chain).reshape(-1, volume)
        # cells_in walks the boxes row-major, as the grid of boxes numbers them.
        return np.asarray(inner[order].ravel())

    def _uneven(self) -> Iterator[Ints]:
        """Yield cells carved from boxes of which every node holds a whole number."""
        if not self.levels:
            return
        common = math.gcd(*np.diff(self.levels[0].starts).tolist())
        whole = bool(self.even) and len(boxes_of(common, self.dims)) > 0
        for volume in reversed(divisors(common)):
            found = boxes_of(volume, self.dims)
            if not len(found) or (whole and volume == common):
                continue  # the chains have begun with whole nodes
            best = np.argsort(-inside(self.pattern, found), kind="stable")
            chains = [[tuple(box)] for box in found[best].tolist()]
            for chain in _distinct(self.pattern, chains)[:FEW]:
                yield self._carved(chain, self.levels)

    def _ploughed(self) -> Iterator[Ints]:
        """Yield the cells line by line, to and fro, along every order of the dimensions."""
        from itertools import permutations

        from rankmap.grid.embedding import laid

        axes = [k for k, extent in enumerate(self.dims) if extent > 1]
        for turned in permutations(axes):
            points = laid((self.total,), self.dims, (turned,))
            yield np.asarray(np.ravel_multi_index(tuple(points.T), self.dims))

    def _stretches(self) -> Iterator[Ints]:
        """Yield cells in stretches of lines, as long as a node's slots."""
        if len(self.dims) == 2 and self.levels:
            from rankmap.grid.line_stretches import stretches

            sizes = np.diff(self.levels[0].starts)
            for turned in (False, True):
                yield stretches(self.dims, sizes, turned)


def _even(levels: Sequence[Level]) -> list[Level]:
    """Return the innermost levels whose units all have one size, each a part of the next."""
    found: list[Level] = []
    for level in levels:
        if level.size is None or (found and level.size % (found[-1].size or 1)):
            break
        found.append(level)
    return found


def _distinct(pattern: GridPattern, chains: list[list[Shape]]) -> list[list[Shape]]:
    """Return the chains without those that are another one turned over."""
    dims = pattern.dims or ()
    weights = (getattr(pattern, "weights", ()) or (1.0,) * len(dims)) if dims else ()
    seen = set()
    found = []
    for chain in chains:
        seen_as = tuple(sorted(zip(dims, pattern.periodic, weights, *chain, strict=True)))
        if seen_as not in seen:
            seen.add(seen_as)
            found.append(chain)
    return found


def _chained(
    here: Ints, cost: Floats, below: tuple[Ints, Floats, list[list[Shape]]] | None
) -> tuple[Ints, Floats, list[list[Shape]]]:
    """Return the boxes of a level that hold one of those below, their least costs and chains."""
    shapes = [tuple(box) for box in here.tolist()]
    if below is None:
        return here, cost, [[shape] for shape in shapes]
    kept, costs, chains = [], [], []
    for k, box in enumerate(here):
        fits = np.flatnonzero((box % below[0] == 0).all(axis=1)) if len(below[0]) else ()
        if len(fits):
            inner = int(fits[np.argmin(below[1][fits])])
            kept.append(k)
            costs.append(cost[k] + below[1][inner])
            chains.append([*below[2][inner], shapes[k]])
    return here[kept], np.array(costs), chains


class _OnTorus:
    """A torus allocation that is a box of routers with as many slots each."""

    def __init__(self, slots: Slots, distance: Distance, coords: Ints) -> None:
        turned = unwrapped(coords, distance.extents)
        once, router = np.unique(turned, axis=0, return_inverse=True)
        here = np.bincount(router.reshape(-1))
        self.extents = distance.extents
        self.ppn = slots.ppn or 0
        self.nodes = int(here[0])
        self.sides = box_of(once)
        self.fits = self.sides is not None and self.ppn > 0 and here.min() == here.max()
        if self.fits:
            # Slots router by router, routers in the order of their coordinates.
            nodes = np.lexsort((np.arange(len(coords)), router.reshape(-1)))
            places = slots.first[nodes][:, None] + np.arange(self.ppn)
            self.slots = places.reshape(len(once), -1)

    def best(self, pattern: GridPattern) -> tuple[float, Ints] | None:
        """Return the order of fewest hops, and its hops by the fewest that any boxes have."""
        sides = self.sides or ()
        least, most, found = math.inf, 0.0, None
        left = BUDGET
        for chain in _router_chains(pattern, self.ppn, self.nodes):
            model = coarse(pattern, chain[-1])
            cut = _cut(pattern, chain[-1])
            most = most or cut
            if cut >= least * (1 - 1e-9) or left < 0:
                break
            for layout in layouts(model.grid, sides):
                points = layout.points(model.grid, len(sides))
                left -= len(points) + LAYOUT
                cost = hops(model, pattern.periodic, points, self.extents)
                if cost < least * (1 - 1e-9):
                    least, found = cost, (chain, np.ravel_multi_index(tuple(points.T), sides))
                if left < 0 or cost <= cut:
                    break
        return None if found is None else (least / max(most, 1e-300), self._order(pattern, *found))

    def _order(self, pattern: GridPattern, chain: list[Shape], at: Ints) -> Ints:
        inner = cells_in(pattern.dims or (), chain).reshape(-1, self.slots.shape[1])
        found = np.empty(inner.size, dtype=np.int64)
        found[inner] = self.slots[at]
        return found


def _cut(pattern: GridPattern, box: Shape) -> float:
    """Return the weight of the edges that leave the boxes of a shape."""
    both = inside(pattern, np.array([pattern.dims, box]))
    return float(both[0] - both[1] * (math.prod(pattern.dims or ()) // math.prod(box)))


def _router_chains(pattern: GridPattern, ppn: int, here: int) -> list[list[Shape]]:
    """Return boxes of a router's slots in nested node boxes, fewest edges out of them first."""
    dims = pattern.dims or ()
    nodes = boxes_of(ppn, dims)
    chained = _chained(nodes, -inside(pattern, nodes), None)
    if here > 1:
        routers = boxes_of(ppn * here, dims)
        chained = _chained(routers, -2 * inside(pattern, routers), chained)
    return [chained[2][k] for k in np.argsort(chained[1], kind="stable").tolist()]
