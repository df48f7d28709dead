"""A phase: what is sent between two points at which everyone waits, and where the ranks are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from placement.network.demand import Demand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from placement.machine import Machine
    from rankmap.predict.summing import Summed

    Ints = NDArray[np.int64]
    Steps = Callable[[], Iterator[tuple[Summed, float]]]

__all__ = ["Job", "Phase"]


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Where the ranks are.

    Attributes
    ----------
    machine : Machine
    rows : int64 (n,)
        The job's nodes as rows of the machine, each once.
    node : int64 (ranks,)
        Node of each rank, an index of `rows`.
    counts : int64 (n,)
        Ranks of each node.
    """

    machine: Machine
    rows: Ints
    node: Ints
    counts: Ints

    def demand(self, sums: Summed) -> Demand:
        """Return messages between nodes as a demand on the network."""
        return Demand.pairs(
            self.machine, self.rows[sums.source], self.rows[sums.target], sums.weight
        )


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """What is sent between two points at which everyone waits.

    Attributes
    ----------
    name : str
    total : Demand
        All bytes of the phase.
    job : Job
    flows : callable
        Returns what goes from node to node, and in how many messages.
    messages : callable or None
        Returns the same with messages of different sizes apart; None where
        those of each entry of `flows` are alike.
    steps : callable or None
        Yields what is sent one after the other, and how many steps each
        stands for; None where everything is sent at once.
    in_turn : float
        Messages that wait for each other: how often latency is paid.
    a_rank : float
        Messages that the busiest rank posts at once.
    a_node : float
        Messages that leave the busiest node.
    inside : float
        Bytes that the busiest node moves inside.
    a_pair : float
        Bytes that no node exceeds to any single other one.
    sent : float
        Bytes that the busiest rank sends, inside its node or not.
    shown : int
        Steps that were looked at, of `in_turn`; 0 for all.
    peers : callable or None
        Returns with how many ranks of other nodes the busiest rank exchanges
        messages; None where nothing is sent.
    """

    name: str
    total: Demand
    job: Job
    flows: Callable[[], Summed]
    steps: Steps | None = None
    messages: Callable[[], Summed] | None = None
    in_turn: float = 1.0
    a_rank: float = 0.0
    a_node: float = 0.0
    inside: float = 0.0
    a_pair: float = 0.0
    sent: float = 0.0
    shown: int = 0
    peers: Callable[[], float] | None = None
