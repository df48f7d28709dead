"""How traffic crosses from group to group where the links on offer depend on both routers.

Of all paths with one global hop those with the fewest hops count. Let link i
join a of one group to b of the other. Router s has u(s, i) shortest paths of
k(s, i) hops to a, router t has v(i, t) of l(i, t) from b. Then s and t are
m = 1 + min (k + l) hops apart, the number of their paths N(s, t) is the sum of
u v over the links with k + l + 1 = m, and each such link carries u v / N of
what s sends to t. Both sums are matrix products over the links for each
(k, l), and routers with equal u and k to all links of a group pair are one
class: N and m are tables of classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.support.arrays import mix_bits, product, summed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from placement.network.groups import Groups
    from placement.support.array_types import Floats, Ints, Mask


__all__ = ["Crossing", "Side", "crossings"]

#: Numbers of one table of a batch of group pairs.
_NUMBERS = 1 << 20


class Side:
    """One side of a batch of group pairs: its routers and the links' ends there.

    Parameters
    ----------
    groups : Groups
    group : int64 (b,)
    end : int64 (b, l)
        Position of each link's end.
    times : float64 (b, l)
        Parallel links; 0 for a link that a pair does not have.

    Attributes
    ----------
    far : int16 (b, l, q)
        Hops from each link's end to each position.
    ways : float64 (b, l, q)
        Paths.
    kind : int64 (b, q)
        Class of each position.
    first : int64 (b, c)
        A position of each class.
    """

    def __init__(self, groups: Groups, group: Ints, end: Ints, times: Floats) -> None:
        shape, self._most = groups.shape[group][:, None], groups.local.most
        self.far = groups.local.length[shape, end]
        self.ways = groups.local.ways[shape, end] * times[:, :, None]
        self.kind, self.first = _classes(self.far, self.ways)

    def levels(self) -> list[Floats]:
        """Return the ways of just 0, 1, … hops by position, each float64 (b, l, q)."""
        return [np.where(self.far == hops, self.ways, 0) for hops in range(self._most + 1)]

    def class_levels(self) -> list[Floats]:
        """Return the ways of just 0, 1, … hops by class, each float64 (b, l, c)."""
        first = self.first[:, None, :]
        return [np.take_along_axis(level, first, axis=2) for level in self.levels()]

    def summed(self, weight: Floats) -> Floats:
        """Return a weight of the positions summed by class, float64 (b, c)."""
        batch, classes = self.first.shape
        key = np.arange(batch)[:, None] * classes + self.kind
        return summed(key.ravel(), weight.ravel(), batch * classes).reshape(batch, classes)


def _classes(far: NDArray[np.int16], ways: Floats) -> tuple[Ints, Ints]:
    """Return the class of each position (b, q), and a position of each class (b, c)."""
    mark = mix_bits(np.arange(2 * far.shape[1])).reshape(2, -1) | 1
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
    there: Mask
    here: Side
    yonder: Side
    count: Floats
    total: Ints

    def each(self) -> Floats:
        """Return the share of a byte that each shortest path carries, float64 (b, c, d)."""
        return np.divide(1.0, self.count, out=np.zeros_like(self.count), where=self.count > 0)


def crossings(groups: Groups, pairs: Ints) -> Iterator[Crossing]:
    """Yield linked group pairs, some at a time.

    Parameters
    ----------
    groups : Groups
    pairs : int64
        Rows of the bundles' pairs.
    """
    links = np.diff(groups.bundles.first)
    pairs = pairs[np.argsort(links[pairs], kind="stable")]
    while len(pairs):
        step = max(1, _NUMBERS // (groups.width * max(groups.width, int(links[pairs[0]]))))
        some = pairs[:step]
        some = some[links[some] <= 2 * links[some[0]]]  # little padding
        yield _batch(groups, some)
        pairs = pairs[len(some) :]


def _batch(groups: Groups, pairs: Ints) -> Crossing:
    bundles = groups.bundles
    links = np.diff(bundles.first)[pairs]
    column = np.arange(int(links.max()))
    there = column < links[:, None]
    bundle = bundles.first[pairs][:, None] + np.where(there, column, 0)
    low, high = bundles.low[pairs], bundles.high[pairs]
    here = Side(groups, low, bundles.a[bundle], np.where(there, bundles.times[bundle], 0))
    yonder = Side(groups, high, bundles.b[bundle], there.astype(np.float64))
    before, after = here.class_levels(), yonder.class_levels()
    size = len(pairs), here.first.shape[1], yonder.first.shape[1]
    count, total = np.zeros(size), np.zeros(size, dtype=np.int64)
    for hops in range(len(before) + len(after) - 1):
        paths = np.zeros(size)
        for k in range(max(0, hops - len(after) + 1), min(hops, len(before) - 1) + 1):
            paths += product(np.swapaxes(before[k], 1, 2), after[hops - k])
        new = (count == 0) & (paths > 0)
        total[new], count[new] = hops, paths[new]
    return Crossing(low, high, bundle, there, here, yonder, count, total)
