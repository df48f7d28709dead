# SPDX-License-Identifier: Apache-2.0
"""A job's time on its nodes, estimated in a tenth of a millisecond, for tables of many jobs.

Nothing is routed. Of what a job sends, phase by phase, this looks at

* the *cuts*: bytes that leave a router, chassis, group … over all links that leave it. No
  routing is faster, and routers that take any way come close;
* the *direct links*: bytes between two groups, two chassis of a group, two routers of a
  chassis … over the links that join these two. Routers that keep to minimal ways are no
  faster, where links join the two at all.

Where routers adapt, the likely time is that of the cuts and what it costs to divert as much as
direct links cannot take, elsewhere that of direct links. A node's own links and what its ranks
can send are in both. On a torus, and where no bandwidth is known, a placement costs what it costs
a search (`rankmap/search/cost.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from nidmap.placement.machine import Machine, once
from nidmap.placement.network import channels
from nidmap.placement.network.bounds import partitions
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.arrays import add_by_key, find_sorted, ragged_ranges, sum_by_pair
from nidmap.placement.support.quantities import GB
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.pattern import Pattern
from nidmap.rankmap.pattern.structured import Lines
from nidmap.rankmap.predict import Predictor
from nidmap.rankmap.predict.job import fit_pattern
from nidmap.rankmap.search.cost import cost_by, without_time

#: Answers, and flows between nodes, that are kept.
_KEPT, _KEPT_FLOWS = 100_000, 1 << 18


class Span(NamedTuple):
    """A value with its range."""

    # low, likely, high: where routers take any way, what is likely, and where they keep to minimal
    # ways
    low: float
    likely: float
    high: float


class QuickPhase(NamedTuple):
    """The costs of a phase of a job on its nodes."""

    # least, posted: seconds of the busiest node or rank, and of posting messages, which come on top
    least: float
    posted: float
    traffic: Traffic  # between indices of the job's nodes
    # how much longer it takes, as a share, where links are always busy: messages of steps meet
    meeting: float = 0.0


class _Level(NamedTuple):
    """Network units that contain routers: groups, chassis, single routers."""

    unit: Ints  # (routers,)
    out: Floats  # (units,), GB/s of all links that leave each unit
    # a, b: (pairs,), units of the same unit above that links join, ascending; direct: GB/s of
    # these; of_unit: (units + 1,), where the pairs of each unit begin
    a: Ints
    b: Ints
    direct: Floats
    of_unit: Ints
    first: int  # place of its first entry in `unit_bandwidths`


class QuickCost:
    """Estimates the time of one pattern on one machine for many sets of nodes.

    `model`: machine, pattern, ranks per node and bytes.
    """

    def __init__(self, model: Predictor) -> None:
        self.model = model
        self.machine = model.machine
        everyone = np.flatnonzero(self.machine.compute)[:1]
        # Why no time can be predicted, so that costs are in J; '' if they are in seconds
        self.timeless = without_time(model.place(everyone))
        self._plain = None
        if self.timeless or self.machine.topology.kind == "torus":
            self._plain = cost_by(model, self.timeless)
        # _phases_of: by GB/s of each node's own links, the latest last
        self._phases_of: dict[bytes, list[QuickPhase]] = {}
        self._flows = 0  # in all of them
        self._known: dict[bytes, Span] = {}

    def of(self, rows: Ints) -> Span:
        """Return the seconds of a job with rank r in slot r on these nodes; J if `timeless`."""
        key = rows.tobytes()
        if key not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[key] = self._span(np.asarray(rows, dtype=np.int64))
        return self._known[key]

    def _span(self, rows: Ints) -> Span:
        if self._plain is not None:
            cost = self._plain.of(self.model.place(rows))
            return Span(cost, cost, cost)
        cut = direct = likely = 0.0
        for phase in self.phases(rows):
            bound, straight = cut_times(self.machine, rows, phase.traffic)
            least = max(bound, phase.least)
            slowest = max(least, straight)
            seconds = slowest
            if self.model.routing == "adaptive":
                way = bound, least, straight, self.model.constants.loss, phase.meeting
                seconds = float(diverted_time(*way))
            cut += least + phase.posted
            likely += seconds + phase.posted
            direct += max(slowest, seconds) + phase.posted
        return Span(cut, likely, direct)

    def phases(self, rows: Ints) -> list[QuickPhase]:
        """Return what these nodes send: the same for as many with links as fast."""
        key = self.model.injection[rows].tobytes()
        known = self._phases_of.pop(key, None)
        if known is None:
            known = list(_phase_costs(self.model, rows))
            self._flows += _flows(known)
        self._phases_of[key] = known  # the latest
        while len(self._phases_of) > 1 and self._flows > _KEPT_FLOWS:
            self._flows -= _flows(self._phases_of.pop(next(iter(self._phases_of))))
        return known


def _phase_costs(model: Predictor, rows: Ints) -> Iterator[QuickPhase]:
    """Yield the phases of a pattern with rank r in slot r."""
    placement = model.place(rows)
    pattern = fit_pattern(model.pattern, placement)
    for phase in model.make_phases(placement):
        if _is_complete(pattern) and placement.ppn is not None:
            pairs = len(rows) * max(len(rows) - 1, 1)
            traffic = Traffic.everyone(np.arange(len(rows)), 1, phase.total.total / pairs)
        else:
            traffic = phase.traffic.listed()
        meeting = 0.0
        if phase.steps is not None and not phase.dependent:
            meeting = model.constants.meeting * (1 - model.constants.ahead)
        cost = model.least(phase)
        yield QuickPhase(cost.moved, cost.messages, traffic, meeting)


def _flows(phases: list[QuickPhase]) -> int:
    """Return how many flows these phases keep, one per node of an all-to-all."""
    return sum(len(phase.traffic) + len(phase.traffic.all_to_alls.end) for phase in phases)


def _is_complete(pattern: Pattern) -> bool:
    """Tell whether every rank sends equally much to every other."""
    return isinstance(pattern, Lines) and len([d for d in pattern.dims or () if d > 1]) <= 1


def diverted_time(
    cut: float | Floats,
    least: float | Floats,
    direct: float | Floats,
    loss: float,
    meeting: float | Floats = 0.0,
) -> Floats:
    """Return the likely seconds under adaptive routing, which diverts only what it must.

    From the direct links to the cuts, which nothing beats; `loss` as a share where all is diverted,
    `meeting` where links are always busy.
    """
    gap = np.maximum(np.subtract(direct, cut), 1e-300)
    diverted = np.clip(np.subtract(direct, least) / gap, 0.0, 1.0)
    busy = np.minimum(1.0, direct / np.maximum(least, 1e-300))
    return np.minimum(np.maximum(direct, least), least * (1 + loss * diverted)) * (
        1 + meeting * busy
    )


def cut_times(machine: Machine, rows: Ints, traffic: Traffic) -> tuple[float, float]:
    """Return the seconds of the busiest cut, and of the busiest direct links.

    `machine`: not a torus. `rows` (n,): nodes of the job. `traffic`: between indices of the job's
    nodes; what stays inside a node does not count. 0.0 where no two of its units are joined
    directly.
    """
    cut = direct = 0.0
    for level, used, leaving, pairs, between in _level_loads(machine, rows, traffic):
        cut = max(cut, _slowest_transfer(leaving, level.out[used]))
        direct = max(direct, _slowest_transfer(between, level.direct[pairs]))
    return cut, direct


class UnitLoads(NamedTuple):
    """Bytes of a job over the links that leave units (cut) or connect two (direct)."""

    # cut, direct: places in what `unit_bandwidths` lists; leaving, between: bytes over each
    cut: Ints
    leaving: Floats
    direct: Ints
    between: Floats


def unit_bandwidths(machine: Machine) -> Floats:
    """Return the GB/s of all links leaving a unit, and between two units, level by level.

    Where no link is known or limited it is infinite.
    """
    parts = [column for level in _network_levels(machine) for column in (level.out, level.direct)]
    bandwidths = np.concatenate([np.ones(0), *parts])
    return np.where(bandwidths > 0, bandwidths, np.inf)


def unit_loads(machine: Machine, rows: Ints, traffic: Traffic) -> UnitLoads:
    """Return a job's load on the links considered by `cut_times`; same parameters."""
    empty: Ints = np.empty(0, dtype=np.int64)
    parts: list[list[Any]] = [[empty], [np.empty(0)], [empty], [np.empty(0)]]
    for level, used, leaving, pairs, between in _level_loads(machine, rows, traffic):
        columns = level.first + used, leaving, level.first + len(level.out) + pairs, between
        for part, column in zip(parts, columns, strict=True):
            part.append(column)
    return UnitLoads(*map(np.concatenate, parts))


def _level_loads(
    machine: Machine, rows: Ints, traffic: Traffic
) -> Iterator[tuple[_Level, Ints, Floats, Ints, Floats]]:
    """Yield levels with the units used and their outgoing bytes, and pairs and their bytes."""
    routers = machine.router[rows, 0]
    for level in _network_levels(machine):
        unit, units = level.unit[routers], len(level.out)
        used: Ints = np.flatnonzero(np.bincount(unit, minlength=units))  # np.unique is slower
        if len(used) < 2:
            continue
        lines = traffic.all_to_alls
        lines = lines.moved(unit, units) if len(lines) else lines
        source, target = unit[traffic.source], unit[traffic.target]
        moved = replace(traffic, source=source, target=target, all_to_alls=lines)
        leaving = np.maximum(*moved.sent_and_received(units))[used]
        _, pairs = ragged_ranges(level.of_unit[used], np.diff(level.of_unit)[used])
        a, b = level.a[pairs], level.b[pairs]
        at = find_sorted(a * units + b, source * units + target)
        listed = at >= 0
        between = add_by_key(at[listed], traffic.bytes[listed], len(pairs))
        if len(lines):
            between = between + lines.between(a, b, units)
        loaded = between > 0
        yield level, used, leaving, pairs[loaded], between[loaded]


def _slowest_transfer(amount: Floats, gbs: Floats) -> float:
    """Return the seconds of the longest transfer; 0 if no link is known."""
    return float((amount / np.where(gbs > 0, gbs, np.inf)).max(initial=0.0)) / GB


@once
def _network_levels(machine: Machine) -> list[_Level]:
    """Return a machine's levels, outermost first, ending with single routers."""
    links = channels(machine)
    levels: list[_Level] = []
    first = 0
    above = np.zeros(int(max(links.source.max(initial=0), links.target.max(initial=0))) + 1, int)
    for part in partitions(machine)[1:]:
        label = part.label
        above = above if len(above) == len(label) else np.zeros(len(label), dtype=np.int64)
        count = len(part.out)
        a, b = label[links.source], label[links.target]
        siblings = (above[links.source] == above[links.target]) & (a != b)
        pairs = sum_by_pair(a[siblings], b[siblings], links.bandwidth[siblings], count)
        of_unit = np.searchsorted(pairs[0], np.arange(count + 1))
        levels.append(_Level(label, part.out, *pairs, of_unit, first))
        first += count + len(pairs[0])
        above = label
    return levels
