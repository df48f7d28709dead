"""Choosing chassis in groups by weight: what any choice can reach, and a search that decides.

`Menu` says what each group offers at a price a chassis, and with it what K
groups can be worth at most. `Search` answers whether there are C chassis in K
groups that reach given sums of several weights at once: it goes through the
groups, keeps every partial choice that the bounds of the groups still to come
allow, and of partial choices alike in all but one weight the one with most of
that weight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]
    Floats = NDArray[np.float64]

__all__ = ["Menu", "Search"]

#: Figures (partial choices x weights) that a search looks at in one step, and in all, before
#: it is given up.
AT_ONCE, IN_ALL = 2_000_000, 4_000_000
#: Ways to choose chassis inside one group that are told apart.
WAYS = 4_000

_NEVER = -1e15


class Menu:
    """What each group offers: the weight of its c heaviest chassis, for every c it may give.

    Parameters
    ----------
    parent : int64 (chassis,)
        Group of each chassis; every group has one.
    size : int64 (chassis,)
        Weights.
    must : bool (chassis,)
        Chassis that must be taken: they come first in their group, and the
        group must be taken.
    """

    def __init__(self, parent: Ints, size: Ints, must: Mask) -> None:
        self.parent, self.size, self.must = parent, size, must
        count = np.bincount(parent)
        order = np.lexsort((-size, ~must, parent))
        group = parent[order]
        place = np.arange(len(order)) - (np.cumsum(count) - count)[group]
        table = np.zeros((len(count), int(count.max())))
        table[group, place] = size[order]
        forced = np.bincount(parent, weights=must)
        chassis = np.arange(1, table.shape[1] + 1)
        few = chassis < np.maximum(forced, 1)[:, None]
        self.value = np.where(few | (chassis > count[:, None]), _NEVER, np.cumsum(table, axis=1))
        self.forced = forced > 0

    def gains(self, prices: Floats) -> Floats:
        """Return what each group is worth at each price a chassis, (prices, groups)."""
        chassis = np.arange(1, self.value.shape[1] + 1)
        best = np.full((len(prices), len(self.value)), _NEVER)
        for c in chassis:
            np.maximum(best, self.value[:, c - 1] - c * prices[:, None], out=best)
        return best

    def worth(self, prices: Floats, groups: int) -> tuple[Floats, Ints]:
        """Return the worth of the best so many groups at each price, and which they are.

        Returns
        -------
        worth : float64 (prices,)
        ranking : int64 (prices, groups)
        """
        gains = self.gains(prices)
        first = np.argsort(-gains - np.where(self.forced, 1e14, 0), axis=1, kind="stable")
        ranking = first[:, :groups]
        return np.take_along_axis(gains, ranking, axis=1).sum(axis=1), ranking


class _Ways(NamedTuple):
    """The ways to choose chassis of one group: how many, their sums, and which they are."""

    number: Ints
    sums: Ints
    taken: Mask
    members: Ints


class _Partial(NamedTuple):
    """Partial choices: groups and chassis taken, sums, and how each came from the stage before."""

    groups: Ints
    chassis: Ints
    sums: Ints
    origin: Ints
    way: Ints

    def some(self, which: Mask | Ints) -> _Partial:
        """Return some of the partial choices."""
        return _Partial(*(column[which] for column in self))


class Search:
    """The search for at most C chassis in exactly K groups that reach sums of several weights.

    Parameters
    ----------
    parent : int64 (chassis,)
        Group of each chassis.
    must : bool (chassis,)
        Chassis that must be taken.
    weight : int64 (weights, chassis)
    groups, chassis : int
        K and C.
    mixtures : int64 (m, weights)
        Mixtures of the weights that bound well, beside each weight alone.

    Examples
    --------
    >>> import numpy as np
    >>> parent, none = np.array([0, 0, 1, 1]), np.zeros(4, dtype=bool)
    >>> search = Search(parent, none, np.array([[3, 1, 2, 2], [0, 1, 2, 1]]), 1, 2)
    >>> search.decide(np.array([4, 3]))
    (array([2, 3]), True)
    >>> search.decide(np.array([4, 4]))
    (None, True)
    """

    def __init__(
        self,
        parent: Ints,
        must: Mask,
        weight: Ints,
        groups: int,
        chassis: int,
        mixtures: Ints | None = None,
    ) -> None:
        self.groups, self.chassis = groups, chassis
        alone = np.eye(len(weight), dtype=np.int64)
        self.shares = alone if mixtures is None else np.vstack([alone, mixtures])
        self.bounds = [_Bound(Menu(parent, w, must), groups, chassis) for w in self.shares @ weight]
        self.parent, self.must, self.weight = parent, must, weight
        order = np.argsort(parent, kind="stable")
        cuts = np.flatnonzero(np.diff(parent[order])) + 1
        self.members = np.split(order, cuts)
        self.left = IN_ALL

    def decide(self, need: Ints) -> tuple[Ints | None, bool]:
        """Return a choice that reaches all of `need`, and whether the answer is sure.

        Parameters
        ----------
        need : int64 (weights,)

        Returns
        -------
        chosen : int64 (c,) or None
            None where there is no such choice, or none was found in time.
        finished : bool
            False where the search was given up.
        """
        need = self.shares @ need
        none = np.zeros(1, dtype=np.int64)
        part = _Partial(none, none, np.zeros((1, self.shares.shape[1]), dtype=np.int64), none, none)
        stages: list[_Partial] = []
        used: list[_Ways] = []
        fixed = self._fixed(need)
        for group, members in enumerate(self.members):
            ways = _ways(members, self.weight, self.must, *fixed)
            if ways is None:
                return None, False
            used.append(self._worthwhile(ways, group, need))
            size = len(part.groups) * used[-1].sums.size
            self.left -= size
            if size > AT_ONCE or self.left < 0:
                return None, False
            part = _thinned(self._open(_grown(part, used[-1]), group + 1, need))
            stages.append(part)
        if not len(part.groups):
            return None, True
        return _traced(stages, used), True

    def _fixed(self, need: Ints) -> tuple[Mask, Mask]:
        """Return the chassis that are in, and those that are out, wherever their group is taken.

        To leave one out that weighs more than the price, or to take one that
        weighs less, loses the difference; what a bound has to spare it may lose.
        """
        sure = np.zeros(len(self.parent), dtype=bool)
        never = np.zeros(len(self.parent), dtype=bool)
        for shares, bound, least in zip(self.shares, self.bounds, need, strict=True):
            weight = shares @ self.weight
            best = np.zeros(len(self.members), dtype=np.int64)
            np.maximum.at(best, self.parent, weight)
            spare = bound.total - least + 1e-6
            sure |= weight - bound.price > spare
            never |= np.minimum(best, bound.price)[self.parent] - weight > spare
        return sure, never & ~self.must

    def _worthwhile(self, ways: _Ways, group: int, need: Ints) -> _Ways:
        """Return the ways not so far below the best of their group that nothing makes up for it."""
        good = np.ones(len(ways.number), dtype=bool)
        for shares, bound, least in zip(self.shares, self.bounds, need, strict=True):
            value = ways.sums @ shares - bound.price * ways.number
            spare = bound.total - least
            good &= (value >= bound.gains[group] - spare - 1e-6) | (ways.number == 0)
        return _Ways(ways.number[good], ways.sums[good], ways.taken[good], ways.members)

    def _open(self, part: _Partial, group: int, need: Ints) -> _Partial:
        """Return the partial choices from which `need` can still be reached."""
        part = part.some((part.groups <= self.groups) & (part.chassis <= self.chassis))
        good = np.ones(len(part.groups), dtype=bool)
        for shares, bound, least in zip(self.shares, self.bounds, need, strict=True):
            good &= bound.most(part, group, shares) >= least - 1e-6
        return part.some(good)


class _Bound:
    """What the groups from some group on can still add to one weight, at one price a chassis.

    Attributes
    ----------
    price : float
        The price that bounds best.
    total : float
        More than this no choice of all groups can reach.
    gains : float64 (groups,)
        What each group is worth at the price.
    """

    def __init__(self, menu: Menu, groups: int, chassis: int) -> None:
        prices = np.linspace(0, float(menu.size.max(initial=0)) + 1, 65)
        worth, _ = menu.worth(prices, groups)
        best = int(np.argmin(prices * chassis + worth))
        self.groups, self.chassis = groups, chassis
        self.price = float(prices[best])
        self.total = self.price * chassis + float(worth[best])
        self.gains = menu.gains(prices[best : best + 1])[0]
        self.rest = np.full((len(self.gains) + 1, groups + 1), _NEVER)
        self.rest[-1, 0] = 0
        for group in range(len(self.gains) - 1, -1, -1):
            self.rest[group, 1:] = self.rest[group + 1, :-1] + self.gains[group]
            if not menu.forced[group]:
                np.maximum(self.rest[group], self.rest[group + 1], out=self.rest[group])

    def most(self, part: _Partial, group: int, shares: Ints) -> Floats:
        """Return what partial choices can reach at most with the groups from `group` on."""
        most = part.sums @ shares + self.rest[group, self.groups - part.groups]
        if group < len(self.gains):
            most = most + self.price * (self.chassis - part.chassis)
        return np.asarray(most)


def _ways(members: Ints, weight: Ints, must: Mask, sure: Mask, never: Mask) -> _Ways | None:
    """Return the ways to choose chassis of one group; None where they are too many.

    With one weight the heaviest do. With several all subsets are told apart
    of those chassis that are neither `sure` nor `never` in where the group is.
    """
    if len(weight) == 1:
        members = members[np.lexsort((-weight[0, members], ~must[members]))]
        taken = np.tri(len(members) + 1, len(members), -1, dtype=bool)
    else:
        members = members[~never[members]]
        loose = np.flatnonzero(~sure[members])
        if 1 << len(loose) > WAYS:
            return None
        taken = np.ones((1 << len(loose), len(members)), dtype=bool)
        taken[:, loose] = np.arange(len(taken))[:, None] >> np.arange(len(loose)) & 1
        none = np.zeros((1, len(members)), dtype=bool)
        taken = np.vstack([none, taken[taken.any(axis=1)]])
    taken = taken[(taken | ~must[members]).all(axis=1)]
    return _Ways(taken.sum(axis=1), taken @ weight[:, members].T, taken, members)


def _grown(part: _Partial, ways: _Ways) -> _Partial:
    """Return every partial choice with every way of the next group, the empty one among them."""
    number, choices = len(part.groups), len(ways.number)
    return _Partial(
        np.repeat(part.groups, choices) + np.tile(ways.number > 0, number),
        np.repeat(part.chassis, choices) + np.tile(ways.number, number),
        np.repeat(part.sums, choices, axis=0) + np.tile(ways.sums, (number, 1)),
        np.repeat(np.arange(number), choices),
        np.tile(np.arange(choices), number),
    )


def _thinned(part: _Partial) -> _Partial:
    """Keep, of partial choices alike but for the first weight, the one with most of it."""
    if len(part.groups) < 2:
        return part
    same = np.column_stack([part.groups, part.chassis, part.sums[:, 1:]])
    order = np.lexsort((-part.sums[:, 0], *same.T))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (same[order[1:]] != same[order[:-1]]).any(axis=1)
    return part.some(order[first])


def _traced(stages: list[_Partial], used: list[_Ways]) -> Ints:
    """Return the chassis of the first complete choice."""
    at = 0
    chosen = []
    for part, ways in zip(reversed(stages), reversed(used), strict=True):
        chosen.append(ways.members[ways.taken[int(part.way[at])]])
        at = int(part.origin[at])
    return np.sort(np.concatenate(chosen))
