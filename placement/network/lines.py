"""All-to-alls in product form: bytes from s to t are scale · w(s) · w(t) within each line.

A line is a set of routers with a weight each (the ranks there): the whole job
in an all-to-all, a row or a column of the process grid in an FFT. Kept like
this, 100,000 nodes are a few arrays and not a table of all pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.network.arrays import mixed, product, summed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["NO_LINES", "Lines"]

#: Numbers that one dense table of lines may hold.
_TABLE = 1 << 22

#: Pairs that are expanded at once.
_EXPANDED = 1 << 21

#: What expanding one pair costs, in multiplications of a matrix product.
_DEAR = 100


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Lines of routers, one entry a (line, router), sorted by line and then router.

    Attributes
    ----------
    line : int64 (e,)
    router : int64 (e,)
    weight : float64 (e,)
    scale : float64 (l,)
        Bytes for a product of weights of 1, line by line.
    """

    line: Ints
    router: Ints
    weight: Floats
    scale: Floats

    def __len__(self) -> int:
        return len(self.scale)

    def joined(self, other: Lines) -> Lines:
        """Return the lines of both."""
        return Lines(
            line=np.concatenate([self.line, other.line + len(self)]),
            router=np.concatenate([self.router, other.router]),
            weight=np.concatenate([self.weight, other.weight]),
            scale=np.concatenate([self.scale, other.scale]),
        )

    def merged(self) -> Lines:
        """Return the lines with those that are alike as one of their scales together.

        The lines of a process grid are alike wherever all ranks of some
        nodes follow each other.
        """
        if len(self) < 2:
            return self
        one = mixed(mixed(self.router) + self.weight.view(np.int64))
        first = np.searchsorted(self.line, np.arange(len(self)))
        look = np.add.reduceat(one, first)
        _, kept, which = np.unique(look, return_index=True, return_inverse=True)
        if len(kept) == len(self):
            return self
        rank = np.full(len(self), -1)
        rank[kept] = np.arange(len(kept))
        some = rank[self.line] >= 0
        line, order = rank[self.line[some]], np.argsort(rank[self.line[some]], kind="stable")
        router, weight = self.router[some][order], self.weight[some][order]
        return Lines(line[order], router, weight, summed(which, self.scale))

    def times(self, factor: float) -> Lines:
        """Return the lines with `factor` times the bytes."""
        return Lines(self.line, self.router, self.weight, self.scale * factor)

    def among(self, chosen: NDArray[np.bool_], place: Ints, size: int) -> Floats:
        """Return the bytes between the chosen entries, by places 0 … size-1.

        Parameters
        ----------
        chosen : bool (e,)
        place : int64 (routers,)
            Where each router of the chosen entries stands in the table.
        size : int

        Returns
        -------
        float64 (size, size)
            A router's bytes to itself are in it.
        """
        used = np.bincount(self.line[chosen], minlength=len(self)) > 0
        line = (np.cumsum(used) - 1)[self.line[chosen]]
        side = line, place[self.router[chosen]], self.weight[chosen]
        return _Sides(side, side, self.scale[used], size, size).product()

    def own(self, routers: int) -> Floats:
        """Return what each router would send to itself, float64 (routers,)."""
        amount = self.scale[self.line] * self.weight * self.weight
        return summed(self.router, amount, routers)

    def fold(self, label: Ints, count: int, low: int, high: int) -> Floats:
        """Return the bytes from the routers low … high-1 to all routers of each label.

        A router's own share of its label is in it.

        Parameters
        ----------
        label : int64 (routers,)
            0 … count-1.
        count, low, high : int

        Returns
        -------
        float64 (high - low, count)

        Examples
        --------
        >>> import numpy as np
        >>> one = Lines(np.zeros(3, int), np.arange(3), np.array([1., 2., 3.]), np.ones(1))
        >>> one.fold(np.array([0, 0, 1]), 2, 0, 3).tolist()
        [[3.0, 3.0], [6.0, 6.0], [9.0, 9.0]]
        """
        from_here = (self.router >= low) & (self.router < high)
        used = np.bincount(self.line[from_here], minlength=len(self)) > 0
        rank = np.cumsum(used) - 1
        left = rank[self.line[from_here]], self.router[from_here] - low, self.weight[from_here]
        chosen = used[self.line]
        right = rank[self.line[chosen]], label[self.router[chosen]], self.weight[chosen]
        sides = _Sides(left, right, self.scale[used], high - low, count)
        return sides.product()


class _Sides:
    """The product of two sparse tables, lines x rows and lines x columns, over the lines."""

    def __init__(
        self,
        left: tuple[Ints, Ints, Floats],
        right: tuple[Ints, Ints, Floats],
        scale: Floats,
        rows: int,
        columns: int,
    ) -> None:
        self.scale, self.rows, self.columns = scale, rows, columns
        self.left = left
        self.right = _merged(*right, len(scale), columns)

    def product(self) -> Floats:
        """Return the table rows x columns; each line by the way that is cheaper for it."""
        lines, dense = len(self.scale), self.rows * self.columns
        left, right = (np.bincount(side[0], minlength=lines) for side in (self.left, self.right))
        short = left * right * _DEAR < dense
        if short.all():
            return self._sparse()
        if not short.any():
            return self._dense()
        return self._some(short)._sparse() + self._some(~short)._dense()

    def _some(self, chosen: NDArray[np.bool_]) -> _Sides:
        """Return the product over some of the lines."""
        rank = np.cumsum(chosen) - 1
        left, right = (
            (rank[line[kept]], column[kept], weight[kept])
            for line, column, weight in (self.left, self.right)
            for kept in [chosen[line]]
        )
        return _Sides(left, right, self.scale[chosen], self.rows, self.columns)

    def _dense(self) -> Floats:
        out = np.zeros((self.rows, self.columns))
        step = max(1, _TABLE // max(1, self.rows + self.columns))
        for first in range(0, len(self.scale), step):
            scale = self.scale[first : first + step, None]
            left = _table(self.left, first, len(scale), self.rows)
            right = _table(self.right, first, len(scale), self.columns)
            out += product((left * scale).T, right)
        return out

    def _sparse(self) -> Floats:
        size = self.rows * self.columns
        out = np.zeros(size)
        line, row, weight = self.left
        start = np.searchsorted(self.right[0], np.arange(len(self.scale) + 1))
        for some in _batches(np.diff(start)[line]):
            each = np.diff(start)[line[some]]
            ends = np.cumsum(each)
            place = np.arange(ends[-1]) + np.repeat(start[line[some]] - (ends - each), each)
            amount = np.repeat(weight[some] * self.scale[line[some]], each) * self.right[2][place]
            key = np.repeat(row[some] * self.columns, each) + self.right[1][place]
            _accumulate(out, key, amount)
        return out.reshape(self.rows, self.columns)


def _accumulate(out: Floats, key: Ints, amount: Floats) -> None:
    """Add amounts at keys; a table much larger than the keys is not walked through."""
    if len(out) > 8 * len(key):
        np.add.at(out, key, amount)
    else:
        out += summed(key, amount, len(out))


def _merged(
    line: Ints, column: Ints, weight: Floats, lines: int, columns: int
) -> tuple[Ints, Ints, Floats]:
    """Return one entry a (line, column), sorted."""
    key = line * columns + column
    if (np.diff(key) > 0).all():
        return line, column, weight
    if lines * columns <= max(_TABLE, 4 * len(key)):
        table = summed(key, weight, lines * columns)
        found = np.flatnonzero(table)
        return found // columns, found % columns, table[found]
    found, inverse = np.unique(key, return_inverse=True)
    return found // columns, found % columns, summed(inverse, weight)


def _table(entries: tuple[Ints, Ints, Floats], first: int, lines: int, columns: int) -> Floats:
    """Return the entries of the lines first … first+lines-1 as a dense table."""
    line, column, weight = entries
    low, high = np.searchsorted(line, [first, first + lines])
    key = (line[low:high] - first) * columns + column[low:high]
    return summed(key, weight[low:high], lines * columns).reshape(lines, columns)


def _batches(sizes: Ints) -> Iterator[slice]:
    """Yield slices of things of these sizes, none with much more than `_EXPANDED` together."""
    total = np.cumsum(sizes)
    low = 0
    while low < len(sizes):
        before = int(total[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(total, before + _EXPANDED, side="right")))
        if int(total[high - 1]) > before:
            yield slice(low, high)
        low = high


_NONE = np.zeros(0, dtype=np.int64)

#: No lines at all.
NO_LINES = Lines(_NONE, _NONE, np.zeros(0), np.zeros(0))
