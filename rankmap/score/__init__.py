# SPDX-License-Identifier: Apache-2.0
"""The cost of an order, and a proven lower bound on that of any order.

J is the sum over undirected edges, each once, of weight times distance
(`nidmap.rankmap.score.distance`). A bound is a number that no order of the same ranks on
the same slots can be below; an order that meets it is optimal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nidmap.placement.placement import Placement
from nidmap.rankmap.pattern import Pattern, parse_pattern
from nidmap.rankmap.score.bounds import CostBound, lower_bound
from nidmap.rankmap.score.distance import job_distance
from nidmap.rankmap.score.traffic import cost_of, traffic

__all__ = ["CostBound", "Score", "cost", "lower_bound", "meets_bound", "score"]

#: Rounding that sums of many weights may have, as a share of the sum.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Score:
    """The figures of an order."""

    cost: float  # J
    # Weight of the edges inside a node, inside an innermost block, and so on outwards (`levels`
    # names them)
    by_level: tuple[float, ...]
    levels: tuple[str, ...]  # ``node``, then the blocks' names, ``system`` last
    # Distance by level; on dragonflies and tori the least there is
    level_distance: tuple[float, ...]
    hop_bytes: float  # weight times links between routers
    off_node: float  # weight of the edges between nodes
    max_node_traffic: float  # largest weight of the edges that leave one node
    max_ranks_a_node: int
    min_ranks_a_node: int
    bound: CostBound  # the best known bound, possibly 0

    @property
    def lower_bound(self) -> float:
        """A lower bound on the J of any order."""
        return self.bound.value

    @property
    def gap(self) -> float | None:
        """How far J is above the bound, relative to it; None if only the bound is 0."""
        if self.optimal:
            return 0.0
        return self.cost / self.bound.value - 1 if self.bound.value > 0 else None

    @property
    def optimal(self) -> bool:
        """True if J meets the bound."""
        return meets_bound(self.cost, self.bound)

    def document(self) -> dict[str, Any]:
        """Return all figures as JSON."""
        names = (*self.__slots__[:-1], "lower_bound", "optimal")
        figures = {name: getattr(self, name) for name in names}
        figures |= {"bound": self.bound.why, "gap": self.gap, "optimal": figures.pop("optimal")}
        for name, value in figures.items():
            if isinstance(value, tuple):
                figures[name] = [plain_number(v) if isinstance(v, float) else v for v in value]
            elif isinstance(value, float) and name != "gap":
                figures[name] = plain_number(value)
        return figures


def score(order: Placement, pattern: Pattern | str | None = None) -> Score:
    """Return J, hop-bytes, cuts and the lower bound of an order.

    `pattern`: who talks to whom; None means what the order was made for.
    """
    fitted = _fit_pattern(order, pattern)
    distance = job_distance(order)
    weights = traffic(fitted, order.node_of_rank, distance)
    return Score(
        cost=weights.cost,
        by_level=tuple(weights.by_level.tolist()),
        levels=("node", *distance.names),
        level_distance=tuple(distance.level_distance.tolist()),
        hop_bytes=weights.hops,
        off_node=float(weights.by_level[1:].sum()),
        max_node_traffic=float(weights.by_node.max()),
        max_ranks_a_node=int(order.counts.max()),
        min_ranks_a_node=int(order.counts.min()),
        bound=lower_bound(fitted, order, distance),
    )


def cost(order: Placement, pattern: Pattern | str | None = None) -> float:
    """Return only J of an order."""
    return cost_of(_fit_pattern(order, pattern), order.node_of_rank, job_distance(order))


def meets_bound(value: float, bound: CostBound) -> bool:
    """Tell whether a cost is no more than a bound, apart from rounding."""
    return value <= bound.value + ROUNDING * abs(bound.value)


def plain_number(value: float) -> float | int:
    """Return an integral number as int, since most weights are integers."""
    return int(value) if float(value).is_integer() else float(value)


def _fit_pattern(order: Placement, pattern: Pattern | str | None) -> Pattern:
    wanted = order.origin.pattern if pattern is None else pattern
    fitted = parse_pattern(wanted) if isinstance(wanted, str) else wanted
    return fitted.on(order)
