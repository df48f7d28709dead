"""Slurm's choice with topology/tree: leaf after leaf, the best fit among the near ones.

Below one top switch Slurm takes whole leaves until the job is full. Each
time it walks over the leaves in the order of topology.conf; a leaf replaces
the best so far where it is nearer to all that was taken and fits no worse, or
is as near and fits better. Of two leaves that one fits better that is enough
for what is left (the smaller of two such); where neither is enough their
parents are compared, and below a common parent the larger one fits better.

That walk has no total order and costs leaves x leaves. It is done exactly,
but on few candidates: among leaves that are equally near (all those below a
switch of which nothing was taken yet) the best one stands for all, and as
long as no comparison changes its sign, a whole switch is emptied in one step.
Irregular trees (leaves at different depths, or a switch's leaves not together
in topology.conf) are walked leaf by leaf.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.planners._slurm import pool_of
from placement.switches import forest_roots, subtree_sums

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from placement.machine import Switches
    from placement.planners._slurm import Job, Pool

    Candidate = tuple[int, int]  # a leaf, its nearness

__all__ = ["per_leaf", "pick", "under_top"]


def pick(job: Job, tree: Switches) -> NDArray[np.int64] | None:
    """Return the nodes that Slurm takes, None where the job would wait."""
    top = _top(job, tree)
    if top < 0:
        return None
    under = under_top(tree, top)
    if bool((job.must & ~under).any()):
        return None
    if int(job.must.sum()) >= job.count:
        return np.flatnonzero(job.must)
    pool = pool_of(job, under)
    return None if pool is None else _filled(tree, pool, top)


def per_leaf(tree: Switches, nodes: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count the marked nodes of each switch that hang on it directly."""
    leaves = tree.leaf_of[nodes]
    return np.bincount(leaves[leaves >= 0], minlength=len(tree.parent))


def under_top(tree: Switches, top: int) -> NDArray[np.bool_]:
    """Mark the nodes below the root `top`."""
    below = forest_roots(tree) == top
    return np.where(tree.leaf_of >= 0, below[tree.leaf_of], False)


def _top(job: Job, tree: Switches) -> int:
    """Return the top switch: the highest with a required node, or with enough free nodes."""
    if job.must.any():
        touched = subtree_sums(tree, per_leaf(tree, job.must)) > 0
        at = np.flatnonzero(touched)
        return int(at[np.argmax(tree.level[at])]) if len(at) else -1
    enough = np.flatnonzero(subtree_sums(tree, per_leaf(tree, job.free)) >= job.count)
    lowest = _lowest_weights(job, tree)
    top = -1
    for switch in enough.tolist():
        if top < 0 or (tree.level[switch] >= tree.level[top] and lowest[switch] <= lowest[top]):
            top = switch
    return top


def _lowest_weights(job: Job, tree: Switches) -> NDArray[np.int64]:
    """Return the lowest weight of a free node below each switch."""
    lowest = np.full(len(tree.parent), np.iinfo(np.int64).max, dtype=np.int64)
    nodes = job.free & (tree.leaf_of >= 0)
    np.minimum.at(lowest, tree.leaf_of[nodes], job.weight[nodes])
    for level in range(int(tree.level.max(initial=-1))):
        here = np.flatnonzero((tree.level == level) & (tree.parent >= 0))
        np.minimum.at(lowest, tree.parent[here], lowest[here])
    return lowest


def _filled(tree: Switches, pool: Pool, top: int) -> NDArray[np.int64] | None:
    """Fill the leaves that are in use already, then leaf after leaf."""
    used = subtree_sums(tree, per_leaf(tree, pool.taken)) > 0
    chosen = [np.flatnonzero(pool.taken)]
    loose = np.flatnonzero(pool.open & ~pool.taken)
    leaf = tree.leaf_of[loose]
    by_leaf = loose[np.argsort(leaf, kind="stable")]
    left = pool.left
    begun = by_leaf[used[tree.leaf_of[by_leaf]]][:left]
    chosen.append(begun)
    left -= len(begun)
    if left > 0:
        walk = _Walk(tree, subtree_sums(tree, per_leaf(tree, pool.open)), used, top)
        order = walk.leaves(left)
        chosen.append(_of_leaves(tree, by_leaf, order)[:left])
        left -= len(chosen[-1])
    return None if left > 0 else np.concatenate(chosen)


def _of_leaves(tree: Switches, by_leaf: NDArray[np.int64], order: list[int]) -> NDArray[np.int64]:
    """Return the nodes of the leaves, leaf after leaf as given."""
    place = np.full(len(tree.parent), len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    at = place[tree.leaf_of[by_leaf]]
    found: NDArray[np.int64] = by_leaf[np.argsort(at, kind="stable")]
    return found[: int((at < len(order)).sum())]


@dataclass(frozen=True, slots=True)
class _Figures:
    """What the walk needs of the switches, as plain lists."""

    parent: list[int]
    level: list[int]
    number: list[int]

    def fit(self, i: int, j: int, left: int) -> int:
        """Return 1 where leaf `i` fits better than leaf `j`, -1 where worse, 0 where neither."""
        number, parent = self.number, self.parent
        while True:
            i_enough, j_enough = number[i] >= left, number[j] >= left
            if i_enough or j_enough:
                if i_enough and j_enough:
                    return _sign(number[j] - number[i]) or _sign(self.level[j] - self.level[i])
                return 1 if i_enough else -1
            if parent[i] == parent[j]:
                return _sign(number[i] - number[j]) or _sign(self.level[j] - self.level[i])
            i, j = parent[i], parent[j]


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


class _Walk:
    """The walk over the leaves below one root."""

    def __init__(
        self, tree: Switches, number: NDArray[np.int64], used: NDArray[np.bool_], top: int
    ) -> None:
        self.top = top
        roots = forest_roots(tree) == top
        number = np.where(roots, number, 0)
        self.used = np.flatnonzero(used & roots).tolist()
        self.candidates = np.flatnonzero((tree.level == 0) & roots & ~used & (number > 0))
        self.figures = _Figures(tree.parent.tolist(), tree.level.tolist(), number.tolist())
        self.regular = _is_regular(tree, self.candidates)

    def leaves(self, left: int) -> list[int]:
        """Return the leaves that Slurm takes for `left` nodes, in its order."""
        kind = _Lots if self.regular else _OneByOne
        return kind(self.figures, self.candidates.tolist(), self.used, self.top).leaves(left)


def _is_regular(tree: Switches, leaves: NDArray[np.int64]) -> bool:
    """Tell whether all leaves are equally deep and each switch's leaves stand together."""
    at = leaves
    while len(at):
        if len(np.unique(tree.level[at])) > 1:
            return False
        above = tree.parent[at]
        if bool((above < 0).all()):
            return True
        if bool((above < 0).any()):
            return False
        if 1 + int((np.diff(above) != 0).sum()) != len(np.unique(above)):
            return False
        at = above[np.diff(above, prepend=-1) != 0]
    return True


def _first_best(figures: _Figures, candidates: list[Candidate], left: int) -> int:
    """Walk the candidates and return the place of the one that Slurm takes, -1 for none."""
    best = -1
    best_leaf = best_near = 0
    for place, (leaf, near) in enumerate(candidates):
        if best >= 0:
            if near < best_near:
                continue
            fit = figures.fit(leaf, best_leaf, left)
            if fit < 0 or (fit == 0 and near == best_near):
                continue
        best, best_leaf, best_near = place, leaf, near
    return best


class _OneByOne:
    """Any forest: all leaves are looked at for each one that is taken."""

    def __init__(self, figures: _Figures, leaves: list[int], used: list[int], top: int) -> None:
        self.figures = figures
        self.open = leaves
        self.top = top
        self.depth = self._depths()
        self.marks = 0
        self.below = [0] * len(figures.parent)
        for switch in used:
            self._mark(switch)

    def _depths(self) -> dict[int, int]:
        return {leaf: sum(1 for _ in self._path(leaf)) for leaf in self.open}

    def _path(self, switch: int) -> Iterator[int]:
        while switch >= 0:
            yield switch
            switch = self.figures.parent[switch]

    def _mark(self, switch: int) -> None:
        """Count a switch in use at all switches above it; at the root it would tell nothing."""
        self.marks += 1
        for at in self._path(switch):
            if at != self.top:
                self.below[at] += 1

    def leaves(self, left: int) -> list[int]:
        """Return the leaves that Slurm takes for `left` nodes, in its order."""
        number, taken = self.figures.number, []
        while left > 0 and self.open:
            near = self._nearness()
            parent = self.figures.parent
            offered = [(leaf, near[parent[leaf]]) for leaf in self.open]
            leaf = self.open.pop(_first_best(self.figures, offered, left))
            taken.append(leaf)
            left -= number[leaf]
            self._mark(leaf)
        return taken

    def _nearness(self) -> dict[int, int]:
        """Return how near the open leaves of each switch are: minus the sum of hops, shifted."""
        near: dict[int, int] = {-1: 0}
        for leaf in self.open:
            parent = self.figures.parent[leaf]
            if parent not in near:
                shared = sum(self.below[at] for at in self._path(parent))
                near[parent] = 2 * shared - self.marks * self.depth[leaf]
        return near


@dataclass(slots=True)
class _Lot:
    """Equally near leaves: those below the untouched children of `switch` from start to end.

    Attributes
    ----------
    switch, start, end : int
        Places in the switch's row of children.
    height : int
        Of the children: 0 where they are leaves.
    leaf, most : int
        The best leaf, and the largest number of nodes of a child.
    """

    switch: int
    start: int
    end: int
    height: int
    leaf: int = -1
    most: int = 0


class _Lots:
    """A regular tree: equally near leaves are looked at together.

    A switch is open once something below it is in use. The leaves below the
    other children of its parent are equally near to all that is in use, and
    the best of them stands for the lot.
    """

    def __init__(self, figures: _Figures, leaves: list[int], used: list[int], top: int) -> None:
        self.figures = figures
        self.top = top
        self.values = sorted(set(figures.number))
        self.kids: dict[int, list[int]] = {}
        self.place: dict[int, int] = {}
        self.height: dict[int, int] = dict.fromkeys(leaves, 0)
        self.limit: list[int] = []
        self._plant(leaves)
        self.row = {
            s: np.array([figures.number[k] for k in kids], dtype=np.int64)
            for s, kids in self.kids.items()
        }
        self.below = [0] * len(figures.parent)
        self.near = [0] * len(figures.parent)
        self.open: list[int] = []
        for switch in used:
            self._mark(switch)
        self.left = 0
        self.lots = list(self._lots(top, {s for s in used if s in self.kids})) if leaves else []

    def _plant(self, leaves: list[int]) -> None:
        """Note the children with candidates of each switch, and the largest of each height."""
        at = leaves
        while at and at != [self.top]:
            self.limit.append(max(self.figures.number[s] for s in at))
            above: list[int] = []
            for switch in at:
                parent = self.figures.parent[switch]
                if parent not in self.kids:
                    self.kids[parent] = []
                    self.height[parent] = len(self.limit)
                    above.append(parent)
                self.place[switch] = len(self.kids[parent])
                self.kids[parent].append(switch)
            at = above

    def _lots(self, switch: int, opened: set[int]) -> Iterator[_Lot]:
        """Yield the lots below a switch in table order, opening those children that are in use."""
        start = 0
        kids = self.kids.get(switch, [])
        for place, kid in enumerate(kids):
            if kid in opened:
                yield from self._lot(switch, start, place)
                self._open(kid)
                yield from self._lots(kid, opened)
                start = place + 1
        yield from self._lot(switch, start, len(kids))

    def _lot(self, switch: int, start: int, end: int) -> Iterator[_Lot]:
        """Yield one lot, nothing where no child in it is left."""
        if end > start:
            lot = _Lot(switch, start, end, self.height[self.kids[switch][start]])
            if self._look(lot):
                yield lot

    def _open(self, switch: int) -> None:
        """Take a switch out of its parent's row: it has lots of its own now."""
        self.row[self.figures.parent[switch]][self.place[switch]] = -1
        self.open.append(switch)

    def _look(self, lot: _Lot) -> bool:
        """Find the best leaf of a lot; False where nothing is left in it."""
        numbers = self.row[lot.switch][lot.start : lot.end]
        place = int(np.argmax(numbers))
        lot.most = int(numbers[place])
        if 0 < self.left <= lot.most:
            place = _tightest(numbers, self.left)
        lot.leaf = self._largest_leaf(self.kids[lot.switch][lot.start + place])
        return lot.most > 0

    def _largest_leaf(self, switch: int) -> int:
        """Return the best leaf below an untouched switch where nothing is enough by itself."""
        while switch in self.kids:
            switch = self.kids[switch][int(np.argmax(self.row[switch]))]
        return switch

    def _path(self, switch: int) -> Iterator[int]:
        """Yield the switch and those above it, the root left out: it is near to all alike."""
        while switch != self.top:
            yield switch
            switch = self.figures.parent[switch]

    def _mark(self, switch: int) -> None:
        """Count a switch in use at all switches above it."""
        for at in self._path(switch):
            self.below[at] += 1

    def leaves(self, left: int) -> list[int]:
        """Return the leaves that Slurm takes for `left` nodes, in its order."""
        if not self.kids:  # the root is the only leaf, or there is none
            return [leaf for leaf in self.height if leaf == self.top]
        taken: list[int] = []
        self.left = left
        while self.left > 0 and self.lots:
            self._divide()
            self._measure()
            taken += self._single() if self.left <= self.limit[0] else self._several()
        return taken

    def _divide(self) -> None:
        """Part the lots below whose children something may be enough by itself."""
        while any(lot.height and self.left <= self.limit[lot.height - 1] for lot in self.lots):
            parted: list[_Lot] = []
            for lot in self.lots:
                if lot.height and self.left <= self.limit[lot.height - 1]:
                    parted += self._parts(lot)
                else:
                    parted.append(lot)
            self.lots = parted

    def _parts(self, lot: _Lot) -> Iterator[_Lot]:
        numbers = self.row[lot.switch]
        for place in range(lot.start, lot.end):
            if numbers[place] > 0:
                kid = self.kids[lot.switch][place]
                self._open(kid)
                yield from self._lot(kid, 0, len(self.kids[kid]))

    def _measure(self) -> None:
        """Work out how near the leaves of each open switch are: hops saved, up to a constant."""
        if len(self.open) > 64 + 2 * len(self.lots):
            live = {at for lot in self.lots for at in self._path(lot.switch)}
            self.open = [switch for switch in self.open if switch in live]
        parent, below, near = self.figures.parent, self.below, self.near
        for switch in self.open:
            near[switch] = near[parent[switch]] + below[switch]

    def _single(self) -> list[int]:
        """Take one leaf where a leaf may be enough by itself: every leaf is looked at."""
        offered: list[Candidate] = []
        where: list[int] = []
        for index, lot in enumerate(self.lots):
            kids, near = self.kids[lot.switch], self.near[lot.switch]
            places = np.flatnonzero(self.row[lot.switch] > 0).tolist()
            offered += [(kids[place], near) for place in places]
            where += [index] * len(places)
        best = _first_best(self.figures, offered, self.left)
        self._take(where[best], [offered[best][0]])
        return [offered[best][0]]

    def _several(self) -> list[int]:
        """Take the best leaf, and those beside it that would come next in any case."""
        for lot in self.lots:
            if lot.most >= self.left:
                self._look(lot)
        near = self.near
        offered = [(lot.leaf, near[lot.switch]) for lot in self.lots]
        index = _first_best(self.figures, offered, self.left)
        lot = self.lots[index]
        group = [lot.leaf]
        if not lot.height and self._stays(offered, index):
            group = self._by_size(lot.switch)
        self._take(index, group)
        return group

    def _stays(self, offered: list[Candidate], index: int) -> bool:
        """Tell whether the walk will end at this lot again after a leaf of it is taken.

        It will where none is nearer (it becomes nearer still with each leaf)
        and none before it fits better.
        """
        leaf, near = offered[index]
        if any(other > near for _, other in offered):
            return False
        fit, left = self.figures.fit, self.left
        return all(fit(leaf, other, left) >= 0 for other, _ in offered[:index])

    def _by_size(self, switch: int) -> list[int]:
        """Return the leaves of a switch, largest first, before another switch becomes enough."""
        row = self.row[switch]
        order = np.argsort(-row, kind="stable")[: int((row > 0).sum())]
        left_before = self.left - np.cumsum(row[order]) + row[order]
        next_value = self.values[bisect_left(self.values, self.left) - 1]
        many = max(1, int((left_before > next_value).sum()))
        return [self.kids[switch][place] for place in order[:many].tolist()]

    def _take(self, index: int, leaves: list[int]) -> None:
        """Take leaves of one lot: one leaf of any lot, or several of a lot of leaves."""
        lot = self.lots[index]
        path = [at for at in self._path(leaves[0]) if at in self.kids]
        inner = path[: path.index(lot.switch)] if lot.switch in path else path
        for at in reversed(inner):
            self._open(at)
        for leaf in leaves:
            self._mark(leaf)
            self.left -= self.figures.number[leaf]
            self.row[self.figures.parent[leaf]][self.place[leaf]] = -1
        self.lots[index : index + 1] = self._pieces(lot, inner[::-1])
        self._join(index)

    def _pieces(self, lot: _Lot, inner: list[int]) -> Iterator[_Lot]:
        """Yield what is left of a lot whose switches `inner`, outermost first, were opened."""
        if not inner:
            yield from self._lot(lot.switch, lot.start, lot.end)
            return
        place = self.place[inner[0]]
        whole = _Lot(inner[0], 0, len(self.kids[inner[0]]), lot.height - 1)
        yield from self._lot(lot.switch, lot.start, place)
        yield from self._pieces(whole, inner[1:])
        yield from self._lot(lot.switch, place + 1, lot.end)

    def _join(self, index: int) -> None:
        """Join the lots around an exhausted switch, and forget that one."""
        at = max(index - 1, 0)
        while at + 1 < len(self.lots) and at <= index:
            one, two = self.lots[at], self.lots[at + 1]
            if one.switch != two.switch:
                at += 1
                continue
            one.end = two.end
            self._look(one)
            del self.lots[at + 1]


def _tightest(numbers: NDArray[np.int64], left: int) -> int:
    """Return the place of the smallest number that is at least `left`, the first of equals."""
    enough = np.flatnonzero(numbers >= left)
    return int(enough[np.argmin(numbers[enough])])
