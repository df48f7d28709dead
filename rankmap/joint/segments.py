"""Whole segments for ``auto``: nodes that are not split over blocks, and replicas inside them.

With ``--segment auto`` a segment is as large as a training job's replica: the
ranks that tensor, expert and pipeline parallelism join. Where no block holds
that, it is the largest of tp with ep, and tp alone, that one does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from placement import planners
from placement.errors import PlanError, UsageError
from placement.planners.segments import Blocks, blocks_of, in_segments
from placement.request import Request
from placement.scheduler.constraints import has_blocks
from placement.scheduler.switches import block_sizes
from placement.support.array_types import Ints
from placement.support.quantities import unit_name
from rankmap.joint.judge import State
from rankmap.joint.search import Found
from rankmap.pattern.training import Training
from rankmap.predict import Predictor
from rankmap.predict.job_pattern import fit_pattern

__all__ = ["Segments", "inside_one_block", "whole_segments"]

#: What is to stay inside a block, the most first.
KEPT = (("tp", "ep", "pp"), ("tp", "ep"), ("tp",))

#: Planners whose nodes are tried in segments.
PLANNERS = ("compact", "level-spread", "spread", "nid-order")


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Nodes in whole segments, and the ranks that have to share one.

    Attributes
    ----------
    start : State
        The nodes; with replicas each of them on segments of its own.
    size : int
        Nodes of a segment.
    blocks : Blocks
    ppn : int
    replica : int64 (ranks,) or None
        Replica of each rank; None where any ranks may share a segment.
    axes : tuple of str
        What makes a replica.
    """

    start: State
    size: int
    blocks: Blocks
    ppn: int
    replica: Ints | None = None
    axes: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """What a person should know of them."""
        kept = f", {', '.join(self.axes)} inside one" if self.axes else ""
        return f"segments of {self.size}: none is split over a {unit_name(self.blocks.word)}{kept}"

    def hold(self, state: State) -> bool:
        """Return whether a state has whole segments, and every replica in one block."""
        of = self.blocks.of[state.rows]
        if (of < 0).any() or bool((np.bincount(of) % self.size).any()):
            return False
        if self.replica is None:
            return True
        slots = np.arange(len(self.replica)) if state.slots is None else state.slots
        block = of[slots // self.ppn]
        low = np.full(int(self.replica.max()) + 1, len(self.blocks.of), dtype=np.int64)
        high = np.full(len(low), -1, dtype=np.int64)
        np.minimum.at(low, self.replica, block)
        np.maximum.at(high, self.replica, block)
        return bool((low == high)[high >= 0].all())

    def narrowed(self, request: Request) -> Request:
        """Return the request with no other node to go to."""
        free = np.zeros(len(request.free), dtype=bool)
        free[self.start.rows] = True
        return replace(request, free=free, idle=None, segment=None)

    def only(
        self, found: Found, worth: Callable[[State], float], default: Ints | None, name: str
    ) -> Found:
        """Return what was found without the states that do not hold, and the scheduler's own."""
        states = [one for one in (*found.states, self.start) if self.hold(one)]
        states.sort(key=worth)
        starts = [one for one in found.starts if self.hold(one)]
        base = None if default is None else State(default, None, name)
        return replace(found, default=base, states=states, starts=starts)


def inside_one_block(
    asked: Predictor, request: Request, worth: Callable[[State], float]
) -> Request:
    """Return a request that asks for nodes of one block where Slurm starts no others.

    Under topology/block that is a job without segments; it is the block of the planners'
    choice, or Slurm's own, that is worth most.

    Parameters
    ----------
    asked : Predictor
    request : Request
        Without segments.
    worth : callable
        Predicted time of a state, or its J: the less the better.

    Raises
    ------
    PlanError
        No block has so many free nodes, or not with the included ones.
    """
    machine = asked.machine
    sizes = block_sizes(machine.switches) if machine.switches is not None else []
    if not has_blocks(machine, request) or request.count > max(sizes):
        return request
    of = blocks_of(machine, request.count).of
    whole = replace(request, segment=request.count)
    try:
        sets = [in_segments(machine, whole, planners.find(name)) for name in PLANNERS]
    except PlanError as error:
        raise PlanError(
            f"Slurm would let the job wait: topology/block starts {request.count} nodes inside "
            "one block alone, and none has them free",
            f"--segment parts a job; {error.hint or error.message}",
        ) from None
    best = min((State(rows, None, "") for rows in sets), key=worth)
    idle = request.free if request.idle is None else request.idle
    return replace(request, free=request.free & (of == of[best.rows[0]]), idle=idle)


def whole_segments(asked: Predictor, request: Request, worth: Callable[[State], float]) -> Segments:
    """Return nodes in whole segments, the best of some planners' choices.

    Parameters
    ----------
    asked : Predictor
    request : Request
        With the nodes of a segment; 0 for those of a replica.
    worth : callable
        Predicted time of a state, or its J: the less the better.

    Raises
    ------
    PlanError
        The free nodes of the blocks make too few segments.
    UsageError
        0 without a training pattern, or with nodes of different rank counts.
    """
    on = asked.slots(request.rows()[: request.count])
    if request.segment:
        return _best(asked, request, worth, on.ppn or 1, request.segment)
    pattern = fit_pattern(asked.pattern, on)
    if not isinstance(pattern, Training) or on.ppn is None:
        raise UsageError("--segment auto needs --pattern training:… and as many ranks on each node")
    refused = None
    for axes in KEPT:
        replica = pattern.replicas(axes)
        ranks = int(np.bincount(replica).max())
        size = math.lcm(ranks, on.ppn) // on.ppn
        try:
            inside = replace(request, segment=size)
            return _best(asked, inside, worth, on.ppn, size, replica, axes)
        except PlanError as error:
            refused = refused or error
    assert refused is not None
    raise refused


def _best(
    asked: Predictor,
    request: Request,
    worth: Callable[[State], float],
    ppn: int,
    size: int,
    replica: Ints | None = None,
    axes: tuple[str, ...] = (),
) -> Segments:
    """Return the planners' nodes in segments of a size that are worth most."""
    slots = None
    if replica is not None:
        slots = np.empty(len(replica), dtype=np.int64)
        slots[np.argsort(replica, kind="stable")] = np.arange(len(replica))
    states = []
    for name in PLANNERS:  # the first one says why there are none
        rows = in_segments(asked.machine, request, planners.find(name))
        states.append(State(rows, slots, f"{name}, segments"))
    best = min(states, key=worth)
    size = min(size, request.count)
    return Segments(best, size, blocks_of(asked.machine, size), ppn, replica, axes)
