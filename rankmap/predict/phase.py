# SPDX-License-Identifier: Apache-2.0
"""A phase: what is sent between two synchronisation points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nidmap.placement.network.demand import Demand
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Ints
from nidmap.placement.traffic import Traffic


class RankStep(NamedTuple):
    """Messages that ranks send at the same time."""

    # source, target: (m,), ranks
    source: Ints
    target: Ints
    size: Any  # (m,), bytes of each
    times: float = 1.0  # steps that it stands for


def between_nodes(
    steps: Iterable[RankStep], placement: Placement
) -> Iterator[tuple[Traffic, float]]:
    """Yield the traffic between nodes in each step, and how many steps it represents."""
    for step in steps:
        yield by_node(Traffic.of(step.source, step.target, step.size), placement), step.times


def by_node(sent: Traffic, placement: Placement) -> Traffic:
    """Return the traffic between the nodes of a placement, of that between its ranks."""
    return sent.by_node(placement.node_of_rank, len(placement.rows))


@dataclass(slots=True, eq=False)
class Phase:
    """What is sent between two synchronisation points."""

    name: str
    placement: Placement  # where the ranks are
    traffic: Traffic  # traffic of all steps between nodes, including within each node
    # Yields what is sent consecutively, and how many steps each represents; None if everything is
    # sent at once
    steps: Callable[[], Iterator[tuple[Traffic, float]]] | None = None
    in_turn: float = 1.0  # messages that wait for each other: how often latency is paid
    a_rank: float = 0.0  # messages that the busiest rank posts at once
    sent: float = 0.0  # bytes that the busiest rank sends, inside its node or not
    shown: int = 0  # number of computed steps out of `in_turn`; 0 for all
    # Whether a step's messages wait for those of the step before, so that no rank runs ahead
    dependent: bool = False
    # Whether ranks send to all others of a line, so that none has its interface to itself
    everyone: bool = False
    several: bool = False  # whether each rank sends several messages in a step
    total: Demand = field(init=False)  # all bytes of the phase
    a_node: float = field(init=False)  # messages that leave the busiest node
    inside: float = field(init=False)  # bytes that the busiest node moves inside

    def __post_init__(self) -> None:
        nodes = len(self.placement.rows)
        self.total = self.placement.demand(self.traffic)
        self.a_node = float(self.traffic.leaving(nodes).max(initial=0.0))
        self.inside = float(self.traffic.inside(nodes).max(initial=0.0))

    def message(self, step: Traffic) -> float:
        """Return the bytes of one rank per step, if all ranks send equally much."""
        away = step.away()
        if len(away) and not self.several:
            return float((away.bytes / away.messages).max())
        return float(step.bytes.sum()) / self.placement.ranks
