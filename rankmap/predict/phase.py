"""A phase: what is sent between two points at which everyone waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from nidmap.placement.network.demand import Demand
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Floats, Ints, Mask
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


class Sends(NamedTuple):
    """Messages between ranks, each rank's in the order in which it posts them.

    Attributes
    ----------
    step, source, target : int64 (m,)
        Ranks, and the sender's step in which it posts the message.
    size : float64 (m,)
        Bytes.
    done : int64 (m,)
        The sender's step at whose end it waits until the message is taken.
    taken, awaited : int64 (m,)
        The receiver's step in which it posts the receive, and the one at whose end it waits for
        the message; -1: nobody does.
    """

    step: Ints
    source: Ints
    target: Ints
    size: Floats
    done: Ints
    taken: Ints
    awaited: Ints

    @classmethod
    def of(cls, every: Iterable[tuple[Ints | int, Ints, Ints, Any]]) -> Sends:
        """Join columns (step, sources, targets, bytes) into messages, without those to oneself.

        Both ranks wait for a message at the end of the step in which it is posted.

        Examples
        --------
        >>> ring = np.array([1, 2, 0])
        >>> [x.tolist() for x in Sends.of([(0, np.arange(3), ring, 8.0)])[:4]]
        [[0, 0, 0], [0, 1, 2], [1, 2, 0], [8.0, 8.0, 8.0]]
        """
        parts = [np.broadcast_arrays(*columns) for columns in every]
        step, a, b, size = (np.concatenate([part[k].ravel() for part in parts]) for k in range(4))
        off = a != b
        step = step[off]
        return cls(step, a[off], b[off], size[off].astype(np.float64), step, step, step)

    @classmethod
    def in_turn(cls, steps: Iterable[RankStep]) -> Sends:
        """Return the messages of steps that follow each other."""
        return cls.of((k, step.source, step.target, step.size) for k, step in enumerate(steps))

    def some(self, kept: Ints | Mask | slice) -> Sends:
        """Return some of the messages, in the order of `kept`."""
        size, rest = self.size[kept], (column[kept] for column in (self[:3] + self[4:]))
        step, source, target, done, taken, awaited = rest
        return Sends(step, source, target, size, done, taken, awaited)

    @classmethod
    def joined(cls, parts: Sequence[Sends]) -> Sends:
        """Return what is sent one after the other: a part's first step follows the last before."""
        after = np.cumsum([0] + [part.awaited.max(initial=-1) + 1 for part in parts])
        moved = [
            part._replace(
                step=part.step + k, done=part.done + k, taken=part.taken + k,
                awaited=part.awaited + k,
            )
            for part, k in zip(parts, after, strict=False)
        ]  # fmt: skip
        return cls(*(np.concatenate(column) for column in zip(*moved, strict=True)))


class Stretches(NamedTuple):
    """Parts of a run that stand for all of it.

    Attributes
    ----------
    parts : list of (Sends, int)
        Messages of each part, and how many of them come before what counts.
    stand_for : float
        How many times as long as what counts the whole run is.
    """

    parts: list[tuple[Sends, int]]
    stand_for: float


class Course(Protocol):
    """A phase through which a later room follows the ranks (``ranks followed``)."""

    @property
    def head(self) -> int:
        """Messages of what ranks do before."""

    @property
    def smallest(self) -> float:
        """Bytes of the smallest message; inf where ranks go through one step only."""

    def seconds(self, bandwidth: Floats, eager: float = 0.0) -> float:
        """Return the seconds on links of so many GB/s, messages up to so many bytes eager."""


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
    sends : callable or None
        Returns the messages of all ranks, those of one pass; None where their order is not
        known.
    passes : float
        How often ranks go through them, pass after pass.
    stretches : callable or None
        Returns parts of a run that is known event by event, of about so many units of a cost (a
        function of messages' bytes); None where it is not known.
    dependent : bool
        Whether a step's messages wait for those of the step before, so that no rank runs ahead.
    before : tuple of Phase
        Phases that ranks come from without a barrier.
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
    sends: Callable[[], Sends] | None = None
    passes: float = 1.0
    stretches: Callable[[Callable[[Floats], Floats | Ints], int], Stretches] | None = None
    dependent: bool = False
    before: tuple[Phase, ...] = ()
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
