"""A phase: what is sent between two points at which everyone waits, and where the ranks are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from placement.machine import Machine
from placement.network.demand import Demand
from placement.support.array_types import Floats, Ints
from rankmap.predict.summing import Summed

Steps = Callable[[], Iterator[tuple[Summed, float]]]

__all__ = ["Phase", "Seating", "Sends"]


class Sends(NamedTuple):
    """Messages between ranks, each rank's in the order in which it posts them.

    Attributes
    ----------
    step, source, target : int64 (m,)
        Ranks, and the step in which both take part in the message.
    size : float64 (m,)
        Bytes.
    """

    step: Ints
    source: Ints
    target: Ints
    size: Floats

    @classmethod
    def of(cls, every: Iterable[tuple[int, Ints, Ints, Any]]) -> Sends:
        """Return (step, sources, targets, bytes) one after the other; none is to oneself.

        Examples
        --------
        >>> ring = np.array([1, 2, 0])
        >>> [x.tolist() for x in Sends.of([(0, np.arange(3), ring, 8.0)])]
        [[0, 0, 0], [0, 1, 2], [1, 2, 0], [8.0, 8.0, 8.0]]
        """
        parts = [np.broadcast_arrays(*one) for one in every]
        step, a, b, size = (np.concatenate([part[k].ravel() for part in parts]) for k in range(4))
        off = a != b
        return cls(step[off], a[off], b[off], size[off].astype(np.float64))

    @classmethod
    def joined(cls, parts: Sequence[Sends]) -> Sends:
        """Return what is sent one after the other: a part's first step follows the last before."""
        after = np.cumsum([0] + [one.step.max(initial=-1) + 1 for one in parts])
        moved = [one._replace(step=one.step + k) for one, k in zip(parts, after, strict=False)]
        return cls(*(np.concatenate(column) for column in zip(*moved, strict=True)))


@dataclass(frozen=True, slots=True, eq=False)
class Seating:
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
    job : Seating
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
    sends : callable or None
        Returns the messages of all ranks, those of one pass; None where their order is not
        known.
    passes : float
        How often ranks go through them, pass after pass.
    before : tuple of Phase
        Phases that ranks come from without a barrier.
    """

    name: str
    total: Demand
    job: Seating
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
    sends: Callable[[], Sends] | None = None
    passes: float = 1.0
    before: tuple[Phase, ...] = ()
