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
    from placement.support.array_types import Ints

    Lengths = NDArray[np.uint8]
    Sums = NDArray[np.uint16]

__all__ = ["UNREACHED", "Paths", "paths"]

#: The number of links on a path that there is not.
UNREACHED = 254

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

    def __init__(self, group: Ints, a: Ints, b: Ints) -> None:
        self.routers = len(group)
        self._group = np.unique(group, return_inverse=True)[1].reshape(-1)
        groups = int(self._group.max()) + 1
        self._members = [np.flatnonzero(self._group == g) for g in range(groups)]
        self._place = np.zeros(len(group), dtype=np.int64)
        for members in self._members:
            self._place[members] = np.arange(len(members))
        self._ends = np.append(a, b), np.append(b, a)
        # Links by the groups at both ends, each link both ways.
        pair = self._group[self._ends[0]] * groups + self._group[self._ends[1]]
        order = np.argsort(pair, kind="stable")
        self._links: dict[int, dict[int, Ints]] = {g: {} for g in range(groups)}
        for some in np.split(order, np.flatnonzero(np.diff(pair[order])) + 1):
            if len(some):
                g, h = divmod(int(pair[some[0]]), groups)
                self._links[g][h] = some
        self._within: list[Sums] | None = None

    def lengths(self, sources: Ints) -> Lengths:
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
        if self._within is None:
            self._within = self._inside_groups()
        out = np.full((len(sources), self.routers), UNREACHED, dtype=np.uint8)
        home = np.where(sources >= 0, self._group[sources], -1)
        for g in np.unique(home[home >= 0]).tolist():
            rows = np.flatnonzero(home == g)
            local = self._within[g][self._place[sources[rows]]]
            out[np.ix_(rows, self._members[g])] = local
            for h, links in self._links[g].items():
                if h != g:
                    here, there = (self._place[ends[links]] for ends in self._ends)
                    best = _over_best_link(local[:, here], self._within[h][there])
                    out[np.ix_(rows, self._members[h])] = best
        lost = np.flatnonzero((out == UNREACHED).any(axis=1) & (home >= 0))
        step = max(8, _BLOCK // (8 * max(1, self.routers)) * 8)
        for low in range(0, len(lost), step):
            some = lost[low : low + step]
            out[some] = self._by_any_path(out[some], sources[some])
        return out

    def pairs(self, a: Ints, b: Ints) -> Ints:
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

    def _inside_groups(self) -> list[Sums]:
        """Return the links between the routers of each group, groups alike being searched once."""
        known: dict[tuple[int, bytes], Sums] = {}
        found = []
        for g, members in enumerate(self._members):
            step = np.eye(len(members), dtype=np.float32)
            links = self._links[g].get(g, np.empty(0, dtype=np.int64))
            step[self._place[self._ends[0][links]], self._place[self._ends[1][links]]] = 1
            key = len(members), step.tobytes()
            if key not in known:
                known[key] = _search(step)
            found.append(known[key])
        return found

    def _by_any_path(self, length: Lengths, sources: Ints) -> Lengths:
        """Return lengths with what is still unreached filled in, a bit for each source."""
        many = np.arange(len(sources))
        reached = np.zeros((self.routers, -(-len(sources) // 8)), dtype=np.uint8)
        bit = np.uint8(128) >> (many % 8).astype(np.uint8)
        np.bitwise_or.at(reached, (sources, many // 8), bit)
        by_target = np.argsort(self._ends[1], kind="stable")
        targets, starts = np.unique(self._ends[1][by_target], return_index=True)
        for links in range(1, UNREACHED):
            grown = reached.copy()
            if len(targets):
                came = reached[self._ends[0][by_target]]
                grown[targets] |= np.bitwise_or.reduceat(came, starts, axis=0)
            if np.array_equal(grown, reached):
                break
            reached = grown
            there = np.unpackbits(reached, axis=1, count=len(sources)).T.astype(bool)
            length[there & (length == UNREACHED)] = links
        return length


def _search(step: NDArray[np.float32]) -> Sums:
    """Return the links between routers, `step` being 1 for a router and those next to it."""
    length = np.full(step.shape, UNREACHED, dtype=np.uint16)
    reached = np.eye(len(step), dtype=bool)
    length[reached] = 0
    for links in range(1, UNREACHED):
        grown = (reached.astype(np.float32) @ step) > 0
        if np.array_equal(grown, reached):
            break
        length[grown & ~reached] = links
        reached = grown
    return length


def _over_best_link(here: Sums, there: Sums) -> Sums:
    """Return the links from routers of one group to all of another, by the best link between.

    Parameters
    ----------
    here : uint16 (r, l)
        Links from each router to where each link begins.
    there : uint16 (l, s)
        Links from where each link ends to each router.
    """
    best = here[:, 0, None] + there[0]
    for link in range(1, len(there)):
        np.minimum(best, here[:, link, None] + there[link], out=best)
    return np.asarray(np.minimum(best + 1, UNREACHED))


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
