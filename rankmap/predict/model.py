# SPDX-License-Identifier: Apache-2.0
"""A scenario: times placements of one pattern on one machine under given assumptions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

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
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.quantities import GB
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.pattern import Pattern
from nidmap.rankmap.pattern.graph import Graph
from nidmap.rankmap.pattern.structured import Stencil
from nidmap.rankmap.place_ranks import parse_counts
from nidmap.rankmap.predict.background import Other, others_near, shared_channels
from nidmap.rankmap.predict.constants import Constants, histogram_s, machine_constants
from nidmap.rankmap.predict.job import Job, algorithms, fit_pattern, size_of
from nidmap.rankmap.predict.load_cache import LoadCache
from nidmap.rankmap.predict.phase import Phase
from nidmap.rankmap.predict.phase_cost import (
    IDLE,
    PhaseCost,
    PhaseLoads,
    Sent,
    hops_by_class,
    phase_cost,
)
from nidmap.rankmap.predict.phases import most_steps, phases
from nidmap.rankmap.recording import Recording

AModel = TypeVar("AModel", bound="Model")

#: Steps of an exchange whose bytes are divided, or whose messages are followed, together.
DIVIDED = 8

#: Jobs of more nodes are large, and steps of their exchanges that are looked at by an algorithm
#: that is not the likely one.
LARGE, SOME_STEPS = 1024, 2


@dataclass(frozen=True, eq=False)
class Model:
    """Times one pattern on one machine for many sets of nodes and orders.

    Frozen: `assuming` and `on` return another scenario, which shares what is worked out.
    """

    machine: Machine
    job: Job
    stated: Constants | None = None  # what is assumed; None means what the machine makes likely
    # Maximum number of an all-to-all's steps to compute; None means as many as time permits
    # (`nidmap.rankmap.predict.phases.most_steps`)
    steps: int | None = None
    cache: LoadCache = field(default_factory=LoadCache, repr=False)

    def __post_init__(self) -> None:
        """Read what the job's words name, once."""
        object.__setattr__(self, "job", self.job.settled(self.machine))

    def assuming(self: AModel, **changes: Any) -> AModel:
        """Return the scenario with some assumptions changed."""
        return replace(self, stated=replace(self.constants, **changes))

    def on(self: AModel, ppn: int | str | Sequence[int] | None) -> AModel:
        """Return the scenario with other ranks per node."""
        return replace(self, job=self.job.on(ppn))

    @cached_property
    def constants(self) -> Constants:
        """The figures assumed, for constants and unknowns alike."""
        return self.stated or machine_constants(self.machine)

    @property
    def pattern(self) -> Pattern:
        """Who sends how much to whom, per direction."""
        return self.job.sent

    @property
    def recording(self) -> Recording | None:
        """The recorded program whose messages are sent; None for any other pattern."""
        return self.pattern.recording if isinstance(self.pattern, Graph) else None

    @cached_property
    def size(self) -> float:
        """Bytes of a message, or the factor for those of the pattern."""
        return size_of(self.pattern, self.job.bytes)[0]

    @property
    def algorithm(self) -> str:
        """The algorithm of an all-to-all or another collective."""
        return self.constants.algorithm or self.job.algorithm

    @property
    def mpi(self) -> str:
        """The machine's MPI as its site calls it; '' if unknown."""
        return str(self.machine.topology.parameters.get("mpi", ""))

    @cached_property
    def routing(self) -> str:
        """The routing of the job's messages."""
        return self.constants.routing or routings(self.machine)[0]

    @property
    def may_adapt(self) -> bool:
        """Whether routers may adapt where the routing, which nothing states, does not."""
        stated = "routing" in self.machine.topology.parameters
        return not stated and self.routing != "adaptive" and "adaptive" in routings(self.machine)

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

    def place(self, rows: Ints, order: Ints | None = None) -> Placement:
        """Return the job's ranks on these rows of the machine, in this order.

        `rows` (n,): its nodes, in the order that numbers the slots. `order` (ranks,): slot of
        each rank; None means rank r on slot r.
        """
        rows, ppn = np.asarray(rows, dtype=np.int64), self.job.ppn
        counts = parse_counts(1 if ppn is None else ppn, len(rows))
        return Placement.on_rows(self.machine, rows, counts, order)

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
        return phase_cost(self.phase_loads(phase, left), self.constants, below)

    def phase_loads(self, phase: Phase, left: Channels | None) -> PhaseLoads:
        """Return a phase's load on links, nodes and ranks; steps are computed on demand."""
        loads = self.loads(phase.total, left)
        together = self._sent(phase, loads, 1.0, phase.sent, phase.traffic)
        steps = None if phase.steps is None else self.steps_of(phase, left)
        return PhaseLoads(phase, together, steps, hops_by_class(loads, phase.total.total))

    def steps_of(self, phase: Phase, left: Channels | None) -> Iterator[Sent]:
        """Yield the steps of a phase, computed batch by batch; on tori without all links' loads."""
        assert phase.steps is not None
        divided = self.routing == "adaptive" or self.machine.topology.kind == "torus"
        gbs, rows, steps = (left or self.channels).bandwidth, phase.placement.rows, phase.steps()
        while batch := list(islice(steps, DIVIDED if divided else 1)):
            flows = [sent for sent, _ in batch]
            links_s = busiest_link_s(self.machine, rows, flows, gbs, self.injection)
            if links_s is None:
                demands = [phase.placement.demand(sent) for sent in flows]
                for loads, (sent, times) in zip(self._loads_of(demands, left), batch, strict=True):
                    yield self._sent(phase, loads, times, phase.message(sent), sent)
                continue
            for (sent, times), link_s in zip(batch, links_s * self.constants.payload, strict=True):
                yield Sent(times, IDLE + link_s, 0.0, 0.0, phase.message(sent), sent)

    def _sent(
        self, phase: Phase, loads: Loads, times: float, message: float, flows: Traffic
    ) -> Sent:
        """Return messages sent together, with the seconds of links and nodes."""
        by_share = loads.by_share() * self.constants.payload
        detoured = loads.ways.detoured if loads.ways else 0.0
        own_s = self.own_link_s(loads, phase.placement.rows) * self.constants.reach
        return Sent(times, by_share, detoured, own_s, message, flows, loads)

    def floor(self, placement: Placement) -> float:
        """Return the least seconds of a rank order on any nodes with equally fast links."""
        least = [self.least(phase).seconds for phase in self.phases(placement)]
        return self.histogram(placement) + sum(least)

    def _floor(self, phase: Phase) -> float:
        """Return a phase's minimum seconds under any routing: own links, ranks and latency."""
        adapts = self.routing == "adaptive"  # no routing is faster, and this costs next to nothing
        return self.least(phase, cut_time(self.machine, phase.total) if adapts else 0.0).seconds

    def least(self, phase: Phase, links_s: float = 0.0) -> PhaseCost:
        """Return the seconds of a phase sent at once over links that take this long."""
        rows = phase.placement.rows
        own_s = self.own_s(phase.total.out[rows], phase.total.into[rows], rows)
        sent = Sent(1.0, IDLE + links_s, 0.0, own_s * self.constants.reach, phase.sent)
        return phase_cost(PhaseLoads(phase, sent, None, {}), self.constants)

    def phases(self, placement: Placement) -> Iterator[Phase]:
        """Yield the phases of a placement; but for its nodes they depend on the order alone."""
        order = placement.order_key, placement.counts.tobytes()
        sent = self.algorithm, self.size, self.constants.staged, self._most_steps(placement)
        known = self.cache.phases.get(
            (*order, *sent), lambda: self.make_phases(placement), _count_numbers
        )
        for phase in known:
            yield phase if phase.placement is placement else replace(phase, placement=placement)

    def make_phases(self, placement: Placement) -> list[Phase]:
        """Return the phases of a placement anew; they are not kept."""
        pattern, most = fit_pattern(self.pattern, placement), self._most_steps(placement)
        if self.constants.staged and isinstance(pattern, Stencil):
            pattern = replace(pattern, staged=True)
        return list(phases(pattern, placement, self.size, self.algorithm, most))

    def _most_steps(self, placement: Placement) -> int:
        return self.steps or most_steps(len(self.channels), placement.ranks, self.routing)

    def algorithms(self, pattern: Pattern) -> list[str]:
        """Return the algorithm along each dimension of a pattern fitted to its ranks."""
        return algorithms(pattern, self.algorithm, self.size, self.mpi)

    def crowd(self, placement: Placement) -> Ints:
        """Return the busy nodes that belong to no known job, (n,) rows: none where jobs are."""
        busy = self.machine.compute & ~self.machine.free
        busy[placement.rows] = False
        return np.flatnonzero(busy & (not self.job.others))

    def left(self, placement: Placement) -> Channels | None:
        """Return the channels with the bandwidth left to this job; None if all of it is."""
        ours = np.zeros(len(self.machine), dtype=bool)
        ours[placement.rows] = True
        others, key = others_near(self.job.others, ours), None
        if self.constants.others:
            crowd = self.crowd(placement)
            others, key = [Other(crowd)], crowd.tobytes()
        if not others:
            return None
        routing = routings(self.machine)[0]  # theirs is the machine's own
        shared = self.cache.shared.get(
            key or tuple(others),
            lambda: shared_channels(self.machine, others, routing),
            lambda _: 1,
        )
        return replace(self.channels, bandwidth=shared.left(self.channels.bandwidth))

    def loads(self, demand: Demand, left: Channels | None) -> Loads:
        """Return a demand's load on the channels, relative to the bandwidth left.

        Kept for the last demands: what is judged, predicted and ranged is often the same.

        `left`: as `left` returns them.
        """
        return self._loads_of([demand], left)[0]

    def _loads_of(self, demands: list[Demand], left: Channels | None) -> list[Loads]:
        """Return the loads of several steps' demands, caching the latest."""

        def make() -> list[Loads]:
            return list(loads_of_each(self.machine, demands, self.routing))

        key = self.routing, tuple(demand.key for demand in demands)
        step_loads = self.cache.loads.get(key, make, _count_loads)
        return [replace(loads, channels=left or self.channels) for loads in step_loads]

    def own_s(self, out: Floats, into: Floats, rows: Ints) -> float:
        """Return the seconds of the busiest own link of some nodes, given as machine rows."""
        return float((np.maximum(out, into) / (self.injection[rows] * GB)).max(initial=0.0))

    def own_link_s(self, loads: Loads, rows: Ints) -> float:
        """Return the seconds of the busiest own link of a job's nodes."""
        return self.own_s(loads.injection[rows], loads.ejection[rows], rows)

    def histogram(self, placement: Placement) -> float:
        """Return the seconds for a sort to find its splitters; 0 for any other pattern."""
        if self.pattern.spec != "sort":
            return 0.0
        slowest = float(self.injection[placement.rows].min())
        return histogram_s(placement.ranks, len(placement.rows), slowest, self.constants)


class Timed:
    """One placement, and its seconds under any assumptions.

    What links carry is worked out once for each way of sending; another figure then costs little
    more than a division.
    """

    def __init__(self, model: Model, placement: Placement) -> None:
        self.model, self.placement = model, placement
        self._known: dict[tuple[str, str, bool, bool], list[PhaseLoads]] = {}

    @property
    def phases(self) -> list[Phase]:
        """What is sent as is likely."""
        return [loads.phase for loads in self._loads(self.model.constants)]

    def seconds(self, assumed: Constants) -> float:
        """Return the seconds under some assumptions."""
        costs = (phase_cost(loads, assumed).seconds for loads in self._loads(assumed))
        return sum(costs, self.model.histogram(self.placement)) * assumed.fit

    def _loads(self, assumed: Constants) -> list[PhaseLoads]:
        """Return the loads of links as messages are sent under some assumptions."""
        key = assumed.algorithm, assumed.routing, assumed.staged, assumed.others
        if key not in self._known:
            model = replace(self.model, stated=assumed)
            if assumed.algorithm and len(self.placement.rows) > LARGE:
                model = replace(model, steps=SOME_STEPS)
            left = model.left(self.placement)
            every = (model.phase_loads(phase, left) for phase in model.phases(self.placement))
            self._known[key] = [
                replace(loads, steps=None if loads.steps is None else tuple(loads.steps))
                for loads in every
            ]
        return self._known[key]


def _count_loads(step_loads: list[Loads]) -> int:
    """Return how many numbers some loads have."""
    return sum(3 * len(loads.used) + len(loads.injection) for loads in step_loads)


def _count_numbers(phases: list[Phase]) -> int:
    """Return about how many numbers some phases hold: of their flows and of the machine's nodes."""
    sent = [phase.traffic for phase in phases]
    flows = sum(len(traffic) + len(traffic.all_to_alls.end) for traffic in sent)
    return 4 * flows + sum(2 * len(phase.total.out) for phase in phases)
