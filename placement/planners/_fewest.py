"""Fewest groups, then fewest chassis, then fewest blades: which units hold a job.

Units are nested: groups of chassis of blades (or as many levels as a machine
has), each blade with so many free nodes. Wanted are blades with enough nodes
that touch as few groups as possible; among those choices as few chassis;
among those as few blades.

* Fewest groups: the largest.
* Fewest chassis in so many groups: a price is put on a chassis. A group is
  then worth the best of (nodes of its c largest chassis - price x c), and the
  groups of most worth at some price are the choice.
* Fewest blades in so many chassis and groups: b blades of a set hold the
  least of (b t + the sum of (free - t) over its blades with more than t free
  nodes) over t = 0, 1, 2 …, so each t, and each mixture of two of them, gives
  a weight of chassis of which the above makes a choice. The same prices bound
  what any choice can reach: where one meets the bound, no other is looked for.

Held against all choices in the tests: of thousands of nests at random it has
found the fewest in every one; nests can be made in which it takes a chassis or
two blades more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placement.support.array_types import Floats, Ints, Mask


__all__ = ["Nest", "fewest", "fewest_children", "largest"]

#: Pairs of thresholds whose weights are mixed, and the shares.
PAIRS = 12
MIXTURES = ((7, 1), (3, 1), (3, 2), (1, 1), (2, 3), (1, 3), (1, 7), (1, 15), (1, 31))
#: Prices a chassis that are tried for the weights of one mixture.
PRICES = 49

_NEVER = -1e15


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


def fewest(nest: Nest, need: int) -> Ints:
    """Return innermost units with `need` nodes that touch the fewest units, outermost level first.

    Parameters
    ----------
    nest : Nest
        One to three levels.
    need : int
        At least 1, at most all nodes there are.

    Returns
    -------
    int64 (k,)
        Those that must be taken first, then by size.

    Examples
    --------
    >>> import numpy as np
    >>> none = np.zeros(5, dtype=bool)
    >>> nest = Nest([np.array([0, 0, 0, 1, 1])], np.array([2, 2, 2, 1, 4]), none)
    >>> fewest(nest, 5)
    array([4, 3])
    """
    if not nest.parents:
        return largest(nest.size, nest.must, need)
    if len(nest.parents) == 1:
        return fewest_children(nest.parents[0], nest.size, nest.must, need)
    outer, inner = nest.parents
    held = np.bincount(inner, weights=nest.size, minlength=len(outer)).astype(np.int64)
    forced = np.bincount(inner, weights=nest.must, minlength=len(outer)) > 0
    middle = fewest_children(outer, held, forced, need)
    return _Blades(nest, need, middle).fewest()


def largest(size: Ints, must: Mask, need: int) -> Ints:
    """Return the fewest units with `need` nodes: those that must be taken, then the largest."""
    order = np.lexsort((-size, ~must))
    enough = int(np.searchsorted(np.cumsum(size[order]), need)) + 1
    return order[: max(enough, int(must.sum()))]


def fewest_children(parent: Ints, size: Ints, must: Mask, need: int) -> Ints:
    """Return units with `need` nodes: in the fewest parents, then as few units as can be.

    Parameters
    ----------
    parent : int64 (units,)
    size : int64 (units,)
    must : bool (units,)
    need : int

    Returns
    -------
    int64 (k,)
    """
    held = np.bincount(parent, weights=size).astype(np.int64)
    groups = len(largest(held, np.bincount(parent, weights=must) > 0, need))
    prices = np.unique(np.concatenate([[0, 0.5], size, np.arange(min(size.max(), 64))]))
    _, ranking = _worth(parent, size, must, prices, groups)
    choices = []
    for chosen in np.unique(np.sort(ranking, axis=1), axis=0):
        inside = np.flatnonzero(np.isin(parent, chosen))
        if size[inside].sum() >= need:
            choices.append(inside[largest(size[inside], must[inside], need)])
    return min(choices, key=len)  # the largest groups hold the job, whatever the price


def _worth(
    parent: Ints, size: Ints, must: Mask, prices: Floats, groups: int
) -> tuple[Floats, Ints]:
    """Return what the best so many groups are worth at each price a chassis, and which they are.

    Parameters
    ----------
    parent : int64 (chassis,)
        Group of each chassis; every group has one.
    size : int64 (chassis,)
        Weights.
    must : bool (chassis,)
        Chassis that must be taken: they come first in their group, and the
        group must be taken.
    prices : float64 (p,)
    groups : int

    Returns
    -------
    worth : float64 (p,)
    ranking : int64 (p, groups)
    """
    count = np.bincount(parent)
    order = np.lexsort((-size, ~must, parent))
    group = parent[order]
    table = np.zeros((len(count), int(count.max())))
    table[group, np.arange(len(order)) - (np.cumsum(count) - count)[group]] = size[order]
    forced = np.bincount(parent, weights=must)
    chassis = np.arange(1, table.shape[1] + 1)
    few = chassis < np.maximum(forced, 1)[:, None]
    value = np.where(few | (chassis > count[:, None]), _NEVER, np.cumsum(table, axis=1))
    gains = np.full((len(prices), len(count)), _NEVER)
    for c in chassis:
        np.maximum(gains, value[:, c - 1] - c * prices[:, None], out=gains)
    first = np.argsort(-gains - np.where(forced > 0, 1e14, 0), axis=1, kind="stable")
    ranking = first[:, :groups]
    return np.take_along_axis(gains, ranking, axis=1).sum(axis=1), ranking


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

    def _over(self, t: int) -> Ints:
        """Return the nodes beyond t a blade, by chassis; a blade that must be in counts whole."""
        over = np.where(self.nest.must, self.nest.size, np.maximum(self.nest.size - t, 0))
        return np.bincount(self.inner, weights=over, minlength=len(self.outer)).astype(np.int64)

    def fewest(self) -> Ints:
        """Return the fewest innermost units found."""
        found = self._within(self.middle)
        rest = self.need - int(self.nest.size[self.nest.must].sum())
        bound = self.fixed + max(0, -(-rest // int(self.nest.size.max())))
        for shares in self._mixtures():
            if len(found) <= bound:
                break
            weight = shares @ self.weight
            prices = np.linspace(0, float(weight.max()), PRICES)
            worth, ranking = _worth(self.outer, weight, self.forced, prices, self.groups)
            total = prices * len(self.middle) + worth
            slope = float(shares @ self.steps)
            if slope > 0:
                least = (self.need * int(shares.sum()) - float(total.min())) / slope
                bound = max(bound, self.fixed + int(np.ceil(least - 1e-9)))
            best = int(np.argmin(total))
            near = ranking[max(0, best - 2) : best + 3]
            found = min([found, *self._choices(weight, near)], key=len)
        return found

    def _mixtures(self) -> Iterator[Ints]:
        """Yield how the weights of the thresholds are mixed: each alone, then two and two."""
        number = len(self.steps)
        unit = np.eye(number, dtype=np.int64)
        yield from unit[1:]
        pairs = [(j - i, i, j) for i in range(number) for j in range(i + 1, number)]
        for _, i, j in sorted(pairs)[:PAIRS]:
            for a, b in MIXTURES:
                yield a * unit[i] + b * unit[j]

    def _choices(self, weight: Ints, ranking: Ints) -> Iterator[Ints]:
        """Yield the innermost units in the heaviest chassis of each choice of groups."""
        for groups in np.unique(np.sort(ranking, axis=1), axis=0):
            inside = np.flatnonzero(np.isin(self.outer, groups))
            order = np.lexsort((-weight[inside], ~self.forced[inside]))
            middle = inside[order[: len(self.middle)]]
            if self.weight[0][middle].sum() >= self.need:
                yield self._within(middle)

    def _within(self, middle: Ints) -> Ints:
        """Return the fewest innermost units among those of the chosen middle ones."""
        inside = np.flatnonzero(np.isin(self.inner, middle))
        return inside[largest(self.nest.size[inside], self.nest.must[inside], self.need)]
