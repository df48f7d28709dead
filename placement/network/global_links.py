"""How traffic crosses from group to group when the links on offer depend on both routers.

Of all paths with one global hop those with the fewest hops count, or (as
``minimal`` wants it where groups are torn) all whose ends can be reached. Let
link i join a of one group to b of the other. Router s has u(s, i) shortest
paths of k(s, i) hops to a, router t has v(i, t) of l(i, t) from b. Then s and
t are m = 1 + min (k + l) hops apart, the number of their paths N(s, t) is the
sum of u v over the links with k + l + 1 = m, and each such link carries u v / N
of what s sends to t. Both sums are matrix products over the links for each
(k, l), and routers with equal u and k to all links of a group pair are
one class: N and m are tables of classes. What reaches and leaves the links
is traffic inside the two groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.network.arrays import mixed, product, summed
from placement.network.local import UNREACHED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from placement.network.groups import Groups

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Crossing", "Reach", "Side", "crossings", "reach"]

#: Numbers of one table of a batch of group pairs.
_NUMBERS = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """What of the paths inside groups counts for a routing.

    Attributes
    ----------
    length : int16 (k, q, q)
        Hops that compete; `UNREACHED` where there is no path.
    ways : float64 (k, q, q)
        Weight of a path between two positions: the number of shortest ones.
    most : int
        The largest length.
    """

    length: NDArray[np.int16]
    ways: Floats
    most: int


def reach(groups: Groups, routing: str) -> Reach:
    """Return the reach of ``shortest`` or ``minimal`` (every reachable link alike)."""
    local = groups.local
    if routing == "shortest":
        return Reach(local.length, local.ways, local.most)
    there = local.length < UNREACHED
    length = np.where(there, 0, UNREACHED).astype(np.int16)
    return Reach(length, there.astype(np.float64), 0)


class Side:
    """One side of a batch of group pairs: its routers and the links' ends there.

    Parameters
    ----------
    far : int16 (b, l, q)
        Hops from each link's end to each position.
    ways : float64 (b, l, q)
        Paths; 0 for a link that a pair does not have.
    most : int

    Attributes
    ----------
    kind : int64 (b, q)
        Class of each position.
    first : int64 (b, c)
        A position of each class.
    """

    def __init__(self, far: NDArray[np.int16], ways: Floats, most: int) -> None:
        self.far, self.ways, self.most = far, ways, most
        self.kind, self.first = _classes(far, ways)

    @property
    def classes(self) -> int:
        """Classes of the pair that has most."""
        return int(self.first.shape[1])

    def levels(self) -> list[Floats]:
        """Return the ways of just 0, 1, … hops by position, each float64 (b, l, q)."""
        return _levels(self.far, self.ways, self.most)

    def class_levels(self) -> list[Floats]:
        """Return the ways of just 0, 1, … hops by class, each float64 (b, l, c)."""
        first = self.first[:, None, :]
        far = np.take_along_axis(self.far, first, axis=2)
        ways = np.take_along_axis(self.ways, first, axis=2)
        return _levels(far, ways, self.most)

    def summed(self, weight: Floats) -> Floats:
        """Return a weight of the positions summed by class, float64 (b, c)."""
        batch, classes = self.first.shape
        key = (np.arange(batch)[:, None] * classes + self.kind).reshape(-1)
        return summed(key, weight.reshape(-1), batch * classes).reshape(batch, classes)


def _levels(far: NDArray[np.int16], ways: Floats, most: int) -> list[Floats]:
    return [np.where(far == hops, ways, 0) for hops in range(most + 1)]


def _classes(far: NDArray[np.int16], ways: Floats) -> tuple[Ints, Ints]:
    """Return the class of each position (b, q), and a position of each class (b, c)."""
    mark = mixed(np.arange(2 * far.shape[1])).reshape(2, -1) | 1
    profile = np.einsum("blq,l->bq", far.astype(np.int64), mark[0])
    profile += np.einsum("blq,l->bq", ways.astype(np.int64), mark[1])
    order = np.argsort(profile, axis=1, kind="stable")
    ranked = np.take_along_axis(profile, order, axis=1)
    number = np.zeros(far.shape[::2], dtype=np.int64)
    number[:, 1:] = np.cumsum(ranked[:, 1:] != ranked[:, :-1], axis=1)
    kind = np.empty_like(number)
    np.put_along_axis(kind, order, number, axis=1)
    first = np.zeros((len(kind), int(number.max(initial=0)) + 1), dtype=np.int64)
    np.put_along_axis(first, number[:, ::-1], order[:, ::-1], axis=1)
    return kind, first


@dataclass(frozen=True, slots=True, eq=False)
class Crossing:
    """A batch of linked group pairs.

    Attributes
    ----------
    low, high : int64 (b,)
        Groups.
    bundle : int64 (b, l)
        Rows of `Groups.bundles`; where a pair has fewer, `there` is False.
    there : bool (b, l)
    here, yonder : Side
        Of the low groups and the high ones; parallel links are in `here`.
    count : float64 (b, c, d)
        Paths between a class of `here` and one of `yonder`; 0 for none.
    total : int64 (b, c, d)
        Hops inside both groups together on them.
    """

    low: Ints
    high: Ints
    bundle: Ints
    there: NDArray[np.bool_]
    here: Side
    yonder: Side
    count: Floats
    total: Ints

    def each(self) -> Floats:
        """Return what one path has of one byte, float64 (b, c, d)."""
        return np.divide(1.0, self.count, out=np.zeros_like(self.count), where=self.count > 0)

    def by_position(self) -> tuple[Ints, Ints, Ints]:
        """Return the indices that turn a table of classes into one of positions (b, q, q)."""
        batch = np.arange(len(self.low))[:, None, None]
        return batch, self.here.kind[:, :, None], self.yonder.kind[:, None, :]


def crossings(groups: Groups, paths: Reach, pairs: Ints | None = None) -> Iterator[Crossing]:
    """Yield all linked group pairs (or those at `pairs`), some at a time.

    Parameters
    ----------
    groups : Groups
    paths : Reach
    pairs : int64 or None
        Rows of the bundles' pairs.
    """
    found = groups.bundles
    links = np.diff(found.first)
    chosen = np.arange(len(links)) if pairs is None else pairs
    chosen = chosen[np.argsort(links[chosen], kind="stable")]
    low = 0
    while low < len(chosen):
        high = min(len(chosen), low + _step(groups.width, int(links[chosen[low]])))
        some = chosen[low:high]
        some = some[links[some] <= 2 * links[some[0]]]  # little padding
        yield _batch(groups, paths, some)
        low += len(some)


def _step(width: int, links: int) -> int:
    return max(1, _NUMBERS // max(1, width * max(width, links)))


def _batch(groups: Groups, paths: Reach, pairs: Ints) -> Crossing:
    found = groups.bundles
    links = np.diff(found.first)[pairs]
    column = np.arange(int(links.max()))
    there = column < links[:, None]
    bundle = found.first[pairs][:, None] + np.where(there, column, 0)
    low, high = found.low[pairs], found.high[pairs]
    times = np.where(there, found.times[bundle], 0)
    here = _side(groups, paths, low, found.a[bundle], times)
    yonder = _side(groups, paths, high, found.b[bundle], there.astype(np.float64))
    count, total = _paths(here, yonder)
    return Crossing(low, high, bundle, there, here, yonder, count, total)


def _side(groups: Groups, paths: Reach, group: Ints, place: Ints, times: Floats) -> Side:
    shape = groups.shape[group][:, None]
    far, ways = paths.length[shape, place], paths.ways[shape, place]
    return Side(far, ways * times[:, :, None], paths.most)


def _paths(here: Side, yonder: Side) -> tuple[Floats, Ints]:
    """Return the number of paths between classes, and their hops inside the groups."""
    before, after = here.class_levels(), yonder.class_levels()
    size = len(here.kind), here.classes, yonder.classes
    count, total = np.zeros(size), np.zeros(size, dtype=np.int64)
    for hops in range(2 * here.most + 1):
        found = np.zeros(size)
        for k in range(max(0, hops - here.most), min(hops, here.most) + 1):
            found += product(np.swapaxes(before[k], 1, 2), after[hops - k])
        new = (count == 0) & (found > 0)
        total[new] = hops
        count[new] = found[new]
    return count, total


def pushed(rows: list[Floats], columns: list[Floats], sent: Floats, total: Ints) -> Floats:
    """Return what goes between each row and each link.

    Parameters
    ----------
    rows, columns : list of float64 (b, l, r) and (b, l, d)
        Ways to the links by hops.
    sent : float64 (b, r, d)
        Bytes a path.
    total : int64 (b, r, d)
        Hops that row and column need together.

    Returns
    -------
    float64 (b, l, r)
    """
    out = np.zeros_like(rows[0])
    used = [bool(x.any()) for x in rows]
    for hops in range(len(rows) + len(columns) - 1):
        here = np.where(total == hops, sent, 0)
        if not here.any():
            continue
        here = np.swapaxes(here, 1, 2)
        for k in range(max(0, hops - len(columns) + 1), min(hops, len(rows) - 1) + 1):
            if used[k]:
                out += rows[k] * product(columns[hops - k], here)
    return out
