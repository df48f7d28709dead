# SPDX-License-Identifier: Apache-2.0
"""Seconds of a phase as a linear function of its bytes.

The predictor's bandwidth terms are linear in the bytes of a message and its
other terms do not depend on them, so that one prediction serves all sizes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.study.setting import COMMON, Setting, algorithm
from nidmap.placement.options import with_figures
from nidmap.rankmap.predict import Job, Predictor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nidmap.placement.machine import Machine
    from nidmap.placement.placement import Placement
    from nidmap.placement.support.array_types import Floats, Ints, Mask
    from nidmap.rankmap.predict.background import Other


#: Bytes of a grid point.
POINT = 8
#: Links that routers can send round.
GROUP = ("green", "black")


class Line(NamedTuple):
    """Seconds as a line: `fixed`, plus `slope` per byte of a message."""

    fixed: float
    slope: float

    def seconds(self, size: float) -> float:
        """Return the seconds for messages of this many bytes."""
        return self.fixed + self.slope * size


def predictor(
    machine: Machine,
    pattern: str,
    ppn: Any,
    how: str,
    setting: Setting = COMMON,
    others: Sequence[Other] = (),
    size: float = 1.0,
) -> Predictor:
    """Return the predictor of a pattern under a setting, `size` bytes per message.

    Where a setting names no routing paths are shortest: what routers do beyond is a term.
    """
    shortest = "minimal" if machine.topology.kind.startswith("dragonfly") else ""
    return Predictor(
        with_figures(
            machine,
            routing=setting.routing or shortest,
            latency=setting.latency,
            memory=math.inf,
            process=setting.process,
            payload=setting.payload,
        ),
        Job(
            pattern,
            ppn,
            size,
            algorithm=how,
            background=[replace(one, load=setting.load) for one in others] if setting.load else (),
        ),
    )


def lines(asked: Predictor, rows: Ints, order: Placement | None = None) -> list[Line]:
    """Return a line for each phase of a pattern with messages of 1 byte."""
    placement = asked.place(rows) if order is None else order
    left = asked.left(placement)
    found = []
    for phase in asked.phases(placement):
        cost = asked.cost(phase, left)
        moved = cost.bandwidth + cost.memory
        found.append(Line(cost.latency + cost.messages, moved / asked.size))
    return found


class Exchange:
    """All-to-alls, or those of a pencil FFT, on a job's nodes: seconds for any size.

    Parameters
    ----------
    machine : Machine
    rows : int64 (n,)
    pattern : str
        ``alltoall`` or ``fft:PxQ``.
    ppn : int or str
    setting : Setting
    others : sequence of Other
        Jobs beside this one.
    order : Placement or None
    call : str
        See `benchmarks.study.setting.algorithm`.
    how : str
        This algorithm whatever the size; '' chooses by the size.
    """

    def __init__(
        self,
        machine: Machine,
        rows: Ints,
        pattern: str,
        ppn: Any = 1,
        setting: Setting = COMMON,
        others: Sequence[Other] = (),
        order: Placement | None = None,
        call: str = "alltoall",
        how: str = "",
    ) -> None:
        self.machine, self.rows, self.pattern, self.ppn = machine, rows, pattern, ppn
        self.setting, self.others, self.order, self.call = setting, others, order, call
        self.how = how
        self._lines: dict[str, list[Line]] = {}

    def by(self, how: str) -> list[Line]:
        """Return the phases' lines with an algorithm."""
        if how not in self._lines:
            asked = predictor(self.machine, self.pattern, self.ppn, how, self.setting, self.others)
            self._lines[how] = lines(asked, self.rows, self.order)
        return self._lines[how]

    def seconds(self, sizes: Sequence[float], ranks: Sequence[int]) -> float:
        """Return the seconds of all phases.

        Parameters
        ----------
        sizes : sequence of float
            Bytes a message in each phase.
        ranks : sequence of int
            Ranks that exchange with each other in each phase.
        """
        total = 0.0
        for phase, (size, count) in enumerate(zip(sizes, ranks, strict=True)):
            how = self.how or algorithm(self.call, size, count)
            total += self.by(how)[phase].seconds(size)
        return total


class Transform:
    """The communication of one FFT of a cubic grid, split into pencils.

    Parameters
    ----------
    exchange : Exchange
        Of the pattern ``fft:PxQ``.
    dims : (int, int)
        P and Q: ranks of a column and of a row.
    """

    def __init__(self, exchange: Exchange, dims: tuple[int, int]) -> None:
        self.exchange = exchange
        self.dims = dims

    def seconds(self, side: int) -> float:
        """Return the seconds of the transposes of a grid of `side` points cubed."""
        local = POINT * float(side) ** 3 / (self.dims[0] * self.dims[1])
        ranks = [count for count in reversed(self.dims) if count > 1]
        return self.exchange.seconds([local / count for count in ranks], ranks)


def greener(machine: Machine, times: float) -> Machine:
    """Return a dragonfly whose green links have `times` their bandwidth.

    Stands for detours over the other blades of a chassis, which only routing
    ``adaptive`` takes.
    """
    topology = machine.topology
    figures = {**topology.bandwidth, "green": times * topology.bandwidth["green"]}
    return replace(machine, topology=replace(topology, bandwidth=figures), _cache={})


def rewire(machine: Machine, wiring: str, links: int) -> Machine:
    """Return a machine with its groups connected by another rule."""
    parameters = {**machine.topology.parameters, "global": links}
    topology = replace(machine.topology, wiring=wiring, parameters=parameters)
    return replace(machine, topology=topology, _cache={})


class _Step(NamedTuple):
    """One step: its repetitions, the channels it uses, bytes on them, per node and per rank.

    ``inside`` says which of the channels are in a group, where packets can go round them.
    """

    times: float
    channels: Ints
    load: Floats
    node: float
    rank: float
    inside: Mask


class Stepped:
    """The steps of a pattern's phases, stored so that the bandwidth left can be varied.

    What `Predictor.time` does step by step, with the loads computed once; a
    test holds the two against each other.

    Parameters
    ----------
    asked : Predictor
        Its routing and algorithm count; its background, process and payload do not.
    rows : int64 (n,)
    """

    def __init__(self, asked: Predictor, rows: Ints) -> None:
        self.asked = asked
        self.injection = float(asked.injection[rows].min())
        self.fixed = 0.0
        self.phases: list[list[_Step]] = []
        for phase in asked.phases(asked.place(rows)):
            whole = asked.loads(phase.total, None)
            cost = asked.cost(replace(phase, steps=None), None)
            self.fixed += cost.latency + cost.messages
            if phase.steps is None:
                self.phases.append([_step(whole, 1.0, phase.sent)])
                continue
            steps = asked.steps_of(phase, None)
            self.phases.append([_step(step.loads, step.times, step.message) for step in steps])

    def seconds(
        self,
        bandwidth: Floats,
        sizes: Sequence[float],
        process: float | None,
        detours: float = 0.0,
    ) -> float:
        """Return the seconds with this much bandwidth left on every channel.

        Parameters
        ----------
        bandwidth : float64 (c,)
            GB/s.
        sizes : sequence of float
            Bytes a message in each phase, over those that were asked for.
        process : float or None
            GB/s of a rank.
        detours : float
            How far packets go round the links of a group, 0 to 1: by logarithms, from
            shortest paths to no limit by them.
        """
        total = self.fixed
        for size, steps in zip(sizes, self.phases, strict=True):
            total += size * sum(self._step(one, bandwidth, process, detours) for one in steps)
        return total

    def _step(self, one: _Step, bandwidth: Floats, process: float | None, detours: float) -> float:
        each = one.load / bandwidth[one.channels]
        rank = one.rank / process if process else 0.0
        beyond = float(each[~one.inside].max(initial=0.0))
        least = max(beyond, one.node / self.injection, rank)
        inside = max(float(each[one.inside].max(initial=0.0)), least)
        return float(one.times * inside ** (1 - detours) * least**detours / 1e9)


def _step(loads: Any, times: float, rank: float) -> _Step:
    where = np.flatnonzero(loads.load)
    node = max(float(loads.injection.max(initial=0)), float(loads.ejection.max(initial=0)))
    kinds = loads.channels.kinds
    inside = np.isin(loads.channels.kind[where], [kinds.index(k) for k in GROUP if k in kinds])
    return _Step(times, where, loads.load[where], node, rank, inside)
