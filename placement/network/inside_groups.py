"""Inside the groups of a dragonfly: all shortest paths between the routers of one group.

Groups that are wired alike (all of a full machine) are looked at once. The
tables are padded to the largest group: a position that a group does not have
is joined to nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placement.support.array_types import Floats, Ints
from placement.support.arrays import product, ragged_ranges, summed

__all__ = ["UNREACHED", "InsideGroups", "lines_of_grid", "lines_of_product"]

#: Positions up to which the turns of all paths are listed.
MOST_LISTED = 256

#: The length of a path that there is not; twice this still is an int16.
UNREACHED = 16383


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
        self._turns = [_turns(one) for one in joined] if self.listed else []
        self.grids = [_grid_sides(one) if self.most == 2 else None for one in joined]

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
            one, row = ragged_ranges(first[pair], np.diff(first)[pair])
            which, at, part = some[one], over[row], amount[some[one]] * share[row]
            parts += [(which, u[which], at, part), (which, at, v[which], part)]
        pair, here, there, sent = (np.concatenate(column) for column in zip(*parts, strict=True))
        return pair, here, there, sent / self.joined[shape[pair], here, there]

    def carry(self, shape: Ints, demand: Floats) -> Floats:
        """Return the bytes on every channel when each pair's are split over its shortest paths.

        Parameters
        ----------
        shape : int64 (g,)
            Wiring of each group.
        demand : float64 (g, q, q)
            Bytes from position to position.

        Returns
        -------
        float64 (g, q, q)
            Bytes on one channel from u to v; without meaning where there is
            none.
        """
        if self.most == 1:
            return demand * self.alone[shape]
        return self._by_wiring(shape, demand, self._carried, _carried_on_grid)

    def priced(self, shape: Ints, price: Floats) -> Floats:
        """Return the mean price of the shortest paths, each channel having one: `carry` turned.

        Parameters
        ----------
        shape : int64 (g,)
            Wiring of each group.
        price : float64 (g, q, q)
            Of the channel from position to position; 0 where there is none.

        Returns
        -------
        float64 (g, q, q)
            0 where there is no path.
        """
        if self.most == 1:
            return price * (self.alone[shape] > 0)
        return self._by_wiring(shape, price, self._priced, _priced_on_grid)

    def priced_ends(
        self, shape: Ints, price: Floats, slots: tuple[Ints, Ints], gates: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return mean prices of the shortest paths from, to and between some positions.

        Parameters
        ----------
        shape : int64 (g,)
            Wiring of each group.
        price : float64 (g, q, q)
            As for `priced`; 0 where there is no channel.
        slots : int64 (n, 1), int64 (n, w)
            Some of the groups, and positions of each.
        gates : float64 (g, k, q)
            Sets of positions, with the share of each.

        Returns
        -------
        leaving, entering : float64 (n, w, q)
            From each of these positions to every one, and back.
        passing : float64 (g, k, k)
            From set to set.
        """
        sides = self.grids[int(shape[0])]
        if sides is not None and (shape == shape[0]).all():
            return _priced_ends_on_grid(sides, price, slots, gates)
        every = self.priced(shape, price)
        passing = product(product(gates, every), gates.transpose(0, 2, 1))
        return every[slots], every.transpose(0, 2, 1)[slots], passing

    def _by_wiring(
        self,
        shape: Ints,
        table: Floats,
        over_paths: Callable[[int, Floats], Floats],
        on_grid: Callable[[tuple[int, int], Floats], Floats],
    ) -> Floats:
        """Return what the groups of each wiring make of their tables."""
        out = np.empty_like(table)
        for wiring, sides in enumerate(self.grids):
            own = shape == wiring
            some = table if len(self.grids) == 1 else table[own]
            found = over_paths(wiring, some) if sides is None else on_grid(sides, some)
            if some is table:
                return found
            out[own] = found
        return out

    def _carried(self, wiring: int, demand: Floats) -> Floats:
        """Return `carry` of groups of one wiring.

        With W(s, u) the paths from s to u and G(s, v) the bytes that s sends
        over v for each path from s to v, the channel from u to v carries the
        sum of W(s, u) G(s, v) over all s that are one hop nearer to u; G
        follows from the farthest routers inwards (Brandes, 2001).
        """
        ways, length = self.ways[wiring], self.length[wiring]
        each = np.divide(demand, ways, out=np.zeros_like(demand), where=ways > 0)
        flow, beyond = np.zeros_like(demand), np.zeros_like(demand)
        for hops in range(self.most, 0, -1):
            here = each if hops == self.most else each + product(beyond, self.joined[wiring])
            beyond = here * (length == hops)
            flow += beyond if hops == 1 else product(self._at[hops - 1][wiring], beyond)
        return flow

    def _priced(self, wiring: int, price: Floats) -> Floats:
        """Return `priced` of groups of one wiring.

        A path's price is that of its beginning and of its last channel: sums
        over all paths grow hop by hop, as their numbers do.
        """
        joined, ways = self.joined[wiring], self.ways[wiring]
        whole, last = np.zeros_like(price), np.zeros_like(price)
        for hops in range(1, self.most + 1):
            new = price
            if hops > 1:
                new = product(last, joined) + product(self._at[hops - 1][wiring], price)
            last = new * (self.length[wiring] == hops)
            whole += last
        return np.asarray(np.divide(whole, ways, out=np.zeros_like(whole), where=ways > 0))


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
    many, over, ways = [], [], []
    for u in range(size):
        paths = joined[u] * joined.T  # [v, m]: from u over m to v
        paths[joined[u] > 0] = paths[u] = 0
        v, m = np.nonzero(paths)
        many.append(np.bincount(v, minlength=size))
        over.append(m)
        ways.append(paths[v, m])
    count, paths = np.concatenate(many), np.concatenate(ways)
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


def _carried_on_grid(sides: tuple[int, int], demand: Floats) -> Floats:
    """Return `InsideGroups.carry` on grids."""
    chassis, blades = sides
    along = lines_of_grid(sides, demand).reshape(-1, chassis, blades, blades + chassis)
    flow = np.zeros((len(demand), chassis, blades, chassis, blades))
    c, b = np.arange(chassis), np.arange(blades)
    flow[:, c, :, c, :] = np.moveaxis(along[..., :blades], 1, 0)
    flow[:, :, b, :, b] = np.moveaxis(along[..., blades:], 2, 0)
    return flow.reshape(demand.shape)


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
    pairs = price.reshape(-1, chassis, blades, chassis, blades)
    row, column = np.einsum("gcbcd->gcbd", pairs), np.einsum("gcbdb->gcbd", pairs)
    own_row, own_column = np.arange(blades), np.arange(chassis)
    row[:, :, own_row, own_row] = 0
    column[:, own_column, :, own_column] = 0
    along = row[:, :, :, None, :] + row.transpose(0, 2, 1, 3)[:, None, :, :, :]
    across = column[:, :, :, :, None] + column.transpose(0, 1, 3, 2)[:, :, None, :, :]
    return np.asarray((along + across) / 2).reshape(price.shape)


def _priced_ends_on_grid(
    sides: tuple[int, int], price: Floats, slots: tuple[Ints, Ints], gates: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return `InsideGroups.priced_ends` on grids: half a path along the row first, half last."""
    chassis, blades = sides
    pairs = price.reshape(-1, chassis, blades, chassis, blades)
    row, column = np.einsum("gcbcd->gcbd", pairs), np.einsum("gcbdb->gcbd", pairs)
    g, (c, b) = slots[0], np.divmod(slots[1], blades)
    leaving = row[g, c, b][:, :, None, :] + column[g, c].swapaxes(2, 3)
    leaving += column[g, c, b][:, :, :, None] + row[g, :, b]
    entering = row[g, c, :, b][:, :, None, :] + column[g, :, :, c]
    entering += column[g, :, b, c][:, :, :, None] + row[g, :, :, b]
    shape = *slots[1].shape, chassis * blades
    ways = gates.reshape(*gates.shape[:2], chassis, blades)
    size = chassis * blades
    to_blades = product(gates, row.reshape(-1, size, blades))
    to_chassis = product(gates, column.reshape(-1, size, chassis))
    turned = ways.swapaxes(2, 3).reshape(gates.shape).swapaxes(1, 2)
    from_chassis = product(column.reshape(-1, chassis, size), turned)
    along = row.swapaxes(1, 2).reshape(-1, blades, size)
    from_blades = product(along, gates.swapaxes(1, 2))
    passing = product(to_blades, ways.sum(axis=2).swapaxes(1, 2))
    passing += product(to_chassis, ways.sum(axis=3).swapaxes(1, 2))
    passing += product(ways.sum(axis=3), from_chassis) + product(ways.sum(axis=2), from_blades)
    return leaving.reshape(shape) / 2, entering.reshape(shape) / 2, passing / 2
