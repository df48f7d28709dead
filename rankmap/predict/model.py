"""What a pattern takes on nodes: the network's loads, and the terms around them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from heapq import nlargest
from itertools import islice
from typing import Any, NamedTuple

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
    usual_bias,
)  # fmt: skip
from nidmap.placement.network.adaptive import guess_each
from nidmap.placement.network.bounds import cut_time
from nidmap.placement.network.channel_loads import injection_bandwidth
from nidmap.placement.network.routes import busiest_link_s
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.arrays import sample_evenly
from nidmap.placement.support.quantities import GB
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.pattern import Pattern
from nidmap.rankmap.place_ranks import parse_counts
from nidmap.rankmap.predict.background import Other, SharedLoads, others_beside, shared_channels
from nidmap.rankmap.predict.constants import (
    histogram_s,
    hops_by_class,
    latency_s,
    machine_constants,
    messages_s,
)
from nidmap.rankmap.predict.job import Job, algorithms, fit_pattern, size_of
from nidmap.rankmap.predict.phase import Phase
from nidmap.rankmap.predict.phases import most_steps, phases

#: Numbers of loads that are kept.
KEPT = 32_000_000

#: Flows between places that are kept of the last orders.
KEPT_FLOWS = 1 << 21

#: Steps of an exchange whose links are looked at for a guess.
GUESSED = 2

#: Steps of an exchange whose bytes are divided, or whose messages are followed, together.
DIVIDED = 4


class StepLoads(NamedTuple):
    """A step of a phase, and what links carry of it.

    Attributes
    ----------
    flows : Traffic
        Between the job's nodes, each to itself included.
    times : float
        Steps that it stands for.
    message : float
        Bytes of one message.
    loads : Loads
    """

    flows: Traffic
    times: float
    message: float
    loads: Loads


class Guess(NamedTuple):
    """About what a placement takes.

    Attributes
    ----------
    seconds : float
    links_s : float
        Of the busiest links alone: what is waited for in steps that nobody has looked at, where
        nodes' own links take as long on other placements too.
    """

    seconds: float
    links_s: float


class Model:
    """Times one pattern on one machine, for one set of nodes and order after another.

    Parameters
    ----------
    machine : Machine
    job : Job

    Attributes
    ----------
    nics : int
        The fewest interfaces that a node of the machine has.
    mpi : str
        The machine's MPI, as its site calls it; '' where nothing says.
    steps : int or None
        Steps of an all-to-all that are looked at, at most; None: as many as
        there is time for (`nidmap.rankmap.predict.phases.most_steps`).

    Raises
    ------
    ParseError, LaunchError
        Other jobs that cannot be read.

    Examples
    --------
    >>> import nidmap
    >>> m = nidmap.load_machine("torus:4x4,bw=1,latency=0")
    >>> one = Model(m, Job("alltoall", 1, 1e9, "at-once"))
    >>> [one.time(one.place(np.array(rows))) for rows in ([0, 1, 2, 3], [0, 1, 4, 5])]
    [3.0, 2.0]
    """

    def __init__(self, machine: Machine, job: Job) -> None:
        self.machine = machine
        self.job = job.settled(machine)
        self.pattern = job.sent
        self.ppn = 1 if job.ppn is None else job.ppn
        self.size, assumed = size_of(job.sent, job.bytes)
        self.assumed = [assumed] if assumed else []
        self.algorithm = job.algorithm
        self.mpi: str = machine.topology.parameters.get("mpi", "")
        self.steps: int | None = None
        self.constants = machine_constants(machine)
        self.background: Sequence[Other] = self.job.others
        self.channels: Channels = channels(machine)
        if self.constants.payload != 1:
            usable = self.channels.bandwidth * self.constants.payload
            self.channels = replace(self.channels, bandwidth=usable)
        self.routing = routings(machine)[0]
        self.single_path = self.routing in SINGLE_PATH
        self.injection: Floats = injection_bandwidth(machine)
        self.nics = int(np.maximum(1, (machine.router >= 0).sum(axis=1)).min(initial=1))
        self._busy = np.zeros(len(machine), dtype=bool)
        for other in self.background:
            self._busy[other.rows] = True
        self._all: SharedLoads | None = None
        self._crowd = Other(np.zeros(0, dtype=np.int64))
        self._known: dict[tuple[str, tuple[int, ...], float | None], list[Loads]] = {}
        self._ends: dict[bytes, list[float]] = {}
        self._orders: dict[tuple[Any, ...], list[Phase]] = {}

    def place(self, rows: Ints, order: Ints | None = None) -> Placement:
        """Return the job's ranks on these rows of the machine, in this order.

        Parameters
        ----------
        rows : int64 (n,)
            Its nodes, in the order that numbers the slots.
        order : int64 (ranks,) or None
            Slot of each rank; None: rank r on slot r.
        """
        rows = np.asarray(rows, dtype=np.int64)
        return Placement.on_rows(self.machine, rows, parse_counts(self.ppn, len(rows)), order)

    def time(self, placement: Placement, below: float = math.inf) -> float:
        """Return the seconds of a placement, and nothing else.

        Parameters
        ----------
        placement : Placement
        below : float
            Seconds that it has to stay below: inf is returned as soon as it certainly does not.
        """
        left = self.left(placement)
        phases = list(self.phases(placement))
        least = [self._floor(phase) for phase in phases]
        total = self.histogram(placement)
        for done, phase in enumerate(phases):
            at_least = total + math.fsum(least[done:])
            if at_least >= below:
                return math.inf
            loads = self.loads(phase.total, left)
            total += sum(self.parts(phase, loads, left, below - at_least + least[done]))
        return total if total < below else math.inf

    def floor(self, placement: Placement) -> float:
        """Return seconds that an order of the ranks takes on any nodes with as fast links."""
        total = self.histogram(placement)
        for phase in self.phases(placement):
            least, _ = self.node_limits(phase)
            total += least + sum(self.beyond(phase, {}, least))
        return total

    def _floor(self, phase: Phase) -> float:
        """Return seconds that a phase takes by any routing: own links, ranks and latency."""
        bandwidth = self._bandwidth_floor(phase)
        return bandwidth + sum(self.beyond(phase, {}, bandwidth))

    def _bandwidth_floor(self, phase: Phase) -> float:
        """Return seconds that nodes, ranks and, where routers adapt, cuts of the network need."""
        least, _ = self.node_limits(phase)
        if self.routing == "adaptive":  # no routing is faster, and this costs next to nothing
            least = max(least, cut_time(self.machine, phase.total))
        return least

    def node_limits(self, phase: Phase) -> tuple[float, float]:
        """Return what nodes and ranks need for a phase on any network, and what comes on top.

        Returns
        -------
        float
            Seconds of the busiest node's own links, of its busiest rank or of its memory.
        float
            Seconds in which messages are posted, which come on top.
        """
        rows = phase.placement.rows
        own_s = self.own_s(phase.total.out[rows], phase.total.into[rows], rows)
        sent = max(own_s, self.process_s(phase.sent))
        memory = self.constants.memory_gbs
        inside = phase.inside / (memory * GB) if memory else 0.0
        return max(sent, inside), messages_s(phase, self.constants, self.nics)

    def guess(self, placement: Placement) -> Guess:
        """Return how long a placement takes where routers adapt, about.

        What nodes, ranks, memory and latency need is all there; what is waited for links beyond
        that is taken from a few steps, their bytes hardly divided. Good enough to say what is worth
        judging first, and for nothing else.
        """
        short = copy(self)
        short.steps = min(GUESSED, self.steps or GUESSED)
        sampled = [
            (number, flows, times)
            for number, phase in enumerate(short.phases(placement))
            for flows, times in phase.exchanges()
        ]
        demands = [placement.demand(flows) for _, flows, _ in sampled]
        carried = guess_each(self.machine, demands, usual_bias(self.machine))
        phases, ends_s = list(self.phases(placement)), self._ends_of_steps_s(placement)
        links_s, waited_s, passed, sent = np.zeros((4, len(phases)))
        for (number, flows, times), demand, links in zip(sampled, demands, carried, strict=True):
            wire_s, passing = links
            link_s = wire_s / self.constants.payload
            links_s[number] += times * link_s
            waited_s[number] += times * max(0.0, link_s - self._ends_s(phases[number], flows))
            passed[number] += times * passing
            sent[number] += times * demand.total
        hops = passed / np.where(sent > 0, sent, 1.0)
        about_s = self.histogram(placement)
        for phase, end_s, link_s, hop in zip(phases, ends_s, waited_s, hops, strict=True):
            bandwidth = max(self._bandwidth_floor(phase), end_s + float(link_s))
            about_s += bandwidth + sum(self.beyond(phase, {"": float(hop)}, bandwidth))
        return Guess(about_s, float(links_s.sum()))

    def _ends_of_steps_s(self, placement: Placement) -> list[float]:
        """Return `_ends_s` of all steps of each phase together; alike on nodes with like links."""
        order = b"" if placement.order is None else placement.order.tobytes()
        key = order + b"|" + self.injection[placement.rows].tobytes()
        if key not in self._ends:
            self._ends[key] = [
                math.fsum(times * self._ends_s(phase, flows) for flows, times in phase.exchanges())
                for phase in self.phases(placement)
            ]
        return self._ends[key]

    def _ends_s(self, phase: Phase, flows: Traffic) -> float:
        """Return the seconds of what is sent at once on nodes' own links, and of one rank."""
        rows = phase.placement.rows
        one_rank = phase.sent if phase.steps is None else phase.message(flows)
        own_s = self.own_s(*flows.sent_and_received(len(rows)), rows)
        return max(own_s, self.process_s(one_rank))

    def phases(self, placement: Placement, pattern: Pattern | None = None) -> Iterator[Phase]:
        """Yield the phases on a placement of the model's pattern, or of another one that fits."""
        steps = self.steps or most_steps(len(self.channels), placement.ranks, self.routing)
        if pattern is not None:
            return phases(pattern, placement, self.size, self.algorithm, steps)
        return self._phases_of_order(placement, steps)

    def _phases_of_order(self, placement: Placement, steps: int) -> Iterator[Phase]:
        """Yield the model's own phases: what places send each other hangs on the order alone."""
        order = b"" if placement.order is None else placement.order.tobytes()
        key = order, placement.counts.tobytes(), self.algorithm, self.size, steps
        known = self._orders.pop(key, None)
        if known is None:
            pattern = fit_pattern(self.pattern, placement)
            known = list(phases(pattern, placement, self.size, self.algorithm, steps))
        self._orders[key] = known
        while len(self._orders) > 1 and _kept_flows(self._orders) > KEPT_FLOWS:
            del self._orders[next(iter(self._orders))]
        for phase in known:
            yield phase if phase.placement is placement else replace(phase, placement=placement)

    def algorithms(self, pattern: Pattern) -> list[str]:
        """Return the algorithm along each dimension of a pattern that is fitted to its ranks."""
        return algorithms(pattern, self.algorithm, self.size, self.mpi)

    def left(self, placement: Placement) -> Channels | None:
        """Return the channels with the bandwidth left to this job; None where all of it is."""
        if not self.background:
            return None
        rows = placement.rows
        if self._busy[rows].any():
            shared = shared_channels(
                self.machine, others_beside(self.background, rows), self.routing
            )
        else:
            if self._all is None:
                self._all = shared_channels(self.machine, self.background, self.routing)
            shared = self._all
        return replace(self.channels, bandwidth=shared.left(self.channels.bandwidth))

    def job_on(self, rows: Ints) -> Other:
        """Return the job that busy nodes are taken for where nobody says what runs there.

        The last one is kept, with its loads: what a search compares leaves the same nodes busy.
        """
        if not np.array_equal(self._crowd.rows, rows):
            self._crowd = Other(rows)
        return self._crowd

    @property
    def routing_stated(self) -> bool:
        """Whether the machine is known to route as it does here."""
        return "routing" in self.machine.topology.parameters

    def loads(
        self,
        demand: Demand,
        left: Channels | None,
        bias: float | None = None,
    ) -> Loads:
        """Return what a demand puts on the channels, with what is left of their bandwidth.

        Kept for the last demands: what is judged, predicted and ranged is often the same.

        Parameters
        ----------
        demand : Demand
        left : Channels or None
            As `left` returns them.
        bias : float or None
            As for `nidmap.placement.network.loads`; where one is given routing is adaptive.
        """
        return self._loads_of([demand], left, bias)[0]

    def step_loads(
        self,
        phase: Phase,
        left: Channels | None,
        bias: float | None = None,
        most: int | None = None,
    ) -> Iterator[StepLoads]:
        """Yield the steps of a phase, one after the other, with the loads of the links in each.

        Where bytes are divided, one of the steps that send the same between nodes stands for all.

        Parameters
        ----------
        phase : Phase
            With steps.
        left, bias
            As for `loads`.
        most : int or None
            Steps that are looked at, at most: an even sample of all.
        """
        assert phase.steps is not None
        routing = self.routing if bias is None else "adaptive"
        steps = phase.steps()
        if most:
            steps = _sample_steps(list(_merge_alike(steps, left is None)), most)
        for batch in _step_batches(steps, routing, self.machine, left is None):
            demands = [phase.placement.demand(flows) for flows, _ in batch]
            step_loads = self._loads_of(demands, left, bias)
            for (flows, times), loads in zip(batch, step_loads, strict=True):
                yield StepLoads(flows, times, phase.message(flows), loads)

    def _loads_of(
        self, demands: list[Demand], left: Channels | None, bias: float | None = None
    ) -> list[Loads]:
        """Return the loads of several steps' demands; the latest are kept to be asked for again."""
        routing = self.routing if bias is None else "adaptive"
        key = routing, tuple(demand.key for demand in demands), bias
        step_loads = self._known.pop(key, None)
        if step_loads is None:
            step_loads = [
                replace(loads, channels=self.channels)
                for loads in loads_of_each(self.machine, demands, routing, bias)
            ]
        self._known[key] = step_loads
        numbers = sum(len(loads.used) + len(loads.injection) for loads in step_loads)
        while len(self._known) > 1 and len(self._known) * numbers > KEPT:  # others are about alike
            del self._known[next(iter(self._known))]
        if left is None:
            return step_loads
        return [replace(loads, channels=left) for loads in step_loads]

    def own_s(self, out: Floats, into: Floats, rows: Ints) -> float:
        """Return the seconds of the busiest own link of some nodes, by rows of the machine."""
        return float((np.maximum(out, into) / (self.injection[rows] * GB)).max(initial=0.0))

    def own_link_s(self, loads: Loads, rows: Ints) -> float:
        """Return the seconds of the busiest own link of a job's nodes."""
        return self.own_s(loads.injection[rows], loads.ejection[rows], rows)

    def _longest(self, loads: Loads, rows: Ints) -> float:
        """Return the seconds of the busiest channel or node link."""
        return float(max(self.own_link_s(loads, rows), loads.used_seconds().max(initial=0.0)))

    def parts(
        self, phase: Phase, loads: Loads, left: Channels | None, below: float = math.inf
    ) -> tuple[float, float, float, float]:
        """Return the seconds of bandwidth, and of `beyond`, of a phase.

        Parameters
        ----------
        phase : Phase
        loads : Loads
            Of all its bytes, as `loads` returns them.
        left : Channels or None
            As `left` returns them.
        below : float
            Seconds beyond which nobody asks how long it takes: some that are no less are returned.
        """
        bandwidth = max(self.limits(phase, loads, left, below).values())
        hops = hops_by_class(loads, phase.total.total)
        return (bandwidth, *self.beyond(phase, hops, bandwidth))

    def beyond(
        self, phase: Phase, hops: dict[str, float], bandwidth: float
    ) -> tuple[float, float, float]:
        """Return seconds beyond `bandwidth`: of memory, of latency and of posting messages.

        Parameters
        ----------
        phase : Phase
        hops : dict of str to float
            Links of each class that a byte passes, as `hops_by_class` returns them.
        bandwidth : float
        """
        memory = self.constants.memory_gbs
        inside = phase.inside / (memory * GB) if memory else 0.0
        return (
            max(0.0, inside - bandwidth),
            latency_s(phase, hops, self.constants),
            messages_s(phase, self.constants, self.nics),
        )

    def limits(
        self, phase: Phase, loads: Loads, left: Channels | None, below: float = math.inf
    ) -> dict[str, float]:
        """Return the seconds of a phase by each limit of bandwidth; the longest counts.

        ``link`` is the busiest channel or node link of all bytes, ``process``
        what one rank can send, ``steps`` all steps, each as long as its own
        busiest link or its message takes, less what ranks win that run ahead. Steps
        take no less together than all of their bytes at once, so they are not looked at where
        these take `below` seconds.
        """
        rows = phase.placement.rows
        limits = {"link": self._longest(loads, rows), "process": self.process_s(phase.sent)}
        least = max(limits.values())
        if phase.steps is not None and least < below:
            steps_s = self.in_steps(phase, left, below if not phase.ahead else math.inf)
            limits["steps"] = steps_s - phase.ahead * max(0.0, steps_s - least)
        return limits

    def in_steps(
        self,
        phase: Phase,
        left: Channels | None,
        below: float = math.inf,
    ) -> float:
        """Return the seconds of a phase's steps: each of its busiest channel, node or rank.

        Parameters
        ----------
        phase : Phase
            With steps.
        left : Channels or None
            As `left` returns them.
        below : float
            Seconds that are enough: inf is returned where nodes' own links need so many for what
            is not looked at yet.
        """
        assert phase.steps is not None
        seconds: list[float] = []
        batches: Iterable[list[tuple[Traffic, float]]]
        batches = _step_batches(phase.steps(), self.routing, self.machine, left is None)
        least_s: list[float] = []  # of what is still to come, the next last
        if self.routing == "adaptive" and below < math.inf:
            batches = list(batches)
            least_s = [
                math.fsum(times * self._ends_s(phase, flows) for flows, times in batch)
                for batch in reversed(batches)
            ]
        for batch in batches:
            if math.fsum(seconds + least_s) >= below:
                return math.inf
            del least_s[-1:]
            links_s = self._links_s(phase, batch, left)
            if links_s is None:
                demands = [phase.placement.demand(flows) for flows, _ in batch]
                rows = phase.placement.rows
                links_s = np.array(
                    [self._longest(loads, rows) for loads in self._loads_of(demands, left)]
                )
            for (flows, times), link_s in zip(batch, links_s.tolist(), strict=True):
                seconds.append(times * max(self.process_s(phase.message(flows)), link_s))
        return math.fsum(seconds)

    def longest_steps(self, phase: Phase, left: Channels | None, most: int) -> Iterator[StepLoads]:
        """Yield the steps that links take longest for, at most so many, where that costs little.

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
        """Return the busiest link's seconds of some steps, message by message; see `routes`."""
        gbs, steps = (left or self.channels).bandwidth, [flows for flows, _ in batch]
        return busiest_link_s(self.machine, phase.placement.rows, steps, gbs, self.injection)

    def process_s(self, size: float) -> float:
        """Return the seconds in which one rank sends so many bytes; 0 where nothing limits it."""
        process_gbs = self.constants.process_gbs
        return size / (process_gbs * GB) if process_gbs else 0.0

    def histogram(self, placement: Placement) -> float:
        """Return the seconds in which a sort finds its splitters; 0 for any other pattern."""
        if self.pattern.spec != "sort":
            return 0.0
        slowest = float(self.injection[placement.rows].min())
        return histogram_s(placement.ranks, len(placement.rows), slowest, self.constants)


def _kept_flows(orders: dict[tuple[Any, ...], list[Phase]]) -> int:
    """Return how many flows some orders have, a phase counting as some too."""
    return sum(1000 + len(phase.traffic) for known in orders.values() for phase in known)


def _step_batches(
    steps: Iterator[tuple[Traffic, float]], routing: str, machine: Machine, alone: bool
) -> Iterator[list[tuple[Traffic, float]]]:
    """Yield steps that are worked out together; where bytes are divided, of those alike one.

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
    """Return each different step once, where it comes first, and for how many steps it stands.

    Parameters
    ----------
    steps : iterator of (Traffic, float)
        What is sent, and how often.
    both_ways : bool
        Whether the same sent the other way is alike.

    Examples
    --------
    >>> ring = Traffic.of(np.arange(3), np.array([1, 2, 0]), 8.0)
    >>> steps = [(ring, 2.0), (ring.reversed(), 1.0), (ring, 3.0)]
    >>> [[times for _, times in _merge_alike(iter(steps), both)] for both in (False, True)]
    [[5.0, 1.0], [6.0]]
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
    """Yield at most so many of some steps, each for those that are not looked at too."""
    for place, stands_for in zip(*sample_evenly(len(steps), most), strict=True):
        flows, times = steps[place - 1]
        yield flows, times * stands_for
