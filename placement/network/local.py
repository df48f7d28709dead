"""Inside the groups of a dragonfly: all shortest paths between the routers of one group.

Groups that are wired alike (all of a full machine) are looked at once. The
tables are padded to the largest group: a position that a group does not have
is joined to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.network.sums import product

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
