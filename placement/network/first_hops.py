"""The first hops of shortest paths inside groups, as lists to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.network.groups import Groups
    from placement.network.local import Local

    Small = NDArray[np.int32]
    Ints = NDArray[np.int64] | NDArray[np.int32]

__all__ = ["FirstHops"]

#: Numbers of one table of starts, ends and first hops.
_NUMBERS = 1 << 23


class FirstHops:
    """Which channels lead from one position of a group towards another.

    Parameters
    ----------
    groups : Groups

    Examples
    --------
    >>> from placement.network.groups import groups_of
    >>> from placement.specs import parse_spec
    >>> groups = groups_of(parse_spec("dragonfly:groups=1,chassis=2,blades=2,nodes=1"))
    >>> found = FirstHops(groups)
    >>> j, g = np.arange(3, dtype=np.int32), np.zeros(3, np.int32)
    >>> channel = found.channel(g, g, np.array([3, 3, 3]), j)
    >>> groups.channels.names()[channel].tolist()
    ['g0c0b0->g0c0b1 green', 'g0c0b0->g0c1b0 black', 'g0c0b0->g0c0b1 green']
    """

    def __init__(self, groups: Groups) -> None:
        self._width = groups.width
        self._shape = groups.shape.astype(np.int32)
        parts = [_listed(groups.local, shape) for shape in range(len(groups.local.length))]
        self._hop = np.concatenate([hop for hop, _ in parts])
        self._count = np.concatenate([count for _, count in parts])
        self._start = (np.cumsum(self._count) - self._count).astype(np.int32)
        channels, rows = groups.channels, groups.inside[::-1]
        source, target = channels.source[rows], channels.target[rows]
        self._channel = np.full(groups.count * groups.width**2, -1, dtype=np.int32)
        key = groups.slot[source] * groups.width + groups.place[target]
        self._channel[key] = rows  # of parallel ones the first

    def channel(self, group: Ints, here: Ints, there: Ints, turn: Ints) -> Small:
        """Return the channel towards a position, element by element.

        Parameters
        ----------
        group, here, there : int32, shapes that broadcast
            Positions `here` and `there` of a group.
        turn : int32
            Number ``turn`` mod n of the n first hops, sorted by position.

        Returns
        -------
        int32
            -1 where there is none, or `here` is `there`.
        """
        key = (self._shape[group] * self._width + here) * self._width + there
        place = self._start.take(key) + turn % self._count.take(key)
        key = (group * self._width + here) * self._width
        found: Small = self._channel.take(key + self._hop.take(place))
        return found


def _listed(local: Local, shape: int) -> tuple[Small, Small]:
    """Return the first hops of all pairs one after another, and how many each pair has.

    A pair that has none gets a hop from the router to itself, which no
    channel makes.
    """
    length, joined = local.length[shape], local.joined[shape] > 0
    size = len(length)
    step = max(1, _NUMBERS // (size * size))
    hops, counts = [], []
    for low in range(0, size, step):
        far = length[low : low + step, :, None]
        found = (length.T[None, :, :] == far - 1) & joined[low : low + step, None, :] & (far > 0)
        place, there = np.nonzero(~found.any(axis=2))
        found[place, there, place + low] = True
        counts.append(found.sum(axis=2, dtype=np.int32).reshape(-1))
        hops.append(np.nonzero(found)[2].astype(np.int32))
    return np.concatenate(hops), np.concatenate(counts)
