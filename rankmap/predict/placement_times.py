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
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.quantities import GB
from nidmap.rankmap.pattern.structured import Stencil
from nidmap.rankmap.predict.background import shared_channels
from nidmap.rankmap.predict.constants import hops_by_class
from nidmap.rankmap.predict.job import fit_pattern
from nidmap.rankmap.predict.model import Model, StepLoads
from nidmap.rankmap.predict.phase import Phase

#: What ranks that run ahead may win, of what posting all at once would win. Messages of different
#: steps that meet may lose them as much, and at least a step.
AHEAD = 0.5

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
    bias : float or None
        How many times as full as detours minimal ways may be; None: as the routing has it.
    algorithm : str
    process : float or None
    payload : float
    memory : float or None
    others : bool
    staged : bool
    overlap : tuple of float
        For each placement, 0: its steps follow each other; 1: ranks win by running ahead all that
        they may; -1: they lose by it.
    beside : RunSeconds
        What a recorded run does beside its communication.
    fit : float
        How many times as long as predicted the first placement's communication takes, and as
        short the second's.
    """

    bias: float | None
    algorithm: str
    process: float | None
    payload: float
    memory: float | None
    others: bool = False
    staged: bool = False
    overlap: tuple[float, ...] = (0.0, 0.0)
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
    load : float64 (k,)
        Bytes on them.
    node_link_s : float
        Seconds of the busiest node's own link.
    message : float
        Bytes of the busiest rank.
    """

    times: float
    channels: Ints
    load: Floats
    node_link_s: float
    message: float


@dataclass(frozen=True, slots=True, eq=False)
class _PhaseTimes:
    """The bytes of a phase, together and step by step, and its seconds that bytes do not change."""

    together: _SentAtOnce
    steps: tuple[_SentAtOnce, ...]
    inside: float
    fixed: float
    dependent: bool
    ahead: float


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
        self._phases: dict[tuple[str, bool, float | None], list[_PhaseTimes]] = {}
        self._kept: dict[tuple[float, ...], float] = {}  # few unknowns change the wire
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

    def phases(
        self, algorithm: str, staged: bool = False, bias: float | None = None
    ) -> list[_PhaseTimes]:
        """Return what is sent under an algorithm, and the links that it takes."""
        key = algorithm, staged, bias
        if key not in self._phases:
            model = copy(self.model)
            model.algorithm = algorithm
            pattern = self.pattern
            if staged and isinstance(pattern, Stencil):
                pattern = replace(pattern, staged=True)
            phases = model.phases(self.placement, pattern)
            self._phases[key] = [self._phase(model, phase, bias) for phase in phases]
        return self._phases[key]

    def _phase(self, model: Model, phase: Phase, bias: float | None) -> _PhaseTimes:
        loads = model.loads(phase.total, self.least_channels, bias)
        _, *fixed = model.beyond(phase, hops_by_class(loads, phase.total.total), math.inf)
        steps = [] if phase.steps is None else self._steps(model, phase, bias)
        return _PhaseTimes(
            self._sent(loads, 1.0, phase.sent),
            tuple(self._sent(step.loads, step.times, step.message) for step in steps),
            phase.inside,
            sum(fixed),
            phase.dependent,
            phase.ahead,
        )

    def _steps(self, model: Model, phase: Phase, bias: float | None) -> Iterable[StepLoads]:
        """Return the steps of a phase that are looked at.

        Of a large job, whose steps take long, these are some where they are not sent as is likely;
        with other biases each is as much longer as all bytes at once are.
        """
        channels, large = self.least_channels, len(self.placement.rows) > LARGE
        most = SOME_STEPS if large and model.algorithm != self.model.algorithm else None
        if bias is None or not large:
            return model.step_loads(phase, channels, bias, most)
        likely, other = (
            float(model.loads(phase.total, channels, assumed).used_seconds().max(initial=0.0))
            for assumed in (None, bias)
        )
        longer = other / likely if likely else 1.0
        steps = model.step_loads(phase, channels, most=most)
        return (step._replace(times=step.times * longer) for step in steps)

    def _sent(self, loads: Loads, times: float, message: float) -> _SentAtOnce:
        node_link_s = self.model.own_link_s(loads, self.placement.rows)
        return _SentAtOnce(times, loads.used, loads.carried, node_link_s, message)

    def seconds(self, values: Values, place: int) -> float:
        """Return the seconds under some values of the unknowns, as the `place`-th placement."""
        overlap = values.overlap[place]
        wire = self.others if values.others and self.others is not None else self.wire
        total = self.histogram
        for phase in self.phases(values.algorithm, values.staged, values.bias):
            moved = self._moved(phase, values, wire, overlap)
            if values.memory:
                moved = max(moved, phase.inside / (values.memory * GB))
            total += moved + phase.fixed
        return total / values.fit if place else total * values.fit

    def _moved(self, phase: _PhaseTimes, values: Values, wire: Floats, overlap: float) -> float:
        """Return the seconds in which the network moves a phase's bytes."""
        step_s = [self._longest(sent, values, wire) for sent in phase.steps]
        steps = sum(sent.times * seconds for sent, seconds in zip(phase.steps, step_s, strict=True))
        least = self._longest(phase.together, values, wire)
        if not phase.steps:
            return least
        if phase.dependent:
            return max(steps, least)
        won = AHEAD * max(0.0, steps - least)
        steps -= phase.ahead * max(0.0, steps - least)
        return max(steps - overlap * (won if overlap > 0 else max(won, *step_s)), least)

    def _longest(self, sent: _SentAtOnce, values: Values, wire: Floats) -> float:
        """Return what takes longest: links, a node's own link, or what a rank can send."""
        key = id(sent), id(wire), values.payload
        if key not in self._kept:
            bandwidth = wire[sent.channels] * (values.payload * GB)
            link_s = float((sent.load / bandwidth).max(initial=0.0))
            self._kept[key] = max(link_s, sent.node_link_s)
        rank = sent.message / (values.process * GB) if values.process else 0.0
        return max(self._kept[key], rank)
