# SPDX-License-Identifier: Apache-2.0
"""From all rounds' readings to figures with intervals, named as in a site file.

What each class of links carries follows from the times of sets of flows, under
the machine's routing. A set takes as long as its busiest link:
``t = max over classes of s / f``, where s are the seconds by the machine's own
figures and f is the share of them that a class really reaches. So ``s / t`` never exceeds f, and
equals it where the class binds: the largest of these ratios over all sets is
f, exactly where there is no noise and the class binds at all. A class that
binds nowhere has its largest ratio where another one binds, which gives it
away. Of several sets in which a class binds, the one counts in which it does
so most clearly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.network import routings
from nidmap.placement.support.array_types import Floats
from nidmap.placement.support.quantities import GB
from nidmap.workloads.ab.statistics import mean_interval
from nidmap.workloads.calibrate.choice import ENOUGH, NODE, FlowTimes, MeasurePlan, margins

#: A rank is as fast as its node where it reaches this share of it.
AS_FAST = 0.97

#: A class is detectable if it takes this many times as long as any other.
CLEAR = 1.04

#: A routing does not explain the times where the logarithms of the predicted ones are off by more
#: than this (root mean square). On three networks of 16 to 24 nodes a routing other than the true
#: one is off by 0.16 to 0.64, or by less than 0.08 where the two hardly differ; noise adds 0.05.
MOST_OFF = 0.12


@dataclass(frozen=True, slots=True, eq=False)
class LinkFit:
    """The bandwidth reached by each link class, and how well it explains the times."""

    # By class that is a bottleneck somewhere: the share of the machine's own figure
    shares: dict[str, float]
    sets: dict[str, int]  # the set of flows in which each of them carries that much
    error: float  # by which predicted times are off: the root mean square of their logarithms

    @property
    def explains(self) -> bool:
        """Whether the machine's routing explains the times."""
        return self.error <= MOST_OFF


def fit_shares(seconds: Floats, times: Floats, classes: Sequence[str]) -> LinkFit:
    """Return each class's bandwidth where it is the bottleneck, and the quality of the fit.

    `seconds` (flows, classes): by the machine's own figures. `times` (flows,).
    """
    ratio = seconds / times[:, None]
    shares = ratio.max(axis=0, initial=0.0)
    active = [k for k in range(len(classes)) if shares[k] > 0]
    binding = _binding_sets(seconds, shares, active)
    clear = np.minimum(margins(seconds), ENOUGH)
    sets = {k: max(binding[k], key=lambda e: float(clear[e, k])) for k in active}
    for k in active:
        shares[k] = ratio[sets[k], k]
    error = 0.0
    if active:
        expected = (seconds[:, active] / shares[active]).max(axis=1)
        used = expected > 0
        off = np.log(expected[used] / times[used])
        error = float(np.sqrt(np.mean(off**2))) if used.any() else 0.0
    return LinkFit(
        {classes[k]: float(shares[k]) for k in active},
        {classes[k]: sets[k] for k in active},
        error,
    )


def _binding_sets(seconds: Floats, shares: Floats, active: list[int]) -> dict[int, list[int]]:
    """Return the sets in which each class is the bottleneck; drop others from `active`.

    Of two classes that could explain the same times, the one goes that takes
    less by the machine's own figures.
    """
    while True:
        expected = seconds[:, active] / shares[active]
        clearance = margins(expected)
        sets = {k: np.flatnonzero(clearance[:, i] >= CLEAR).tolist() for i, k in enumerate(active)}
        hidden = [k for k in active if not sets[k]]
        if not hidden:
            return sets
        stated = margins(seconds[:, active]).max(axis=0)
        active.remove(min(hidden, key=lambda k: float(stated[active.index(k)])))


@dataclass(frozen=True, slots=True)
class MeasuredFigure:
    """One measured figure."""

    key: str  # as in a site file: ``bandwidth.blue``
    value: float
    what: str  # description for the reader
    unit: str = ""
    interval: tuple[float, float] | None = None
    mark: str = "measured"
    stated: float | None = None  # the value in the machine's configuration


@dataclass(frozen=True, slots=True)
class Readings:
    """The readings of all rounds."""

    # Readings by their names (`nidmap.workloads.calibrate.readings`)
    rounds: Sequence[dict[str, float]]
    sizes: dict[str, tuple[int, int]]  # bytes of the readings that have two sizes

    def of(self, name: str) -> Floats:
        """Return a reading over all rounds, float64 (rounds,)."""
        return np.array([seconds[name] for seconds in self.rounds])

    def per_gb(self, name: str) -> Floats:
        """Return the seconds per GB in every round, float64 (rounds,)."""
        return per_gb(self.of(f"{name} short"), self.of(f"{name} long"), self.sizes[name])


@dataclass(frozen=True, slots=True)
class Result:
    """Everything that was found."""

    figures: list[MeasuredFigure]
    links: LinkFit
    routing: str  # the machine's, under which all of it was measured
    # Classes that are the bottleneck of no set of flows between these nodes
    unreached: tuple[str, ...]
    notes: list[str]


def result_of(
    machine: Machine,
    plan: MeasurePlan,
    read: Readings,
    hops: dict[str, float],
    assumed_node: bool = False,
) -> Result:
    """Return the figures that follow from rounds of readings.

    `machine`: as `nidmap.workloads.calibrate.choice.with_limited_nodes` returns it. `hops`: links
    between routers on the way of each timed pair, by the reading's name. `assumed_node`: whether
    the machine states no bandwidth of a node's link.
    """
    table = plan.table
    sets = np.column_stack(
        [read.per_gb(f"flows {k}") for k in range(len(table.flows))]
    )  # seconds for a GB a flow, float64 (rounds, sets)
    links = fit_shares(table.seconds, np.median(sets, axis=0), table.classes)
    # GB/s that a node sends in each round, by one of its ranks and by all
    leaving = int(np.bincount(table.flows[plan.node_set].source).max())
    together = leaving / sets[:, plan.node_set]
    alone = leaving / read.per_gb("alone") if plan.ppn > 1 else together
    fastest = max(alone, together, key=np.median)
    figures = [
        *_fit_links(machine, table, links, sets, fastest, assumed_node),
        *_fit_ranks(read, plan.ppn, alone, together),
        *_fit_latencies(read, hops),
        *_fit_messages(read, plan.ppn),
    ]
    unreached = tuple(name for name in table.classes if name not in links.shares)
    note = (
        "one rank per node: what a node sends with more of them, and copies inside it, were not"
        " measured"
    )
    notes = [note] if plan.ppn == 1 else []
    return Result(figures, links, routings(machine)[0], unreached, notes)


def per_gb(short: Floats, long: Floats, sizes: tuple[int, int]) -> Floats:
    """Return the seconds per GB in every round, without what does not depend on size.

    `short`, `long` (rounds,): seconds with both sizes; of the short one the median counts. A long
    one that is no longer than that counts for itself. `sizes`: their bytes.
    """
    less = float(np.median(short))
    beyond = np.where(long > less, long - less, long * (1 - sizes[0] / sizes[1]))
    return np.asarray(beyond / (sizes[1] - sizes[0]) * GB)


def _middle_of(key: str, values: Floats, what: str, **more: Any) -> MeasuredFigure:
    """Return the centre of positive values, and their interval as in `nidmap ab`."""
    mean = mean_interval(np.log(values))
    if mean is None:
        return MeasuredFigure(key, float(np.median(values)), what, **more)
    bounded = mean.low > 0 and mean.high < math.inf
    interval = (mean.low, mean.high) if bounded else None
    return MeasuredFigure(key, mean.ratio, what, interval=interval, **more)


def _figure_keys(machine: Machine, kind: str) -> list[tuple[str, float]]:
    """Return the machine's figures that determine a link class, with their keys."""
    figures = machine.topology.bandwidth
    if kind == NODE:
        stated = figures.get(NODE, figures.get("up0", 0.0))
        both = {NODE: stated, **{k: v for k, v in figures.items() if k == "ejection"}}
        return list(both.items())
    own = {key: v for key, v in figures.items() if key in (kind, f"{kind}-cable")}
    return list((own or {kind: figures.get("up", 0.0)}).items())


def _fit_links(
    machine: Machine,
    table: FlowTimes,
    links: LinkFit,
    sets: Floats,
    fastest: Floats,
    assumed_node: bool,
) -> list[MeasuredFigure]:
    """Return the bandwidths of the measured link classes, scaling the stated figures.

    A node's own link is as fast as what any number of its ranks sends (`fastest`, GB/s of
    each round): a busy computer lets several come out low.
    """
    fitted, shares = [], []
    for k, kind in enumerate(table.classes):
        if kind not in links.shares:
            continue
        at = links.sets[kind]
        share = table.seconds[at, k] / sets[:, at]
        of_node = kind == NODE
        what = "a node's own link" if of_node else f"links of class {kind}"
        what += f": {table.flows[at].name}"
        for key, stated in _figure_keys(machine, kind):
            stated_rate = None if of_node and assumed_node else stated
            rate = share * stated
            if key == NODE and np.median(fastest) > np.median(rate):
                rate = fastest
            fitted.append(
                _middle_of(f"bandwidth.{key}", rate, what, unit="GB/s", stated=stated_rate)
            )
        if not of_node:
            shares.append(links.shares[kind])
            fitted.append(
                _middle_of(f"stated.payload_{kind}", share, "share of the stated bandwidth")
            )
    if not shares:
        return fitted
    usual = float(np.median(shares))
    for kind in table.classes:
        if kind not in links.shares and kind != NODE:
            fitted += [
                MeasuredFigure(f"bandwidth.{key}", usual * stated, f"not reached with these nodes: "
                         f"{usual:.4g} of {stated:g}, like the other links", "GB/s",
                         mark="assumed", stated=stated)
                for key, stated in _figure_keys(machine, kind)
            ]  # fmt: skip
    what = "the bandwidths of links here are what programs' bytes reach"
    return [*fitted, MeasuredFigure("sending.payload", 1.0, what)]


def _fit_ranks(read: Readings, ppn: int, alone: Floats, together: Floats) -> list[MeasuredFigure]:
    """Return the rates of ranks: a single one, all of a node, and within a node."""
    rates = {1: alone, ppn: together}
    figures = [
        _middle_of(f"stated.node_{count}_ranks", rate, f"a node, {count} of its ranks sending",
                  unit="GB/s")
        for count, rate in rates.items()
    ]  # fmt: skip
    process, what = alone, "one rank of each node sends"
    if ppn > 1:
        inside = ppn / read.per_gb("copies")
        figures.append(_middle_of("sending.memory", inside, f"copies between {ppn} ranks of a node",
                                 unit="GB/s"))  # fmt: skip
        if np.median(alone) >= AS_FAST * np.median(together):
            what = "one rank fills its node's link; what it copies to ranks of its own node"
            process = np.maximum(alone, inside / ppn)
    return [*figures, _middle_of("sending.process", process, what, unit="GB/s")]


def _fit_latencies(read: Readings, hops: dict[str, float]) -> list[MeasuredFigure]:
    """Return each level's latency, and the part of it that each link between routers adds."""
    levels: dict[str, list[str]] = {}
    for name in read.rounds[0]:
        if name.startswith("latency "):
            levels.setdefault(name[8:].rpartition(" ")[0], []).append(name)
    figures = []
    for level, names in levels.items():
        us = 1e6 * np.median([read.of(name) for name in names], axis=0)
        key = f"stated.latency_{level.replace(' ', '_')}"
        figures.append(_middle_of(key, us, f"an empty message, {level}", unit="us"))
    far = [name for names in levels.values() for name in names if name in hops]
    apart = [hops[name] for name in far]
    lines = np.array([_fit_line(apart, [seconds[name] for name in far]) for seconds in read.rounds])
    ways = f"{len(far)} pairs of nodes"
    figures.append(_middle_of("latency.mpi_us", lines[:, 0] * 1e6, f"an empty message, {ways}",
                             unit="us"))  # fmt: skip
    hop = float(np.median(lines[:, 1])) * GB
    if len(set(apart)) > 1:
        figures.append(
            MeasuredFigure("latency.hop_ns", hop, f"each link between routers, {ways}", "ns")
        )
    return figures


def _fit_line(hops: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """Return the seconds without hops and those per hop, both at least 0."""
    x, y = np.asarray(hops), np.asarray(seconds)
    slope = max(0.0, float(np.polyfit(x, y, 1)[0])) if np.ptp(x) else 0.0
    intercept = float(y.mean() - slope * x.mean())
    return (intercept, slope) if intercept > 0 else (float(y.min()), 0.0)


def _fit_messages(read: Readings, ppn: int) -> list[MeasuredFigure]:
    """Return the time between messages, and a staged exchange's overhead per step."""
    figures = []
    for key, name, what in (
        ("sending.message_us", "message", "between two short messages of a rank"),
        ("sending.nic_us", "node messages", f"between two of a node, {ppn} ranks sending"),
    ):
        if name in read.rounds[0]:
            figures.append(_middle_of(key, 1e6 * read.of(name), what, unit="us"))
    less, more = read.sizes["step"]
    gaps = more * read.of("step short") - less * read.of("step long")
    gaps *= 1e6 / (more - less)
    what = f"a step of a staged exchange beyond its bytes ({less >> 10} and twice as many KiB)"
    if (gaps > 0).all():
        figures.append(_middle_of("sending.gap_us", gaps, what, unit="us"))
    else:
        figures.append(
            MeasuredFigure("sending.gap_us", max(0.0, float(np.median(gaps))), what, "us")
        )
    return figures
