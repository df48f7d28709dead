"""Routing ``shortest``: the fewest hops, at most one of them global; all such paths alike.

Also ``minimal`` where groups are in pieces, so that not every router reaches
every link of a group pair: both differ in what of `global_links.Reach` counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.network.global_links import crossings, pushed, reach
from placement.network.group_tables import group_tables
from placement.network.minimal import FEW_LINES, inner_demand, weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.network.demand import Demand
    from placement.network.global_links import Crossing
    from placement.network.groups import Groups

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["loads"]


class _Sums:
    """Bytes inside the groups, position to position, and on the channels between them."""

    def __init__(self, groups: Groups, inside: Floats) -> None:
        self.groups = groups
        self.inside = inside
        self.load = np.zeros(len(groups.channels))

    def add(self, batch: Crossing, here: Floats, yonder: Floats, up: bool) -> None:
        """Add traffic over links.

        Parameters
        ----------
        batch : Crossing
        here : float64 (b, l, q)
            Bytes between each position of the low group and each link.
        yonder : float64 (b, l, q)
            The same in the high group.
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
        place = np.arange(width)
        base = (group * width * width)[:, None, None]
        if leaving:
            key = base + place * width + gate[:, :, None]
        else:
            key = base + place + gate[:, :, None] * width
        start, end = int(group.min()) * width * width, (int(group.max()) + 1) * width * width
        flat = self.inside.reshape(-1)[start:end]
        flat += np.bincount((key - start).reshape(-1), flow.reshape(-1), minlength=end - start)

    def finished(self) -> Floats:
        """Route what is inside the groups and return all loads, float64 (c,)."""
        groups = self.groups
        self.load[groups.inside] = groups.inner(groups.local.carry(groups.shape, self.inside))
        return self.load


def loads(groups: Groups, demand: Demand, routing: str = "shortest") -> Floats:
    """Return the bytes on every channel, float64 (c,).

    Pairs of routers that no path with one global hop joins are left out.
    """
    sums = _Sums(groups, inner_demand(groups, demand))
    lines = weights(groups, demand) if len(demand.within) <= FEW_LINES else []
    listed = group_tables(groups, demand, with_lines=not lines)
    for batch in crossings(groups, reach(groups, routing)):
        for scale, weight in lines:
            _line(batch, scale, weight, sums)
        if listed:
            _pairs(batch, *listed.between(batch.low, batch.high), sums)
    return sums.finished()


def _line(batch: Crossing, scale: float, weight: Floats, sums: _Sums) -> None:
    """Add an all-to-all: as many bytes come as go, by the same paths."""
    here, yonder = weight[batch.low], weight[batch.high]
    sent = scale * batch.each()
    before, after = batch.here.class_levels(), batch.yonder.class_levels()
    out = pushed(before, after, sent * batch.yonder.summed(yonder)[:, None, :], batch.total)
    back = np.swapaxes(sent * batch.here.summed(here)[:, :, None], 1, 2)
    home = pushed(after, before, back, np.swapaxes(batch.total, 1, 2))
    out = np.take_along_axis(out, batch.here.kind[:, None, :], axis=2) * here[:, None, :]
    home = np.take_along_axis(home, batch.yonder.kind[:, None, :], axis=2) * yonder[:, None, :]
    sums.add(batch, out, home, up=True)
    sums.add(batch, out, home, up=False)


def _pairs(batch: Crossing, up: Floats, down: Floats, sums: _Sums) -> None:
    """Add listed pairs: `up` and `down` are float64 (b, q, q), low position by high position."""
    place = batch.by_position()
    each, total = batch.each()[place], batch.total[place]
    before, after = batch.here.levels(), batch.yonder.levels()
    for way, sent in ((True, up), (False, down)):
        if not sent.any():
            continue
        sent = sent * each
        out = pushed(before, after, sent, total)
        home = pushed(after, before, np.swapaxes(sent, 1, 2), np.swapaxes(total, 1, 2))
        sums.add(batch, out, home, up=way)
