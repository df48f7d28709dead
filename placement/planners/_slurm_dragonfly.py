"""Slurm's choice with TopologyParam=Dragonfly: one leaf, else round-robin over all leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.planners._slurm import pool_of
from placement.planners._slurm_tree import per_leaf, under_top
from placement.switches import subtree_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Switches
    from placement.planners._slurm import Job, Pool

__all__ = ["pick"]


def pick(job: Job, tree: Switches) -> NDArray[np.int64] | None:
    """Return the nodes that Slurm takes, None where the job would wait.

    The leaf with most free nodes (the first of equals) where the job fits in
    it; else one node of each leaf in turn, in the order of topology.conf.
    Groups are ignored. A job with required nodes in one leaf, or with low
    weights in one leaf, stays there where it can.
    """
    if int(job.must.sum()) >= job.count:
        return np.flatnonzero(job.must)
    top = _top(job, tree)
    if top < 0:
        return None
    under = under_top(tree, top)
    if bool((job.must & ~under).any()):
        return None
    pool = pool_of(job, under)
    return None if pool is None else _filled(tree, pool)


def _top(job: Job, tree: Switches) -> int:
    """Return the highest switch with a required node, or else with any free node."""
    wanted = job.must if job.must.any() else job.free
    touched = np.flatnonzero(subtree_sums(tree, per_leaf(tree, wanted)) > 0)
    return int(touched[np.argmax(tree.level[touched])]) if len(touched) else -1


def _filled(tree: Switches, pool: Pool) -> NDArray[np.int64]:
    taken = np.flatnonzero(pool.taken)
    loose = np.flatnonzero(pool.open & ~pool.taken)
    leaf = tree.leaf_of[loose]
    one = _one_leaf(tree, pool)
    if one >= 0 and int((leaf == one).sum()) >= pool.left:
        return np.concatenate([taken, loose[leaf == one][: pool.left]])
    by_leaf = np.argsort(leaf, kind="stable")
    leaf = leaf[by_leaf]
    turn = np.arange(len(leaf)) - np.searchsorted(leaf, leaf)
    return np.concatenate([taken, loose[by_leaf][np.lexsort((leaf, turn))][: pool.left]])


def _one_leaf(tree: Switches, pool: Pool) -> int:
    """Return the leaf in which the job starts, -1 where it has started in several."""
    started = np.flatnonzero(per_leaf(tree, pool.taken))
    if len(started) > 1:
        return -1
    return int(started[0]) if len(started) else int(np.argmax(per_leaf(tree, pool.open)))
