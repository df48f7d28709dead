"""Inside the groups of a dragonfly: all shortest paths between the routers of one group.

Groups that are wired alike (all of a full machine) are looked at once. The
tables are padded to the largest group: a position that a group does not have
is joined to nothing.

What is known of channels stands in lanes: table (groups, positions, lanes), a lane of a
position for each other one that it may be joined to. In the grid of an Aries these are the
blades of its row and the chassis of its column, 22 and not 96; elsewhere all positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from placement.support.array_types import Floats, Ints, Mask
from placement.support.arrays import product, ragged_ranges, summed

__all__ = ["UNREACHED", "Ends", "InsideGroups", "lines_of_grid", "lines_of_product"]

#: Positions up to which the turns of all paths are listed.
MOST_LISTED = 256

#: The length of a path that there is not; twice this still is an int16.
UNREACHED = 16383


class Ends(NamedTuple):
    """Sets of positions of groups of one wiring, as beginnings and ends of ways inside them.

    Attributes
    ----------
    wiring : int
    groups : bool (g,) or slice
        Which of the groups have it.
    shape : int64 (m,)
        Wiring of each of these.
    share : float64 (m, k, q)
        Share of each position in each set.
    lines : float64 (m, k, lanes)
        The same of each row and column of a grid; empty where there is none.
    """

    wiring: int
    groups: Mask | slice
    shape: Ints
    share: Floats
    lines: Floats


class InsideGroups:
    """Shortest paths inside groups of k different wirings.

    Parameters
    ----------
    joined : float64 (k, q, q)
        Channels from position u to v: 0, 1, or more where parallel links
        count one by one; symmetric.

    Attributes
    ----------
    length : int16 (k, q, q)
        Hops on a shortest path; `UNREACHED` where there is none.
    ways : float64 (k, q, q)
        How many shortest paths there are; 0 where there is none.
    most : int
        The longest shortest path.
    alone : float64 (k, q, q)
        Share of a pair's bytes on each of its channels where one hop joins it, else 0.
    listed : bool
        Whether `few` can be asked: no path has three hops.
    grids : list of (int, int) or None
        Chassis and blades of each wiring that is the full grid of an Aries.
    lanes : int
        Lanes of a position.
    goal : int64 (k, q, lanes) or None
        Position that each lane leads to, or its own one; None where lane v leads to v.
    lane : int64 (k, q, q)
        Lane of u that leads to v; without meaning where no channel does.

    Examples
    --------
    >>> ring = np.array([[[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0.0]]])
    >>> found = InsideGroups(ring)
    >>> found.length[0, 0].tolist(), found.ways[0, 0].tolist()
    ([0, 1, 2, 1], [1.0, 1.0, 2.0, 1.0])
    """

    def __init__(self, joined: Floats) -> None:
        self.joined = joined
        self.ways = np.broadcast_to(np.eye(joined.shape[1]), joined.shape).copy()
        self.length = np.where(self.ways > 0, 0, UNREACHED).astype(np.int16)
        self._at = [self.ways.copy()]  # the number of paths of just 0, 1, … hops
        while True:
            new = product(self._at[-1], joined) if len(self._at) > 1 else joined
            new = np.where(self.length == UNREACHED, new, 0)
            if not new.any():
                break
            self.length[new > 0] = len(self._at)
            self.ways += new
            self._at.append(new)
        self.most = len(self._at) - 1
        self.alone: Floats = np.divide(1.0, joined, out=np.zeros_like(joined), where=joined > 0)
        self.listed = self.most <= 2 and joined.shape[1] <= MOST_LISTED
        self._turns = [_turns(wiring) for wiring in joined] if self.listed else []
        self.grids = [_grid_sides(wiring) if self.most == 2 else None for wiring in joined]
        self.goal = _lane_goals(joined, self.grids)
        size = joined.shape[1]
        self.lanes = size if self.goal is None else self.goal.shape[2]
        self.lane: Ints = np.broadcast_to(np.arange(size), joined.shape)
        if self.goal is not None:
            self.lane = np.zeros(joined.shape, dtype=np.int64)
            np.put_along_axis(self.lane, self.goal, np.arange(self.lanes)[None, None], axis=2)

    def few(self, shape: Ints, u: Ints, v: Ints, amount: Floats) -> tuple[Ints, Ints, Ints, Floats]:
        """Return what pairs of positions send over one channel each: (pair, from, to, bytes).

        The sums are those of `carry`.

        Parameters
        ----------
        shape, u, v : int64 (m,)
            Wiring and two positions of each pair; a path joins them.
        amount : float64 (m,)
            Bytes from u to v.

        Examples
        --------
        >>> ring = np.array([[[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0.0]]])
        >>> zero, two = np.array([0]), np.array([2])
        >>> [x.tolist() for x in InsideGroups(ring).few(zero, zero, two, np.array([8.0]))]
        [[0, 0, 0, 0], [0, 0, 1, 3], [1, 3, 2, 2], [4.0, 4.0, 4.0, 4.0]]
        """
        hops = self.length[shape, u, v]
        direct = np.flatnonzero(hops == 1)
        parts = [(direct, u[direct], v[direct], amount[direct])]
        for wiring, (first, over, share) in enumerate(self._turns):
            some = np.flatnonzero((hops == 2) & (shape == wiring))
            pair = u[some] * self.joined.shape[1] + v[some]
            entry, row = ragged_ranges(first[pair], np.diff(first)[pair])
            which, at, part = some[entry], over[row], amount[some[entry]] * share[row]
            parts += [(which, u[which], at, part), (which, at, v[which], part)]
        pair, here, there, sent = (np.concatenate(column) for column in zip(*parts, strict=True))
        return pair, here, there, sent / self.joined[shape[pair], here, there]

    def carry(self, shape: Ints, demand: Floats) -> Floats:
        """Return the bytes on every channel when each pair's are split over its shortest paths.

        Parameters
        ----------
        shape : int64 (g,)
            Wiring of each group.
        demand : float64 (…, g, q, q)
            Bytes from position to position.

        Returns
        -------
        float64 (…, g, q, lanes)
            Without meaning where there is no channel.
        """
        if self.most == 1:
            return demand * self.alone[shape]
        out = np.empty((*demand.shape[:-1], self.lanes))
        for wiring, sides, some in self._wirings(shape):
            sent = demand[..., some, :, :]
            if sides is not None:
                lines = self._padded(lines_of_grid(sides, sent))
                out[..., some, :, :] = lines.reshape(*sent.shape[:-1], self.lanes)
                continue
            load = self._carried(wiring, sent)
            if self.goal is not None:
                load = load[..., np.arange(len(self.goal[wiring]))[:, None], self.goal[wiring]]
            out[..., some, :, :] = load
        return out

    def priced(self, shape: Ints, price: Floats) -> Floats:
        """Return the mean price of the shortest paths, each channel having one: `carry` turned.

        Parameters
        ----------
        shape : int64 (g,)
            Wiring of each group.
        price : float64 (…, g, q, lanes)
            Of each channel; 0 where there is none.

        Returns
        -------
        float64 (…, g, q, q)
            0 where there is no path.
        """
        if self.most == 1:
            return price * (self.alone[shape] > 0)
        size = self.joined.shape[1]
        out = np.empty((*price.shape[:-1], size))
        for wiring, sides, some in self._wirings(shape):
            table = price[..., some, :, :]
            if sides is not None:
                mean = _priced_on_grid(sides, table)
                out[..., some, :, :] = mean.reshape(*table.shape[:-1], size)
                continue
            if self.goal is not None:
                lanes, table = table, np.zeros((*table.shape[:-1], size))
                table[..., np.arange(size)[:, None], self.goal[wiring]] = lanes
            out[..., some, :, :] = self._priced(wiring, table)
        return out

    def carry_product(self, shape: Ints, left: Floats, right: Floats) -> Floats:
        """Return the bytes on every channel (`carry`) of the demand ``left @ right``, never made.

        Parameters
        ----------
        shape : int64 (g,)
        left : float64 (g, q, k)
        right : float64 (g, k, q)
        """
        sides = self.grids[0]
        if sides is None or len(self.grids) > 1:
            return self.carry(shape, product(left, right))
        return lines_of_product(sides, left, right)

    def ends(self, shape: Ints, share: Floats) -> tuple[Ends, ...]:
        """Return sets of positions between which bytes go, wiring by wiring.

        Parameters
        ----------
        shape : int64 (g,)
            Wiring of each group.
        share : float64 (g, k, q)
        """
        parts = []
        for wiring, sides, some in self._wirings(shape):
            table, lines = share[some], np.zeros(0)
            if sides is not None:
                grid = table.reshape(*table.shape[:2], *sides)
                lines = self._padded(np.concatenate([grid.sum(axis=2), grid.sum(axis=3)], axis=2))
            parts.append(Ends(wiring, some, shape[some], table, lines))
        return tuple(parts)

    def carry_between(
        self, starts: tuple[Ends, ...], ends: tuple[Ends, ...], sent: Floats
    ) -> Floats:
        """Return the bytes on every channel (`carry`) of demands between sets of positions.

        Parameters
        ----------
        starts, ends : tuple of Ends
            Sets of the same groups.
        sent : float64 (…, g, k, l)
            Bytes from each set of `starts` to each of `ends`.

        Returns
        -------
        float64 (…, g, q, lanes)
        """
        out = np.empty((*sent.shape[:-2], self.joined.shape[1], self.lanes))
        for start, end in zip(starts, ends, strict=True):
            some, sides, table = (
                start.groups,
                self.grids[start.wiring],
                sent[..., start.groups, :, :],
            )
            turned = start.share.swapaxes(1, 2)
            if sides is None:
                between = product(turned, product(table, end.share))
                out[..., some, :, :] = self.carry(start.shape, between)
                continue
            leaving = product(turned, product(table, end.lines))
            back = product(table.swapaxes(-1, -2), start.lines)
            leaving += _turned_lanes(sides, product(end.share.swapaxes(1, 2), back))
            np.multiply(leaving, 0.5, out=leaving)
            out[..., some, :, :] = leaving
        return out

    def price_between(
        self, starts: tuple[Ends, ...], ends: tuple[Ends, ...], price: Floats
    ) -> Floats:
        """Return `priced` between sets of positions, added up: `carry_between` turned.

        Parameters
        ----------
        starts, ends : tuple of Ends
        price : float64 (…, g, q, lanes)
            0 where there is no channel.

        Returns
        -------
        float64 (…, g, k, l)
        """
        counts = [sets[0].share.shape[1] if sets else 0 for sets in (starts, ends)]
        out = np.empty((*price.shape[:-2], *counts))
        for start, end in zip(starts, ends, strict=True):
            some, sides, table = (
                start.groups,
                self.grids[start.wiring],
                price[..., start.groups, :, :],
            )
            if sides is None:
                mean = product(start.share, self.priced(start.shape, table))
                out[..., some, :, :] = product(mean, end.share.swapaxes(1, 2))
                continue
            leaving = product(product(start.share, table), end.lines.swapaxes(1, 2))
            back = product(
                product(end.share, _turned_lanes(sides, table)), start.lines.swapaxes(1, 2)
            )
            out[..., some, :, :] = (leaving + back.swapaxes(-1, -2)) / 2
        return out

    def _wirings(self, shape: Ints) -> Iterator[tuple[int, tuple[int, int] | None, Mask | slice]]:
        """Yield each wiring of some groups: its number, its sides on a grid, and which have it."""
        if self.most == 1 or len(self.grids) == 1:
            yield 0, self.grids[0], slice(None)
            return
        for wiring, sides in enumerate(self.grids):
            some = shape == wiring
            if some.any():
                yield wiring, sides, slice(None) if some.all() else some

    def _padded(self, lanes: Floats) -> Floats:
        """Return lanes of a grid, with those that other wirings have beside them."""
        more = self.lanes - lanes.shape[-1]
        return np.pad(lanes, [(0, 0)] * (lanes.ndim - 1) + [(0, more)]) if more else lanes

    def _carried(self, wiring: int, demand: Floats) -> Floats:
        """Return the bytes on every channel (`carry`) of groups of one wiring.

        With W(s, u) the paths from s to u and G(s, v) the bytes that s sends
        over v for each path from s to v, the channel from u to v carries the
        sum of W(s, u) G(s, v) over all s that are one hop nearer to u; G
        follows from the farthest routers inwards (Brandes, 2001).
        """
        ways, length = self.ways[wiring], self.length[wiring]
        portion = np.divide(demand, ways, out=np.zeros_like(demand), where=ways > 0)
        flow, beyond = np.zeros_like(demand), np.zeros_like(demand)
        for hops in range(self.most, 0, -1):
            here = portion if hops == self.most else portion + product(beyond, self.joined[wiring])
            beyond = here * (length == hops)
            flow += beyond if hops == 1 else product(self._at[hops - 1][wiring], beyond)
        return flow

    def _priced(self, wiring: int, price: Floats) -> Floats:
        """Return the mean price of the shortest paths (`priced`) in groups of one wiring.

        A path's price is that of its beginning and of its last channel: sums
        over all paths grow hop by hop, as their numbers do.
        """
        joined, ways = self.joined[wiring], self.ways[wiring]
        total, last = np.zeros_like(price), np.zeros_like(price)
        for hops in range(1, self.most + 1):
            new = price
            if hops > 1:
                new = product(last, joined) + product(self._at[hops - 1][wiring], price)
            last = new * (self.length[wiring] == hops)
            total += last
        return np.asarray(np.divide(total, ways, out=np.zeros_like(total), where=ways > 0))


def _turns(joined: Floats) -> tuple[Ints, Ints, Floats]:
    """Return the positions over which paths of two hops go, and the share of each.

    Returns
    -------
    first : int64 (q² + 1,)
        Where the positions between u and v, pair u q + v, begin.
    over : int64 (n,)
    share : float64 (n,)
    """
    size = len(joined)
    counts, over, ways = [], [], []
    for u in range(size):
        paths = joined[u] * joined.T  # [v, m]: from u over m to v
        paths[joined[u] > 0] = paths[u] = 0
        v, m = np.nonzero(paths)
        counts.append(np.bincount(v, minlength=size))
        over.append(m)
        ways.append(paths[v, m])
    count, paths = np.concatenate(counts), np.concatenate(ways)
    pair = np.repeat(np.arange(size * size), count)
    first = np.append(0, np.cumsum(count))
    return first, np.concatenate(over), paths / summed(pair, paths, size * size)[pair]


def _grid_sides(joined: Floats) -> tuple[int, int] | None:
    """Return chassis and blades where a group is the full grid of an Aries: None where not.

    Every router is joined once to all of its row and all of its column.

    Examples
    --------
    >>> one = lambda size: np.ones((size, size)) - np.eye(size)
    >>> _grid_sides(np.kron(one(2), np.eye(3)) + np.kron(np.eye(2), one(3)))
    (2, 3)
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
    """Return the position that each lane leads to; None where no wiring is a grid."""
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
    """Return lanes of a grid turned: what comes in over each where what goes out stood.

    Examples
    --------
    >>> lanes = np.zeros((1, 6, 5))
    >>> lanes[0, 0, 2] = 7  # from the first blade of a row to the third
    >>> float(_turned_lanes((2, 3), lanes)[0, 2, 0])
    7.0
    """
    chassis, blades = sides
    grid = lanes.reshape(-1, chassis, blades, lanes.shape[-1])
    out = np.zeros_like(grid)
    out[..., :blades] = grid[..., :blades].swapaxes(2, 3)
    both = slice(blades, blades + chassis)
    out[..., both] = grid[..., both].swapaxes(1, 3)
    return out.reshape(lanes.shape)


def lines_of_grid(sides: tuple[int, int], demand: Floats) -> Floats:
    """Return what a demand puts on the rows and columns of grids.

    Half of a pair's bytes go along the row first, so sums along rows and columns are
    all that is needed: what leaves (c, b) for column b', half of it turns into the row
    there, and the other half comes out of the row that it went first.

    Parameters
    ----------
    sides : tuple of int
        Chassis and blades.
    demand : float64 (g, q, q)

    Returns
    -------
    float64 (g, q, blades + chassis)
        Bytes from each position to each blade of its row, and to each chassis of its column.
    """
    pairs = demand.reshape(-1, *sides, *sides)
    return _turn_half(pairs.sum(axis=3), pairs.sum(axis=4), pairs.sum(axis=1), pairs.sum(axis=2))


def lines_of_product(sides: tuple[int, int], left: Floats, right: Floats) -> Floats:
    """Return `lines_of_grid` of the demand ``left @ right``, which is never made.

    Parameters
    ----------
    sides : tuple of int
    left : float64 (g, q, k)
    right : float64 (g, k, q)

    Examples
    --------
    >>> left, right = np.arange(24.0).reshape(1, 6, 4), np.arange(24.0).reshape(1, 4, 6)
    >>> np.allclose(lines_of_product((2, 3), left, right), lines_of_grid((2, 3), left @ right))
    True
    """
    chassis, blades = sides
    ends, starts = right.reshape(*right.shape[:2], *sides), left.reshape(-1, *sides, left.shape[2])
    leaving = product(left, np.concatenate([ends.sum(axis=2), ends.sum(axis=3)], axis=2))
    entering = product(np.concatenate([starts.sum(axis=1), starts.sum(axis=2)], axis=1), right)
    leaving = leaving.reshape(-1, *sides, blades + chassis)
    entering = entering.reshape(-1, blades + chassis, *sides)
    return _turn_half(
        leaving[..., :blades], leaving[..., blades:], entering[:, :blades], entering[:, blades:]
    )


def _turn_half(
    to_blade: Floats, to_chassis: Floats, of_blade: Floats, of_chassis: Floats
) -> Floats:
    """Return the bytes along rows and columns, from those by (position, goal's or start's line).

    Parameters
    ----------
    to_blade, to_chassis : float64 (g, c, b, blade), (g, c, b, chassis)
        Bytes from each position.
    of_blade, of_chassis : float64 (g, blade, c, b), (g, chassis, c, b)
        Bytes to each position.
    """
    row, column = (
        to_blade + of_blade.transpose(0, 2, 1, 3),
        to_chassis + of_chassis.transpose(0, 1, 3, 2),
    )
    both: Floats = np.concatenate([row, column], axis=3) / 2
    return both.reshape(len(both), row.shape[1] * row.shape[2], both.shape[3])


def _priced_on_grid(sides: tuple[int, int], price: Floats) -> Floats:
    """Return `InsideGroups.priced` on grids: the mean of both ways round, one way along a line."""
    chassis, blades = sides
    grid = price.reshape(-1, chassis, blades, price.shape[-1])
    row, column = grid[..., :blades], grid[..., blades : blades + chassis]
    along = row[:, :, :, None, :] + row.transpose(0, 2, 1, 3)[:, None, :, :, :]
    across = column[:, :, :, :, None] + column.transpose(0, 1, 3, 2)[:, :, None, :, :]
    size = chassis * blades
    return np.asarray((along + across) / 2).reshape(-1, size, size)
