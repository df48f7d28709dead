# SPDX-License-Identifier: Apache-2.0
"""A scenario: times placements of one pattern on one machine under given assumptions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import nlargest
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.network import (
    SINGLE_PATH,
    Channels,
    Demand,
    Loads,
    channels,
    loads_of_each,
    routings,
)  # fmt: skip
from nidmap.placement.network.bounds import cut_time
from nidmap.placement.network.channel_loads import injection_bandwidth
from nidmap.placement.network.routes import busiest_link_s
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.placement.support.arrays import sample_evenly
from nidmap.placement.support.quantities import GB
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.pattern import Pattern
from nidmap.rankmap.place_ranks import parse_counts
from nidmap.rankmap.predict.assumptions import Values, likely_values
from nidmap.rankmap.predict.background import Other, others_near, shared_channels
from nidmap.rankmap.predict.constants import (
    Constants,
    histogram_s,
    hops_by_class,
    latency_s,
    machine_constants,
    messages_s,
)
from nidmap.rankmap.predict.job import Job, algorithms, fit_pattern, size_of
from nidmap.rankmap.predict.load_cache import LoadCache
from nidmap.rankmap.predict.phase import Phase
from nidmap.rankmap.predict.phase_cost import PhaseCost, PhaseLoads, Sent, phase_cost
from nidmap.rankmap.predict.phases import most_steps, phases

AModel = TypeVar("AModel", bound="Model")

#: Steps of an exchange whose bytes are divided, or whose messages are followed, together.
DIVIDED = 8


class StepLoads(NamedTuple):
    """A step of a phase, and its load on the links."""

    flows: Traffic  # between the job's nodes, each to itself included
    times: float  # steps that it stands for
    message: float  # bytes of one message
    loads: Loads


@dataclass(frozen=True, eq=False)
class Model:
    """Times one pattern on one machine for many sets of nodes and orders.

    Frozen: `assuming` and `on` return another scenario, which shares what is worked out.
    """

    machine: Machine
    job: Job
    stated: Values | None = None  # assumptions; None means all likely values
    # Maximum number of an all-to-all's steps to compute; None means as many as time permits
    # (`nidmap.rankmap.predict.phases.most_steps`)
    steps: int | None = None
    cache: LoadCache = field(default_factory=LoadCache, repr=False)

    def __post_init__(self) -> None:
        """Read what the job's words name, once."""
        object.__setattr__(self, "job", self.job.settled(self.machine))

    def assuming(self: AModel, **changes: Any) -> AModel:
        """Return the scenario with some assumptions changed."""
        return replace(self, stated=self.values._replace(**changes))

    def on(self: AModel, ppn: int | str | Sequence[int] | None) -> AModel:
        """Return the scenario with other ranks per node."""
        return replace(self, job=self.job.on(ppn))

    @cached_property
    def constants(self) -> Constants:
        """The machine's figures that are not a link's bandwidth."""
        return machine_constants(self.machine)

    @cached_property
    def values(self) -> Values:
        """The assumptions for all unknowns."""
        return self.stated or likely_values(self.machine, self.constants, self.job.algorithm)

    @property
    def pattern(self) -> Pattern:
        """Who sends how much to whom, per direction."""
        return self.job.sent

    @property
    def ppn(self) -> int | str | Sequence[int]:
        """Ranks on each node."""
        return 1 if self.job.ppn is None else self.job.ppn

    @cached_property
    def size(self) -> float:
        """Bytes of a message, or the factor for those of the pattern."""
        return size_of(self.pattern, self.job.bytes)[0]

    @property
    def assumed(self) -> list[str]:
        """Remarks on assumed bytes and on other jobs."""
        words = size_of(self.pattern, self.job.bytes)[1]
        return [note for note in (words, *self.job.notes) if note]

    @property
    def algorithm(self) -> str:
        """The algorithm of an all-to-all or another collective."""
        return self.values.algorithm

    @property
    def mpi(self) -> str:
        """The machine's MPI as its site calls it; '' if unknown."""
        return str(self.machine.topology.parameters.get("mpi", ""))

    @property
    def background(self) -> Sequence[Other]:
        """Jobs that run at the same time."""
        return self.job.others

    @cached_property
    def routing(self) -> str:
        """The machine's routing."""
        return routings(self.machine)[0]

    @property
    def single_path(self) -> bool:
        """Whether every pair of nodes has a single path."""
        return self.routing in SINGLE_PATH

    @cached_property
    def channels(self) -> Channels:
        """The machine's channels, with the payload share of their bandwidth."""
        every = channels(self.machine)
        if self.constants.payload == 1:
            return every
        return replace(every, bandwidth=every.bandwidth * self.constants.payload)

    @cached_property
    def injection(self) -> Floats:
        """GB/s that exchanges reach on every node's own links."""
        return injection_bandwidth(self.machine) * self.constants.reach

    @cached_property
    def nics(self) -> int:
        """The smallest number of interfaces on any node of the machine."""
        return int(np.maximum(1, (self.machine.router >= 0).sum(axis=1)).min(initial=1))

    @cached_property
    def _busy(self) -> Mask:
        busy = np.zeros(len(self.machine), dtype=bool)
        for other in self.background:
            busy[other.rows] = True
        return busy

    def place(self, rows: Ints, order: Ints | None = None) -> Placement:
        """Return the job's ranks on these rows of the machine, in this order.

        `rows` (n,): its nodes, in the order that numbers the slots. `order` (ranks,): slot of
        each rank; None means rank r on slot r.
        """
        rows = np.asarray(rows, dtype=np.int64)
        return Placement.on_rows(self.machine, rows, parse_counts(self.ppn, len(rows)), order)

    def time(self, placement: Placement, below: float = math.inf) -> float:
        """Return the seconds of a placement, nothing else.

        `below`: seconds that it has to stay below: inf is returned as soon as it certainly does
        not.
        """
        left = self.left(placement)
        phases = list(self.phases(placement))
        least = [self._floor(phase) for phase in phases]
        total = self.histogram(placement)
        for done, phase in enumerate(phases):
            at_least = total + math.fsum(least[done:])
            if at_least >= below:
                return math.inf
            total += self.cost(phase, left, below - at_least + least[done]).seconds
        return total if total < below else math.inf

    def cost(self, phase: Phase, left: Channels | None, below: float = math.inf) -> PhaseCost:
        """Return a phase's seconds, split by what they are spent on; see `phase_cost`."""
        loads = self.phase_loads(phase, left)
        return phase_cost(loads, self.constants, self.values, self.nics, below=below)

    def phase_loads(
        self,
        phase: Phase,
        left: Channels | None,
        routing: str = "",
        most: int | None = None,
        *,
        exact: bool = False,
    ) -> PhaseLoads:
        """Return a phase's load on links, nodes and ranks; steps are computed on demand.

        `exact`: whether steps tell links from nodes' own ones, as needed for other values of
        either.
        """
        loads = self.loads(phase.total, left, routing)
        together = self._sent(phase, loads, 1.0, phase.sent)
        hops = hops_by_class(loads, phase.total.total)
        steps: Iterator[Sent] | None = None
        if phase.steps is not None and exact:
            exact_steps = self.step_loads(phase, left, routing, most)
            steps = (
                self._sent(phase, step.loads, step.times, step.message) for step in exact_steps
            )
        elif phase.steps is not None:
            steps = self._sent_in_steps(phase, phase.steps(), left)
        return PhaseLoads(phase, together, steps, hops)

    def _sent(self, phase: Phase, loads: Loads, times: float, message: float) -> Sent:
        """Return the messages sent together, with the seconds of links, nodes and ranks."""
        own_s = self.own_link_s(loads, phase.placement.rows)
        detoured = loads.ways.detoured if loads.ways else 0.0
        return Sent(times, loads.by_share(), detoured, own_s, message)

    def _sent_in_steps(
        self,
        phase: Phase,
        steps: Iterator[tuple[Traffic, float]],
        left: Channels | None,
    ) -> Iterator[Sent]:
        """Yield the steps of a phase, computed batch by batch."""
        for batch in _step_batches(steps, self.routing, self.machine, left is None):
            links_s = self._links_s(phase, batch, left)
            if links_s is None:
                demands = [phase.placement.demand(flows) for flows, _ in batch]
                loaded = zip(self._loads_of(demands, left), batch, strict=True)
                for loads, (flows, times) in loaded:
                    yield self._sent(phase, loads, times, phase.message(flows))
            else:
                for (flows, times), link_s in zip(batch, links_s.tolist(), strict=True):
                    yield Sent(times, np.array([link_s]), 0.0, 0.0, phase.message(flows))

    def floor(self, placement: Placement) -> float:
        """Return the least seconds of a rank order on any nodes with equally fast links."""
        total = self.histogram(placement)
        for phase in self.phases(placement):
            least, posted = self.node_limits(phase)
            total += least + latency_s(phase, {}, self.constants) + posted
        return total

    def _floor(self, phase: Phase) -> float:
        """Return a phase's minimum seconds under any routing: own links, ranks and latency."""
        least, posted = self.node_limits(phase)
        if self.routing == "adaptive":  # no routing is faster, and this costs next to nothing
            least = max(least, cut_time(self.machine, phase.total))
        return least + latency_s(phase, {}, self.constants) + posted

    def node_limits(self, phase: Phase) -> tuple[float, float]:
        """Return a phase's seconds for nodes and ranks, and those to be added to them.

        Seconds of the busiest node's own links, of its busiest rank or of its memory. Seconds in
        which messages are posted, which come on top.
        """
        rows = phase.placement.rows
        own_s = self.own_s(phase.total.out[rows], phase.total.into[rows], rows)
        sent = max(own_s, self.rank_s(phase, phase.sent))
        memory = self.values.memory
        inside = phase.inside / (memory * GB) if memory else 0.0
        return max(sent, inside), messages_s(phase, self.constants, self.nics)

    def phases(self, placement: Placement, pattern: Pattern | None = None) -> Iterator[Phase]:
        """Yield the phases of a placement, for the model's pattern or another that fits."""
        steps = self.steps or most_steps(len(self.channels), placement.ranks, self.routing)
        if pattern is not None:
            return phases(pattern, placement, self.size, self.algorithm, steps)
        return self._phases_of_order(placement, steps)

    def _phases_of_order(self, placement: Placement, steps: int) -> Iterator[Phase]:
        """Yield the phases of the model's own pattern, which depend on the order alone."""
        key = placement.order_key, placement.counts.tobytes(), self.algorithm, self.size, steps
        known = self.cache.find_phases(key)
        if known is None:
            pattern = fit_pattern(self.pattern, placement)
            known = list(phases(pattern, placement, self.size, self.algorithm, steps))
        self.cache.keep_phases(key, known)
        for phase in known:
            yield phase if phase.placement is placement else replace(phase, placement=placement)

    def algorithms(self, pattern: Pattern) -> list[str]:
        """Return the algorithm along each dimension of a pattern fitted to its ranks."""
        return algorithms(pattern, self.algorithm, self.size, self.mpi)

    def left(self, placement: Placement) -> Channels | None:
        """Return the channels with the bandwidth left to this job; None if all of it is."""
        if not self.background:
            return None
        rows = placement.rows
        if self._busy[rows].any():
            others = others_near(self.background, rows)
            shared = shared_channels(self.machine, others, self.routing)
        else:
            if self.cache.shared is None:
                self.cache.shared = shared_channels(self.machine, self.background, self.routing)
            shared = self.cache.shared
        return replace(self.channels, bandwidth=shared.left(self.channels.bandwidth))

    @property
    def routing_stated(self) -> bool:
        """Whether the machine is known to use the routing assumed here."""
        return "routing" in self.machine.topology.parameters

    def loads(
        self,
        demand: Demand,
        left: Channels | None,
        routing: str = "",
    ) -> Loads:
        """Return a demand's load on the channels, relative to the bandwidth left.

        Kept for the last demands: what is judged, predicted and ranged is often the same.

        `left`: as `left` returns them. `routing`: '' is the machine's.
        """
        return self._loads_of([demand], left, routing)[0]

    def step_loads(
        self,
        phase: Phase,
        left: Channels | None,
        routing: str = "",
        most: int | None = None,
    ) -> Iterator[StepLoads]:
        """Yield the steps of a phase in order, with their loads on the links.

        Where bytes are divided, one of the steps that send the same between nodes stands for all.

        `phase`: with steps. `most`: steps that are looked at, at most: an even sample of all.
        """
        assert phase.steps is not None
        routing = routing or self.routing
        steps = phase.steps()
        if most:
            steps = _sample_steps(list(_merge_alike(steps, left is None)), most)
        for batch in _step_batches(steps, routing, self.machine, left is None):
            demands = [phase.placement.demand(flows) for flows, _ in batch]
            step_loads = self._loads_of(demands, left, routing)
            for (flows, times), loads in zip(batch, step_loads, strict=True):
                yield StepLoads(flows, times, phase.message(flows), loads)

    def _loads_of(
        self, demands: list[Demand], left: Channels | None, routing: str = ""
    ) -> list[Loads]:
        """Return the loads of several steps' demands, caching the latest."""
        routing = routing or self.routing
        key = routing, tuple(demand.key for demand in demands)
        step_loads = self.cache.find_loads(key)
        if step_loads is None:
            step_loads = [
                replace(loads, channels=self.channels)
                for loads in loads_of_each(self.machine, demands, routing)
            ]
        self.cache.keep_loads(key, step_loads)
        if left is None:
            return step_loads
        return [replace(loads, channels=left) for loads in step_loads]

    def own_s(self, out: Floats, into: Floats, rows: Ints) -> float:
        """Return the seconds of the busiest own link of some nodes, given as machine rows."""
        return float((np.maximum(out, into) / (self.injection[rows] * GB)).max(initial=0.0))

    def own_link_s(self, loads: Loads, rows: Ints) -> float:
        """Return the seconds of the busiest own link of a job's nodes."""
        return self.own_s(loads.injection[rows], loads.ejection[rows], rows)

    def longest_steps(self, phase: Phase, left: Channels | None, most: int) -> Iterator[StepLoads]:
        """Yield a limited number of the steps that take longest on links, if that is cheap.

        All of them, as `step_loads`, where it takes the loads of all links to tell which they are.
        """
        assert phase.steps is not None
        timed: list[tuple[float, Traffic, float]] = []
        for batch in _step_batches(phase.steps(), self.routing, self.machine, left is None):
            links_s = self._links_s(phase, batch, left)
            if links_s is None:
                yield from self.step_loads(phase, left)
                return
            together = zip(batch, links_s.tolist(), strict=True)
            timed += [(times * step_s, flows, times) for (flows, times), step_s in together]
        for _, flows, times in nlargest(most, timed, key=lambda step: step[0]):
            loads = self.loads(phase.placement.demand(flows), left)
            yield StepLoads(flows, times, phase.message(flows), loads)

    def _links_s(
        self, phase: Phase, batch: list[tuple[Traffic, float]], left: Channels | None
    ) -> Floats | None:
        """Return the busiest link's seconds in some steps, message by message; see `routes`."""
        gbs, steps = (left or self.channels).bandwidth, [flows for flows, _ in batch]
        return busiest_link_s(self.machine, phase.placement.rows, steps, gbs, self.injection)

    def rank_s(self, phase: Phase, size: float) -> float:
        """Return the seconds for one rank to send this many bytes; 0 if nothing limits it."""
        rank_gbs = self.values.process if phase.everyone else self.values.posted
        return size / (rank_gbs * GB) if rank_gbs else 0.0

    def histogram(self, placement: Placement) -> float:
        """Return the seconds for a sort to find its splitters; 0 for any other pattern."""
        if self.pattern.spec != "sort":
            return 0.0
        slowest = float(self.injection[placement.rows].min())
        return histogram_s(placement.ranks, len(placement.rows), slowest, self.constants)


def _step_batches(
    steps: Iterator[tuple[Traffic, float]], routing: str, machine: Machine, alone: bool
) -> Iterator[list[tuple[Traffic, float]]]:
    """Yield steps to compute together; where bytes are split, one of each set of equal steps.

    On links that nobody else uses a step and the same the other way take equally long.
    """
    divided = routing == "adaptive"
    steps = _merge_alike(steps, alone) if divided else steps
    most = DIVIDED if divided or machine.topology.kind == "torus" else 1
    while batch := list(islice(steps, most)):
        yield batch


def _merge_alike(
    steps: Iterator[tuple[Traffic, float]], both_ways: bool
) -> Iterator[tuple[Traffic, float]]:
    """Merge equal steps: each at its first occurrence, with its number of repetitions.

    `steps`: what is sent, and how often. `both_ways`: whether the same sent the other way is
    alike.
    """
    alike: dict[int, tuple[Traffic, float]] = {}
    for flows, times in steps:
        key = flows.key
        if both_ways:
            ends = 1 + int(max(flows.source.max(initial=0), flows.target.max(initial=0)))
            key = min(sent.by_pair(ends).key for sent in (flows, flows.reversed()))
        first, before = alike.get(key, (flows, 0.0))
        alike[key] = first, before + times
    return iter(alike.values())


def _sample_steps(steps: list[tuple[Traffic, float]], most: int) -> Iterator[tuple[Traffic, float]]:
    """Yield a limited sample of steps, each with the number of steps it represents."""
    for place, stands_for in zip(*sample_evenly(len(steps), most), strict=True):
        flows, times = steps[place - 1]
        yield flows, times * stands_for
