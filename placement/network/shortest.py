"""Routing ``shortest``: the fewest hops, at most one of them global; all such paths alike.

What crosses the links between two groups is a few products of tables
(`placement.network.crossings`); what reaches and leaves those links is traffic
inside the two groups.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placement.network import few_pairs
from placement.network.crossings import Crossing, crossings
from placement.network.demand import Demand
from placement.network.group_ways import FEW_LINES, GroupWays, inner_demand, line_weights
from placement.network.groups import Groups
from placement.network.lines import NO_LINES
from placement.support.array_types import Floats, Ints
from placement.support.arrays import product, summed

__all__ = ["hops", "loads"]

#: Router pairs times links that are looked at together.
_NUMBERS = 1 << 20


class _Sums:
    """Bytes inside the groups, position to position, and on the channels between them."""

    def __init__(self, groups: Groups, inside: Floats) -> None:
        self.groups, self.inside = groups, inside
        self.load = np.zeros(len(groups.channels))

    def add(self, batch: Crossing, here: Floats, yonder: Floats, up: bool) -> None:
        """Add traffic over links.

        Parameters
        ----------
        batch : Crossing
        here, yonder : float64 (b, l, q)
            Bytes between each link and each position of the low group, and
            of the high one.
        up : bool
            True from low to high.
        """
        found = self.groups.bundles
        rows = batch.bundle[batch.there]
        channel = found.up[rows] if up else found.down[rows]
        np.add.at(self.load, channel, here.sum(axis=2)[batch.there])
        self._inner(batch.low, found.a[batch.bundle], here, leaving=up)
        self._inner(batch.high, found.b[batch.bundle], yonder, leaving=not up)

    def _inner(self, group: Ints, gate: Ints, flow: Floats, leaving: bool) -> None:
        """Add what goes between positions and gates inside groups."""
        width = self.groups.width
        steps = (width, 1) if leaving else (1, width)
        key = (group * width * width)[:, None, None] + np.arange(width) * steps[0]
        key = key + gate[:, :, None] * steps[1]
        start, end = int(group.min()) * width * width, (int(group.max()) + 1) * width * width
        flat = self.inside.reshape(-1)[start:end]
        flat += np.bincount((key - start).reshape(-1), flow.reshape(-1), minlength=end - start)


def loads(ways: GroupWays, demand: Demand) -> Floats:
    """Return the bytes on every channel, float64 (c,).

    Raises
    ------
    NidmapError
        Where no path joins two routers that exchange bytes.
    """
    groups = ways.groups
    sums = _Sums(groups, inner_demand(groups, demand))
    lines = line_weights(groups, demand) if len(demand.within) <= FEW_LINES else []
    listed = replace(demand, within=NO_LINES) if lines else demand
    pairs = bool(len(listed.source) or len(listed.within))
    both = (listed, listed.reversed()) if pairs else ()
    for low in np.unique(groups.bundles.low).tolist():
        tables = [_between(groups, way, low) for way in both]
        for batch in crossings(groups, np.flatnonzero(groups.bundles.low == low)):
            for scale, weight in lines:
                _add_line(batch, scale, weight, sums)
            for table, up in zip(tables, (True, False), strict=False):
                _add_pairs(batch, table[batch.high], up, sums)
    sums.load[groups.inside] = groups.inner(groups.local.carry(groups.shape, sums.inside))
    return sums.load + ways.far_loads(demand, ~(ways.linked | ways.one))


def _between(groups: Groups, demand: Demand, low: int) -> Floats:
    """Return the bytes from each position of a group to each of all others, (groups, q, q)."""
    members = np.flatnonzero(groups.group == low)
    first, last, every = int(members[0]), int(members[-1]) + 1, np.arange(groups.routers)
    rows = demand.folded(every, groups.routers, first, last)
    out = np.zeros((groups.width, groups.count * groups.width))
    out[np.ix_(groups.place[members], groups.slot)] = rows[members - first]
    return np.swapaxes(out.reshape(groups.width, groups.count, groups.width), 0, 1)


def _add_line(batch: Crossing, scale: float, weight: Floats, sums: _Sums) -> None:
    """Add an all-to-all: as many bytes come as go, by the same paths."""
    here, yonder = weight[batch.low], weight[batch.high]
    sent = scale * batch.each()
    before, after = batch.here.class_levels(), batch.yonder.class_levels()
    out = _push_loads(before, after, sent * batch.yonder.summed(yonder)[:, None, :], batch.total)
    back = np.swapaxes(sent * batch.here.summed(here)[:, :, None], 1, 2)
    home = _push_loads(after, before, back, np.swapaxes(batch.total, 1, 2))
    out = np.take_along_axis(out, batch.here.kind[:, None, :], axis=2) * here[:, None, :]
    home = np.take_along_axis(home, batch.yonder.kind[:, None, :], axis=2) * yonder[:, None, :]
    sums.add(batch, out, home, up=True)
    sums.add(batch, out, home, up=False)


def _add_pairs(batch: Crossing, sent: Floats, up: bool, sums: _Sums) -> None:
    """Add listed pairs, float64 (b, q, q): low position by high position."""
    if not sent.any():
        return
    pair = np.arange(len(batch.low))[:, None, None]
    place = pair, batch.here.kind[:, :, None], batch.yonder.kind[:, None, :]
    sent, total = sent * batch.each()[place], batch.total[place]
    before, after = batch.here.levels(), batch.yonder.levels()
    out = _push_loads(before, after, sent, total)
    home = _push_loads(after, before, np.swapaxes(sent, 1, 2), np.swapaxes(total, 1, 2))
    sums.add(batch, out, home, up)


def _push_loads(rows: list[Floats], columns: list[Floats], sent: Floats, total: Ints) -> Floats:
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


def hops(ways: GroupWays, source: Ints, target: Ints) -> Floats:
    """Return the expected channels of each class between routers, float64 (m, classes).

    Inside a group, and where no link joins two groups, they are those of
    ``minimal``.

    Raises
    ------
    NidmapError
        Where no path joins two of them.
    """
    groups, kinds = ways.groups, ways.groups.channels.kind
    out = ways.hops(source, target)
    prices = [ways.inside_price((kinds == k).astype(np.float64)) for k in range(out.shape[1])]
    rows = np.flatnonzero(ways.linked[ways.unit[source], ways.unit[target]])
    step = max(1, _NUMBERS // max(1, int(np.diff(ways.first).max(initial=1))))
    for some in np.split(rows, np.arange(step, len(rows), step)):
        (pair, channel, share), inside = few_pairs.follow(
            ways, source[some], target[some], "shortest"
        )
        at, start, end, part = inside
        spot = groups.slot[start] * groups.width + groups.place[end]
        for kind, price in enumerate(prices):
            out[some, kind] = summed(pair, share * (kinds[channel] == kind), len(some))
            out[some, kind] += summed(at, part * price.take(spot), len(some))
    return out
