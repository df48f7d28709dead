# SPDX-License-Identifier: Apache-2.0
"""A phase: what is sent between two points at which everyone waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nidmap.placement.network.demand import Demand
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Ints
from nidmap.placement.traffic import Traffic


class RankStep(NamedTuple):
    """Messages that ranks send at the same time.

    Attributes
    ----------
    source, target : int64 (m,)
        Ranks.
    size : float64 (m,) or float
        Bytes of each.
    times : float
        Steps that it stands for.
    """

    source: Ints
    target: Ints
    size: Any
    times: float = 1.0


def between_nodes(
    steps: Iterable[RankStep], placement: Placement
) -> Iterator[tuple[Traffic, float]]:
    """Yield what goes from node to node in each step, and how many steps it stands for."""
    for step in steps:
        sent = Traffic.of(step.source, step.target, step.size)
        yield sent.by_node(placement.node_of_rank, len(placement.rows)), step.times


@dataclass(slots=True, eq=False)
class Phase:
    """What is sent between two points at which everyone waits.

    Attributes
    ----------
    name : str
    placement : Placement
        Where the ranks are.
    traffic : Traffic
        What all steps send from node to node, each node to itself included.
    steps : callable or None
        Yields what is sent one after the other, and how many steps each
        stands for; None where everything is sent at once.
    in_turn : float
        Messages that wait for each other: how often latency is paid.
    a_rank : float
        Messages that the busiest rank posts at once.
    sent : float
        Bytes that the busiest rank sends, inside its node or not.
    shown : int
        Steps that were looked at, of `in_turn`; 0 for all.
    dependent : bool
        Whether a step's messages wait for those of the step before, so that no rank runs ahead.
    everyone : bool
        Whether ranks send to all others of a line, so that none has its interface to itself.
    total : Demand
        All bytes of the phase.
    a_node : float
        Messages that leave the busiest node.
    inside : float
        Bytes that the busiest node moves inside.
    """

    name: str
    placement: Placement
    traffic: Traffic
    steps: Callable[[], Iterator[tuple[Traffic, float]]] | None = None
    in_turn: float = 1.0
    a_rank: float = 0.0
    sent: float = 0.0
    shown: int = 0
    dependent: bool = False
    everyone: bool = False
    total: Demand = field(init=False)
    a_node: float = field(init=False)
    inside: float = field(init=False)

    def __post_init__(self) -> None:
        nodes = len(self.placement.rows)
        self.total = self.placement.demand(self.traffic)
        self.a_node = float(self.traffic.leaving(nodes).max(initial=0.0))
        self.inside = float(self.traffic.inside(nodes).max(initial=0.0))

    def exchanges(self) -> Iterator[tuple[Traffic, float]]:
        """Yield what is sent at the same time, and how many steps it stands for."""
        return iter([(self.traffic, 1.0)]) if self.steps is None else self.steps()

    def message(self, step: Traffic) -> float:
        """Return the bytes of one message of a step, in which every rank sends one, all alike."""
        away = step.away()
        if len(away):
            return float((away.bytes / away.messages).max())
        return float(step.bytes.sum()) / self.placement.ranks
