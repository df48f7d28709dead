# SPDX-License-Identifier: Apache-2.0
"""The seconds of one placement under any values of what is not known of the machine.

What links carry is worked out once for each way of sending; a value of an unknown then costs
little more than a division.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from nidmap.placement.network import Loads
from nidmap.placement.network.channel_loads import (
    Sending,
    Ways,
    busiest_by_share,
    pay_for_detours,
)
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.quantities import GB
from nidmap.rankmap.pattern.structured import Stencil
from nidmap.rankmap.predict.background import shared_channels
from nidmap.rankmap.predict.constants import hops_by_class
from nidmap.rankmap.predict.job import fit_pattern
from nidmap.rankmap.predict.model import Model, StepLoads, run_ahead
from nidmap.rankmap.predict.phase import Phase

#: Jobs of more nodes are large, and steps of their exchanges that are looked at by values of the
#: unknowns that are not likely.
LARGE, SOME_STEPS = 1024, 2


class RunSeconds(NamedTuple):
    """What a run does beside its communication.

    Attributes
    ----------
    work : float
        Seconds outside MPI that come on top.
    rest : float
        Seconds in MPI that come on top, for other causes: processors that handle messages, ranks
        that come late.
    meanwhile : float
        What passes in part while messages travel, in seconds that it would take alone.
    """

    work: float = 0.0
    rest: float = 0.0
    meanwhile: float = 0.0

    def with_messages(self, communication_s: float) -> float:
        """Return the seconds of the run.

        Examples
        --------
        >>> RunSeconds(1.0, 3.0).with_messages(4.0)
        8.0
        >>> RunSeconds(meanwhile=3.0).with_messages(4.0)
        5.0
        """
        return self.work + self.rest + math.hypot(communication_s, self.meanwhile)


#: Of what is no recorded run.
NOTHING = RunSeconds()


class Values(NamedTuple):
    """One assumption for each figure that is not known of the machine or the library.

    Attributes
    ----------
    loss : float
        What diverting all bytes costs, as a share.
    algorithm : str
    process, posted : float or None
        GB/s of one rank, that sends to everyone or to a few alone.
    payload : float
    reach : float
        Share of nodes' own links that exchanges reach.
    memory : float or None
    hop_ns : float
    others : bool
    staged : bool
    routing : str
        '' is the machine's.
    ahead : tuple of float
        For each placement how far ranks run ahead from step to step, 0 to 1.
    beside : RunSeconds
        What a recorded run does beside its communication.
    fit : float
        How many times as long as predicted the first placement's communication takes, and as
        short the second's.
    """

    loss: float
    algorithm: str
    process: float | None
    posted: float | None
    payload: float
    reach: float
    memory: float | None
    hop_ns: float
    others: bool = False
    staged: bool = False
    routing: str = ""
    ahead: tuple[float, ...] = (0.0, 0.0)
    beside: RunSeconds = NOTHING
    fit: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class _SentAtOnce:
    """Bytes that cross the network at the same time, on channels and on nodes' own links.

    Attributes
    ----------
    times : float
        Steps that it stands for.
    channels : int64 (k,)
        The channels that it uses.
    load : float64 (k,) or Ways
        Bytes on them.
    node_link_s : float
        Seconds of the busiest node's own link.
    message : float
        Bytes of the busiest rank.
    """

    times: float
    channels: Ints
    load: Floats | Ways
    node_link_s: float
    message: float


@dataclass(frozen=True, slots=True, eq=False)
class _PhaseTimes:
    """The bytes of a phase, together and step by step, and its seconds that bytes do not change."""

    together: _SentAtOnce
    steps: tuple[_SentAtOnce, ...]
    inside: float
    fixed: float
    a_hop: float
    dependent: bool
    everyone: bool
    meeting: float


class PlacementTimes:
    """Seconds of one placement under any values of the unknowns.

    Attributes
    ----------
    others : float64 (c,) or None
        What the busy nodes that belong to no known job leave of every channel, GB/s.
    inside : bool
        Whether anything is sent inside a node.
    staging : bool
        Whether the pattern could be sent direction by direction, which nothing says.
    stepwise : bool
        Whether anything is sent in steps that no barrier parts.
    """

    def __init__(self, model: Model, placement: Placement) -> None:
        self.model, self.placement = model, placement
        self.pattern = fit_pattern(model.pattern, placement)
        self.histogram = model.histogram(placement)
        self._phases: dict[tuple[str, bool, str], list[_PhaseTimes]] = {}
        self._by_share: dict[tuple[int, int], Floats] = {}  # few unknowns change the wire
        left = model.left(placement)
        usable = (model.channels if left is None else left).bandwidth
        self.wire = usable / model.constants.payload
        self.others = self._beside_others()
        least = self.wire if self.others is None else self.others
        self.least_channels = replace(model.channels, bandwidth=np.minimum(usable, least))
        phases = self.phases(model.algorithm)
        self.inside = any(phase.inside for phase in phases)
        self.stepwise = any(phase.steps and not phase.dependent for phase in phases)
        self.staging = isinstance(self.pattern, Stencil) and not self.pattern.staged

    def _beside_others(self) -> Floats | None:
        machine = self.model.machine
        busy = machine.compute & ~machine.free
        busy[self.placement.rows] = False
        if busy.sum() < 2:
            return None
        job = self.model.job_on(np.flatnonzero(busy))
        return shared_channels(machine, [job], self.model.routing).left(self.wire)

    def phases(self, algorithm: str, staged: bool = False, routing: str = "") -> list[_PhaseTimes]:
        """Return what is sent under an algorithm, and the links that it takes."""
        key = algorithm, staged, routing
        if key not in self._phases:
            model = copy(self.model)
            model.algorithm = algorithm
            pattern = self.pattern
            if staged and isinstance(pattern, Stencil):
                pattern = replace(pattern, staged=True)
            phases = model.phases(self.placement, pattern)
            self._phases[key] = [self._phase(model, phase, routing) for phase in phases]
        return self._phases[key]

    def _phase(self, model: Model, phase: Phase, routing: str) -> _PhaseTimes:
        loads = model.loads(phase.total, self.least_channels, routing)
        hops = hops_by_class(loads, phase.total.total)
        _, *fixed = model.beyond(phase, hops, math.inf)
        a_hop = phase.in_turn * sum(hops.values()) * 1e-9 if phase.a_node else 0.0
        steps: Iterable[StepLoads] = ()
        if phase.steps is not None:  # of a large job those that are not likely take long
            large = len(self.placement.rows) > LARGE and model.algorithm != self.model.algorithm
            most = SOME_STEPS if large else None
            steps = model.step_loads(phase, self.least_channels, routing, most)
        return _PhaseTimes(
            self._sent(loads, 1.0, phase.sent),
            tuple(self._sent(step.loads, step.times, step.message) for step in steps),
            phase.inside,
            sum(fixed),
            a_hop,
            phase.dependent,
            phase.everyone,
            model.meeting(phase),
        )

    def _sent(self, loads: Loads, times: float, message: float) -> _SentAtOnce:
        node_link_s = self.model.own_link_s(loads, self.placement.rows)
        return _SentAtOnce(times, loads.used, loads.ways or loads.carried, node_link_s, message)

    def seconds(self, values: Values, place: int) -> float:
        """Return the seconds under some values of the unknowns, as the `place`-th placement."""
        ahead = values.ahead[place]
        wire = self.others if values.others and self.others is not None else self.wire
        total = self.histogram
        for phase in self.phases(values.algorithm, values.staged, values.routing):
            moved = self._moved(phase, values, wire, ahead)
            if values.memory:
                moved = max(moved, phase.inside / (values.memory * GB))
            hops_s = phase.a_hop * (values.hop_ns - self.model.constants.hop_ns)
            total += moved + phase.fixed + hops_s
        return total / values.fit if place else total * values.fit

    def _moved(self, phase: _PhaseTimes, values: Values, wire: Floats, ahead: float) -> float:
        """Return the seconds in which the network moves a phase's bytes."""
        rank_gbs = values.process if phase.everyone else values.posted
        step_s = [self._sending(sent, values, wire, rank_gbs).seconds for sent in phase.steps]
        steps = sum(sent.times * seconds for sent, seconds in zip(phase.steps, step_s, strict=True))
        at_once = self._sending(phase.together, values, wire, rank_gbs)
        if not phase.steps:
            return at_once.seconds
        return run_ahead(at_once, steps, 0.0 if phase.dependent else ahead, phase.meeting)

    def _sending(
        self, sent: _SentAtOnce, values: Values, wire: Floats, rank_gbs: float | None
    ) -> Sending:
        """Return how long what is sent at once takes."""
        key = id(sent), id(wire)
        if key not in self._by_share:
            self._by_share[key] = busiest_by_share(sent.load, wire[sent.channels])
        rank_s = sent.message / (rank_gbs * GB) if rank_gbs else 0.0
        cost = values.loss * sent.load.detoured if isinstance(sent.load, Ways) else 0.0
        by_share = self._by_share[key] / values.payload
        node_s = sent.node_link_s * self.model.constants.reach / values.reach
        return pay_for_detours(by_share, max(node_s, rank_s), cost)
