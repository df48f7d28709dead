# SPDX-License-Identifier: Apache-2.0
"""Segments of equal size, none split across blocks, with any planner.

A block is Slurm's, where the machine has topology/block: the smallest of its
``BlockSizes`` that holds a segment. Elsewhere it is the innermost unit of the
machine that does: a blade, a leaf switch, a chassis, a group.

The planner is asked twice: among as many nodes of each block as make whole
segments, which says how it spreads a job; and, when it is decided how many
segments each block gets, inside each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nidmap.placement.errors import PlanError
from nidmap.placement.machine import Machine
from nidmap.placement.planners import Request, nested_units
from nidmap.placement.support.array_types import Ints, Mask
from nidmap.placement.support.quantities import counted, unit_name
from nidmap.placement.switch_tree import block_sizes


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The units that a segment must not cross."""

    of: Ints  # (n,), block of each row of the machine, -1 for none
    word: str  # noun for a block

    def whole(self, request: Request, segment: int) -> Ints:
        """Return how many complete segments the free nodes of each block can hold."""
        inside = self.of[request.free]
        return np.asarray(np.bincount(inside[inside >= 0], minlength=1) // segment)


def blocks_of(machine: Machine, segment: int) -> Blocks:
    """Return the smallest blocks that can hold a segment of this many nodes."""
    switches = machine.switches
    if switches is not None and switches.kind == "block":
        base, *_ = sizes = block_sizes(switches)
        size = next((size for size in sizes if size >= segment), 0)
        of = np.where(switches.leaf_of >= 0, switches.leaf_of // max(1, size // base), -1)
        units = [(of.astype(np.int64), "block")] if size else []
    else:
        rows = np.arange(len(machine))
        units = list(zip(nested_units(machine, rows), machine.topology.levels, strict=False))
        units.insert(0, (np.zeros(len(machine), dtype=np.int64), "machine"))
    for of, word in reversed(units):
        if np.bincount(of[machine.compute & (of >= 0)], minlength=1).max() >= segment:
            return Blocks(of, word)
    raise PlanError(f"no block of {machine.name} holds a segment of {counted(segment, 'node')}")


def in_segments(
    machine: Machine, request: Request, choose: Callable[[Machine, Request], Ints]
) -> Ints:
    """Return the rows that a planner chooses for a job in segments.

    `request`: with the nodes of a segment; one that is larger than the job has no effect, as in
    Slurm. Returns (count,): block by block; inside a block in the planner's order, so that each
    `segment` rows in a row are a segment.
    """
    segment = min(request.segment or 0, request.count)
    segments, left_over = divmod(request.count, segment)
    if left_over:
        raise PlanError(
            f"{request.count} nodes are not a multiple of --segment {segment}",
            f"the nearest counts are {segments * segment} and {(segments + 1) * segment}",
        )
    blocks = blocks_of(machine, segment)
    room = blocks.whole(request, segment)
    _refuse_few(request, blocks, room, segment)
    first = choose(machine, replace(request, free=_offer_blocks(request, blocks, room * segment)))
    shares = _segments_of_blocks(request, blocks, room, blocks.of[first], segment)
    inside = blocks.of[request.include]
    chosen = []
    for block in dict.fromkeys(blocks.of[first].tolist() + np.flatnonzero(shares).tolist()):
        free = request.free & (blocks.of == block)
        included = request.include[inside == block]
        if shares[block]:
            part = replace(request, count=int(shares[block]) * segment, free=free, include=included)
            chosen.append(choose(machine, part))
    return np.concatenate(chosen)


def _refuse_few(request: Request, blocks: Blocks, room: Ints, segment: int) -> None:
    """Raise if the free nodes allow too few segments, or the included ones need too many."""
    wanted, unit = request.count // segment, unit_name(blocks.word)
    what = f"{request.count} nodes as {counted(wanted, 'segment')} of {segment}"
    of_included = blocks.of[request.include]
    if (of_included < 0).any():
        raise PlanError(f"{what}: an included node is in no {unit}")
    must = -(-np.bincount(of_included, minlength=len(room)) // segment)
    if bool((must > room).any()) or int(must.sum()) > wanted:
        parts = counted(int((must > 0).sum()), blocks.word)
        raise PlanError(f"{what}: the included nodes are in {parts}")
    if int(room.sum()) < wanted:
        most = np.sort(blocks.whole(request, 1))[::-1]
        shown = ", ".join(map(str, most[:4])) + (" …" if len(most) > 4 else "")
        raise PlanError(
            f"{what} wanted, none split over a {unit}: there is room for {int(room.sum())}",
            f"free nodes of each {unit}: {shown}",
        )


def _offer_blocks(request: Request, blocks: Blocks, most: Ints) -> Mask:
    """Return the mask of at most this many free nodes per block, included ones first."""
    must = np.zeros(len(request.free), dtype=bool)
    must[request.include] = True
    rows = np.flatnonzero(request.free & (blocks.of >= 0))
    rows = rows[np.lexsort((rows, ~must[rows], blocks.of[rows]))]
    of = blocks.of[rows]
    rank = np.arange(len(rows)) - np.searchsorted(of, of)
    offered = np.zeros(len(request.free), dtype=bool)
    offered[rows[rank < most[of]]] = True
    return offered


def _segments_of_blocks(
    request: Request, blocks: Blocks, room: Ints, chosen: Ints, segment: int
) -> Ints:
    """Return each block's segments: near the planner's own nodes there, and complete."""
    nodes = np.bincount(chosen, minlength=len(room))
    shares = -(-np.bincount(blocks.of[request.include], minlength=len(room)) // segment)
    for _ in range(request.count // segment - int(shares.sum())):
        lacking = np.where(shares < room, nodes - segment * shares, np.iinfo(np.int64).min)
        shares[int(np.argmax(lacking))] += 1
    return shares
