# SPDX-License-Identifier: Apache-2.0
"""How long jobs communicate on a network that they share.

A job's *footprint* is what it puts on the links, phase by phase. Where packets have one way to each
node (`SINGLE_PATH`), and on a torus, it has every link, with the bytes that the predictor routes
over it. Elsewhere nothing is routed, as in `nidmap.rankmap.past_jobs.quick_cost`: it has the links
that leave each group, chassis, router …, and those that join two of them.

Jobs that send over a link at the same time share it equally, and each computes in between: a closed
network of queues in which every job is a customer. Their times are worked out from mean values
(Reiser and Lavenberg, J. ACM 27(2), 1980): a job finds as many others on a link as are there on the
average, takes that many times longer, and is there itself for a larger part of its round. So jobs
that slow each other down come less often, and no link is shared by more jobs than use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.machine import Machine
from nidmap.placement.network import SINGLE_PATH, channels, loads
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.arrays import add_by_key
from nidmap.placement.support.quantities import GB
from nidmap.rankmap.past_jobs import quick_choices
from nidmap.rankmap.past_jobs.quick_cost import (
    QuickCost,
    QuickPhase,
    diverted_time,
    unit_bandwidths,
    unit_loads,
)
from nidmap.rankmap.predict import Job, Predictor

#: Links that take a smaller part of the time of a phase's busiest one are never waited for.
_SLACK = 1 / 8

#: Turns in which the jobs' slowdowns settle, and the relative change below which they have.
_TURNS, _ALIKE = 8, 1e-3

_ANY = "stencil:auto"


class JobTraffic(NamedTuple):
    """What a job sends: pattern, ranks per node, bytes of a message, share of its time."""

    pattern: str
    ppn: int
    bytes: float | None
    share: float

    def pace(self, slowdown: float) -> float:
        """Return its run time relative to that alone on the best nodes."""
        return 1 - self.share + self.share * slowdown


class Footprint(NamedTuple):
    """The load of one job on links."""

    # links: (m,) all links, once each, ascending, `Network.nowhere` last
    links: Ints
    busy: Floats  # (m,) seconds of each in a round, in all phases together, if it has no other jobs
    # place: (k,) in `links`, of those that may be waited for, segment by segment; two segments a
    # phase, the first of links that leave units, the second of links that join two, each after
    # `Network.nowhere`
    place: Ints
    seconds: Floats  # (k,) of each in its phase
    size: Ints  # (2 p,), links of each segment
    # phases: (3, p) seconds of each on any network, those that come on top, `meeting` as of a
    # `QuickPhase`
    phases: Floats
    best: float  # seconds of a round alone on the best nodes of an empty machine


class Network:
    """Computes footprints of jobs on one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._costs: dict[tuple[str, int, float | None], QuickCost] = {}
        self._best: dict[tuple[int, QuickCost], float] = {}
        cost = self.cost(JobTraffic(_ANY, 1, None, 0.0))
        if cost.timeless:
            raise UsageError(
                f"no time can be told on {machine.name}: {cost.timeless}",
                "state them in a site file (docs/howto/new-site.md), or compare waits alone: "
                "--shares 0 --policies slurm,tree",
            )
        self.routed = machine.topology.kind == "torus" or cost.model.routing in SINGLE_PATH
        self.loss = cost.model.constants.loss
        self.adaptive = cost.model.routing == "adaptive" and not self.routed
        bandwidth = channels(machine).bandwidth if self.routed else unit_bandwidths(machine)
        self.bandwidth: Floats = np.append(bandwidth, np.inf)
        self.nowhere = len(bandwidth)  # a link that takes no time
        self._idle = Sharing(self)

    def cost(self, app: JobTraffic) -> QuickCost:
        """Return the function that gives the time of a job alone."""
        key = app.pattern, app.ppn, app.bytes
        if key not in self._costs:
            self._costs[key] = QuickCost(Predictor(self.machine, Job(*key)))
        return self._costs[key]

    def best(self, app: JobTraffic, count: int) -> float:
        """Return the seconds of a round on the best nodes of an empty machine."""
        cost = self.cost(app)
        if (count, cost) not in self._best:
            choices = quick_choices(self.machine, self.machine.compute, count)
            self._best[count, cost] = 1.0  # while the choices are compared with it
            times = [self._idle.slowdown(self.footprint(app, rows)) for _, rows in choices]
            self._best[count, cost] = max(min(times), 1e-300)  # 0: nothing takes time
        return self._best[count, cost]

    def footprint(self, app: JobTraffic, rows: Ints) -> Footprint:
        """Return the load of a job on the links of these nodes."""
        cost = self.cost(app)
        phases = cost.phases(rows)
        segments = [part for phase in phases for part in self._segments(cost, phase, rows)]
        links, place = np.unique(
            np.concatenate([[self.nowhere], *(where for where, _ in segments)]), return_inverse=True
        )
        busy, pieces, end = np.zeros(len(links)), [], 1
        for k, (where, amount) in enumerate(segments):
            begin, end = end, end + len(where)
            seconds = amount / self.bandwidth[where]
            busy[place[begin:end]] += seconds
            kept = seconds >= max(phases[k // 2].least, seconds.max(initial=0.0)) * _SLACK
            pieces.append(np.array([[place[0]], [0.0]]))
            pieces.append(np.stack([place[begin:end], seconds])[:, kept])
        table = np.concatenate(pieces, axis=1)
        return Footprint(
            links, busy, table[0].astype(np.int64), table[1],
            np.array([1 + piece.shape[1] for piece in pieces[1::2]]),
            np.array([(phase.least, phase.posted, phase.meeting) for phase in phases]).T,
            self.best(app, len(rows)),
        )  # fmt: skip

    def seconds(self, footprint: Footprint, stretch: Floats) -> Floats:
        """Return the seconds of each phase; `stretch` (m,): how many times as long links take."""
        waited = footprint.seconds * stretch[footprint.place]
        busiest = np.maximum.reduceat(waited, np.cumsum(footprint.size) - footprint.size)
        cut, direct = busiest[0::2], busiest[1::2]
        least, posted, meeting = footprint.phases
        least = np.maximum(cut, least)
        if self.adaptive:
            direct = diverted_time(cut, least, direct, self.loss, meeting)
        seconds: Floats = np.maximum(direct, least) + posted
        return seconds

    def _segments(
        self, cost: QuickCost, phase: QuickPhase, rows: Ints
    ) -> list[tuple[Ints, Floats]]:
        """Return links and GB of a phase: those that leave units, and those that join two."""
        if self.routed:
            placement = cost.model.place(rows)
            routed = loads(self.machine, placement.demand(phase.traffic), cost.model.routing)
            return [(routed.used, routed.carried / GB), (routed.used[:0], routed.carried[:0])]
        unit = unit_loads(self.machine, rows, phase.traffic)
        return [(unit.cut, unit.leaving / GB), (unit.direct, unit.between / GB)]


class Member(NamedTuple):
    """A job that communicates now."""

    footprint: Footprint
    share: float  # of its time that it communicates alone on the best nodes
    slowdown: float  # its communication time over that
    presence: Floats  # (m,) share of the time in which it has something to send over its links


class Sharing:
    """The jobs that communicate now, and how many of them are on each link."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.jobs: dict[int, Member] = {}
        self.users: Ints = np.zeros(len(network.bandwidth), dtype=np.int64)
        self.present: Floats = np.zeros(len(network.bandwidth))  # jobs on each, on the average

    def add(self, job: int, footprint: Footprint, share: float) -> bool:
        """Let a job communicate for this share of its time; return whether others share links."""
        links, slowdown = footprint.links, self.slowdown(footprint)
        rate = footprint.busy * rounds_per_second(share, footprint.best, slowdown)
        presence = np.minimum(rate * (1 + self.present[links]), 1)
        self.jobs[job] = Member(footprint, share, slowdown, presence)
        self.present[links] += presence
        self.users[links] += 1
        return bool((self.users[links[:-1]] > 1).any())

    def remove(self, job: int) -> bool:
        """Take a job away; return whether others shared links with it."""
        if job not in self.jobs:
            return False
        footprint, _, _, presence = self.jobs.pop(job)
        links = footprint.links
        self.users[links] -= 1
        left = self.present[links] - presence
        self.present[links] = np.where(self.users[links], np.maximum(left, 0), 0)
        return bool(self.users[links[:-1]].any())

    def slowdown(self, footprint: Footprint) -> float:
        """Return the slowdown of one more job, next to all that are there."""
        seconds = self.network.seconds(footprint, 1 + self.present[footprint.links])
        return float(seconds.sum()) / footprint.best

    def slowdowns(self) -> Floats:
        """Return how many times as long each of `jobs` communicates as alone on the best nodes."""
        columns: Any = zip(*self.jobs.values(), strict=True)
        prints, shares, before, parts = columns
        sizes, phases = np.array([(len(p.links), p.phases.shape[1]) for p in prints]).T
        owner, owner_of_phase = (np.repeat(np.arange(len(prints)), n) for n in (sizes, phases))
        joined, best = _join(prints), np.array([p.best for p in prints])
        share, slow, presence = np.array(shares), np.array(before), np.concatenate(parts)
        for _ in range(_TURNS):
            stretch, before = stretches(joined.links, presence, len(self.present)), slow
            slow = add_by_key(owner_of_phase, self.network.seconds(joined, stretch)) / best
            rate = joined.busy * rounds_per_second(share, best, slow)[owner]
            presence = np.minimum(rate * stretch, 1)
            if (np.abs(slow - before) <= _ALIKE * before).all():
                break
        self.present = np.bincount(joined.links, presence, len(self.present)).astype(np.float64)
        parts = np.split(presence, np.cumsum(sizes)[:-1])
        members = zip(prints, shares, slow.tolist(), parts, strict=True)
        self.jobs = dict(zip(self.jobs, map(Member._make, members), strict=True))
        return slow


def rounds_per_second(share: Any, best: Any, slowdown: Any) -> Any:
    """Return the rounds that jobs send a second; `best`: seconds of one on the best nodes."""
    return share / (best * (1 - share + share * slowdown))


def stretches(links: Ints, presence: Floats, count: int) -> Floats:
    """Return how many times as long each entry's job uses its link as alone.

    `links`, `presence` (m,): entries of all jobs, one after the other: the link, and the share of
    its time in which the job has something to send over it. `count`: of links.
    """
    return 1 + np.maximum(np.bincount(links, presence, count)[links] - presence, 0)


def _join(prints: Sequence[Footprint]) -> Footprint:
    """Return the footprint of all jobs, one after the other; `best` is that of none."""
    columns: Any = zip(*(footprint[:-1] for footprint in prints), strict=True)
    joined = Footprint._make([*(np.concatenate(column, axis=-1) for column in columns), np.nan])
    sizes = np.array([(len(footprint.links), len(footprint.place)) for footprint in prints])
    joined.place[:] += np.repeat(np.cumsum(sizes[:, 0]) - sizes[:, 0], sizes[:, 1])
    return joined
