"""Auto: every order that fits and that the size allows, scored against the default.

What comes back is never worse than row-major, and where row-major meets the
lower bound it is row-major itself, at once. Which orders are tried depends on
the pattern and its size, and on the seconds that there are by what each order
is known to take, never on a clock: the same question has the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import NidmapError, UsageError, printable
from rankmap import orders, progress
from rankmap.order import Order
from rankmap.orders import ordering
from rankmap.orders.graph import as_graph, edge_count, placed
from rankmap.pattern.graph import Graph
from rankmap.pattern.structured import Lines
from rankmap.refine.cache import remark
from rankmap.score import Bound, lower_bound, meets, plain
from rankmap.score.distance import job_distance
from rankmap.score.traffic import cost_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rankmap.pattern import Pattern
    from rankmap.score.distance import Distance
    from rankmap.slots import Slots

__all__ = ["Choice", "auto", "choose"]

#: What every launcher does by itself.
DEFAULT = "row-major"

#: Orders of a process grid, the quick ones that mostly lose last.
GRID = (
    "boxes",
    "aligned",
    "hierarchical",
    "hilbert",
    "morton",
    "column-major",
    "folded",
    "round-robin",
)

#: Of more ranks only the first of these is tried.
MANY = 1 << 17

#: An order that is no more above the bound ends the search.
CLOSE = 0.005

#: Edges of a structured pattern up to which it is mapped as a graph too.
MOST_EDGES = 1 << 17

#: Seconds that loading the compiled kernels takes, and compiling them.
LOADING, COMPILING = 0.2, 30.0

#: The bound of an exhaustive search, in words.
EVERY_ORDER = "every order was looked at"

#: The least effort that a graph is worth mapping with.
LEAST_EFFORT = 0.1


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
    left : str
        What there was no time for.
    """

    order: Order
    strategy: str
    cost: float
    default_cost: float
    bound: Bound
    tried: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    left: str = ""

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
            met = EVERY_ORDER if self.bound.why == EVERY_ORDER else "it meets the lower bound"
            proof = f": {met}" if self.optimal else ": nothing tried is better"
            named = "default is optimal" if self.optimal else "keep the default"
            left = f" ({self.left})" if self.left and not self.optimal else ""
            return f"{named} (J = {plain(self.cost):,}){proof}{left}"
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
def auto(pattern: Pattern, slots: Slots, options: str = "") -> Order:
    """Try the orders that fit, score them, and take the cheapest; the default in a draw.

    ``auto:seconds=2`` leaves out what is known to take longer.
    """
    found = choose(pattern, slots, _seconds(options))
    mapped = any(name.startswith("graph") for name in found.tried) and not found.optimal
    said = [found.words(), remark() if mapped else ""]
    return Order(
        found.order.slots, slots, found.order.strategy, remark="; ".join(filter(None, said))
    )


def _seconds(options: str) -> float | None:
    """Return the seconds that options give, None where they give none."""
    name, _, value = options.partition("=")
    if not options:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if name != "seconds" or not 0 <= seconds < float("inf"):
        raise UsageError(f"strategy auto takes seconds=NUMBER, not '{printable(options, 40)}'")
    return seconds


def choose(pattern: Pattern, slots: Slots, seconds: float | None = None) -> Choice:
    """Return the cheapest of the orders that fit a pattern on slots.

    Parameters
    ----------
    pattern : Pattern
        Fitted to the slots.
    slots : Slots
    seconds : float or None
        What there is time for; None: for all.

    Examples
    --------
    >>> import nidmap
    >>> from rankmap.slots import slots_of
    >>> from rankmap.pattern.structured import Lines
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
    effort = _effort(pattern, slots, seconds)
    for name, wanted in _candidates(pattern, slots):
        progress.step()
        if best.close:
            break
        if name == "graph" and effort < 1:
            if effort < LEAST_EFFORT:
                best.failed[name] = best.left = _left_out(seconds)
                continue
            name = f"graph:effort={effort:.2g}"
        _try(name, wanted, pattern, slots, distance, best)
    if not best.close and effort >= 1:
        _polished(pattern, slots, distance, best)
    if not best.optimal:
        _search_all(pattern, slots, distance, best)
    return best


def _search_all(pattern: Pattern, slots: Slots, distance: Distance, best: Choice) -> None:
    """Look at every order where ranks are so few that this takes a tenth of a second."""
    from rankmap.refine.exhaustive import MOST_RANKS, search_all

    if len(slots) > MOST_RANKS and not isinstance(pattern, Graph):
        return
    found = as_graph(pattern)
    known = best.order.node
    node = search_all(found, known, slots.counts, distance)
    if node is None:
        return
    if node is not known:
        _keep("graph", placed(node), cost_of(pattern, node, distance), best)
    best.bound = Bound(best.cost, EVERY_ORDER)


def _effort(pattern: Pattern, slots: Slots, seconds: float | None) -> float:
    """Return with how much effort there is time to map a pattern as a graph, 0 for none."""
    if seconds is None:
        return 1.0
    from rankmap.refine.budget import seconds_for
    from rankmap.refine.cache import compiled

    whole = seconds_for(max(len(slots), 2048))  # few ranks are mapped several times
    left = seconds - (LOADING if compiled() else COMPILING)
    effort = min(1.0, left / whole)
    if isinstance(pattern, Graph):
        return effort
    return effort if left >= 1.5 * whole else 0.0  # other orders are good enough


def _left_out(seconds: float | None) -> str:
    """Return why a pattern is not mapped as a graph."""
    from rankmap.refine.cache import compiled

    first = "" if compiled() else " (its kernels are not compiled yet; nidmap order does that)"
    return f"graph is left out: not in {seconds or 0:g} s{first}"


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
        from rankmap.pattern.graph import stencil_of

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
    progress.step()
    if edge_count(pattern, MOST_EDGES) > MOST_EDGES and not isinstance(pattern, Graph):
        return
    if isinstance(pattern, Lines) and pattern.dims is not None and len(pattern.dims) == 1:
        return  # all to all: no order is better than another
    from rankmap.refine.mapping import polish

    node = polish(as_graph(pattern), best.order.node, slots.counts, distance)
    cost = cost_of(pattern, node, distance)
    if cost < best.cost:
        _keep(f"{best.strategy}, refined", placed(node), cost, best)
