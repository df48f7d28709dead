"""Expected hops by class between routers that at most one global hop separates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.network.global_links import reach
from placement.network.local import UNREACHED
from placement.network.minimal import kind_ways

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from placement.network.groups import Groups

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["hops"]

#: Numbers of one table of pairs by links.
_NUMBERS = 1 << 20


def hops(groups: Groups, source: Ints, target: Ints, routing: str) -> Floats:
    """Return the expected channels of each class, float64 (m, classes).

    Parameters
    ----------
    groups : Groups
    source, target : int64 (m,)
        Routers with a path of at most one global hop (`unlinked_groups.direct`).
    routing : str
        ``shortest`` or ``minimal``.

    Examples
    --------
    >>> import numpy as np
    >>> from placement.network.groups import groups_of
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("dragonfly:groups=2,chassis=1,blades=3,nodes=1,global=2")
    >>> hops(groups_of(m), np.array([2, 0]), np.array([5, 3]), "shortest").tolist()
    [[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    """
    inside = kind_ways(groups)
    out = np.zeros((len(source), len(inside)))
    g, h = groups.group[source], groups.group[target]
    p, q = groups.place[source], groups.place[target]
    same = np.flatnonzero(g == h)
    out[same] = inside[:, groups.shape[g[same]], p[same], q[same]].T
    turned = g > h
    g, h, p, q = (np.where(turned, x, y) for x, y in ((h, g), (g, h), (q, p), (p, q)))
    shares = _Shares(groups, routing, inside)
    for rows, pair in _by_links(groups, g, h):
        out[rows] = shares.mean(pair, p[rows], q[rows])
    return out


def _by_links(groups: Groups, g: Ints, h: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield rows with g < h, and their linked pairs: as many links each, not too many at once."""
    found = groups.bundles
    rows = np.flatnonzero(g < h)
    pair = np.searchsorted(found.low * groups.count + found.high, g[rows] * groups.count + h[rows])
    links = np.diff(found.first)[pair] if len(rows) else rows
    order = np.argsort(links, kind="stable")
    rows, pair, links = rows[order], pair[order], links[order]
    low = 0
    while low < len(rows):
        step = max(1, _NUMBERS // int(links[low]))
        high = min(low + step, int(np.searchsorted(links, links[low], side="right")))
        yield rows[low:high], pair[low:high]
        low = high


class _Shares:
    """What each link of a group pair has of the traffic of two routers."""

    def __init__(self, groups: Groups, routing: str, inside: Floats) -> None:
        self.groups = groups
        self.paths = reach(groups, routing)
        self.inside = inside

    def mean(self, pair: Ints, p: Ints, q: Ints) -> Floats:
        """Return the expected channels of each class, float64 (m, classes).

        Parameters
        ----------
        pair : int64 (m,)
            Linked pairs of groups, with the same number of links.
        p, q : int64 (m,)
            Positions in the low group and in the high one.
        """
        found = self.groups.bundles
        first = found.first[pair]
        link = first[:, None] + np.arange(int(found.first[pair[0] + 1] - first[0]))
        at = self.groups.shape[found.low[pair]][:, None], found.a[link], p[:, None]
        to = self.groups.shape[found.high[pair]][:, None], found.b[link], q[:, None]
        share = self._share(link, at, to)
        kind = self.groups.channels.kind[found.up[link]]
        means = [
            (share * (table[at] + table[to] + (kind == k))).sum(axis=1)
            for k, table in enumerate(self.inside)
        ]
        return np.stack(means, axis=1)

    def _share(self, link: Ints, at: tuple[Ints, ...], to: tuple[Ints, ...]) -> Floats:
        length, ways = self.paths.length, self.paths.ways
        far = length[at] + length[to]
        near = (far == far.min(axis=1, keepdims=True)) & (far < UNREACHED)
        share = np.where(near, ways[at] * ways[to] * self.groups.bundles.times[link], 0)
        share /= np.maximum(share.sum(axis=1, keepdims=True), 1)
        return np.asarray(share)
