"""Fewest groups, then fewest chassis, then fewest blades: which units hold a job.

Units are nested: groups of chassis of blades (or as many levels as a machine
has), each blade with so many free nodes. Wanted are blades with enough nodes
that touch as few groups as possible; among those choices as few chassis;
among those as few blades.

* Fewest groups: the largest.
* Fewest chassis in so many groups: a price p is put on a chassis. A group is
  then worth the best of (nodes of its c largest chassis - p c), and for any p
  the groups of most worth bound what can be reached: C chassis in K groups
  hold at most p C + their worth. The same groups, taken in full, are a choice.
  Where the best bound and the best choice agree, the choice is proved best.
* Fewest blades in so many chassis and groups: b blades of a set hold the
  least of (b t + the sum of (free - t) over its blades with more than t free
  nodes) over t = 0, 1, 2 …, so each t, and each mixture of two of them, gives
  a weight of chassis for which the above bounds and chooses.
* Where bound and choice differ, a search over all choices that the bounds
  leave open decides (`placement.planners._open`); it is given up after so many
  steps, and the result is then not marked as proved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.planners._open import Menu, Search

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]

__all__ = ["Nest", "fewest", "fewest_children", "fewest_grandchildren", "largest"]

#: Mixtures that a search uses as further bounds.
TIGHT = 4
#: Pairs of thresholds whose weights are mixed, and the shares.
PAIRS = 12
MIXTURES = ((1, 0), (7, 1), (3, 1), (3, 2), (1, 1), (2, 3), (1, 3), (1, 7))


@dataclass(frozen=True, slots=True, eq=False)
class Nest:
    """Units of up to three nested levels; the innermost hold nodes.

    Attributes
    ----------
    parents : list of int64
        For each level but the outermost, from the outside in, the unit above
        each of its units.
    size : int64 (units,)
        Free nodes of each innermost unit, at least 1.
    must : bool (units,)
        Innermost units that must be taken.
    """

    parents: list[Ints]
    size: Ints
    must: Mask


def fewest(nest: Nest, need: int) -> tuple[Ints, bool]:
    """Return innermost units with `need` nodes that touch the fewest units, outermost level first.

    Parameters
    ----------
    nest : Nest
        One to three levels.
    need : int
        At least 1, at most all nodes there are.

    Returns
    -------
    units : int64 (k,)
        Those that must be taken first, then by size.
    proved : bool
        True where no choice touches fewer.

    Examples
    --------
    >>> import numpy as np
    >>> none = np.zeros(5, dtype=bool)
    >>> nest = Nest([np.array([0, 0, 0, 1, 1])], np.array([2, 2, 2, 1, 4]), none)
    >>> fewest(nest, 5)
    (array([4, 3]), True)
    """
    if not nest.parents:
        return largest(nest.size, nest.must, need), True
    if len(nest.parents) == 1:
        return fewest_children(nest.parents[0], nest.size, nest.must, need)
    outer, inner = nest.parents
    held = np.bincount(inner, weights=nest.size, minlength=len(outer)).astype(np.int64)
    forced = np.bincount(inner, weights=nest.must, minlength=len(outer)) > 0
    middle, proved = fewest_children(outer, held, forced, need)
    if not proved:
        return _within(nest, middle, need), False
    return fewest_grandchildren(nest, need, middle)


def largest(size: Ints, must: Mask, need: int) -> Ints:
    """Return the fewest units with `need` nodes: those that must be taken, then the largest."""
    order = np.lexsort((-size, ~must))
    enough = int(np.searchsorted(np.cumsum(size[order]), need)) + 1
    return order[: max(enough, int(must.sum()))]


def _within(nest: Nest, middle: Ints, need: int) -> Ints:
    """Return the fewest innermost units among those of the chosen middle ones."""
    inside = np.flatnonzero(np.isin(nest.parents[1], middle))
    return inside[largest(nest.size[inside], nest.must[inside], need)]


def fewest_children(parent: Ints, size: Ints, must: Mask, need: int) -> tuple[Ints, bool]:
    """Return units with `need` nodes: fewest parents, then fewest units; and whether proved.

    Parameters
    ----------
    parent : int64 (units,)
    size : int64 (units,)
    must : bool (units,)
    need : int

    Returns
    -------
    units : int64 (k,)
    proved : bool
    """
    groups = _group_count(parent, size, must, need)
    menu = Menu(parent, size, must)
    prices = np.unique(np.concatenate([[0, 0.5], size, np.arange(min(size.max(), 64))]))
    worth, ranking = menu.worth(prices, groups)
    bound = int(np.ceil((need - worth[1:]) / prices[1:] - 1e-9).max())
    bound = max(bound, groups, int(must.sum()))
    found = _choice_of_children(menu, ranking, need)
    while len(found) > bound:
        search = Search(parent, must, size[None], groups, len(found) - 1)
        better, finished = search.decide(np.array([need]))
        if better is None:
            return found, finished
        found = better[largest(size[better], must[better], need)]
    return found, True


def _group_count(parent: Ints, size: Ints, must: Mask, need: int) -> int:
    held = np.bincount(parent, weights=size).astype(np.int64)
    return len(largest(held, np.bincount(parent, weights=must) > 0, need))


def _choice_of_children(menu: Menu, ranking: Ints, need: int) -> Ints:
    """Return the fewest children found in the groups that some price puts first."""
    best: Ints | None = None
    for groups in np.unique(np.sort(ranking, axis=1), axis=0):
        inside = np.flatnonzero(np.isin(menu.parent, groups))
        if menu.size[inside].sum() < need:
            continue
        found = inside[largest(menu.size[inside], menu.must[inside], need)]
        if best is None or len(found) < len(best):
            best = found
    assert best is not None  # the largest groups hold the job, whatever the price
    return best


def fewest_grandchildren(nest: Nest, need: int, middle: Ints) -> tuple[Ints, bool]:
    """Return innermost units: as few as can be in as many groups and chassis as `middle` has.

    Parameters
    ----------
    nest : Nest
        Three levels.
    need : int
    middle : int64 (c,)
        Units of the middle level that hold the job, proved the fewest.

    Returns
    -------
    units : int64 (k,)
    proved : bool
    """
    blades = _Blades(nest, need, middle)
    found, bound = blades.guess()
    if len(found) == bound:
        return found, True
    search = blades.search()
    while len(found) > bound:
        better, finished = search.decide(blades.need_of(len(found) - 1))
        if better is None:
            return found, finished
        found = _within(nest, better, need)
    return found, True


class _Blades:
    """The choice of chassis, in given numbers of chassis and groups, that needs fewest blades.

    Parameters
    ----------
    nest : Nest
        Three levels.
    need : int
    middle : int64 (c,)
        A choice of chassis to begin with.
    """

    def __init__(self, nest: Nest, need: int, middle: Ints) -> None:
        self.nest, self.need, self.middle = nest, need, middle
        self.outer, self.inner = nest.parents
        self.groups = len(np.unique(self.outer[middle]))
        self.fixed = int(nest.must.sum())
        self.forced = np.bincount(self.inner, weights=nest.must, minlength=len(self.outer)) > 0
        self.steps = np.concatenate([[0], np.unique(nest.size)[:-1]])
        self.weight = np.array([self._over(t) for t in self.steps])
        self.tight: list[tuple[float, Ints]] = []

    def _over(self, t: int) -> Ints:
        """Return the nodes beyond t a blade, by chassis; a blade that must be in counts whole."""
        over = np.where(self.nest.must, self.nest.size, np.maximum(self.nest.size - t, 0))
        return np.bincount(self.inner, weights=over, minlength=len(self.outer)).astype(np.int64)

    def need_of(self, blades: int) -> Ints:
        """Return what a choice of chassis must reach, threshold by threshold, to do with so few."""
        return np.asarray(self.need - (blades - self.fixed) * self.steps)

    def search(self) -> Search:
        """Return the search over all choices of as many chassis in as many groups."""
        best = sorted(self.tight, key=lambda pair: -pair[0])[:TIGHT]
        mixed = np.array([shares for _, shares in best], dtype=np.int64)
        mixed = mixed.reshape(-1, len(self.steps))
        chassis = len(self.middle)
        return Search(self.outer, self.forced, self.weight, self.groups, chassis, mixed)

    def guess(self) -> tuple[Ints, int]:
        """Return the best innermost units found, and how many are needed at least."""
        found = _within(self.nest, self.middle, self.need)
        rest = self.need - int(self.nest.size[self.nest.must].sum())
        bound = self.fixed + max(0, -(-rest // int(self.nest.size.max())))
        for shares in self._mixtures():
            if len(found) <= bound:
                break
            weight = shares @ self.weight
            menu = Menu(self.outer, weight, self.forced)
            prices = np.linspace(0, float(weight.max()), 49)
            worth, ranking = menu.worth(prices, self.groups)
            total = prices * len(self.middle) + worth
            slope = float(shares @ self.steps)
            if slope > 0:
                least = (self.need * int(shares.sum()) - float(total.min())) / slope
                self.tight.append((least, shares))
                bound = max(bound, self.fixed + int(np.ceil(least - 1e-9)))
            found = self._better(found, menu, ranking[self._near(total)])
        return found, bound

    def _mixtures(self) -> Iterator[Ints]:
        """Yield how the weights of the thresholds are mixed: each alone, then two and two."""
        number = len(self.steps)
        unit = np.eye(number, dtype=np.int64)
        yield from unit[1:]
        pairs = [(j - i, i, j) for i in range(number) for j in range(i + 1, number)]
        for _, i, j in sorted(pairs)[:PAIRS]:
            for a, b in MIXTURES[1:]:
                yield a * unit[i] + b * unit[j]

    @staticmethod
    def _near(total: NDArray[np.float64]) -> Ints:
        """Return the prices about the one that bounds best."""
        least = int(np.argmin(total))
        return np.arange(max(0, least - 2), min(len(total), least + 3))

    def _better(self, found: Ints, menu: Menu, ranking: Ints) -> Ints:
        """Return the better of `found` and the choices that the ranked groups give."""
        held = self.weight[0]
        for groups in np.unique(np.sort(ranking, axis=1), axis=0):
            inside = np.flatnonzero(np.isin(self.outer, groups))
            order = np.lexsort((-menu.size[inside], ~self.forced[inside]))
            middle = inside[order[: len(self.middle)]]
            if held[middle].sum() < self.need:
                continue
            other = _within(self.nest, middle, self.need)
            if len(other) < len(found):
                found = other
        return found
