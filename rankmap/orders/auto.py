"""Auto: every order that fits and that the size allows, scored against the default.

What comes back is never worse than row-major, and where row-major meets the
lower bound it is row-major itself, at once. Which orders are tried depends on
the pattern and its size only, never on a clock: the same question has the
same answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import NidmapError
from rankmap import orders
from rankmap.distance import job_distance
from rankmap.graph import Graph
from rankmap.order import Order
from rankmap.orders import ordering
from rankmap.orders.graph import as_graph, edge_count, placed
from rankmap.score import Bound, lower_bound, meets, plain
from rankmap.structured import Lines
from rankmap.traffic import cost_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rankmap.distance import Distance
    from rankmap.pattern import Pattern
    from rankmap.slots import Slots

__all__ = ["Choice", "auto", "choose"]

#: What every launcher does by itself.
DEFAULT = "row-major"

#: Orders of a process grid, the quick ones that mostly lose last.
GRID = ("boxes", "aligned", "hilbert", "morton", "column-major", "folded", "round-robin")

#: Of more ranks only the first of these is tried.
MANY = 1 << 17

#: An order that is no more above the bound ends the search.
CLOSE = 0.005

#: Edges of a structured pattern up to which it is mapped as a graph too.
MOST_EDGES = 1 << 17


@dataclass(slots=True)
class Choice:
    """What auto has chosen, and what it left.

    Attributes
    ----------
    order : Order
    strategy : str
        The order that won.
    cost, default_cost : float
        J of it, and of row-major.
    bound : Bound
        What no order is below.
    tried : dict of str to float
        J of each order that was made.
    failed : dict of str to str
        Why an order was not.
    """

    order: Order
    strategy: str
    cost: float
    default_cost: float
    bound: Bound
    tried: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def optimal(self) -> bool:
        """True where no order is better."""
        return meets(self.cost, self.bound)

    @property
    def close(self) -> bool:
        """True where nothing that is still to be tried can win much."""
        return self.optimal or self.cost <= (1 + CLOSE) * self.bound.value

    def words(self) -> str:
        """Return the choice in one line for a person."""
        if self.strategy == DEFAULT:
            proof = ": it meets the lower bound" if self.optimal else ": nothing tried is better"
            named = "default is optimal" if self.optimal else "keep the default"
            return f"{named} (J = {plain(self.cost):,}){proof}"
        less = 1 - self.cost / self.default_cost
        gap = "optimal" if self.optimal else self._gap()
        return (
            f"{self.strategy}: J = {plain(self.cost):,}, {less:.1%} less than the default's "
            f"{plain(self.default_cost):,}; {gap}"
        )

    def _gap(self) -> str:
        above = self.cost / self.bound.value - 1 if self.bound.value > 0 else np.inf
        if above > 1:
            return "no lower bound near it is known"
        return f"at most {above:.1%} above the least possible ({plain(self.bound.value):,})"


@ordering("auto")
def auto(pattern: Pattern, slots: Slots) -> Order:
    """Try the orders that fit, score them, and take the cheapest; the default in a draw."""
    found = choose(pattern, slots)
    return Order(found.order.slots, slots, found.order.strategy, remark=found.words())


def choose(pattern: Pattern, slots: Slots) -> Choice:
    """Return the cheapest of the orders that fit a pattern on slots.

    Parameters
    ----------
    pattern : Pattern
        Fitted to the slots.
    slots : Slots

    Examples
    --------
    >>> import nidmap
    >>> from rankmap.slots import slots_of
    >>> from rankmap.structured import Lines
    >>> on = slots_of(nidmap.load_machine("tree:4x2x2,dist=1:2:3"), None, 4)
    >>> choose(Lines("fft", (8, 8)), on).words()
    'default is optimal (J = 672): it meets the lower bound'
    """
    distance = job_distance(slots)
    plain_order = np.arange(len(slots))
    first = cost_of(pattern, slots.node, distance)
    best = Choice(
        Order(plain_order, slots, f"auto: {DEFAULT}"),
        DEFAULT,
        first,
        first,
        lower_bound(pattern, slots, distance),
        {DEFAULT: first},
    )
    for name, wanted in _candidates(pattern, slots):
        if not best.close:
            _try(name, wanted, pattern, slots, distance, best)
    if not best.close:
        _polished(pattern, slots, distance, best)
    return best


def _candidates(pattern: Pattern, slots: Slots) -> Iterator[tuple[str, Pattern]]:
    """Yield the orders to be made, and the pattern that each is made for."""
    known = orders.BUNDLED
    grid = _grid(pattern)
    if grid is not None:
        fitting = GRID[:1] if len(slots) > MANY else GRID
        yield from ((name, grid) for name in fitting if name in known)
    if isinstance(pattern, Graph) or edge_count(pattern, MOST_EDGES) <= MOST_EDGES:
        yield "graph", pattern


def _grid(pattern: Pattern) -> Pattern | None:
    """Return the pattern on a process grid that this is, None where there is none."""
    if isinstance(pattern, Graph):
        from rankmap.recognise import stencil_of

        return stencil_of(pattern)
    return None if pattern.dims is None else pattern


def _try(
    name: str, wanted: Pattern, pattern: Pattern, slots: Slots, distance: Distance, best: Choice
) -> None:
    """Make one order, and keep it where it is the cheapest so far."""
    try:
        made = orders.find(name)(wanted, slots)
    except NidmapError as error:
        best.failed[name] = str(error)
        return
    _keep(name, made.slots, cost_of(pattern, made.node, distance), best)


def _keep(name: str, made: NDArray[np.int64], cost: float, best: Choice) -> None:
    best.tried[name] = cost
    if cost < best.cost - 1e-12 * abs(best.cost):
        best.order = Order(made, best.order.on, f"auto: {name}")
        best.strategy, best.cost = name, cost


def _polished(pattern: Pattern, slots: Slots, distance: Distance, best: Choice) -> None:
    """Anneal the best order of a structured pattern, as the graph's own has been."""
    if best.strategy in ("graph", DEFAULT) or "graph" in best.failed:
        return
    if edge_count(pattern, MOST_EDGES) > MOST_EDGES and not isinstance(pattern, Graph):
        return
    if isinstance(pattern, Lines) and pattern.dims is not None and len(pattern.dims) == 1:
        return  # all to all: no order is better than another
    from rankmap.refine.mapping import polish

    node = polish(as_graph(pattern), best.order.node, slots.counts, distance)
    cost = cost_of(pattern, node, distance)
    if cost < best.cost:
        _keep(f"{best.strategy}, refined", placed(node), cost, best)
