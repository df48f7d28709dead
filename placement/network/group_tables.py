"""Listed demands by group pair: bytes from each position of one group to each of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.network.arrays import summed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.network.demand import Demand
    from placement.network.groups import Groups

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["GroupTables", "group_tables"]

#: Router pairs of a machine whose table is made whole.
_WHOLE = 1 << 24


class GroupTables:
    """Tables of bytes between the positions of two groups."""

    def between(self, low: Ints, high: Ints) -> tuple[Floats, Floats]:
        """Return the bytes of some group pairs, both ways.

        Parameters
        ----------
        low, high : int64 (b,)

        Returns
        -------
        up, down : float64 (b, q, q)
            Position of the low group by position of the high one; `down` is
            what the high group sends.
        """
        raise NotImplementedError


class _Whole(GroupTables):
    """All router pairs in one table."""

    def __init__(self, groups: Groups, demand: Demand, with_lines: bool) -> None:
        size = groups.count * groups.width
        if with_lines:
            table = demand.table()
        else:
            key = demand.source * groups.routers + demand.target
            table = summed(key, demand.amount, groups.routers**2)
            table = table.reshape(groups.routers, groups.routers)
        if size != groups.routers or not np.array_equal(groups.slot, np.arange(size)):
            padded = np.zeros((size, size))
            padded[np.ix_(groups.slot, groups.slot)] = table
            table = padded
        self._table = table.reshape(groups.count, groups.width, groups.count, groups.width)

    def between(self, low: Ints, high: Ints) -> tuple[Floats, Floats]:
        """Return the tables of these pairs."""
        up = self._table[low, :, high, :]
        return up, np.swapaxes(self._table[high, :, low, :], 1, 2)


class _Listed(GroupTables):
    """Pairs sorted by group pair, and lines multiplied out group by group."""

    def __init__(self, groups: Groups, demand: Demand, with_lines: bool) -> None:
        self._groups = groups
        self._lines = demand.within if with_lines else None
        g, h = groups.group[demand.source], groups.group[demand.target]
        pair = np.minimum(g, h) * groups.count + np.maximum(g, h)
        order = np.argsort(pair, kind="stable")
        order = order[(g != h)[order]]
        self._pair = pair[order]
        self._up = (g < h)[order]
        p, q = groups.place[demand.source][order], groups.place[demand.target][order]
        self._place = np.where(self._up, p * groups.width + q, q * groups.width + p)
        self._amount = demand.amount[order]

    def between(self, low: Ints, high: Ints) -> tuple[Floats, Floats]:
        """Return the tables of these pairs."""
        width = self._groups.width
        wanted = low * self._groups.count + high
        start, end = (np.searchsorted(self._pair, wanted, side) for side in ("left", "right"))
        each = end - start
        row = np.repeat(np.arange(len(low)), each)
        entry = np.arange(len(row)) + np.repeat(start - (np.cumsum(each) - each), each)
        key = row * width * width + self._place[entry]
        size = len(low), width, width
        both = []
        for way in (True, False):
            amount = np.where(self._up[entry] == way, self._amount[entry], 0)
            both.append(summed(key, amount, int(np.prod(size))).reshape(size))
        if self._lines is not None:
            more = self._expanded(low, high)
            both = [table + more for table in both]
        return both[0], both[1]

    def _expanded(self, low: Ints, high: Ints) -> Floats:
        """Return what the lines have for these pairs."""
        assert self._lines is not None
        groups = self._groups
        out = np.zeros((len(low), groups.width, groups.width))
        for g in np.unique(low).tolist():
            members = np.flatnonzero(groups.group == g)
            first, last = int(members[0]), int(members[-1]) + 1
            rows = self._lines.fold(np.arange(groups.routers), groups.routers, first, last)
            padded = np.zeros((groups.width, groups.count * groups.width))
            padded[np.ix_(groups.place[members], groups.slot)] = rows[members - first]
            table = padded.reshape(groups.width, groups.count, groups.width)
            mine = low == g
            out[mine] = np.swapaxes(table, 0, 1)[high[mine]]
        return out


def group_tables(groups: Groups, demand: Demand, with_lines: bool) -> GroupTables | None:
    """Return the listed pairs (and the lines, if wanted) by group pair; None where there are none.

    Examples
    --------
    >>> from placement.network import Demand
    >>> from placement.network.groups import groups_of
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("dragonfly:groups=2,chassis=1,blades=2,nodes=1,global=2")
    >>> demand = Demand.pairs(m, np.array([0, 3]), np.array([3, 1]), np.array([5.0, 7.0]))
    >>> found = group_tables(groups_of(m), demand, with_lines=False)
    >>> [x[0].tolist() for x in found.between(np.array([0]), np.array([1]))]
    [[[0.0, 5.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 7.0]]]
    """
    if not len(demand.source) and not (with_lines and len(demand.within)):
        return None
    small = (groups.count * groups.width) ** 2 <= _WHOLE
    return (_Whole if small else _Listed)(groups, demand, with_lines)
