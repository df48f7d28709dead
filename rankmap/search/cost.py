# SPDX-License-Identifier: Apache-2.0
"""The cost of a placement: predicted seconds, or J if no link bandwidth is known.

A search is told one of the two and goes by nothing else, so what it answers is the best of all
that it has judged, by the very figure that the user is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.network import channels
from nidmap.placement.network.channel_loads import injection_bandwidth
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Ints
from nidmap.rankmap.orders.auto import choose
from nidmap.rankmap.pattern import Pattern
from nidmap.rankmap.predict import Predictor
from nidmap.rankmap.predict.job import fit_pattern
from nidmap.rankmap.score.distance import job_distance
from nidmap.rankmap.score.traffic import cost_of
from nidmap.rankmap.search.budget import LIMITS
from nidmap.rankmap.search.rank_orders import Make, searched_orders

#: The order that every launcher makes where none is stated.
ROW_MAJOR = "row-major"


def without_time(placement: Placement) -> str:
    """Return why no time can be predicted on some slots; '' if it can."""
    if placement.machine is None:
        return "no machine is named"
    try:
        bandwidth = channels(placement.machine).bandwidth
    except UsageError as error:
        return error.message
    bandwidths = bandwidth if len(bandwidth) else injection_bandwidth(placement.machine)
    return "" if np.isfinite(bandwidths).any() else f"{placement.machine.name} states no bandwidths"


@dataclass(frozen=True, eq=False)
class HopCost:
    """J of a placement: weight times distance over all pairs of ranks."""

    model: Predictor

    def of(self, placement: Placement, below: float = np.inf) -> float:
        """Return J, always computed in full."""
        return cost_of(
            fit_pattern(self.model.pattern, placement),
            placement.node_of_rank,
            job_distance(placement),
        )

    def floor(self, placement: Placement) -> float:
        """Return 0, since no bound on J is cheaper than J itself."""
        return 0.0

    def orders(
        self, pattern: Pattern, placement: Placement, seconds: Callable[[], float]
    ) -> dict[str, Make]:
        """Return the order with the least J found by several searches."""

        def cheapest(placement: Placement) -> Ints:
            return choose(pattern, placement, seconds()).order.slot_of_rank

        return {"least J": cheapest}


@dataclass(frozen=True, eq=False)
class TimeCost:
    """Predicted seconds of a placement, with the likely value of every unknown."""

    model: Predictor

    def of(self, placement: Placement, below: float = np.inf) -> float:
        """Return the seconds; inf if they are certainly not below the limit."""
        return self.model.time(placement, below)

    def floor(self, placement: Placement) -> float:
        """Return a lower bound on the seconds of its rank order on any nodes."""
        return self.model.floor(placement)

    def at_once(self, placement: Placement) -> float:
        """Return the seconds with all bytes of each exchange sent together, a lower bound."""
        model, left = self.model, self.model.left(placement)
        return model.histogram(placement) + sum(
            model.cost(phase, left, below=0.0).seconds for phase in model.phases(placement)
        )

    def orders(
        self, pattern: Pattern, placement: Placement, seconds: Callable[[], float]
    ) -> dict[str, Make]:
        """Return orders for graphs and for grids, which go by distances."""
        return searched_orders(pattern, placement, seconds)


#: The criterion of a search, to be minimised.
Cost = HopCost | TimeCost


def cost_by(model: Predictor, timeless: str) -> Cost:
    """Return J if `without_time` says why no time can be predicted, else the seconds."""
    return HopCost(model) if timeless else TimeCost(model)


def effort_of(model: Predictor, placement: Placement) -> int:
    """Return the cost of an evaluation relative to that of loads on single paths.

    Where routers divide bytes between paths.
    """
    if model.routing != "adaptive":
        return 1
    return LIMITS.divided if divides_steps(model, placement) else LIMITS.adapting


def divides_steps(model: Predictor, placement: Placement) -> bool:
    """Return whether an evaluation splits the bytes of each step of an exchange."""
    if model.routing != "adaptive":
        return False
    return any(phase.steps is not None for phase in model.phases(placement))


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """An evaluated placement."""

    # Origin of the nodes: a planner with its options, or a family between packed and spread
    nodes: str
    order: str  # origin of the rank order on them
    placement: Placement
    cost: float  # seconds, or J

    @property
    def order_words(self) -> str:
        """What ordered the ranks; the order of the node list if rank r is on slot r."""
        return f"node order of {self.nodes}" if self.order == ROW_MAJOR else self.order

    @property
    def name(self) -> str:
        """What chose the nodes and what ordered the ranks, as text."""
        return self.nodes if self.order == ROW_MAJOR else f"{self.nodes}, {self.order}"


@dataclass(slots=True)
class Ranking:
    """The evaluated candidates of a search."""

    # The baseline's own nodes with rank r on slot r; None where it takes none
    default: Candidate | None
    candidates: list[Candidate]  # all node choices with all orders, before any step
    best: Candidate  # the best of all, and of the default, which is first where it is as good
    judged: int = 0  # placements that were judged, steps among them
    # (n,), the nodes of every choice, evaluated or not, by origin
    choices: dict[str, Ints] = field(default_factory=dict)
    every: bool = False  # whether these were all orders that there are
    alike: bool = False  # whether no order can make a difference, as every rank does the same

    @property
    def plain(self) -> Candidate:
        """The best node choice with rank r on slot r, if that may be an answer."""
        usual = [candidate for candidate in self.candidates if candidate.order == ROW_MAJOR]
        return min(usual or self.candidates, key=lambda candidate: candidate.cost)
