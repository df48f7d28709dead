# SPDX-License-Identifier: Apache-2.0
"""Orders with a mapping short enough for the MPI library that receives it.

Blocks of a mapping (`nidmap.rankmap.emit.process_mapping`) are few where ranks in a
row sit on nodes in a row. So nodes change numbers first: those of one router,
and whole routers where nothing tells them apart, may change places for
nothing. Where that is not enough, orders of boxes are tried, and one's part of
the grid is put together with another's; of those that fit, the best is taken.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from nidmap.placement.permutation import inverse
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Ints, Shape
from nidmap.rankmap.emit import find as find_format
from nidmap.rankmap.emit.process_mapping import PMI2, Mapping, parse_limit
from nidmap.rankmap.grid.dims import boxes_of, divisors
from nidmap.rankmap.grid.traversal import cells_in
from nidmap.rankmap.pattern import Pattern, parse_pattern
from nidmap.rankmap.pattern.structured import grid_model
from nidmap.rankmap.pattern.tiling import weight_inside
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.progress import advance
from nidmap.rankmap.score.distance import job_distance
from nidmap.rankmap.score.traffic import cost_of
from nidmap.rankmap.search.cost import without_time
from nidmap.rankmap.units import units_of

#: Maximum number of ranks to process, over all orders tried.
BUDGET = 8_000_000

#: Chains of boxes that are carried on from level to level.
BEAM = 40

#: Orders that share the grid, parts into which they cut its sides, and orders that are predicted
#: where time decides.
SHARING, PARTS, TIMED = 8, 12, 12


def fit_order(
    order: Placement,
    mapping: Mapping | None,
    limit: str | None,
    job: Job | None = None,
) -> tuple[Placement, str]:
    """Return an order that its library can receive, and remarks on it.

    `order`: on the nodes as the launcher numbers them. `mapping`: None where the library has no
    limit. `limit`: as ``--mapping-limit`` gives it. `job`: what it sends, of which predicted time
    decides where it is known, else J. The same one, if it fits. '' where there is nothing to say.
    """
    most = parse_limit(limit, mapping)
    if mapping is None and most is None:
        return order, ""
    pattern = parse_pattern(order.origin.pattern).on(order) if order.origin.pattern else None
    mapping_used = mapping or PMI2
    short = shorten_order(order, mapping_used, most, pattern, job or Job())
    strategy = (
        f"{order.origin.strategy}, shortened"
        if short.lost and order.origin.strategy
        else order.origin.strategy
    )
    words = short.words(mapping_used, most)
    return order.with_order(short.order.order, replace(order.origin, strategy=strategy)), words


def fit_format(
    order: Placement, form: str, launcher_order: str, limit: str | None, job: Job | None = None
) -> tuple[Placement, str]:
    """Return an order that fits the reader of a format in `nidmap.rankmap.emit`; see `fit_order`.

    `order`: on the nodes as they were given.
    """
    positions = order.sorting() if launcher_order == "sorted" else np.arange(len(order.names))
    laid = order.renumbered(positions)
    fitted, words = fit_order(laid, find_format(form).limit, limit, job)
    if fitted == laid:
        return order, words
    return fitted.renumbered(inverse(positions)), words


@dataclass(frozen=True, slots=True)
class ShortOrder:
    """An order that a library can receive."""

    order: Placement  # on the nodes as the launcher numbers them
    # length, free_length: bytes of its mapping, and of the one that was wanted; 0 where the library
    # itself would get it wrong
    length: int
    free_length: int
    # How much more it costs than the one that was wanted, as a share; 0 where they cost the same,
    # nan where no pattern says
    lost: float = 0.0
    by: str = "J"  # the criterion of its cost: ``time``, as predicted, or ``J``
    fits: bool = True  # False where not even ranks in a row on nodes in a row fit

    def words(self, mapping: Mapping, limit: int | None) -> str:
        """Say how long the mapping is, and what its limit costs."""
        text = f"the rank map uses {self.length:,} bytes"
        if limit is None:
            return f"{text} ({mapping.library}, no limit)"
        text = f"{text} of {mapping.library}'s {limit:,}"
        if not self.fits:
            return f"{text}: the job may not start ({mapping.source}); no order is shorter"
        if self.length == self.free_length:
            return text
        long = f"not {self.free_length:,}" if self.free_length else "not one that MPICH loses"
        if self.lost == 0:
            return f"{text}, {long}: ranks changed places, which costs nothing"
        cost = f"with {self.lost:.1%} more {self.by}"
        if np.isnan(self.lost):
            cost = "at a cost that is not known"
        return f"{text}, {long}, {cost} ({mapping.source}; --mapping-limit none keeps the other)"


class _Tried(NamedTuple):
    """An order, its cost, and the length of its mapping in bytes."""

    cost: float
    length: float
    order: Placement


class _Front:
    """The Pareto front of the orders tried, and the cheapest that fit.

    `pattern`: None means an order costs as many ranks as it puts on other nodes than `wanted`.
    """

    def __init__(
        self, wanted: Placement, mapping: Mapping, limit: int, pattern: Pattern | None
    ) -> None:
        self.wanted, self.mapping, self.limit, self.pattern = wanted, mapping, limit, pattern
        self.distance = job_distance(wanted)
        self.units = units_of(wanted, self.distance)
        self.left = max(BUDGET // wanted.ranks, 3)
        self.best: list[_Tried] = []
        self.short: list[_Tried] = []

    def try_orders(self, orders: Iterable[Placement]) -> list[_Tried]:
        """Try some orders until the budget runs out, and return the results."""
        tried = []
        for order in itertools.takewhile(lambda _: self.left > 0, orders):
            self.left -= 1
            advance()
            tried.append(self._keep(_Tried(self.cost(order), self.length(order), order)))
        return tried

    def _keep(self, trial: _Tried) -> _Tried:
        if trial.length <= self.limit and all(trial[:2] != other[:2] for other in self.short):
            self.short = _cheapest_trials([*self.short, trial], TIMED)
        if not any(kept.cost <= trial.cost and kept.length <= trial.length for kept in self.best):
            rest = [
                kept for kept in self.best if kept.cost < trial.cost or kept.length < trial.length
            ]
            self.best = _cheapest_trials([*rest, trial])
        return trial

    def cost(self, order: Placement) -> float:
        """Return J, or how many ranks are on other nodes than intended."""
        if self.pattern is None:
            return float(np.count_nonzero(order.node_of_rank != self.wanted.node_of_rank))
        return cost_of(self.pattern, order.node_of_rank, self.distance)

    def length(self, order: Placement) -> float:
        """Return the bytes of an order's mapping; inf if the library gets it wrong."""
        return len(self.mapping.text(order.node_of_rank)) or np.inf


def _cheapest_trials(tried: Iterable[_Tried], most: int | None = None) -> list[_Tried]:
    return sorted(tried, key=lambda trial: trial[:2])[:most]


def shorten_order(
    order: Placement,
    mapping: Mapping,
    limit: int | None,
    pattern: Pattern | None = None,
    job: Job | None = None,
) -> ShortOrder:
    """Return an order with a mapping within the limit: this one, if possible.

    `order`: on the nodes as the launcher numbers them. `limit`: bytes; None for no limit.
    `pattern`: fitted to the slots: what J is of; None where none is known. `job`: what else is
    said of the job, see `fit_order`; None: J decides.
    """
    free = len(mapping.text(order.node_of_rank))
    if limit is None or 0 < free <= limit:
        return ShortOrder(order, free, free)
    front = _Front(order, mapping, limit, pattern)
    numbered = renumber_nodes(order, front.distance.blocks[:, 0])
    in_a_row = order.with_order(None)
    wanted, alike, default = front.try_orders([order, numbered, in_a_row])
    if alike.length <= limit:
        return ShortOrder(alike.order, int(alike.length), free)
    _try_orders(front)
    if not front.short:
        return ShortOrder(default.order, int(default.length), free, np.nan, fits=False)
    cost, choice = wanted.cost, front.short
    time_of = None if pattern is None or job is None else _time_predictor(order, job)
    if time_of is not None:
        choice = [*choice, default] if default.length <= limit else choice
        cost = time_of(order)
        choice = _cheapest_trials(trial._replace(cost=time_of(trial.order)) for trial in choice)
    lost = np.nan
    if pattern is not None and cost > 0:
        lost = max(round(choice[0].cost / cost - 1, 3), 0.0)  # rounded as in the text
    by = "time" if time_of else "J"
    return ShortOrder(choice[0].order, int(choice[0].length), free, lost, by)


def _time_predictor(order: Placement, job: Job) -> Callable[[Placement], float] | None:
    """Return a predictor of orders of the same ranks; None where no time can be predicted."""
    if order.machine is None or without_time(order):
        return None
    counts = order.counts.tolist()
    known = (
        job.on(counts) if job.pattern else replace(job, pattern=order.origin.pattern, ppn=counts)
    )
    predictor = Predictor(order.machine, known)
    return predictor.time


def renumber_nodes(order: Placement, blocks: Ints) -> Placement:
    """Return the same order with the nodes of a block rearranged by their first ranks.

    Only nodes with the same number of ranks change places.

    `blocks` (n,): block of each node, inside of which all are equally far apart.
    """
    node = order.node_of_rank
    nodes = np.arange(len(order.counts))
    first = np.empty_like(nodes)
    first[node[::-1]] = np.arange(order.ranks)[::-1]
    place = np.empty_like(nodes)
    place[np.lexsort((first, order.counts, blocks))] = np.lexsort((nodes, order.counts, blocks))
    return order.with_order(
        order.first_slot[place[node]] + order.slot_of_rank - order.first_slot[node]
    )


def _try_orders(front: _Front) -> None:
    """Try orders that may be short, then combinations of the best of them."""
    order, pattern, blocks = front.wanted, front.pattern, front.distance.blocks.T[::-1]
    for stretch in divisors(order.ppn or 1):
        rough = _stretch_order(order, stretch)
        front.try_orders([rough, *(renumber_nodes(rough, column) for column in blocks)])
        if len(front.short) > 1:  # more than the default order
            break
    if pattern is None:
        return
    _try_boxes(front)
    for first, second in itertools.permutations([trial.order for trial in front.best[:SHARING]], 2):
        front.try_orders(_side_by_side(first, second, front))


def _stretch_order(order: Placement, stretch: int) -> Placement:
    """Return an order with stretches of this many ranks on one node, close to the original.

    Each stretch goes to the node that has most of its ranks, the clearest cases first.
    """
    parts = order.ranks // stretch
    nodes = len(order.counts)
    part = np.arange(order.ranks) // stretch
    pairs, held = np.unique(part * nodes + order.node_of_rank, return_counts=True)
    room = order.counts // stretch
    node = np.full(parts, -1)
    for pair in pairs[np.argsort(-held, kind="stable")].tolist():
        piece, where = divmod(pair, nodes)
        if node[piece] < 0 and room[where]:
            node[piece] = where
            room[where] -= 1
    node[node < 0] = np.repeat(np.arange(nodes), room)
    return order.with_ranks_on(np.repeat(node, stretch))


def _try_boxes(front: _Front) -> None:
    """Try orders of nested boxes, those with most of the traffic inside first.

    Boxes of a level only add to the blocks of a mapping: short ones are carried on
    to the next level next to the best.
    """
    grid = grid_model(front.pattern)
    if grid is None:
        return
    units, dims = front.units, grid.dims or ()
    chains: list[tuple[float, list[Shape]]] = [(0.0, [])]
    for level in units.levels:
        size = int(np.bincount(np.diff(level.starts)).argmax())  # of most units: holes do no harm
        boxes = boxes_of(size, dims)
        gain = weight_inside(grid, boxes) * level.added_distance * (front.wanted.ranks // size)
        longer = [
            (worth + box_gain, [*chain, tuple(box)])
            for worth, chain in chains
            for box_gain, box in zip(gain.tolist(), boxes.tolist(), strict=True)
            if not chain or not any(np.mod(box, chain[-1]))
        ]
        chains = sorted(longer, key=lambda priced: -priced[0])[:BEAM] or chains
        walks = (cells_in(dims, chain) for _, chain in chains)
        front.try_orders(front.wanted.with_order(units.order(walk)) for walk in walks)


def _side_by_side(order: Placement, other: Placement, front: _Front) -> Iterator[Placement]:
    """Yield orders that take one part of the grid from one order, the rest from another."""
    grid = grid_model(front.pattern)
    sides = (grid.dims if grid else None) or (len(order.counts),)
    walks = order.rank_at_slot[front.units.slots], other.rank_at_slot[front.units.slots]
    cells = np.arange(order.ranks) * math.prod(sides) // order.ranks
    for side, place in zip(sides, np.unravel_index(cells, sides), strict=True):
        for cut in np.unique(np.arange(1, PARTS) * side // PARTS).tolist():
            first, rest = (place[walk] < cut for walk in walks)
            walk = np.concatenate([walks[0][first], walks[1][~rest]])
            yield order.with_order(front.units.order(walk))
