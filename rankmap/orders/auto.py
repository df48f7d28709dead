# SPDX-License-Identifier: Apache-2.0
"""Auto: all suitable orders that the size permits, scored against the default.

What comes back is never worse than row-major, and where row-major meets the
lower bound it is row-major itself, at once. Which orders are tried depends on
the pattern and its size, and on the seconds that there are by what each order
is known to take. Without seconds the same question has the same answer; with them
a graph is mapped as far as there is time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from nidmap.placement.errors import NidmapError
from nidmap.placement.placement import Origin, Placement
from nidmap.rankmap import orders, progress
from nidmap.rankmap.orders import ordering
from nidmap.rankmap.orders.graph import as_graph, edge_count
from nidmap.rankmap.pattern import Pattern
from nidmap.rankmap.pattern.graph import Graph, stencil_of
from nidmap.rankmap.pattern.structured import Lines
from nidmap.rankmap.refine import cache
from nidmap.rankmap.refine.budget import LEAST_EFFORT, seconds_for
from nidmap.rankmap.score import CostBound, lower_bound, meets_bound, plain_number
from nidmap.rankmap.score.distance import Distance, job_distance
from nidmap.rankmap.score.traffic import cost_of

#: Every launcher's default.
DEFAULT = "row-major"

#: Of more ranks only ``boxes`` is tried.
MANY = 1 << 17

#: An order that is no more above the bound ends the search.
CLOSE = 0.005

#: Edges of a structured pattern up to which it is mapped as a graph too.
MOST_EDGES = 1 << 17

#: Seconds that loading the compiled kernels takes, and compiling them.
LOADING, COMPILING = 0.2, 30.0

#: The bound of an exhaustive search, in words.
EVERY_ORDER = "every order was tried"


@dataclass(slots=True)
class AutoChoice:
    """The choice of auto, and what it left out."""

    order: Placement
    strategy: str  # the order that won
    # cost, default_cost: J of it, and of row-major
    cost: float
    default_cost: float
    bound: CostBound  # a lower bound for all orders
    tried: dict[str, float] = field(default_factory=dict)  # J of each order that was made
    failed: dict[str, str] = field(default_factory=dict)  # why an order was not
    left: str = ""  # what was skipped for lack of time

    @property
    def optimal(self) -> bool:
        """True if no order is better."""
        return meets_bound(self.cost, self.bound)

    @property
    def close(self) -> bool:
        """True if no remaining candidate can gain much."""
        return self.optimal or self.cost <= (1 + CLOSE) * self.bound.value

    def keep(self, name: str, order: Placement, cost: float) -> None:
        """Record the cost of an order, and choose it if it is the cheapest so far."""
        self.tried[name] = cost
        if cost < self.cost - 1e-12 * abs(self.cost):
            self.order = order.with_origin(strategy=f"auto: {name}", remark="")
            self.strategy, self.cost = name, cost

    def words(self) -> str:
        """Describe the choice in one line."""
        if self.strategy == DEFAULT:
            met = EVERY_ORDER if self.bound.why == EVERY_ORDER else "it meets the lower bound"
            proof = f": {met}" if self.optimal else ": nothing tried is better"
            named = "default is optimal" if self.optimal else "keep the default"
            left = f" ({self.left})" if self.left and not self.optimal else ""
            return f"{named} (J = {plain_number(self.cost):,}){proof}{left}"
        less = 1 - self.cost / self.default_cost
        above = self.cost / self.bound.value - 1 if self.bound.value > 0 else np.inf
        gap = f"at most {above:.1%} above the least possible ({plain_number(self.bound.value):,})"
        if self.optimal or above > 1:
            gap = "optimal" if self.optimal else "no close lower bound is known"
        return (
            f"{self.strategy}: J = {plain_number(self.cost):,}, {less:.1%} less than the default's "
            f"{plain_number(self.default_cost):,}; {gap}"
        )


@ordering("auto")
def auto(pattern: Pattern, placement: Placement) -> Placement:
    """Try the suitable orders, score them, and take the cheapest; the default in a tie."""
    return describe_choice(choose(pattern, placement))


def describe_choice(found: AutoChoice) -> Placement:
    """Return the chosen order with a remark on it."""
    mapped = any(name.startswith("graph") for name in found.tried) and not found.optimal
    remarks = filter(None, [found.words(), cache.remark() if mapped else ""])
    return found.order.with_origin(remark="; ".join(remarks))


def choose(pattern: Pattern, placement: Placement, seconds: float = math.inf) -> AutoChoice:
    """Return the cheapest of the orders that suit a pattern on slots.

    `pattern`: fitted to the slots. `seconds`: what there is time for.
    """
    distance = job_distance(placement)
    first = cost_of(pattern, placement.node_of_slot, distance)
    default = placement.with_order(None, Origin(f"auto: {DEFAULT}"))
    bound = lower_bound(pattern, placement, distance)
    best = AutoChoice(default, DEFAULT, first, first, bound, {DEFAULT: first})
    end = time.thread_time() + seconds
    effort = _affordable_effort(pattern, placement, seconds)
    for name, wanted in _candidate_orders(pattern, placement):
        progress.advance(name)
        if best.close:
            break
        if name == "graph" and effort < 1:
            if effort < LEAST_EFFORT:
                hint = " (its kernels are not compiled yet; nidmap order does that)"
                hint = "" if cache.kernels_compiled() else hint
                best.left = f"graph is left out: not in {seconds:g} s{hint}"
                best.failed[name] = best.left
                continue
            name = f"graph:effort={effort:.2g}"
        try:
            order = _make_order(name, wanted, placement, end)
        except NidmapError as error:
            best.failed[name] = str(error)
        else:
            best.keep(name, order, cost_of(pattern, order.node_of_rank, distance))
    if not best.close and effort >= 1:
        _polish_best(pattern, placement, distance, best)
    if not best.optimal:
        _search_all(pattern, placement, distance, best)
    return best


def _make_order(name: str, pattern: Pattern, placement: Placement, end: float) -> Placement:
    """Return an order by name; mapping a graph takes no longer than the time left."""
    if not name.startswith("graph") or math.isinf(end):
        return orders.find(name)(pattern, placement)
    return orders.find(f"graph:seconds={max(end - time.thread_time(), 0.0)}")(pattern, placement)


def _search_all(
    pattern: Pattern, placement: Placement, distance: Distance, best: AutoChoice
) -> None:
    """Try every order if the ranks are so few that this takes a tenth of a second."""
    from nidmap.rankmap.refine.exhaustive import MOST_RANKS, search_all

    if placement.ranks > MOST_RANKS and not isinstance(pattern, Graph):
        return
    known = best.order.node_of_rank
    node = search_all(as_graph(pattern), known, placement.counts, distance)
    if node is None:
        return
    if node is not known:
        best.keep("graph", placement.with_ranks_on(node), cost_of(pattern, node, distance))
    best.bound = CostBound(best.cost, EVERY_ORDER)


def _affordable_effort(pattern: Pattern, placement: Placement, seconds: float) -> float:
    """Return the effort for mapping a graph that the time left permits; 0 for none."""
    full_s = seconds_for(max(placement.ranks, 2048))  # few ranks are mapped several times
    left = seconds - (
        0 if seconds == math.inf else LOADING if cache.kernels_compiled() else COMPILING
    )
    if isinstance(pattern, Graph) or left >= 1.5 * full_s:
        return min(1.0, left / full_s)
    return 0.0  # other orders are good enough


def _candidate_orders(pattern: Pattern, placement: Placement) -> Iterator[tuple[str, Pattern]]:
    """Yield the orders to compute, and the pattern for each."""
    grid = stencil_of(pattern) if isinstance(pattern, Graph) else pattern
    if grid is not None and grid.dims is not None:
        quick = () if placement.ranks > MANY else orders.QUICK
        yield from ((name, grid) for name in ("boxes", *quick))
    if isinstance(pattern, Graph) or edge_count(pattern, MOST_EDGES) <= MOST_EDGES:
        yield "graph", pattern


def _polish_best(
    pattern: Pattern, placement: Placement, distance: Distance, best: AutoChoice
) -> None:
    """Anneal the best order of a structured pattern, as is done for graphs."""
    if best.strategy in ("graph", DEFAULT) or "graph" in best.failed:
        return
    progress.advance()
    if edge_count(pattern, MOST_EDGES) > MOST_EDGES and not isinstance(pattern, Graph):
        return
    if isinstance(pattern, Lines) and pattern.dims is not None and len(pattern.dims) == 1:
        return  # all to all: no order is better than another
    from nidmap.rankmap.refine.mapping import polish_nodes

    node = polish_nodes(as_graph(pattern), best.order.node_of_rank, placement.counts, distance)
    cost = cost_of(pattern, node, distance)
    if cost < best.cost:
        best.keep(f"{best.strategy}, refined", placement.with_ranks_on(node), cost)
