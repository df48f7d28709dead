"""Router pairs that no path with one global hop joins.

Two groups without a link of their own, or a group in pieces: then the fewest
global hops count first and the fewest hops in all second, and traffic is
split equally over all such paths. A search over the whole machine, from many
routers at once, layer by layer in that order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.errors import NidmapError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from placement.network.demand import Demand
    from placement.network.groups import Groups

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Pairs = tuple[Ints, Ints, Floats]

__all__ = ["FewestGlobalHops", "direct", "left_out", "note", "refuse_apart", "whole"]

#: Sources times channels of one search.
_NUMBERS = 1 << 22


def direct(groups: Groups, source: Ints, target: Ints) -> NDArray[np.bool_]:
    """Return whether a path with at most one global hop joins routers, element by element."""
    part = groups.part[groups.group, groups.place]
    a, b = part[source], part[target]
    linked = _linked(groups)
    key = np.minimum(a, b) * groups.parts + np.maximum(a, b)
    place = np.minimum(np.searchsorted(linked, key), max(0, len(linked) - 1))
    found: NDArray[np.bool_] = a == b
    return found | (linked[place] == key) if len(linked) else found


def _linked(groups: Groups) -> Ints:
    """Return the numbers of the linked pairs of parts, sorted."""
    found = groups.bundles
    pair = found.pair
    a, b = groups.part[found.low[pair], found.a], groups.part[found.high[pair], found.b]
    return np.unique(np.minimum(a, b) * groups.parts + np.maximum(a, b))


def whole(groups: Groups) -> bool:
    """Return whether a path with at most one global hop joins every two routers."""
    parts = groups.parts
    return len(_linked(groups)) == parts * (parts - 1) // 2


def note(groups: Groups) -> str:
    """Return what has to be said of a machine that is not whole, or ''."""
    if whole(groups):
        return ""
    parts = groups.parts
    missing = parts * (parts - 1) // 2 - len(_linked(groups))
    what = "groups" if parts == groups.count else "parts of groups"
    return (
        f"{missing} of {parts * (parts - 1) // 2} pairs of {what} have no link of their own: "
        "between them traffic takes the fewest global hops, and of these paths all the shortest"
    )


def left_out(groups: Groups, demand: Demand) -> Pairs:
    """Return the router pairs of a demand that have no path with one global hop."""
    found: list[Pairs] = [_far(groups, *_NO_PAIRS)]
    if not whole(groups):
        for low, high in _spans(groups):
            sent = demand.table(low, high)
            s, t = np.nonzero(sent)
            found.append(_far(groups, s + low, t, sent[s, t]))
    source, target, amount = (np.concatenate([x[i] for x in found]) for i in range(3))
    return source, target, amount


_NO_PAIRS = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)


def _spans(groups: Groups) -> Iterator[tuple[int, int]]:
    """Yield spans of routers that hold some with no short path to some other."""
    parts = groups.parts
    linked = _linked(groups)
    partners = np.bincount(np.concatenate([linked // parts, linked % parts]), minlength=parts)
    lacking = (partners < parts - 1)[groups.part[groups.group, groups.place]]
    step = max(1, _NUMBERS // max(1, groups.routers))
    for low in range(0, groups.routers, step):
        some = np.flatnonzero(lacking[low : low + step])
        if len(some):
            yield low + int(some[0]), low + int(some[-1]) + 1


def _far(groups: Groups, source: Ints, target: Ints, amount: Floats) -> Pairs:
    far = ~direct(groups, source, target)
    return source[far], target[far], amount[far]


class FewestGlobalHops:
    """Paths with the fewest global hops, then the fewest hops, from any router.

    Parameters
    ----------
    groups : Groups
    """

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        channels = groups.channels
        inside = np.zeros(len(channels), dtype=bool)
        inside[groups.inside] = True
        ways = channels.count.astype(np.float64)
        ways[groups.inside] = groups.ways
        self.local = _Step(groups, np.flatnonzero(inside), ways)
        self.across = _Step(groups, np.flatnonzero(~inside), ways)

    def batches(self, source: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Yield sources to search from together, and the rows of `source` that are theirs."""
        once, inverse = np.unique(source, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        step = max(1, _NUMBERS // max(1, len(self.groups.channels)))
        for low in range(0, len(once), step):
            some = once[low : low + step]
            first, last = np.searchsorted(inverse[order], [low, low + len(some)])
            yield some, order[first:last]

    def layers(self, sources: Ints) -> dict[tuple[int, int], Floats]:
        """Return the number of paths to every router by (global hops, hops).

        Parameters
        ----------
        sources : int64 (s,)

        Returns
        -------
        dict of (int, int) to float64 (s, r)
            Each router in the one layer that is nearest; in no other.
        """
        start = np.zeros((len(sources), self.groups.routers))
        start[np.arange(len(sources)), sources] = 1
        found = {(0, 0): start}
        open_ = start == 0
        crossings, deepest = 0, {-1: -1, 0: 0}
        while True:
            deepest[crossings] = self._layer(crossings, deepest[crossings - 1], found, open_)
            if deepest[crossings] < 0 or not open_.any():
                return found
            crossings += 1

    def _layer(
        self,
        crossings: int,
        before: int,
        found: dict[tuple[int, int], Floats],
        open_: NDArray[np.bool_],
    ) -> int:
        """Find all routers of so many global hops; return their most hops, -1 for none."""
        hops, deepest = 0, 0 if crossings == 0 else -1
        while hops <= max(before, deepest):
            new = np.zeros(open_.shape)
            for step, key in (
                (self.local, (crossings, hops)),
                (self.across, (crossings - 1, hops)),
            ):
                if key in found:
                    new += step.on(found[key])
            new *= open_
            hops += 1
            if new.any():
                found[crossings, hops] = new
                open_ &= new == 0
                deepest = hops
        return deepest

    def loads(self, source: Ints, target: Ints, amount: Floats) -> Floats:
        """Return the bytes on every channel, float64 (c,).

        Raises
        ------
        NidmapError
            Where no path joins two of them.
        """
        load = np.zeros(len(self.groups.channels))
        for some, rows in self.batches(source):
            layers = self.layers(some)
            at = np.searchsorted(some, source[rows])
            sent = np.zeros((len(some), self.groups.routers))
            np.add.at(sent, (at, target[rows]), amount[rows])
            ways = sum(layers.values(), start=np.zeros_like(sent))
            self._refuse_apart(some, (sent > 0) & (ways == 0))
            each = np.divide(sent, ways, out=np.zeros_like(sent), where=ways > 0)
            self._back(layers, each, load)
        return load

    def _back(self, layers: dict[tuple[int, int], Floats], each: Floats, load: Floats) -> None:
        """Walk from the farthest layer inwards and add up what every channel carries."""
        beyond: dict[tuple[int, int], Floats] = {}
        for key in sorted(layers, reverse=True):
            crossings, hops = key
            inner = np.zeros_like(each)
            nearer = ((self.local, (crossings, hops + 1)), (self.across, (crossings + 1, hops + 1)))
            for step, other in nearer:
                if other in beyond:
                    inner += step.on(beyond[other])
                    step.add(layers[key], beyond[other], load)
            beyond[key] = (each + inner) * (layers[key] > 0)

    def _refuse_apart(self, sources: Ints, lost: NDArray[np.bool_]) -> None:
        if lost.any():
            row, other = (int(x[0]) for x in np.nonzero(lost))
            refuse_apart(self.groups, int(sources[row]), other)

    def hops(self, source: Ints, target: Ints) -> Floats:
        """Return the expected channels of each class between routers, float64 (m, classes).

        Raises
        ------
        NidmapError
            Where no path joins two of them.
        """
        kinds = len(self.groups.channels.kinds)
        out = np.zeros((len(source), kinds))
        for some, rows in self.batches(source):
            layers = self.layers(some)
            at = np.searchsorted(some, source[rows]), target[rows]
            ways = sum(layers.values(), start=np.zeros((len(some), self.groups.routers)))
            lost = np.zeros(ways.shape, dtype=bool)
            lost[at] = ways[at] == 0
            self._refuse_apart(some, lost)
            for kind in range(kinds):
                out[rows, kind] = self._passed(layers, kind)[at] / ways[at]
        return out

    def _passed(self, layers: dict[tuple[int, int], Floats], kind: int) -> Floats:
        """Return how often all paths to each router together pass a channel of one class."""
        passed: dict[tuple[int, int], Floats] = {}
        for key in sorted(layers):
            crossings, hops = key
            here = np.zeros_like(layers[key])
            for step, last in (
                (self.local, (crossings, hops - 1)),
                (self.across, (crossings - 1, hops - 1)),
            ):
                if last in passed:
                    here += step.on(passed[last]) + step.on(layers[last], kind)
            passed[key] = here * (layers[key] > 0)
        return sum(passed.values(), start=np.zeros_like(here))

    def next_hops(self, target: Ints, source: Ints) -> tuple[Ints, Ints]:
        """Return one next channel at each source towards each target, and the hops from there.

        Of n channels that lead nearer number (p + t) mod n is taken, p and t
        being the positions of the two routers in their groups.

        Returns
        -------
        channel, hops : int64 (m,)
            -1 and 0 where there is no path.
        """
        channel, hops = np.full(len(source), -1), np.zeros(len(source), dtype=np.int64)
        turn = self.groups.place[source] + self.groups.place[target]
        for some, rows in self.batches(target):
            crossings, steps = _nearest(self.layers(some), len(some), self.groups.routers)
            pick = _Pick(self.groups, crossings, steps)
            at = np.searchsorted(some, target[rows])
            channel[rows] = pick(at, source[rows], turn[rows])
            hops[rows] = np.maximum(steps[at, source[rows]], 0)
        return channel, hops


def _nearest(layers: dict[tuple[int, int], Floats], rows: int, routers: int) -> tuple[Ints, Ints]:
    """Return the global hops and the hops of all routers, int64 (s, r); -1 where none leads."""
    crossings = np.full((rows, routers), -1)
    steps = crossings.copy()
    for key, found in layers.items():
        crossings[found > 0], steps[found > 0] = key
    return crossings, steps


class _Pick:
    """One of the channels that lead nearer to a router that was searched from."""

    def __init__(self, groups: Groups, crossings: Ints, steps: Ints) -> None:
        channels = groups.channels
        source, target = channels.source.astype(np.int64), channels.target.astype(np.int64)
        global_ = (groups.group[source] != groups.group[target]).astype(np.int64)
        order = np.lexsort((groups.place[target], channels.kind, source))
        self._order = order
        self._first = np.searchsorted(source[order], np.arange(groups.routers + 1))
        source, target = source[order], target[order]
        nearer = steps[:, target] == steps[:, source] - 1
        nearer &= crossings[:, target] == crossings[:, source] - global_[order]
        nearer &= steps[:, target] >= 0
        self._passed = np.zeros((len(steps), len(order) + 1), dtype=np.int32)
        np.cumsum(nearer, axis=1, out=self._passed[:, 1:])

    def __call__(self, row: Ints, source: Ints, turn: Ints) -> Ints:
        """Return the channels, -1 for none."""
        out = np.full(len(row), -1)
        order = np.argsort(row, kind="stable")
        ends = np.searchsorted(row[order], np.arange(len(self._passed) + 1))
        for k, passed in enumerate(self._passed):
            some = order[ends[k] : ends[k + 1]]
            before = passed[self._first[source[some]]]
            count = passed[self._first[source[some] + 1]] - before
            place = before + 1 + turn[some] % np.maximum(count, 1)
            found = np.searchsorted(passed, place) - 1
            if not len(self._order):
                break
            out[some] = np.where(
                count > 0, self._order[np.minimum(found, len(self._order) - 1)], -1
            )
        return out


def refuse_apart(groups: Groups, source: int, target: int) -> None:
    """Raise NidmapError: no path joins two routers."""
    from placement.topologies import router_names

    names = router_names(groups.channels.machine)
    raise NidmapError(
        f"no path joins the routers {names[source]} and {names[target]}",
        "is the machine's link list whole?",
    )


class _Step:
    """One hop over some of the channels, for many searches at once."""

    def __init__(self, groups: Groups, rows: Ints, ways: Floats) -> None:
        channels = groups.channels
        order = np.argsort(channels.target[rows], kind="stable")
        self.rows = rows[order]
        self.source = channels.source[self.rows].astype(np.int64)
        self.target = channels.target[self.rows].astype(np.int64)
        self.ways = ways[self.rows]
        self.kind = channels.kind[self.rows]
        self._ends, self._first = np.unique(self.target, return_index=True)

    def on(self, paths: Floats, kind: int | None = None) -> Floats:
        """Return what arrives over one hop (by channels of one class) of what is at each router."""
        out = np.zeros_like(paths)
        if len(self.rows):
            ways = self.ways if kind is None else self.ways * (self.kind == kind)
            moved = paths[:, self.source] * ways
            out[:, self._ends] = np.add.reduceat(moved, self._first, axis=1)
        return out

    def add(self, paths: Floats, beyond: Floats, load: Floats) -> None:
        """Add to each channel the paths before it times what goes over each beyond it."""
        if len(self.rows):
            carried = np.einsum("se,se->e", paths[:, self.source], beyond[:, self.target])
            load[self.rows] += carried * self.ways
