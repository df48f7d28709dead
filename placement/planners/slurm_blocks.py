# SPDX-License-Identifier: Apache-2.0
"""Planner ``slurm-block``: Slurm's choice under topology/block, base blocks in larger blocks.

Adjacent base blocks make larger ones, by powers of two.

A job goes into one block of the smallest of the ``BlockSizes`` that holds it,
and there into as few blocks of the next smaller size as could hold it; a job
that would need more of those waits, whatever is free. Segments (``--segment``)
are placed one after the other, each as if it were a job.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nidmap.placement.machine import Machine, Switches
from nidmap.placement.planners import Request, planner
from nidmap.placement.planners.slurm_job import (
    SlurmJob,
    choose_rows,
    lightest_that_fit,
    switches_in_node_order,
)
from nidmap.placement.support.array_types import Ints, Mask
from nidmap.placement.switch_tree import block_sizes


@planner("slurm-block", switches="block")
def slurm_block(machine: Machine, request: Request) -> Ints:
    """Choose as Slurm does under topology/block: one block, few of its inner blocks.

    ``request.segment`` is Slurm's ``--segment``. A job that would need more base
    blocks than its nodes would fill waits, whatever is free.
    """
    blocks = switches_in_node_order(machine)
    return choose_rows(machine, request, lambda job: pick_blocks(job, blocks, request.segment))


def pick_blocks(job: SlurmJob, blocks: Switches, segment: int | None = None) -> Ints | None:
    """Return the nodes that Slurm takes under topology/block; None if the job would wait.

    `job`: required nodes next to several segments must be the whole job, as from Slurm 25.05 on.
    `blocks`: ``leaf_of`` is the base block of each node, in Slurm's node order. `segment`: nodes
    of a segment; it has no effect where it is larger than the job.
    """
    size = segment if segment and segment <= job.count else job.count
    if job.count % size:
        return None
    free, must = job.free, job.must
    if size < job.count and must.any():
        if int(must.sum()) < job.count:
            return None
        free, must = must, np.zeros_like(must)
    segments: list[Ints] = []
    for _ in range(job.count // size):
        taken = _pick_one(replace(job, count=size, free=free, must=must), blocks)
        if taken is None:
            return None
        segments.append(taken)
        free = free.copy()
        free[taken] = False
    return np.concatenate(segments)


@dataclass(slots=True)
class _BlockLevel:
    """The blocks in which a job of some size fits."""

    bases: int  # base blocks of one
    lower: int  # base blocks of a block of the next smaller size
    most: int  # this many of these a job may take

    @property
    def limited(self) -> bool:
        """Whether a job may take fewer of the lower blocks than exist."""
        return self.bases != self.lower * self.most


def _block_level(size: int, blocks: Switches) -> _BlockLevel:
    base, *_ = sizes = block_sizes(blocks)
    # All in base blocks: how many the job fills, the block size that holds these, and the next
    # smaller one.
    need = -(-size // base)
    lower = max((s // base for s in sizes if s // base < need), default=1)
    bases = min((s // base for s in sizes if s // base >= need), default=len(blocks.names))
    return _BlockLevel(bases, lower, -(-size // (lower * base)))


def _pick_one(job: SlurmJob, blocks: Switches) -> Ints | None:
    """Return the nodes of a job without segments."""
    level = _block_level(job.count, blocks)
    block = _block_of(job, blocks, level)
    if block is None:
        return None
    inside = (blocks.leaf_of >= 0) & (blocks.leaf_of // level.bases == block)
    if bool((job.must & ~inside).any()):
        return None
    if int(job.must.sum()) >= job.count:
        below = np.unique(blocks.leaf_of[job.must] // level.lower)
        return None if level.limited and len(below) > level.most else np.flatnonzero(job.must)
    pool = lightest_that_fit(job, inside)
    if pool is None:
        return None
    begun = _blocks_begun(job, blocks, level, pool.taken & ~job.must)
    if begun is None:
        return None
    used, left = begun
    taken = np.flatnonzero(pool.taken)
    loose = np.flatnonzero(pool.open & ~pool.taken)
    by_block = loose[np.argsort(blocks.leaf_of[loose], kind="stable")]
    in_used = by_block[used[blocks.leaf_of[by_block]]][: pool.left]
    rest = by_block[~used[blocks.leaf_of[by_block]]]
    more = _fill_bases(blocks, level, used, rest, pool.left - len(in_used), left, block)
    return None if more is None else np.concatenate([taken, in_used, more])


def _block_of(job: SlurmJob, blocks: Switches, level: _BlockLevel) -> int | None:
    """Return the required nodes' block, else the lightest with the fewest free nodes.

    Of several equal ones the last.
    """
    base = blocks.leaf_of.astype(np.int64)
    if job.must.any():
        where = base[job.must]
        return int(where.min()) // level.bases if where.min() >= 0 else None
    free = job.free & (base >= 0)
    count = -(-len(blocks.names) // level.bases)
    nodes = np.bincount(base[free] // level.bases, minlength=count)
    # A job that may take only some lower blocks counts only the nodes in the fullest of them.
    held = _held_at_most(base[free], level, count) if level.limited else nodes
    lightest = np.full(count, np.iinfo(np.int64).max, dtype=np.int64)
    np.minimum.at(lightest, base[free] // level.bases, job.weight[free])
    fit = np.flatnonzero(held >= job.count)
    # The last key of lexsort counts most: lightest node, then fewest free nodes, then the highest
    # number.
    return int(fit[np.lexsort((-fit, nodes[fit], lightest[fit]))[0]]) if len(fit) else None


def _held_at_most(base: Ints, level: _BlockLevel, count: int) -> Ints:
    """Return the nodes in each block's fullest lower blocks, as many as a job may take."""
    per = level.bases // level.lower
    lower = np.bincount(base // level.lower, minlength=count * per)
    table = np.sort(lower[: count * per].reshape(count, per), axis=1)[:, ::-1]
    return np.asarray(table[:, : level.most].sum(axis=1))


def _blocks_begun(
    job: SlurmJob, blocks: Switches, level: _BlockLevel, light: Mask
) -> tuple[Mask, int] | None:
    """Return the base blocks already in use, and how many lower blocks remain to be begun.

    Counted as Slurm does: a lower block twice where a block with light nodes
    comes before one with required nodes. None: more than there may be.
    """
    used = np.zeros(len(blocks.names), dtype=bool)
    if level.limited:
        used[blocks.leaf_of[job.must]] = True
    left = level.most - len(np.unique(np.flatnonzero(used) // level.lower))
    last = -1
    for block in np.unique(np.concatenate([np.flatnonzero(used), blocks.leaf_of[light]])).tolist():
        # Slurm compares with the block before only, and so counts a lower block again that it has
        # left in between.
        if not used[block] and (last < 0 or last != block // level.lower):
            left -= 1
        used[block], last = True, block // level.lower
    return (used, left) if left >= 0 else None


def _fill_bases(
    blocks: Switches, level: _BlockLevel, used: Mask, rest: Ints, need: int, left: int, block: int
) -> Ints | None:
    """Take base block after base block; None if there are not enough nodes.

    In a lower block in use, else in the one that fits better; then the base
    block that fits better: enough and small, else large. Of equals the last
    base block, but of equal lower blocks the last with a better base block.
    Slurm stops at a base block without a node, though others may have some.
    """
    base = blocks.leaf_of[rest]
    nodes = np.bincount(base, minlength=len(used))
    lower = np.bincount(base // level.lower, minlength=-(-len(used) // level.lower))
    first = block * level.bases
    waiting = [
        block for block in range(first, min(first + level.bases, len(used))) if not used[block]
    ]
    begun = set((np.flatnonzero(used) // level.lower).tolist())
    rows = [rest[:0]]

    def fit(block: int) -> tuple[int, ...]:
        base_fit = (*_fit_key(int(nodes[block]), need), block)
        above = block // level.lower
        if not level.limited:
            return base_fit
        return (above in begun, *_fit_key(int(lower[above]), need), *base_fit)

    while need > 0:
        best = max(waiting, key=fit, default=-1)
        # A base block of a lower block in use costs none of the lower blocks that are left.
        same = not level.limited or best // level.lower in begun
        if best < 0 or (left <= 0 and not same) or not nodes[best]:
            return None
        taken = rest[base == best][:need]
        rows.append(taken)
        need -= len(taken)
        waiting.remove(best)
        begun.add(best // level.lower)
        left -= not same
    return np.concatenate(rows)


def _fit_key(held: int, need: int) -> tuple[bool, int]:
    """Return a key for the better fit: the smallest sufficient size, else the largest."""
    return (True, -held) if held >= need else (False, held)
