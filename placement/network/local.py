"""Inside the groups of a dragonfly: all shortest paths between the routers of one group.

Groups that are wired alike (all of a full machine) are looked at once. The
tables are padded to the largest group: a position that a group does not have
is joined to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.network.arrays import product

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["UNREACHED", "Local"]

#: The length of a path that there is not; twice this still is an int16.
UNREACHED = 16383

#: Numbers of one block of group tables.
_NUMBERS = 1 << 22


class Local:
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

    Examples
    --------
    >>> ring = np.array([[[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0.0]]])
    >>> found = Local(ring)
    >>> found.length[0, 0].tolist(), found.ways[0, 0].tolist()
    ([0, 1, 2, 1], [1.0, 1.0, 2.0, 1.0])
    """

    def __init__(self, joined: Floats) -> None:
        self.joined = joined
        size = joined.shape[1]
        self.length = np.full(joined.shape, UNREACHED, dtype=np.int16)
        self.length[:, np.arange(size), np.arange(size)] = 0
        self.ways = np.broadcast_to(np.eye(size), joined.shape).copy()
        self._at = [self.ways.copy()]
        while self._grow():
            pass
        self.most = len(self._at) - 1
        self._sides = [_sides(one) for one in joined] if self.most == 2 else [None] * len(joined)

    def _grow(self) -> bool:
        """Find the routers that are one hop farther; False where there are none."""
        last = self._at[-1]
        new = self.joined if len(self._at) == 1 else product(last, self.joined)
        new = np.where(self.length == UNREACHED, new, 0)
        found = new > 0
        if not found.any():
            return False
        self.length[found] = len(self._at)
        self.ways += new
        self._at.append(new)
        return True

    def at(self, hops: int) -> Floats:
        """Return the number of shortest paths of just so many hops, float64 (k, q, q)."""
        return self._at[hops]

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

        Notes
        -----
        With W(s, u) the paths from s to u and G(s, v) the bytes that s sends
        over v for each path from s to v, the channel from u to v carries the
        sum of W(s, u) G(s, v) over all s that are one hop nearer to u; G
        follows from the farthest routers inwards (Brandes, 2001).
        """
        if len(self._sides) == 1 and self._sides[0] is not None:
            return _over_grid(demand, self._sides[0])
        flow = np.empty_like(demand)
        rest = np.ones(len(shape), dtype=bool)
        for wiring, sides in enumerate(self._sides):
            if sides is not None:
                own = shape == wiring
                flow[own] = _over_grid(demand[own], sides)
                rest &= ~own
        if rest.any():
            flow[rest] = self._over_paths(shape[rest], demand[rest])
        return flow

    def _over_paths(self, shape: Ints, demand: Floats) -> Floats:
        """Return `carry` of groups of any wiring."""
        flow = np.empty_like(demand)
        step = max(1, _NUMBERS // max(1, demand.shape[1] ** 2))
        for low in range(0, len(demand), step):
            some = slice(low, low + step)
            flow[some] = self._carried(shape[some], demand[some])
        return flow

    def _carried(self, shape: Ints, demand: Floats) -> Floats:
        if len(shape) and (shape == shape[0]).all():
            shape = shape[:1]  # one wiring: the tables broadcast
        ways, length = self.ways[shape], self.length[shape]
        each = np.divide(demand, ways, out=np.zeros_like(demand), where=ways > 0)
        if self.most < 2:
            return each
        flow = np.zeros_like(demand)
        beyond: Floats | None = None
        for hops in range(self.most, 0, -1):
            here = each if beyond is None else each + product(beyond, self.joined[shape])
            beyond = here * (length == hops)
            flow += beyond if hops == 1 else product(self._at[hops - 1][shape], beyond)
        return flow

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
        found = np.empty_like(price)
        for wiring, sides in enumerate(self._sides):
            own = shape == wiring
            if own.any():
                some = price[own]
                found[own] = self._mean(wiring, some) if sides is None else _grid_mean(some, sides)
        return found

    def _mean(self, wiring: int, price: Floats) -> Floats:
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

    def expected(self, joined: Floats) -> Floats:
        """Return the mean number of channels of each class on the shortest paths.

        Parameters
        ----------
        joined : float64 (classes, k, q, q)
            The channels of each class: together `self.joined`.

        Returns
        -------
        float64 (classes, k, q, q)
            0 where there is no path.
        """
        whole = np.zeros_like(joined)
        last = np.zeros_like(joined)
        for hops in range(1, self.most + 1):
            here = self.length == hops
            last = (product(last, self.joined) + product(self._at[hops - 1], joined)) * here
            whole += last
        return np.divide(whole, self.ways, out=np.zeros_like(whole), where=self.ways > 0)


def _sides(joined: Floats) -> tuple[int, int] | None:
    """Return chassis and blades where a group is the full grid of an Aries: None where not.

    Every router is joined once to all of its row and all of its column.

    Examples
    --------
    >>> one = lambda size: np.ones((size, size)) - np.eye(size)
    >>> _sides(np.kron(one(2), np.eye(3)) + np.kron(np.eye(2), one(3)))
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


def _over_grid(demand: Floats, sides: tuple[int, int]) -> Floats:
    """Return `Local.carry` on grids: half of a pair's bytes go along the row first.

    Sums along rows and columns are all that is needed: what leaves (c, b) for
    column b', half of it turns into the row there, and the other half comes
    out of the row that it went first.
    """
    chassis, blades = sides
    pairs = demand.reshape(-1, chassis, blades, chassis, blades)
    flow = np.zeros_like(pairs)
    c, b = np.arange(chassis), np.arange(blades)
    row = (pairs.sum(axis=3) + pairs.sum(axis=1).transpose(0, 2, 1, 3)) / 2
    column = (pairs.sum(axis=4) + pairs.sum(axis=2).transpose(0, 1, 3, 2)) / 2
    flow[:, c, :, c, :] = np.moveaxis(row, 1, 0)
    flow[:, :, b, :, b] = np.moveaxis(column, 2, 0)
    return flow.reshape(demand.shape)


def _grid_mean(price: Floats, sides: tuple[int, int]) -> Floats:
    """Return `Local.priced` on grids: the mean of both ways round, one way along a line."""
    chassis, blades = sides
    pairs = price.reshape(-1, chassis, blades, chassis, blades)
    row, column = np.einsum("gcbcd->gcbd", pairs), np.einsum("gcbdb->gcbd", pairs)
    own_row, own_column = np.arange(blades), np.arange(chassis)
    row[:, :, own_row, own_row] = 0
    column[:, own_column, :, own_column] = 0
    along = row[:, :, :, None, :] + row.transpose(0, 2, 1, 3)[:, None, :, :, :]
    across = column[:, :, :, :, None] + column.transpose(0, 1, 3, 2)[:, :, None, :, :]
    return np.asarray((along + across) / 2).reshape(price.shape)
