# SPDX-License-Identifier: Apache-2.0
"""What a pattern takes on nodes: the network's loads, and the terms around them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
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
    usual_loss,
)  # fmt: skip
from nidmap.placement.network.bounds import cut_time
from nidmap.placement.network.channel_loads import (
    Sending,
    injection_bandwidth,
    pay_for_detours,
)
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

#: Share of what sending all at once would win that ranks win by running ahead of each other in the
#: steps of an exchange. On mini-Crays none is off by 3.0 % in the median, all by 1.8 %
#: (docs/trust/checked.md); Piz Daint's all-to-all on minimal paths lies half way (De Sensi, 2024).
AHEAD = 0.5

#: How much longer an exchange takes, as a share, where messages of different steps meet on links
#: that are busy all the time and no rank runs ahead; in proportion where they are less busy
#: (Aseeri and others, Table IV).
MEETING = 0.27

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
        self.loss, self.ahead = usual_loss(machine), AHEAD
        self.single_path = self.routing in SINGLE_PATH
        self.injection: Floats = injection_bandwidth(machine) * self.constants.reach
        self.nics = int(np.maximum(1, (machine.router >= 0).sum(axis=1)).min(initial=1))
        self._busy = np.zeros(len(machine), dtype=bool)
        for other in self.background:
            self._busy[other.rows] = True
        self._all: SharedLoads | None = None
        self._crowd = Other(np.zeros(0, dtype=np.int64))
        self._known: dict[tuple[str, tuple[int, ...]], list[Loads]] = {}
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
        sent = max(own_s, self.rank_s(phase, phase.sent))
        memory = self.constants.memory_gbs
        inside = phase.inside / (memory * GB) if memory else 0.0
        return max(sent, inside), messages_s(phase, self.constants, self.nics)

    def _ends_s(self, phase: Phase, flows: Traffic) -> float:
        """Return the seconds of what is sent at once on nodes' own links, and of one rank."""
        rows = phase.placement.rows
        one_rank = phase.sent if phase.steps is None else phase.message(flows)
        own_s = self.own_s(*flows.sent_and_received(len(rows)), rows)
        return max(own_s, self.rank_s(phase, one_rank))

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
        routing: str = "",
    ) -> Loads:
        """Return what a demand puts on the channels, with what is left of their bandwidth.

        Kept for the last demands: what is judged, predicted and ranged is often the same.

        Parameters
        ----------
        demand : Demand
        left : Channels or None
            As `left` returns them.
        routing : str
            '' is the machine's.
        """
        return self._loads_of([demand], left, routing)[0]

    def step_loads(
        self,
        phase: Phase,
        left: Channels | None,
        routing: str = "",
        most: int | None = None,
    ) -> Iterator[StepLoads]:
        """Yield the steps of a phase, one after the other, with the loads of the links in each.

        Where bytes are divided, one of the steps that send the same between nodes stands for all.

        Parameters
        ----------
        phase : Phase
            With steps.
        left, routing
            As for `loads`.
        most : int or None
            Steps that are looked at, at most: an even sample of all.
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
        """Return the loads of several steps' demands; the latest are kept to be asked for again."""
        routing = routing or self.routing
        key = routing, tuple(demand.key for demand in demands)
        step_loads = self._known.pop(key, None)
        if step_loads is None:
            step_loads = [
                replace(loads, channels=self.channels)
                for loads in loads_of_each(self.machine, demands, routing)
            ]
        self._known[key] = step_loads
        numbers = sum(3 * len(loads.used) + len(loads.injection) for loads in step_loads)
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

    def sending(self, loads: Loads, rows: Ints, rank_s: float) -> Sending:
        """Return how long what is sent at once takes.

        Parameters
        ----------
        loads : Loads
        rows : int64 (n,)
            The job's nodes.
        rank_s : float
            Seconds of the busiest rank.
        """
        least_s = max(self.own_link_s(loads, rows), rank_s)
        cost = self.loss * loads.ways.detoured if loads.ways else 0.0
        return pay_for_detours(loads.by_share(), least_s, cost)

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
        rows, rank_s = phase.placement.rows, self.rank_s(phase, phase.sent)
        at_once = self.sending(loads, rows, rank_s)
        name = "link" if at_once.busy == 1 or rank_s <= self.own_link_s(loads, rows) else "process"
        limits = {"process": rank_s, name: at_once.seconds}
        if phase.steps is not None and at_once.seconds < below:
            ahead = 0.0 if phase.dependent else self.ahead
            most_s = at_once.seconds + (below - at_once.seconds) / max(1 - ahead, 1e-9)
            steps_s = self.in_steps(phase, left, most_s)
            limits["steps"] = run_ahead(at_once, steps_s, ahead, self.meeting(phase))
        return limits

    def meeting(self, phase: Phase) -> float:
        """Return how much longer steps take where messages of different ones meet, as a share."""
        return MEETING if self.routing == "adaptive" and not phase.dependent else 0.0

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
                    [
                        self.sending(loads, rows, self.rank_s(phase, phase.message(flows))).seconds
                        for loads, (flows, _) in zip(
                            self._loads_of(demands, left), batch, strict=True
                        )
                    ]
                )
            for (flows, times), link_s in zip(batch, links_s.tolist(), strict=True):
                seconds.append(times * max(self.rank_s(phase, phase.message(flows)), link_s))
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

    def rank_s(self, phase: Phase, size: float) -> float:
        """Return the seconds in which one rank sends so many bytes; 0 where nothing limits it."""
        known = self.constants
        rank_gbs = known.process_gbs if phase.everyone else known.posted_gbs
        return size / (rank_gbs * GB) if rank_gbs else 0.0

    def histogram(self, placement: Placement) -> float:
        """Return the seconds in which a sort finds its splitters; 0 for any other pattern."""
        if self.pattern.spec != "sort":
            return 0.0
        slowest = float(self.injection[placement.rows].min())
        return histogram_s(placement.ranks, len(placement.rows), slowest, self.constants)


def _kept_flows(orders: dict[tuple[Any, ...], list[Phase]]) -> int:
    """Return how many flows some orders have, a phase counting as some too."""
    return sum(1000 + len(phase.traffic) for known in orders.values() for phase in known)


def run_ahead(at_once: Sending, steps_s: float, ahead: float, meeting: float = 0.0) -> float:
    """Return the seconds of steps whose ranks run ahead of each other.

    Parameters
    ----------
    at_once : Sending
        All bytes together.
    steps_s : float
        One step after the other.
    ahead : float
        From 0, none, to 1, as far as sending all at once.
    meeting : float
        How much longer it takes, as a share, where messages meet on links that are always busy
        and no rank runs ahead.

    Examples
    --------
    >>> [round(run_ahead(Sending(2.0, 0.5, 0), 4.0, ahead, 0.2), 2) for ahead in (0.0, 0.5, 1.0)]
    [4.4, 3.15, 2.0]
    """
    won = ahead * max(0.0, steps_s - at_once.seconds)
    longer = 1 + meeting * (1 - ahead) * at_once.busy
    return (max(steps_s, at_once.seconds) - won) * longer


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
