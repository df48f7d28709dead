"""Minimal paths between the routers of a dragonfly, by its real links.

A minimal route takes links inside the first group, one link to the other
group, and links inside that one. Where two groups have no link of their own,
any shortest path counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine

__all__ = ["UNREACHED", "Paths", "paths"]

#: The number of links on a path that there is not.
UNREACHED = 254

#: So many sources are searched from group by group rather than all at once.
MANY = 2048

#: Bytes that one block of searches may take.
_BLOCK = 1 << 26


class Paths:
    """Path lengths over the links of a machine.

    Parameters
    ----------
    group : int64 (r,)
        Group of each router.
    a, b : int64 (m,)
        Ends of the links.

    Examples
    --------
    >>> four = Paths(np.array([0, 0, 1, 1]), np.array([0, 1, 2]), np.array([1, 2, 3]))
    >>> four.lengths(np.array([0])).tolist()
    [[0, 1, 2, 3]]
    """

    def __init__(
        self, group: NDArray[np.int64], a: NDArray[np.int64], b: NDArray[np.int64]
    ) -> None:
        self.routers = len(group)
        self._group = group
        inside = group[a] == group[b]
        self._local = _Step(a[inside], b[inside])
        self._across = _Step(a[~inside], b[~inside])
        self._between = a[~inside], b[~inside]
        self._within = a[inside], b[inside]

    def lengths(self, sources: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the links on a minimal path from each source to every router.

        Parameters
        ----------
        sources : int64 (s,)
            Router indices; -1 is a router that nothing is known of.

        Returns
        -------
        uint8 (s, r)
            `UNREACHED` where there is no path.
        """
        if len(sources) >= MANY and (sources >= 0).all():
            whole = self._by_groups()
            if whole is not None:
                return whole[sources]
        step = max(8, _BLOCK // (8 * max(1, self.routers)) * 8)
        parts = [self._some(sources[k : k + step]) for k in range(0, len(sources), step)]
        return np.concatenate(parts) if parts else np.empty((0, self.routers), dtype=np.uint8)

    def pairs(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the links on a minimal path from each of `a` to its partner in `b`."""
        out = np.empty(a.shape, dtype=np.int64)
        flat, left, right = out.reshape(-1), a.reshape(-1), b.reshape(-1)
        by_source = np.argsort(left, kind="stable")
        once, starts = np.unique(left[by_source], return_index=True)
        ends = np.append(starts[1:], len(left))
        for low in range(0, len(once), 1024):
            table = self.lengths(once[low : low + 1024])
            chosen = by_source[starts[low] : ends[min(low + 1024, len(once)) - 1]]
            flat[chosen] = table[np.searchsorted(once, left[chosen]) - low, right[chosen]]
        return out

    def _by_groups(self) -> NDArray[np.uint8] | None:
        """Return all lengths, group pair by group pair; None where groups or links are missing."""
        groups, first = np.unique(self._group, return_index=True)
        if (np.diff(self._group) < 0).any():
            return None
        ends = np.append(first[1:], self.routers)
        rooms = [slice(a, b) for a, b in zip(first.tolist(), ends.tolist(), strict=True)]
        out = np.full((self.routers, self.routers), UNREACHED, dtype=np.uint8)
        local = self._rooms(rooms)
        for room, found in zip(rooms, local, strict=True):
            out[room, room] = found
        a, b = self._between
        a, b = np.concatenate([a, b]), np.concatenate([b, a])
        pair = np.searchsorted(first, a, side="right") * (len(groups) + 1)
        pair += np.searchsorted(first, b, side="right")
        order = np.argsort(pair, kind="stable")
        for some in np.split(order, np.flatnonzero(np.diff(pair[order])) + 1):
            g, h = (int(x) - 1 for x in divmod(int(pair[some[0]]), len(groups) + 1))
            if g < h:
                here = local[g][:, a[some] - rooms[g].start]
                there = local[h][b[some] - rooms[h].start]
                out[rooms[g], rooms[h]] = _shortest(here, there)
                out[rooms[h], rooms[g]] = out[rooms[g], rooms[h]].T
        return None if (out == UNREACHED).any() else out

    def _rooms(self, rooms: list[slice]) -> list[NDArray[np.uint8]]:
        """Return the links between the routers of each group, groups alike being searched once."""
        a, b = self._within
        low, high = np.minimum(a, b), np.maximum(a, b)
        order = np.lexsort((high, low))
        low, high = low[order], high[order]
        known: dict[tuple[int, bytes], NDArray[np.uint8]] = {}
        found = []
        for room in rooms:
            some = slice(*np.searchsorted(low, [room.start, room.stop]))
            ends = np.stack([low[some], high[some]]) - room.start
            key = room.stop - room.start, ends.tobytes()
            if key not in known:
                known[key] = self._inside(ends[0], ends[1], key[0])
            found.append(known[key])
        return found

    @staticmethod
    def _inside(a: NDArray[np.int64], b: NDArray[np.int64], size: int) -> NDArray[np.uint8]:
        """Return the links between the routers of one group."""
        step = np.eye(size, dtype=np.float32)
        step[a, b] = step[b, a] = 1
        length = np.full((size, size), UNREACHED, dtype=np.uint8)
        reached = np.eye(size, dtype=bool)
        length[reached] = 0
        for links in range(1, UNREACHED):
            grown = (reached.astype(np.float32) @ step) > 0
            if np.array_equal(grown, reached):
                break
            length[grown & ~reached] = links
            reached = grown
        return length

    def _some(self, sources: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Search from all these sources at once, one bit each."""
        known = np.flatnonzero(sources >= 0)
        before = np.zeros((self.routers, -(-len(sources) // 8)), dtype=np.uint8)
        np.bitwise_or.at(
            before, (sources[known], known // 8), np.uint8(128) >> (known % 8).astype(np.uint8)
        )
        length = np.full((len(sources), self.routers), UNREACHED, dtype=np.uint8)
        _mark(length, before, 0)
        start = before.copy()
        self._minimal(length, before)
        if (length[known] == UNREACHED).any():
            self._any(length, start)
        return length

    def _minimal(self, length: NDArray[np.uint8], before: NDArray[np.uint8]) -> None:
        """Fill in the paths with at most one link between groups."""
        after = np.zeros_like(before)
        for links in range(1, UNREACHED):
            crossed = after | self._local(after) | self._across(before)
            walked = before | self._local(before)
            if np.array_equal(walked, before) and np.array_equal(crossed, after):
                return
            before, after = walked, crossed
            _mark(length, before | after, links)

    def _any(self, length: NDArray[np.uint8], reached: NDArray[np.uint8]) -> None:
        """Fill in what is still unreached, by any path."""
        for links in range(1, UNREACHED):
            grown = reached | self._local(reached) | self._across(reached)
            if np.array_equal(grown, reached):
                return
            reached = grown
            _mark(length, reached, links)


def _shortest(here: NDArray[np.uint8], there: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the links from all routers of one group to all of another, by the best link between.

    Parameters
    ----------
    here : uint8 (r, l)
        Links from each router to where each link begins.
    there : uint8 (l, s)
        Links from where each link ends to each router.
    """
    most = int(here.max()) + int(there.max())
    near = [(here <= k).astype(np.float32) for k in range(int(here.max()) + 1)]
    last = [(there <= k).astype(np.float32) for k in range(int(there.max()) + 1)]
    out = np.full((len(here), there.shape[1]), most + 1, dtype=np.uint8)
    for links in range(most - 1, -1, -1):
        for k in range(min(links, len(near) - 1) + 1):
            if links - k < len(last):
                out[(near[k] @ last[links - k]) > 0] = links + 1
    return out


class _Step:
    """One step over a set of links, for many searches at once."""

    def __init__(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> None:
        source, target = np.concatenate([a, b]), np.concatenate([b, a])
        by_target = np.argsort(target, kind="stable")
        self._source = source[by_target]
        self._targets, self._starts = np.unique(target[by_target], return_index=True)

    def __call__(self, reached: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return what is reached over one link from what was."""
        out = np.zeros_like(reached)
        if len(self._source):
            out[self._targets] = np.bitwise_or.reduceat(reached[self._source], self._starts, axis=0)
        return out


def _mark(length: NDArray[np.uint8], reached: NDArray[np.uint8], links: int) -> None:
    """Note `links` wherever a search has come to a router for the first time."""
    there = np.unpackbits(reached, axis=1, count=length.shape[0]).T.astype(bool)
    length[there & (length == UNREACHED)] = links


def paths(machine: Machine) -> Paths:
    """Return the paths of a machine whose first coordinate is the group; made once a machine.

    Raises
    ------
    UsageError
        Where the machine's links are unknown (`placement.topologies.links`).
    """
    if "paths" not in machine._cache:
        from placement.topologies import links, router_coords

        found = links(machine)
        group = router_coords(machine)[:, 0].astype(np.int64)
        machine._cache["paths"] = Paths(group, found.a.astype(np.int64), found.b.astype(np.int64))
    made: Paths = machine._cache["paths"]
    return made
