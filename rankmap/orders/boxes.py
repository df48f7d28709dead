# SPDX-License-Identifier: Apache-2.0
"""Boxes: the process grid tiled with node-size boxes, these with blade-size boxes, and so on.

Where every unit of a level has equally many slots, the best chain of nested boxes
is found exactly (each box divides the next, so the cost of a chain is a sum
over its levels). Levels whose units differ, and levels that no box tiles, are
carved out of the grid of the boxes below them, sizes kept exactly
(`nidmap.rankmap.grid.carving`). On a torus the grid of boxes is laid on its routers as it
is, where that fits. Several ways are made and the cheapest is taken, the
default order among them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from nidmap.placement.permutation import inverse
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Floats, Ints, Shape
from nidmap.rankmap.grid.carving import carve_grid, halve_together
from nidmap.rankmap.grid.dims import boxes_of, divisors
from nidmap.rankmap.grid.embedding import box_of, hops, lay_grid, layouts
from nidmap.rankmap.grid.line_swaps import swap_along_lines
from nidmap.rankmap.grid.traversal import cells_in, line_stretches
from nidmap.rankmap.orders import grid_of, ordering
from nidmap.rankmap.pattern import Pattern
from nidmap.rankmap.pattern.structured import GridPattern, Lines, Stencil, grid_model
from nidmap.rankmap.pattern.tiling import coarse_pattern, weight_inside
from nidmap.rankmap.score.distance import Distance, Levels, job_distance
from nidmap.rankmap.score.traffic import cost_of
from nidmap.rankmap.units import (
    Level,
    Units,
    bisect_points,
    level_distances,
    units_of,
    unwrap_coords,
)

#: Nested boxes, the smallest first; and such chains with their costs.
Chain = list[Shape]
Costs = list[tuple[float, Chain]]

#: A layout on a torus with at most this many times the fewest hops is taken without more ado.
GOOD_LAYOUT = 1.05

#: Cells that may be looked at in all ways together before the best so far is taken; how many
#: looks a cell costs that is carved, and a layout on a torus next to one for each of its boxes.
BUDGET, CARVING, LAYOUT = 800_000, 20, 1000

#: Ranks of an all-to-all along rows and columns up to which swaps are tried.
MOST_SWAPPED = 16384

#: Nodes of a torus that are halved together with the grid at most.
MOST_HALVED = 1024

#: Number of a dragonfly's routers up to which all distances are considered.
MOST_ROUTERS = 1024

#: Boxes of one volume that are carried on to the next level, and parts of nodes that are tried.
BEAM, FEW = 6, 2


@ordering("boxes")
def boxes(pattern: Pattern, placement: Placement) -> Placement:
    """Tile the process grid with nested boxes of the allocation's actual level sizes."""
    dims = grid_of(pattern, "boxes")
    distance = _judging_distance(placement, job_distance(placement))
    best = np.arange(placement.ranks, dtype=np.int64)
    if isinstance(pattern, Lines) and sum(e > 1 for e in dims) < 2:
        return placement.with_order(best)  # all to all: every order costs the same
    model = grid_model(pattern) or Stencil(dims)
    node = placement.node_of_slot
    least = cost_of(pattern, node, distance)
    for slot_of_rank in _likely_orders(model, placement, distance):
        cost = cost_of(pattern, node[slot_of_rank], distance)
        if cost < least * (1 - 1e-12):
            best, least = slot_of_rank, cost
    swappable = len(best) <= MOST_SWAPPED and len(distance) <= MOST_SWAPPED // 8
    if isinstance(model, Lines) and swappable:
        best = swap_along_lines(best.reshape(dims), node, distance.matrix()).ravel()
    return placement.with_order(best)


def _judging_distance(placement: Placement, distance: Distance) -> Distance:
    """Return the distances for scoring: typical ones per level on a large dragonfly.

    A table of all paths between thousands of routers takes longer than all
    else here, and the levels decide between boxes.
    """
    if distance.exact or distance.coords is not None or len(distance) <= MOST_ROUTERS:
        return distance
    if len(np.unique(distance.blocks[:, 0])) <= MOST_ROUTERS:
        return distance
    return Levels(
        distance.blocks, distance.names, level_distances(distance, distance.blocks[:, :-1])
    )


def _likely_orders(
    pattern: GridPattern, placement: Placement, distance: Distance
) -> Iterator[Ints]:
    """Yield promising orders (slot of each rank), the likeliest first."""
    blocks = None
    if distance.coords is not None:
        layout = _lay_on_torus(pattern, placement, distance, distance.coords)
        if layout is not None:
            yield layout[1]
            if layout[0] < GOOD_LAYOUT:
                return
        turned = unwrap_coords(distance.coords, distance.extents)
        yield from _halve_together(pattern, placement, distance, turned)
        blocks = bisect_points(turned)  # a torus has no levels: it is halved again and again
    units = units_of(placement, distance, blocks)
    ways = _GridWalks(pattern, units)
    for cells in ways.all():
        yield units.order(cells)
        if ways.spent > BUDGET:
            return
    for cells in ways.lines():
        yield units.order(cells)
        yield inverse(cells)
        ways.spent += 2 * len(cells)
        if ways.spent > BUDGET:
            return


def _halve_together(
    pattern: GridPattern, placement: Placement, distance: Distance, coords: Ints
) -> Iterator[Ints]:
    """Yield orders that halve the grid of node boxes and a sparse torus allocation together."""
    if placement.ppn is None or not 1 < len(coords) <= MOST_HALVED or isinstance(pattern, Lines):
        return
    dims = pattern.dims or ()
    for chain in _fullest_boxes(pattern, boxes_of(placement.ppn, dims)):
        model = coarse_pattern(pattern, chain[0])
        if model.offsets:
            node = halve_together(model, pattern.periodic, coords, distance.extents)
            places = placement.first_slot[node][:, None] + np.arange(placement.ppn)
            yield _deal_slots(dims, chain, places)


def _deal_slots(dims: Shape, chain: Chain, places: Ints) -> Ints:
    """Return each rank's slot, row k of `places` being the slots of box k."""
    slot_of_rank = np.empty(places.size, dtype=np.int64)
    slot_of_rank[cells_in(dims, chain)] = places.ravel()
    return slot_of_rank


class _GridWalks:
    """Traversals of a grid for given units, each as its cells in slot order."""

    def __init__(self, pattern: GridPattern, units: Units) -> None:
        self.pattern = pattern
        self.dims = pattern.dims or ()
        self.levels = units.levels
        self.total = len(units.slots)
        self.even = _even_levels(units.levels)
        self.spent = 0

    def all(self) -> Iterator[Ints]:
        """Yield entire chains first, then chains with the levels above them carved."""
        chains = self._chains()
        for depth in range(len(chains), 0, -1):
            for chain in chains[depth - 1]:
                if depth < len(self.levels):
                    yield self._carve(chain, self.levels[depth:])
                else:
                    self.spent += self.total
                    yield cells_in(self.dims, chain)
        if len(chains) < len(self.levels):
            yield from self._uneven()

    def lines(self) -> Iterator[Ints]:
        """Yield traversals along lines, which suit any sequence of nodes."""
        if isinstance(self.pattern, Lines) and len(self.dims) == 2 and self.levels:
            for turned in (False, True):  # stretches as long as a node's slots
                yield line_stretches(self.dims, np.diff(self.levels[0].starts), turned)
        axes = [k for k, extent in enumerate(self.dims) if extent > 1]
        for order in itertools.permutations(axes):  # line by line, to and fro
            points = lay_grid((self.total,), self.dims, (order,))
            yield np.asarray(np.ravel_multi_index(tuple(points.T), self.dims))

    def _chains(self) -> list[list[Chain]]:
        """Return, for each depth, the best chains of nested boxes, cheapest first."""
        chains: list[list[Chain]] = []
        below: Costs = [(0.0, [])]
        for level in self.even:
            size = level.size or 1
            here = boxes_of(size, self.dims)
            cost = -level.added_distance * (self.total // size) * weight_inside(self.pattern, here)
            below = _chain_boxes(here, cost, below)
            if not below:
                break
            chains.append(_without_mirrored(self.pattern, _cheapest_first(below))[:BEAM])
        return chains

    def _carve(self, chain: Chain, above: Sequence[Level]) -> Ints:
        """Return the cells of a chain with the levels above it carved."""
        volume = math.prod(chain[-1])
        self.spent += self.total + CARVING * (self.total // volume)
        model = coarse_pattern(self.pattern, chain[-1])
        order = carve_grid(model, [level.starts // volume for level in above])
        # cells_in walks the boxes row-major, as the grid of boxes numbers them.
        return np.asarray(cells_in(self.dims, chain).reshape(-1, volume)[order].ravel())

    def _uneven(self) -> Iterator[Ints]:
        """Yield cells carved from boxes whose volume divides every node's rank count."""
        if not self.levels:
            return
        common = math.gcd(*np.diff(self.levels[0].starts).tolist())
        whole_nodes = bool(self.even) and len(boxes_of(common, self.dims)) > 0
        for volume in reversed(divisors(common)):
            if not (whole_nodes and volume == common):  # the chains have begun with whole nodes
                for chain in _fullest_boxes(self.pattern, boxes_of(volume, self.dims)):
                    yield self._carve(chain, self.levels)


def _even_levels(levels: Sequence[Level]) -> list[Level]:
    """Return the innermost levels with units of equal size that nest evenly."""
    even: list[Level] = []
    for level in levels:
        if level.size is None or (even and level.size % (even[-1].size or 1)):
            break
        even.append(level)
    return even


def _without_mirrored(pattern: GridPattern, chains: list[Chain]) -> list[Chain]:
    """Drop chains that are mirror images of others."""
    dims = pattern.dims or ()
    weights = getattr(pattern, "weights", ()) or (1.0,) * len(dims)
    by_shape: dict[tuple[object, ...], Chain] = {}
    for chain in chains:
        key = tuple(sorted(zip(dims, pattern.periodic, weights, *chain, strict=True)))
        by_shape.setdefault(key, chain)
    return list(by_shape.values())


def _fullest_boxes(pattern: GridPattern, shapes: Ints) -> list[Chain]:
    """Return a few boxes with the most weight inside."""
    best = np.argsort(-weight_inside(pattern, shapes), kind="stable")
    return _without_mirrored(pattern, [[tuple(box)] for box in shapes[best].tolist()])[:FEW]


def _chain_boxes(here: Ints, cost: Floats, below: Costs) -> Costs:
    """Return a level's boxes that contain one of the level below, with its cheapest chain."""
    held = np.array([chain[-1] if chain else (1,) * here.shape[1] for _, chain in below])
    costs = np.array([chain_cost for chain_cost, _ in below])
    chained = []
    for box, box_cost in zip(here, cost.tolist(), strict=True):
        fits = np.flatnonzero((box % held == 0).all(axis=1))
        if len(fits):
            least, chain = below[int(fits[np.argmin(costs[fits])])]
            chained.append((box_cost + least, [*chain, tuple(box.tolist())]))
    return chained


def _cheapest_first(chained: Costs) -> list[Chain]:
    return [chain for _, chain in sorted(chained, key=lambda priced: priced[0])]


def _lay_on_torus(
    pattern: GridPattern, placement: Placement, distance: Distance, coords: Ints
) -> tuple[float, Ints] | None:
    """Return the best order's hops, relative to the fewest of any boxes, and the order.

    None where the allocation is not a box of routers with equally many slots each.
    """
    once, router = np.unique(unwrap_coords(coords, distance.extents), axis=0, return_inverse=True)
    router = router.reshape(-1)
    nodes, sides = np.bincount(router), box_of(once)
    if sides is None or placement.ppn is None or nodes.min() != nodes.max():
        return None
    # Slots router by router, routers in the order of their coordinates.
    by_router = placement.first_slot[np.argsort(router, kind="stable")][:, None] + np.arange(
        placement.ppn
    )
    least, most, left, best = math.inf, 0.0, BUDGET, None
    for chain in _router_chains(pattern, placement.ppn, int(nodes[0])):
        model = coarse_pattern(pattern, chain[-1])
        total, held = weight_inside(pattern, np.array([pattern.dims, chain[-1]])).tolist()
        cut = total - held * (
            placement.ranks // math.prod(chain[-1])
        )  # weight that leaves the boxes
        most = most or cut
        if cut >= least * (1 - 1e-9) or left < 0:
            break
        for layout in layouts(model.grid, sides):
            points = layout.points(model.grid, len(sides))
            left -= len(points) + LAYOUT
            cost = hops(model, pattern.periodic, points, distance.extents)
            if cost < least * (1 - 1e-9):
                least, best = cost, (chain, np.ravel_multi_index(tuple(points.T), sides))
            if left < 0 or cost <= cut:
                break
    if best is None:
        return None
    places = by_router.reshape(len(once), -1)[best[1]]
    return least / max(most, 1e-300), _deal_slots(pattern.dims or (), best[0], places)


def _router_chains(pattern: GridPattern, ppn: int, here: int) -> list[Chain]:
    """Return a router's boxes of nested node boxes, fewest outgoing edges first."""
    dims = pattern.dims or ()
    nodes = boxes_of(ppn, dims)
    chained = _chain_boxes(nodes, -weight_inside(pattern, nodes), [(0.0, [])])
    if here > 1:
        routers = boxes_of(ppn * here, dims)
        chained = _chain_boxes(routers, -2 * weight_inside(pattern, routers), chained)
    return _cheapest_first(chained)
