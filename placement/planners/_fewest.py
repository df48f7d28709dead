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
  a weight of chassis of which the above makes a choice. Where one needs no more
  blades than the machine's largest would, no other is looked for.

Held against all choices in the tests: of thousands of nests at random it has
found the fewest in every one; nests can be made in which it takes a chassis or
two blades more.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placement.support.array_types import Floats, Ints, Mask

__all__ = ["fewest", "fewest_children", "largest"]

#: Pairs of thresholds whose weights are mixed, and the shares.
PAIRS = 12
MIXTURES = ((7, 1), (3, 1), (3, 2), (1, 1), (2, 3), (1, 3), (1, 7), (1, 15), (1, 31))
#: Prices a chassis that are tried for the weights of one mixture.
PRICES = 49

_NEVER = -1e15


def fewest(parents: list[Ints], size: Ints, must: Mask, need: int) -> Ints:
    """Return innermost units with `need` nodes that touch the fewest units, outermost level first.

    Parameters
    ----------
    parents : list of int64
        For each of up to three levels but the outermost, from the outside in, the unit above
        each of its units.
    size : int64 (units,)
        Free nodes of each innermost unit, at least 1.
    must : bool (units,)
        Innermost units that must be taken.
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
    >>> fewest([np.array([0, 0, 0, 1, 1])], np.array([2, 2, 2, 1, 4]), none, 5)
    array([4, 3])
    """
    if not parents:
        return largest(size, must, need)
    if len(parents) == 1:
        return fewest_children(parents[0], size, must, need)
    outer, inner = parents
    return _fewest_blades(outer, inner, size, must, need)


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


def _fewest_blades(outer: Ints, inner: Ints, size: Ints, must: Mask, need: int) -> Ints:
    """Return the fewest blades found in the fewest groups and chassis.

    Parameters
    ----------
    outer : int64 (chassis,)
        Group of each chassis.
    inner : int64 (blades,)
        Chassis of each blade.
    size, must : (blades,)
    need : int
        As for `fewest`.
    """
    chassis = len(outer)
    held = np.bincount(inner, weights=size, minlength=chassis).astype(np.int64)
    forced = np.bincount(inner, weights=must, minlength=chassis) > 0
    middle = fewest_children(outer, held, forced, need)
    groups = len(np.unique(outer[middle]))
    steps = np.concatenate([[0], np.unique(size)[:-1]])
    # nodes beyond t a blade, by chassis; a blade that must be in counts whole
    over = [np.where(must, size, np.maximum(size - t, 0)) for t in steps]
    heavy = np.array([np.bincount(inner, w, chassis) for w in over]).astype(np.int64)

    def within(chosen: Ints) -> Ints:
        inside = np.flatnonzero(np.isin(inner, chosen))
        return inside[largest(size[inside], must[inside], need)]

    found = within(middle)
    least = len(largest(size, must, need))
    for shares in _mixtures(len(steps)):
        if len(found) == least:
            break
        weight = shares @ heavy
        prices = np.linspace(0, float(weight.max()), PRICES)
        worth, ranking = _worth(outer, weight, forced, prices, groups)
        best = int(np.argmin(prices * len(middle) + worth))
        near = ranking[max(0, best - 2) : best + 3]
        for some in np.unique(np.sort(near, axis=1), axis=0):
            inside = np.flatnonzero(np.isin(outer, some))
            order = np.lexsort((-weight[inside], ~forced[inside]))
            chosen = inside[order[: len(middle)]]
            if heavy[0][chosen].sum() >= need:
                found = min(found, within(chosen), key=len)
    return found


def _mixtures(number: int) -> Iterator[Ints]:
    """Yield how the weights of the thresholds are mixed: each alone, then two and two."""
    unit = np.eye(number, dtype=np.int64)
    yield from unit[1:]
    pairs = [(j - i, i, j) for i in range(number) for j in range(i + 1, number)]
    for _, i, j in sorted(pairs)[:PAIRS]:
        for a, b in MIXTURES:
            yield a * unit[i] + b * unit[j]
