"""Orders whose mapping is short enough for the MPI library that has to be told it.

Blocks of a mapping (`rankmap.emit.process_mapping`) are few where ranks in a
row sit on nodes in a row. So nodes change numbers first: those of one router,
and whole routers where nothing tells them apart, may change places for
nothing. Where that is not enough, the best of the orders that fit is taken:
boxes that are longer along the grid's last dimension, or the same order with
whole stretches of ranks on one node.
"""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import NidmapError
from rankmap.emit.process_mapping import MAPPINGS, PMI2, parse_limit
from rankmap.grid.boxes import cells_in, inside
from rankmap.grid.dims import boxes_of, divisors
from rankmap.order import Order
from rankmap.orders import find
from rankmap.pattern import parse_pattern
from rankmap.pattern.structured import GridPattern
from rankmap.permutation import inverse
from rankmap.score.distance import job_distance
from rankmap.score.traffic import cost_of
from rankmap.units import units_of

if TYPE_CHECKING:
    import collections.abc
    from collections.abc import Callable, Iterator, Sequence

    from rankmap.arrays import Ints, Shape
    from rankmap.emit.process_mapping import Mapping
    from rankmap.pattern import Pattern
    from rankmap.score.distance import Distance

    JobWords = collections.abc.Mapping[str, Any]

    #: Nested boxes, the smallest first, behind what they are worth.
    Chain = tuple[float, list[Shape]]

__all__ = ["ShortOrder", "fit_format", "fit_order", "renumber_nodes", "shorten_order"]

#: Chains of boxes that are carried on from level to level, and ranks that are looked at in all.
BEAM, BUDGET = 12, 10_000_000

#: Orders of boxes that are scored, and orders that are predicted where time decides.
SCORED, TIMED = 24, 12

#: Orders that mostly are short as they are.
NAMED = ("round-robin", "column-major", "aligned", "hilbert")

#: Orders that fit, and longer ones, that are mixed with each other.
MIXED = 6


def fit_order(
    order: Order,
    mapping: Mapping | None,
    limit: str | None,
    job: JobWords | None = None,
) -> tuple[Order, str]:
    """Return an order that its library can be told, and what a person should know of that.

    Parameters
    ----------
    order : Order
        On the nodes as the launcher numbers them.
    mapping : Mapping or None
        None where the library has no limit.
    limit : str or None
        As ``--mapping-limit`` gives it.
    job : mapping or None
        What else is said of the job (`rankmap.joint.job.KEYS`), where predicted time
        decides: with ``predictor``, or for an order that was chosen so.

    Returns
    -------
    Order
        The same one, if it fits.
    str
        '' where there is nothing to say.

    Raises
    ------
    UsageError
        A limit that is none.
    """
    most = parse_limit(limit, mapping)
    if mapping is None and most is None:
        return order, ""
    pattern = seconds = None
    if order.pattern:
        pattern = parse_pattern(order.pattern).on(order.on)
        given = dict(job or {})
        if "predictor" in given or (order.optimised and order.optimised["by"] == "time"):
            seconds = _predicted(order, given)
    told = mapping or PMI2
    found = shorten_order(order, told, most, pattern, seconds)
    strategy = f"{order.strategy}, shortened" if found.lost and order.strategy else order.strategy
    words = found.words(told, most)
    return replace(order, slots=found.order.slots, strategy=strategy), words


def fit_format(
    order: Order, form: str, launcher_order: str, limit: str | None, job: JobWords | None = None
) -> tuple[Order, str]:
    """Return an order that fits who reads a format of `rankmap.emit`; see `fit_order`.

    Parameters
    ----------
    order : Order
        On the nodes as they were given.
    form, launcher_order : str
        See `rankmap.emit.emit`.
    limit : str or None
    job : mapping or None
    """
    positions = order.on.sorting() if launcher_order == "sorted" else np.arange(len(order.on.names))
    laid = replace(order, slots=order.onto(positions).slots, on=order.on.take(positions))
    fitted, told = fit_order(laid, MAPPINGS.get(form), limit, job)
    if fitted == laid:
        return order, told
    back = fitted.onto(inverse(positions)).slots
    return replace(order, slots=back, strategy=fitted.strategy), told


def _predicted(order: Order, job: JobWords) -> Callable[[Order], float]:
    """Return what predicts the time of orders of the same ranks on the same nodes."""
    from rankmap.joint.job import predictor

    on = order.on
    assert on.machine is not None  # time was predicted for them
    assert on.rows is not None
    rows, said = on.rows, {"pattern": order.pattern, "ppn": on.counts.tolist()}
    asked, _ = predictor(on.machine, job if "predictor" in job else {**job, **said})
    return lambda one: asked.time(rows, one.slots)


@dataclass(frozen=True, slots=True)
class ShortOrder:
    """An order that a library can be told.

    Attributes
    ----------
    order : Order
        On the nodes as the launcher numbers them.
    length, free_length : int
        Bytes of its mapping, and of the one that was wanted; 0 where the
        library itself would get it wrong.
    lost : float
        How much more it costs than the one that was wanted, as a share; 0 where
        they cost the same, nan where no pattern says.
    fits : bool
        False where not even ranks in a row on nodes in a row fit.
    """

    order: Order
    length: int
    free_length: int
    lost: float = 0.0
    fits: bool = True

    def words(self, mapping: Mapping, limit: int | None) -> str:
        """Return for a person how long the mapping is, and what its limit costs."""
        told = f"{mapping.library} is told the order in {self.length:,} bytes"
        if limit is None:
            return f"{told} (no limit is kept)"
        told = f"{told} of {limit:,}"
        if not self.fits:
            return (
                f"{told}: it may not start ({mapping.source}); no order of these ranks is shorter"
            )
        if self.length == self.free_length:
            return told
        long = f"not {self.free_length:,}" if self.free_length else "not one that MPICH loses"
        if self.lost == 0:
            return f"{told}, {long}: its nodes changed places, which costs nothing"
        cost = "at a cost that is not known" if np.isnan(self.lost) else f"{self.lost:.1%} dearer"
        return f"{told}, {long}, {cost} ({mapping.source}; --mapping-limit none keeps the other)"


def shorten_order(
    order: Order,
    mapping: Mapping,
    limit: int | None,
    pattern: Pattern | None = None,
    seconds: Callable[[Order], float] | None = None,
) -> ShortOrder:
    """Return an order with a mapping within the limit: this one, if it can be.

    Parameters
    ----------
    order : Order
        On the nodes as the launcher numbers them.
    mapping : Mapping
    limit : int or None
        Bytes; None for no limit.
    pattern : Pattern or None
        Fitted to the slots: what J is of; None where none is known.
    seconds : callable or None
        Predicted time of an order, where that decides; None: J does.
    """
    free = len(mapping.text(order.node))
    if limit is None or 0 < free <= limit:
        return ShortOrder(order, free, free)
    distance = job_distance(order.on)
    blocks = distance.blocks
    wanted = _cost(order, pattern, distance)

    def fits(one: Order) -> int:
        length = len(mapping.text(one.node))
        return length if length <= limit else 0

    found: list[tuple[float, Order]] = []
    for depth in range(1, blocks.shape[1] + 1):
        one = renumber_nodes(order, blocks, depth)
        if fits(one):
            cost = _cost(one, pattern, distance)
            if depth == 1 or (cost <= wanted * (1 + 1e-12) and seconds is None):
                return ShortOrder(one, fits(one), free)
            found.append((cost, one))
    found += [(_cost(one, pattern, distance), one) for one in _others(order, pattern, fits)]
    found += [
        (_cost(one, pattern, distance), one)
        for one in _mixtures(order, pattern, [one for _, one in sorted(found, key=_first)], fits)
    ]
    if not found:
        plain = Order(np.arange(len(order)), order.on)
        return ShortOrder(plain, len(mapping.text(plain.node)), free, np.nan, fits=False)
    found.sort(key=_first)
    if seconds is None:
        cost, best = found[0]
        lost = cost / wanted - 1 if wanted > 0 else np.nan
    else:
        default = [one for one in found if (np.diff(one[1].node) >= 0).all()]
        timed = [(seconds(one), one) for _, one in [*found[:TIMED], *default[:1]]]
        cost, best = min(timed, key=lambda one: one[0])
        lost = cost / seconds(order) - 1
    return ShortOrder(best, fits(best), free, max(lost, 0.0) if lost == lost else lost)


def _first(one: tuple[float, Order]) -> float:
    return one[0]


def _cost(order: Order, pattern: Pattern | None, distance: Distance) -> float:
    return np.nan if pattern is None else cost_of(pattern, order.node, distance)


def renumber_nodes(order: Order, blocks: Ints, depth: int) -> Order:
    """Return the same order with nodes in other places, in the order of their first ranks.

    Only nodes with as many ranks change places, and only units (blades, groups) with
    the same nodes in them.

    Parameters
    ----------
    order : Order
    blocks : int64 (n, k)
        Nested blocks of the nodes, innermost first (`rankmap.score.distance.Distance`).
    depth : int
        Levels inside of whose outermost units nodes change places: 1 for nodes inside
        the innermost blocks alone.

    Examples
    --------
    >>> from rankmap.slots import Slots
    >>> on = Slots(np.array(["a", "b", "c", "d"]), np.array([1, 1, 1, 1]))
    >>> blocks = np.array([[0, 0], [0, 0], [1, 0], [1, 0]])
    >>> one = Order(np.array([3, 2, 1, 0]), on)
    >>> [renumber_nodes(one, blocks, depth).slots.tolist() for depth in (1, 2)]
    [[2, 3, 0, 1], [0, 1, 2, 3]]
    """
    on, node = order.on, order.node
    first = np.empty(len(on.counts), dtype=np.int64)
    first[node[::-1]] = np.arange(len(order))[::-1]
    shapes = _shapes(on.counts, blocks, depth)
    place = np.empty_like(first)
    waiting = [(unit, unit, depth - 1) for unit in _units(np.arange(len(first)), blocks, depth)]
    while waiting:
        contents, places, level = waiting.pop()
        kind = shapes[level]
        if level == 0:
            by_first = contents[np.lexsort((first[contents], kind[contents]))]
            place[by_first] = places[np.lexsort((places, kind[places]))]
            continue
        ranked = [
            sorted(_units(of, blocks, level), key=lambda u, by=by: (kind[u[0]], by[u].min()))  # type: ignore[misc]
            for of, by in ((contents, first), (places, np.arange(len(first))))
        ]
        waiting += [(a, b, level - 1) for a, b in zip(*ranked, strict=True)]
    return Order(on.first[place[node]] + order.slots - on.first[node], on)


def _units(nodes: Ints, blocks: Ints, depth: int) -> list[Ints]:
    """Return the nodes unit by unit, the units being those of the `depth` innermost levels."""
    column = blocks[nodes, depth - 1]
    by_unit = nodes[np.argsort(column, kind="stable")]
    return np.split(by_unit, np.flatnonzero(np.diff(np.sort(column))) + 1)


def _shapes(counts: Ints, blocks: Ints, depth: int) -> list[Ints]:
    """Return for each level what kind of unit each node is in: equal where one can be the other.

    First the nodes themselves, by their ranks, then the units of the innermost level …
    """
    kinds = [np.unique(counts, return_inverse=True)[1].reshape(-1)]
    for level in range(1, depth):
        known: dict[tuple[int, ...], int] = {}
        kind = np.empty(len(counts), dtype=np.int64)
        for unit in _units(np.arange(len(counts)), blocks, level):
            parts = tuple(sorted(kinds[-1][unit].tolist()))
            kind[unit] = known.setdefault(parts, len(known))
        kinds.append(kind)
    return kinds


def _others(order: Order, pattern: Pattern | None, fits: Callable[[Order], int]) -> Iterator[Order]:
    """Yield orders that fit: of stretches, of boxes, and ranks in a row on nodes in a row."""
    distance = job_distance(order.on)
    depths = range(distance.blocks.shape[1], 0, -1)
    for stretch in divisors(order.on.ppn or 1)[1:]:
        rough = _stretched(order, stretch)
        made = [renumber_nodes(rough, distance.blocks, depth) for depth in depths]
        short = [one for one in (rough, *made) if fits(one)]
        yield from short
        if short:
            break
    yield from _boxes(order, pattern, fits)[:SCORED]
    if pattern is not None:
        for name in NAMED:
            with contextlib.suppress(NidmapError):
                one = find(name)(pattern, order.on)
                if fits(one):
                    yield one
    plain = Order(np.arange(len(order)), order.on)
    if fits(plain):
        yield plain


def _stretched(order: Order, stretch: int) -> Order:
    """Return an order with stretches of so many ranks on one node, near what it was.

    Each stretch goes to the node that has most of its ranks, the clearest cases first.
    """
    on, parts = order.on, len(order) // stretch
    nodes = len(on.counts)
    part = np.arange(len(order)) // stretch
    pairs, held = np.unique(part * nodes + order.node, return_counts=True)
    room = on.counts // stretch
    node = np.full(parts, -1)
    for pair in pairs[np.argsort(-held, kind="stable")].tolist():
        one, where = divmod(pair, nodes)
        if node[one] < 0 and room[where]:
            node[one] = where
            room[where] -= 1
    node[node < 0] = np.repeat(np.arange(nodes), room)
    return Order.of_nodes(np.repeat(node, stretch), on)


def _mixtures(
    order: Order, pattern: Pattern | None, short: Sequence[Order], fits: Callable[[Order], int]
) -> Iterator[Order]:
    """Yield orders that fit: the first ranks as in a long one, the others as in a short one.

    As many ranks are as in the long one as the limit allows. Long ones are the order that was
    wanted, and boxes of any shape.
    """
    units = units_of(order.on, job_distance(order.on))
    step, left = int(order.on.counts.max()), BUDGET
    long = [order, *_boxes(order, pattern, lambda one: 1)[:MIXED]]
    for one, other in itertools.product(long, short[:MIXED]):
        walks = one.ranks[units.slots], other.ranks[units.slots]
        low, high, best = 0, len(order) // step, None
        while high - low > 1 and left > 0:
            middle = (low + high) // 2
            first, rest = (walk < middle * step for walk in walks)
            made = Order(units.order(np.concatenate([walks[0][first], walks[1][~rest]])), order.on)
            low, high, best = (middle, high, made) if fits(made) else (low, middle, best)
            left -= len(order)
        if best is not None:
            yield best


def _boxes(order: Order, pattern: Pattern | None, fits: Callable[[Order], int]) -> list[Order]:
    """Return orders of nested boxes that fit, those with most of the traffic inside first.

    Boxes of a level only add to the blocks of a mapping: what does not fit is not carried on.
    """
    grid = pattern if isinstance(pattern, GridPattern) else getattr(pattern, "model", None)
    if not isinstance(grid, GridPattern):
        return []
    units = units_of(order.on, job_distance(order.on))
    dims, left = grid.dims or (), BUDGET
    chains: list[Chain] = [(0.0, [])]
    found: list[tuple[float, Order]] = []
    for level in units.levels:
        size = int(np.bincount(np.diff(level.starts)).argmax())  # of most units: holes do no harm
        boxes = boxes_of(size, dims)
        gain = inside(grid, boxes) * level.step * (len(order) // size)
        longer = [
            (worth + own, [*chain, tuple(box)])
            for worth, chain in chains
            for own, box in zip(gain.tolist(), boxes.tolist(), strict=True)
            if not chain or not any(np.mod(box, chain[-1]))
        ]
        kept: list[Chain] = []
        for worth, chain in sorted(longer, key=lambda one: -one[0]):
            left -= len(order)
            if len(kept) == BEAM or left < 0:
                break
            one = Order(units.order(cells_in(dims, chain)), order.on)
            if fits(one):
                kept.append((worth, chain))
                found.append((worth, one))
        chains = kept or chains
    return [one for _, one in sorted(found, key=lambda one: -one[0])]
