# SPDX-License-Identifier: Apache-2.0
"""Planners ``slurm-tree``, ``slurm-tree-24.11``, ``slurm-dragonfly``: Slurm's choices on switches.

Under topology/tree Slurm takes whole leaves below one top switch until the
job is full. Each time it walks over the leaves in the order of topology.conf;
a leaf replaces the best so far where it is nearer to all that was taken and
fits no worse, or is as near and fits better. Of two leaves that one fits
better that is enough for what is left (the smaller of two such); where
neither is enough their parents are compared, and below a common parent the
larger one fits better.

From 24.11 on a nearer leaf wins wherever it (or the switch above it that was
compared) is enough, however well another fits, and nodes that are taken no
longer count for the switches above them (src/plugins/topology/tree/
eval_nodes_tree.c, commits 64263118c3 and 2ec1d02624).

That walk has no total order, so it is walked. But leaves that follow each
other below one switch are equally near and have the same parents: while none
of them is enough, the largest stands for all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from nidmap.placement.machine import Machine, Switches
from nidmap.placement.planners import Request, planner
from nidmap.placement.planners.slurm_job import (
    Pool,
    SlurmJob,
    choose_rows,
    lightest_that_fit,
    switches_in_node_order,
)
from nidmap.placement.support.array_types import Ints, Mask
from nidmap.placement.switch_tree import forest_roots, subtree_sums


@planner("slurm-tree", switches="tree")
def slurm_tree(machine: Machine, request: Request) -> Ints:
    """Choose as Slurm does under topology/tree: few leaf switches, best fit first.

    The switches are the machine's topology.conf or those of
    `nidmap.placement.switch_tree.slurm_switches`. Equal to the real
    slurmctld's allocations on random occupancies, weights and (uneven,
    disjoint) trees.
    """
    return _choose_on_switches(machine, request, pick_tree)


@planner("slurm-tree-24.11", switches="tree")
def slurm_tree_24_11(machine: Machine, request: Request) -> Ints:
    """Choose as Slurm 24.11 and later under topology/tree: near leaf switches, best fit first.

    Switches and errors are as in `slurm_tree`.
    """
    return _choose_on_switches(machine, request, partial(pick_tree, nearest=True))


@planner("slurm-dragonfly", switches="tree")
def slurm_dragonfly(machine: Machine, request: Request) -> Ints:
    """Choose as Slurm does with TopologyParam=Dragonfly: one leaf, else spread over all.

    Switches and errors are as in `slurm_tree`.
    """
    return _choose_on_switches(machine, request, pick_dragonfly)


def _choose_on_switches(
    machine: Machine, request: Request, walk: Callable[[SlurmJob, Switches], Ints | None]
) -> Ints:
    """Let `walk` choose on the machine's switches, with `leaf_of` in Slurm's node order."""
    tree = switches_in_node_order(machine)
    return choose_rows(machine, request, lambda job: walk(job, tree))


def pick_tree(job: SlurmJob, tree: Switches, nearest: bool = False) -> Ints | None:
    """Return the nodes that Slurm takes under topology/tree; None if the job would wait.

    `nearest`: as 24.11 and later choose.
    """
    top = _top_of_tree(job, tree)
    below = _mark_below(tree, top)
    if top < 0 or bool((job.must & ~below).any()):
        return None
    if int(job.must.sum()) >= job.count:
        return np.flatnonzero(job.must)
    pool = lightest_that_fit(job, below)
    return None if pool is None else _fill_leaves(tree, pool, top, nearest)


def pick_dragonfly(job: SlurmJob, tree: Switches) -> Ints | None:
    """Return the nodes Slurm takes with TopologyParam=Dragonfly; None if it would wait.

    The leaf with most free nodes (the first of equals) where the job fits in
    it; else one node of each leaf in turn, in the order of topology.conf.
    Groups are ignored. A job with required nodes in one leaf, or with low
    weights in one leaf, stays there where it can.
    """
    if int(job.must.sum()) >= job.count:
        return np.flatnonzero(job.must)
    top = _highest_touched(tree, job.must if job.must.any() else job.free)
    below = _mark_below(tree, top)
    if top < 0 or bool((job.must & ~below).any()):
        return None
    pool = lightest_that_fit(job, below)
    return None if pool is None else _deal_over_leaves(tree, pool)


def _per_leaf(tree: Switches, nodes: Mask) -> Ints:
    """Count the marked nodes attached directly to each switch."""
    leaves = tree.leaf_of[nodes]
    return np.bincount(leaves[leaves >= 0], minlength=len(tree.parent))


def _mark_below(tree: Switches, top: int) -> Mask:
    """Mark the nodes below the root `top`."""
    inside = forest_roots(tree) == top
    return np.where(tree.leaf_of >= 0, inside[tree.leaf_of], False)


def _highest_touched(tree: Switches, nodes: Mask) -> int:
    """Return the highest switch with a marked node below it; -1 if none."""
    touched = np.flatnonzero(subtree_sums(tree, _per_leaf(tree, nodes)))
    return int(touched[np.argmax(tree.level[touched])]) if len(touched) else -1


def _top_of_tree(job: SlurmJob, tree: Switches) -> int:
    """Return the top switch: the highest with a required node or with enough free nodes.

    Of equally high ones the last that has no heavier lightest node, -1 for none.
    """
    if job.must.any():
        return _highest_touched(tree, job.must)
    nodes = job.free & (tree.leaf_of >= 0)
    lightest = np.full(len(tree.parent), np.iinfo(np.int64).max, dtype=np.int64)
    np.minimum.at(lightest, tree.leaf_of[nodes], job.weight[nodes])
    lightest = subtree_sums(tree, lightest, np.minimum)
    top = -1
    for switch in np.flatnonzero(subtree_sums(tree, _per_leaf(tree, nodes)) >= job.count).tolist():
        # As slurmctld's loop: a later switch replaces an earlier one of its height, if its lightest
        # node is no heavier.
        if top < 0 or (tree.level[switch] >= tree.level[top] and lightest[switch] <= lightest[top]):
            top = switch
    return top


def _deal_over_leaves(tree: Switches, pool: Pool) -> Ints:
    """Take the rest from one leaf if it suffices, else one node per leaf in turn."""
    taken = np.flatnonzero(pool.taken)
    loose = np.flatnonzero(pool.open & ~pool.taken)
    leaf = tree.leaf_of[loose]
    begun = np.flatnonzero(_per_leaf(tree, pool.taken))
    if len(begun) <= 1:
        chosen = begun[0] if len(begun) else np.argmax(_per_leaf(tree, pool.open))
        if int((leaf == chosen).sum()) >= pool.left:
            return np.concatenate([taken, loose[leaf == chosen][: pool.left]])
    by_leaf = np.argsort(leaf, kind="stable")
    leaf = leaf[by_leaf]
    # The k-th free node of every leaf belongs to round k; rounds are taken one after the other,
    # leaves in order.
    turn = np.arange(len(leaf)) - np.searchsorted(leaf, leaf)
    return np.concatenate([taken, loose[by_leaf][np.lexsort((leaf, turn))][: pool.left]])


def _fill_leaves(tree: Switches, pool: Pool, top: int, nearest: bool) -> Ints | None:
    """Fill the leaves already in use, then leaf after leaf."""
    used = subtree_sums(tree, _per_leaf(tree, pool.taken)) > 0
    loose = np.flatnonzero(pool.open & ~pool.taken)
    by_leaf = loose[np.argsort(tree.leaf_of[loose], kind="stable")]
    leaf = tree.leaf_of[by_leaf]
    if len(loose) == pool.left:  # in any order
        return np.concatenate([np.flatnonzero(pool.taken), loose])
    begun = by_leaf[used[leaf]][: pool.left]
    left = pool.left - len(begun)
    walk = _Walk(tree, subtree_sums(tree, _per_leaf(tree, pool.open)), used, top, nearest)
    if nearest:
        walk.forget_begun(_per_leaf(tree, pool.open & ~pool.taken))
    order = walk.leaves(left)
    ends = zip(np.searchsorted(leaf, order), np.searchsorted(leaf, order, "right"), strict=True)
    nodes = [by_leaf[first:last] for first, last in ends]
    rows = np.concatenate([begun, *nodes])[: pool.left]
    return np.concatenate([np.flatnonzero(pool.taken), rows]) if len(rows) == pool.left else None


class _Walk:
    """Slurm's walks over the leaves below a root, one for each leaf that it takes.

    `number` (s,): nodes that may be taken below each switch. `used` (s,): switches with a node
    below that is taken already. `nearest`: as 24.11 and later choose.
    """

    def __init__(self, tree: Switches, number: Ints, used: Mask, top: int, nearest: bool) -> None:
        inside = forest_roots(tree) == top
        self.parent, self.level = tree.parent.tolist(), tree.level.tolist()
        self.number = np.where(inside, number, 0).tolist()
        leaves = np.flatnonzero((tree.level == 0) & inside & ~used & (number > 0))
        cuts = np.flatnonzero(np.diff(tree.parent[leaves])) + 1
        #: Open leaves that follow each other below one switch.
        self.runs = [run.tolist() for run in np.split(leaves, cuts) if len(run)]
        self.largest = [max(run, key=self.number.__getitem__) for run in self.runs]
        paths = [self._path(self.parent[run[0]], top) for run in self.runs]
        self.depth = np.array([len(path) for path in paths], dtype=np.int64)
        width = int(self.depth.max(initial=0))
        self.paths = np.array([path + [-1] * (width - len(path)) for path in paths], dtype=np.int64)
        self.top, self.nearest = top, nearest
        self.begun = np.flatnonzero((tree.level == 0) & inside & used).tolist()
        #: Switches in use at or below each one; the last entry stands for no switch.
        self.below = np.zeros(len(self.parent) + 1, dtype=np.int64)
        self.marks = 0
        for switch in np.flatnonzero(used & inside).tolist():
            self._mark(switch)

    def _path(self, switch: int, top: int) -> list[int]:
        """Return the switch and its ancestors except the root, which is equally near to all."""
        path = []
        while switch >= 0 and switch != top:
            path.append(switch)
            switch = self.parent[switch]
        return path

    def _mark(self, switch: int) -> None:
        self.marks += 1
        self.below[self._path(switch, self.top)] += 1

    def forget_begun(self, loose: Ints) -> None:
        """Subtract the nodes taken from leaves in use, `loose` (s,) from each.

        As slurmctld does: what it took in the leaves before is counted out once more for each.
        """
        taken = 0
        for leaf in self.begun:
            taken += int(loose[leaf])
            self._count_out(leaf, taken)

    def _count_out(self, leaf: int, taken: int) -> None:
        """Reduce the open nodes of a leaf and its ancestors by a number."""
        for switch in [*self._path(leaf, self.top), self.top]:
            self.number[switch] = max(self.number[switch] - taken, 0)

    def leaves(self, left: int) -> list[int]:
        """Return the leaves that Slurm takes for `left` nodes, in its order."""
        taken: list[int] = []
        while left > 0 and any(self.runs):
            # How near a run is to what is taken: for each level, switches in use below the same
            # ancestor count for, all others against it.
            near = (2 * self.below[self.paths].sum(axis=1) - self.marks * self.depth).tolist()
            run, leaf = self._best(self._offered(left), near, left)
            self.runs[run].remove(leaf)
            self._mark(leaf)
            left -= self.number[leaf]
            if self.nearest:
                self._count_out(leaf, self.number[leaf])
            self.largest[run] = max(self.runs[run], key=self.number.__getitem__, default=-1)
            taken.append(leaf)
        return taken

    def _offered(self, left: int) -> list[tuple[int, int]]:
        """Return runs and leaves: all sufficient leaves of each run, else its largest."""
        return [
            (run, leaf)
            for run, (leaves, largest) in enumerate(zip(self.runs, self.largest, strict=True))
            if leaves
            for leaf in (leaves if self.number[largest] >= left else (largest,))
        ]

    def _best(self, offered: list[tuple[int, int]], near: list[int], left: int) -> tuple[int, int]:
        best_run, best = offered[0]
        for run, leaf in offered:
            if near[run] >= near[best_run]:
                fit, enough = self._fit(leaf, best, left)
                nearer = near[run] > near[best_run]
                closer = nearer and (enough if self.nearest else fit == 0)
                if closer or (fit > 0 and not (nearer and self.nearest)):
                    best_run, best = run, leaf
        return best_run, best

    def _fit(self, i: int, j: int, left: int) -> tuple[int, bool]:
        """Return a positive number if leaf `i` fits better than leaf `j`, negative if worse.

        And whether `i`, or the switch above it that was compared, is enough.
        """
        number, parent = self.number, self.parent
        # Where neither is enough, their parents are compared, up to a common one.
        while number[i] < left and number[j] < left and parent[i] != parent[j]:
            if self.top in (i, j):  # nothing is above it
                break
            i, j = parent[i], parent[j]
        more: int = number[i] - number[j]
        if number[i] >= left and number[j] >= left:
            more = -more
        return more or self.level[j] - self.level[i], number[i] >= left
