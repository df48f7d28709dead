# SPDX-License-Identifier: Apache-2.0
"""Complete segments for ``auto``: nodes not split across blocks, and replicas within them.

With ``--segment auto`` a segment is as large as a training job's replica: the
ranks that tensor, expert and pipeline parallelism join. Where no block holds
that, it is the largest of tp with ep, and tp alone, that one does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from nidmap.placement import planners
from nidmap.placement.errors import PlanError, UsageError
from nidmap.placement.permutation import inverse
from nidmap.placement.placement import Placement
from nidmap.placement.planners import Request
from nidmap.placement.planners.segments import Blocks, blocks_of, in_segments
from nidmap.placement.scheduler.baseline import has_blocks
from nidmap.placement.support.array_types import Ints
from nidmap.placement.support.quantities import unit_name
from nidmap.placement.switch_tree import block_sizes
from nidmap.rankmap.pattern.training import Training
from nidmap.rankmap.predict import Predictor
from nidmap.rankmap.predict.job import fit_pattern

#: Axes whose traffic should stay within a block, the heaviest first.
KEPT = (("tp", "ep", "pp"), ("tp", "ep"), ("tp",))

#: Planners whose choices are tried in segments.
PLANNERS = ("compact", "level-spread", "spread", "nid-order")


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Nodes in complete segments, and the ranks that must share one."""

    # (n,), the planners' choices in complete segments: a name and the nodes
    choices: tuple[tuple[str, Ints], ...]
    size: int  # nodes of a segment
    blocks: Blocks
    # (ranks,), replica of each rank; None where any ranks may share a segment
    replica: Ints | None = None
    axes: tuple[str, ...] = ()  # axes that make up a replica

    @property
    def note(self) -> str:
        """Remarks for the user."""
        axes_words = f", {', '.join(self.axes)} inside one" if self.axes else ""
        unit = unit_name(self.blocks.word)
        return f"segments of {self.size}: none is split over a {unit}{axes_words}"

    @property
    def slots(self) -> Ints | None:
        """Slot of each rank, replica by replica; None if any ranks may share a segment."""
        return None if self.replica is None else inverse(np.argsort(self.replica, kind="stable"))

    def hold(self, placement: Placement) -> bool:
        """Return whether a placement has complete segments, and every replica in one block."""
        block = self.blocks.of[placement.rows]
        if (block < 0).any() or bool((np.bincount(block) % self.size).any()):
            return False
        if self.replica is None:
            return True
        of_rank = block[placement.node_of_rank]
        low = np.full(int(self.replica.max()) + 1, len(self.blocks.of), dtype=np.int64)
        high = np.full(len(low), -1, dtype=np.int64)
        np.minimum.at(low, self.replica, of_rank)
        np.maximum.at(high, self.replica, of_rank)
        return bool((low == high)[high >= 0].all())


def inside_one_block(model: Predictor, request: Request) -> Segments | None:
    """Return the planners' choices within one block, if Slurm starts nothing else.

    Under topology/block that is a job without segments: all of it is one.

    `request`: without segments. None where the nodes may lie anywhere: under other plugins, and
    for more than the largest block holds.
    """
    switches = model.machine.switches
    if switches is None or not has_blocks(model.machine, request):
        return None
    if request.count > max(block_sizes(switches)):
        return None
    try:
        return _in_segments(model, replace(request, segment=request.count), request.count)
    except PlanError as error:
        raise PlanError(
            f"Slurm would leave the job pending: topology/block needs {request.count} nodes free "
            "in one block, and no block has them",
            f"--segment divides a job; {error.hint or error.message}",
        ) from None


def whole_segments(model: Predictor, request: Request) -> Segments:
    """Return the planners' choices in complete segments.

    `request`: with the nodes of a segment; 0 for those of a replica.
    """
    placement = model.place(request.rows()[: request.count])
    if request.segment:
        return _in_segments(model, request, request.segment)
    pattern = fit_pattern(model.pattern, placement)
    if not isinstance(pattern, Training) or placement.ppn is None:
        raise UsageError(
            "--segment auto needs --pattern training:… and the same number of ranks on each node"
        )
    refused: PlanError | None = None
    for axes in KEPT:
        replica = pattern.replicas(axes)
        ranks = int(np.bincount(replica).max())
        size = math.lcm(ranks, placement.ppn) // placement.ppn
        try:
            return _in_segments(model, replace(request, segment=size), size, replica, axes)
        except PlanError as error:
            refused = refused or error
    assert refused is not None
    raise refused


def _in_segments(
    model: Predictor,
    request: Request,
    size: int,
    replica: Ints | None = None,
    axes: tuple[str, ...] = (),
) -> Segments:
    """Return the planners' nodes in segments of a size."""
    machine = model.machine
    choices = tuple(  # the first one reports why there are none
        (f"{name} in segments", in_segments(machine, request, planners.find(name)))
        for name in PLANNERS
    )
    size = min(size, request.count)
    return Segments(choices, size, blocks_of(machine, size), replica, axes)
