# SPDX-License-Identifier: Apache-2.0
"""Slurm 22.05's choice of whole nodes, word by word: sets and loops, no shortcuts.

This is the measure for the fast planners on small machines; it was itself
held against a real slurmctld (see test_slurm_real.py). Nodes are numbers in
Slurm's own order. `None` means that Slurm would leave the job pending.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache


@dataclass
class Run:
    """Consecutive free nodes of one weight; `required` is the first required node in it."""

    nodes: list[int] = field(default_factory=list)
    required: int = -1
    weight: int | None = None
    start: int = 0
    end: int = 0

    def size(self, cpus: list[int]) -> int:
        return sum(cpus[n] for n in self.nodes)


def make_runs(n, free, must, weight):
    """Cut the node table into runs, with the quirks of required nodes at a border."""
    runs = [Run()]
    for node in range(n):
        here = runs[-1]
        if node not in free:
            if here.nodes:
                here.end = node - 1
                runs.append(Run())
            else:
                here.required, here.weight = -1, None
            continue
        if here.weight is not None and weight[node] != here.weight:
            if here.nodes:
                here.end = node - 1
                runs.append(Run(weight=0))  # Slurm leaves 0 there, not "none yet"
                here = runs[-1]
            else:
                here.required = -1
        if not here.nodes:
            here.start = node
        if node in must:
            if here.required < 0:
                here.required = node
            continue
        here.nodes.append(node)
        here.weight = weight[node]
    runs[-1].end = n - 1
    return [r for r in runs if r.nodes]


def beats(run, best, cpus, left):
    """Tell whether `run` replaces the best run so far."""
    if best is None or (best.required < 0 <= run.required) or run.weight < best.weight:
        return True
    enough, best_enough = len(run.nodes) >= left, len(best.nodes) >= left
    size, best_size = run.size(cpus), best.size(cpus)
    if run.weight == best.weight:
        if enough and (not best_enough or size < best_size):
            return True
        if not enough and size > best_size:
            return True
    return False


def consecutive(n, free, count, must=(), weight=None, cpus=None):
    """topology/none."""
    weight = weight or [1] * n
    cpus = cpus or [1] * n
    must = set(must)
    chosen = set(must)
    left = count - len(must)
    runs = make_runs(n, set(free), must, weight)
    while left > 0:
        best = best_run(runs, cpus, left)
        if best is None:
            return None
        taken = order_in(best, left, cpus)[:left]
        chosen |= set(taken)
        left -= len(taken)
        runs.remove(best)
    return sorted(chosen)


def best_run(runs, cpus, left):
    """Walk over the runs and return the one that Slurm takes."""
    best = None
    for run in runs:
        if beats(run, best, cpus, left):
            best = run
    return best


def order_in(run, left, cpus):
    """Return a run's nodes in the order in which Slurm takes them."""
    if run.required >= 0:
        up = [n for n in run.nodes if n > run.required]
        return up + [n for n in reversed(run.nodes) if n < run.required]
    if left <= 1:
        return [min(run.nodes, key=lambda n: (cpus[n], n))]
    return list(run.nodes)


@dataclass(eq=False)
class Tree:
    """Switches in the order of topology.conf."""

    parent: list[int]
    level: list[int]
    below: list[set[int]]

    @classmethod
    def of(cls, parent, leaf_of):
        """Build it from the parents and each node's leaf."""
        s = len(parent)
        below = [set() for _ in range(s)]
        leaves = set(range(s)) - set(parent)
        level = [0] * s
        for leaf in leaves:
            height, up = 0, leaf
            while up >= 0:
                level[up] = max(level[up], height)
                up, height = parent[up], height + 1
        for node, leaf in enumerate(leaf_of):
            up = leaf
            while up >= 0:
                below[up].add(node)
                up = parent[up]
        return cls(list(parent), level, below)

    def path(self, s):
        out = [s]
        while self.parent[out[-1]] >= 0:
            out.append(self.parent[out[-1]])
        return out

    @cache  # noqa: B019  # a tree lives as long as its test
    def hops(self, a, b):
        """Return the links between two switches, None where there is no path."""
        up, down = self.path(a), self.path(b)
        shared = [s for s in up if s in down]
        return up.index(shared[0]) + down.index(shared[0]) if shared else None


def by_weight(free, must, weight, left):
    """Return the nodes of the low weights that are all taken, and those to choose from."""
    lower, pool = set(), set()
    for w in sorted({weight[n] for n in free}):
        lower = set(pool)
        pool |= {n for n in free if weight[n] == w and n not in must}
        if len(pool) >= left:
            return lower, pool
    return None, None


def prefer(tree, i, j, left, count):
    """Compare two leaves as Slurm does: 1 where i is the better fit, -1 where j is.

    And whether i, or the switch above it that was compared last, is enough.
    """
    while True:
        i_fits, j_fits = count[i] >= left, count[j] >= left
        if i_fits and j_fits:
            if count[i] != count[j]:
                return 1 if count[i] < count[j] else -1, True
            break
        if i_fits or j_fits:
            return 1 if i_fits else -1, i_fits
        parents = tree.parent[i], tree.parent[j]
        if parents[0] != parents[1] and -1 not in parents:
            i, j = parents
            continue
        break
    if count[i] != count[j]:
        return 1 if count[i] > count[j] else -1, i_fits
    if tree.level[i] != tree.level[j]:
        return 1 if tree.level[i] < tree.level[j] else -1, i_fits
    return 0, i_fits


def top_for_tree(tree, free, must, weight, count):
    top = -1
    lowest = 0
    for s, below in enumerate(tree.below):
        have = below & free
        if must:
            if have & must and (top < 0 or tree.level[s] > tree.level[top]):
                top = s
        elif have and len(have) >= count:
            least = min(weight[n] for n in have)
            if top < 0 or (tree.level[s] >= tree.level[top] and least <= lowest):
                top, lowest = s, least
    return top


def top_for_dragonfly(tree, free, must):
    top = -1
    wanted = must or free
    for s, below in enumerate(tree.below):
        if below & wanted and (top < 0 or tree.level[s] > tree.level[top]):
            top = s
    return top


def prepare(tree, top, free, must, weight, count):
    """Return (chosen, pool, left, required switches), None where it cannot be."""
    if top < 0 or not must <= tree.below[top]:
        return None
    left = count - len(must)
    lower, pool = by_weight(free & tree.below[top], must, weight, left)
    if pool is None:
        return None
    chosen = set(must) | lower
    needed = {s for s, below in enumerate(tree.below) if below & free & chosen}
    return chosen, pool | chosen, left - len(lower), needed


def count_out(tree, s, taken, number):
    """Let `taken` nodes fewer be open below a switch and all above it (24.11)."""
    for up in tree.path(s):
        number[up] = max(number[up] - taken, 0)


def tree_choice(tree, n, free, count, must=(), weight=None, nearest=False):
    """topology/tree; `nearest`: of 24.11 and later."""
    weight = weight or [1] * n
    free, must = set(free), set(must)
    top = top_for_tree(tree, free, must, weight, count)
    if len(must) >= count:
        return sorted(must) if top >= 0 and must <= tree.below[top] else None
    ready = prepare(tree, top, free, must, weight, count)
    if ready is None:
        return None
    chosen, pool, left, needed = ready
    have = [sorted(below & pool & tree.below[top]) for below in tree.below]
    number = [len(h) for h in have]
    leaves = [s for s in range(len(tree.parent)) if tree.level[s] == 0]
    begun = 0
    for s in (s for s in leaves if s in needed):
        more = [node for node in have[s] if node not in chosen][:left]
        chosen |= set(more)
        left -= len(more)
        begun += len(more)
        if nearest:
            count_out(tree, s, begun, number)
    marks = list(needed)
    while left > 0:
        best = best_leaf(tree, [s for s in leaves if s not in needed], marks, left, number, nearest)
        if best < 0:
            return None
        marks.append(best)
        taken = have[best][:left]
        chosen |= set(taken)
        left -= len(taken)
        if nearest:
            count_out(tree, best, number[best], number)
        number[best] = 0
    return sorted(chosen)


def best_leaf(tree, leaves, marks, left, number, nearest):
    """Walk over the leaves and return the one that Slurm takes, -1 for none."""
    best, best_far = -1, 0
    for s in leaves:
        if not number[s]:
            continue
        far = sum(tree.hops(s, m) for m in marks)
        if best >= 0:
            fit, enough = prefer(tree, s, best, left, number)
            closer = far < best_far and (enough if nearest else fit >= 0)
            if not (closer or (far == best_far and fit > 0)):
                continue
        best, best_far = s, far
    return best


def dragonfly_choice(tree, n, free, count, must=(), weight=None):
    """topology/tree with TopologyParam=Dragonfly."""
    weight = weight or [1] * n
    free, must = set(free), set(must)
    if len(must) >= count:
        return sorted(must)
    ready = prepare(tree, top_for_dragonfly(tree, free, must), free, must, weight, count)
    if ready is None:
        return None
    chosen, pool, left, needed = ready
    top = top_for_dragonfly(tree, free, must)
    have = [sorted(below & pool & tree.below[top]) for below in tree.below]
    leaves = [s for s in range(len(tree.parent)) if tree.level[s] == 0]
    started = [s for s in leaves if s in needed]
    if not started:
        started = [max(leaves, key=lambda s: (len(have[s]), -s))]
    if len(started) == 1:
        rest = [node for node in have[started[0]] if node not in chosen]
        if len(rest) >= left:
            return sorted(chosen | set(rest[:left]))
    while left > 0:
        before = left
        for s in leaves:
            node = next((m for m in have[s] if m not in chosen), None)
            if node is not None and left > 0:
                chosen.add(node)
                left -= 1
        if left == before:
            return None
    return sorted(chosen)


def retried(choose, free, must, cpus):
    """Call `choose(free)`; where it finds nothing, without the nodes of the fewest CPUs, and so on.

    Slurm does so against knapsack problems; with equal nodes it changes nothing.
    """
    found = choose(set(free))
    for few in sorted(set(cpus))[:-1]:
        if found is not None:
            break
        found = choose({n for n in free if cpus[n] > few or n in must})
    return found
