# SPDX-License-Identifier: Apache-2.0
"""Within the groups of a dragonfly: all shortest paths between the routers of a group.

Bytes are split equally over all shortest paths. Groups that are wired alike (all of a full
machine) are looked at once. The tables are padded to the largest group: a position that a
group does not have is joined to nothing.

What is known of channels is in lanes: table (groups, positions, lanes), a lane of a
position for each other one that it may be joined to. In the grid of an Aries these are the
blades of its row and the chassis of its column, 22 and not 96; elsewhere all positions. On
that grid half of a pair's bytes take the row first and half the column, so sums along rows
and columns give all loads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.placement.support.arrays import product

#: The length of a path that there is not; twice this still is an int16.
UNREACHED = 16383


class Ends(NamedTuple):
    """Sets of positions in groups of one wiring, as ends of paths within them."""

    wiring: int
    groups: Mask | slice  # (g,), which of the groups have it
    shape: Ints  # (m,), wiring of each of these
    share: Floats  # (m, k, q), share of each position in each set
    # (m, k, lanes), the same of each row and column of a grid; empty where there is none
    lines: Floats


class Leg(NamedTuple):
    """Bytes that cross groups, from sets of positions to sets of positions."""

    # starts, ends: sets of the same groups
    starts: tuple[Ends, ...]
    ends: tuple[Ends, ...]
    sent: Floats  # (…, g, k, l), bytes from each set of `starts` to each of `ends`


class LocalPaths:
    """Shortest paths within groups of k different wirings.

    `joined` (k, q, q): channels from position u to v: 0, 1, or more where parallel links count
    one by one; symmetric.
    """

    def __init__(self, joined: Floats) -> None:
        self.joined, size = joined, joined.shape[1]
        self._paths = np.broadcast_to(np.eye(size), joined.shape).copy()
        # (k, q, q), hops on a shortest path; `UNREACHED` where there is none
        self.length = np.where(self._paths > 0, 0, UNREACHED).astype(np.int16)
        self._at = [self._paths.copy()]  # the number of paths of just 0, 1, … hops
        while True:
            new = product(self._at[-1], joined) if len(self._at) > 1 else joined
            new = np.where(self.length == UNREACHED, new, 0)
            if not new.any():
                break
            self.length[new > 0] = len(self._at)
            self._paths += new
            self._at.append(new)
        self.most = len(self._at) - 1  # the longest shortest path
        self._direct: Floats = np.divide(1.0, joined, out=np.zeros_like(joined), where=joined > 0)
        self._grids = [_grid_sides(wiring) if self.most == 2 else None for wiring in joined]
        self._goal = _lane_goals(joined, self._grids)
        self.lanes = size if self._goal is None else self._goal.shape[2]  # lanes of a position
        # (k, q, q), lane of u that leads to v; without meaning where no channel does
        self.lane: Ints = np.broadcast_to(np.arange(size), joined.shape)
        if self._goal is not None:
            self.lane = np.zeros(joined.shape, dtype=np.int64)
            np.put_along_axis(self.lane, self._goal, np.arange(self.lanes)[None, None], axis=2)

    def ends(self, shape: Ints, share: Floats) -> tuple[Ends, ...]:
        """Return sets of positions that exchange bytes, wiring by wiring.

        `shape` (g,): wiring of each group. `share` (g, k, q).
        """
        parts = []
        for wiring, some in self._wirings(shape):
            table, lines, sides = share[some], np.zeros(0), self._grids[wiring]
            if sides is not None:
                grid = table.reshape(*table.shape[:2], *sides)
                lines = self._padded(np.concatenate([grid.sum(axis=2), grid.sum(axis=3)], axis=2))
            parts.append(Ends(wiring, some, shape[some], table, lines))
        return tuple(parts)

    def carry(self, legs: Sequence[Leg]) -> Floats:
        """Return the bytes on every channel when legs take all shortest paths.

        Returns (…, g, q, lanes): per path over the channel; without meaning where there is no
        channel.
        """
        sent = legs[0].sent
        out = np.empty((*sent.shape[:-2], self.joined.shape[1], self.lanes))
        for part, first in enumerate(legs[0].starts):
            some = first.groups
            sides = [(leg.starts[part], leg.ends[part], leg.sent[..., some, :, :]) for leg in legs]
            grid = self._grids[first.wiring]
            load = (
                self._carry_on_grid(grid, sides) if grid else self._carry_on_channels(first, sides)
            )
            out[..., some, :, :] = load
        return out

    def _carry_on_channels(self, first: Ends, legs: Sequence[tuple[Ends, Ends, Floats]]) -> Floats:
        """Return `carry` for groups of one wiring, given the bytes of all pairs of positions."""
        demand = sum(
            product(start.share.swapaxes(1, 2), product(sent, end.share))
            for start, end, sent in legs
        )
        if self.most <= 1:
            return np.asarray(demand * self._direct[first.shape])
        load = self._carried(first.wiring, np.asarray(demand))
        if self._goal is None:
            return load
        goal = self._goal[first.wiring]
        return np.asarray(load[..., np.arange(len(goal))[:, None], goal])

    def _carry_on_grid(
        self, sides: tuple[int, int], legs: Sequence[tuple[Ends, Ends, Floats]]
    ) -> Floats:
        """Return `carry` on a grid, given the bytes that leave for a line and from one.

        What leaves (c, b) for column b', half of it, turns into the row there, and the other
        half comes out of the row that it went first.
        """
        leaving, entering = (
            sum(
                product(near.share.swapaxes(1, 2), product(bytes_sent, far.lines))
                for near, far, bytes_sent in ends
            )
            for ends in (legs, [(end, start, sent.swapaxes(-1, -2)) for start, end, sent in legs])
        )
        return np.asarray((leaving + _turned_lanes(sides, np.asarray(entering))) / 2)

    def _carried(self, wiring: int, demand: Floats) -> Floats:
        """Return the bytes on every channel of groups of one wiring.

        With W(s, u) the paths from s to u and G(s, v) the bytes that s sends
        over v for each path from s to v, the channel from u to v carries the
        sum of W(s, u) G(s, v) over all s that are one hop nearer to u; G
        follows from the farthest routers inwards (Brandes, 2001).
        """
        paths, length = self._paths[wiring], self.length[wiring]
        portion = np.divide(demand, paths, out=np.zeros_like(demand), where=paths > 0)
        flow, beyond = np.zeros_like(demand), np.zeros_like(demand)
        for hops in range(self.most, 0, -1):
            here = portion if hops == self.most else portion + product(beyond, self.joined[wiring])
            beyond = here * (length == hops)
            flow += beyond if hops == 1 else product(self._at[hops - 1][wiring], beyond)
        return flow

    def price(
        self, ends: Sequence[tuple[tuple[Ends, ...], tuple[Ends, ...]]], price: Floats
    ) -> list[Floats]:
        """Return the price of a byte between sets of positions: `carry` transposed.

        `ends`: where paths begin and end. `price` (…, g, q, lanes): of a byte on each path of
        each channel; 0 where there is none. Returns (…, g, k, l).
        """
        tables = [
            np.empty((*price.shape[:-2], starts[0].share.shape[1], goals[0].share.shape[1]))
            for starts, goals in ends
        ]
        for part, first in enumerate(ends[0][0]):
            some, grid = first.groups, self._grids[first.wiring]
            channel, mean = price[..., some, :, :], np.zeros(0)
            if grid is None:
                mean = self._mean_price(first, channel)
            for table, (starts, goals) in zip(tables, ends, strict=True):
                start, goal = starts[part], goals[part]
                if grid is None:
                    cost = product(product(start.share, mean), goal.share.swapaxes(1, 2))
                else:
                    turned = _turned_lanes(grid, channel)
                    leaving = product(product(start.share, channel), goal.lines.swapaxes(1, 2))
                    back = product(product(goal.share, turned), start.lines.swapaxes(1, 2))
                    cost = (leaving + back.swapaxes(-1, -2)) / 2
                table[..., some, :, :] = cost
        return tables

    def _mean_price(self, first: Ends, price: Floats) -> Floats:
        """Return the mean price of the shortest paths between all positions of some groups.

        A path's price is that of its beginning and of its last channel: sums
        over all paths grow hop by hop, as their numbers do.
        """
        if self.most <= 1:
            return np.asarray(price * (self._direct[first.shape] > 0))
        wiring, size = first.wiring, self.joined.shape[1]
        if self._goal is not None:
            lanes, price = price, np.zeros((*price.shape[:-1], size))
            price[..., np.arange(size)[:, None], self._goal[wiring]] = lanes
        joined, paths = self.joined[wiring], self._paths[wiring]
        total, last = np.zeros_like(price), np.zeros_like(price)
        for hops in range(1, self.most + 1):
            new = price
            if hops > 1:
                new = product(last, joined) + product(self._at[hops - 1][wiring], price)
            last = new * (self.length[wiring] == hops)
            total += last
        return np.asarray(np.divide(total, paths, out=np.zeros_like(total), where=paths > 0))

    def _wirings(self, shape: Ints) -> Iterator[tuple[int, Mask | slice]]:
        """Yield each wiring, and which of the groups have it."""
        if self._grids and (self.most <= 1 or len(self._grids) == 1):
            yield 0, slice(None)
            return
        for wiring in range(len(self._grids)):
            some = shape == wiring
            if some.any():
                yield wiring, slice(None) if some.all() else some

    def _padded(self, lanes: Floats) -> Floats:
        """Return lanes of a grid, padded for those of other wirings."""
        more = self.lanes - lanes.shape[-1]
        return np.pad(lanes, [(0, 0)] * (lanes.ndim - 1) + [(0, more)]) if more else lanes


def _grid_sides(joined: Floats) -> tuple[int, int] | None:
    """Return chassis and blades if the group is the full grid of an Aries, else None.

    Every router is joined once to all of its row and all of its column.
    """
    size = len(joined)
    for blades in range(2, size // 2 + 1):
        if size % blades or not joined[0, blades - 1] or not joined[0, blades]:
            continue
        rows, columns = (np.ones((k, k)) - np.eye(k) for k in (size // blades, blades))
        grid = np.kron(rows, np.eye(blades)) + np.kron(np.eye(size // blades), columns)
        if np.array_equal(joined, grid):
            return size // blades, blades
    return None


def _lane_goals(joined: Floats, grids: list[tuple[int, int] | None]) -> Ints | None:
    """Return the position to which each lane leads; None if no wiring is a grid."""
    if not any(grids):
        return None
    size = joined.shape[1]
    most = max(int((joined > 0).sum(axis=2).max()), *(sum(sides) for sides in grids if sides))
    goal = np.broadcast_to(np.arange(size)[:, None], (len(joined), size, most)).copy()
    for wiring, sides in enumerate(grids):
        if sides is None:
            u, v = np.nonzero(joined[wiring])
            first = np.searchsorted(u, np.arange(size))
            goal[wiring, u, np.arange(len(u)) - first[u]] = v
            continue
        chassis, blades = sides
        c, b = np.divmod(np.arange(size)[:, None], blades)
        goal[wiring, :, :blades] = c * blades + np.arange(blades)
        goal[wiring, :, blades : blades + chassis] = np.arange(chassis) * blades + b
    return goal


def _turned_lanes(sides: tuple[int, int], lanes: Floats) -> Floats:
    """Return lanes of a grid with incoming and outgoing ones exchanged."""
    chassis, blades = sides
    grid = lanes.reshape(-1, chassis, blades, lanes.shape[-1])
    out = np.zeros_like(grid)
    out[..., :blades] = grid[..., :blades].swapaxes(2, 3)
    both = slice(blades, blades + chassis)
    out[..., both] = grid[..., both].swapaxes(1, 3)
    return out.reshape(lanes.shape)
