"""How an axis is cut over ranks: the first ranks have one element more where it is uneven."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Part", "Swap", "cuts"]


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of an axis.

    Examples
    --------
    >>> Part(4, 3).stop, Part(4, 3).slice
    (7, slice(4, 7, None))
    """

    start: int
    size: int

    @property
    def stop(self) -> int:
        """The element after the last."""
        return self.start + self.size

    @property
    def slice(self) -> slice:
        """The stretch as numpy takes it."""
        return slice(self.start, self.stop)


def cuts(extent: int, count: int, start: int = 0) -> tuple[Part, ...]:
    """Cut a stretch of an axis into `count` parts whose sizes differ by one at most.

    Parameters
    ----------
    extent : int
        Elements of the stretch; fewer than `count` leave the last parts empty.
    count : int
    start : int
        Where it begins.

    Examples
    --------
    >>> [(part.start, part.size) for part in cuts(10, 4)]
    [(0, 3), (3, 3), (6, 2), (8, 2)]
    """
    least, more = divmod(extent, count)
    return tuple(Part(start + k * least + min(k, more), least + (k < more)) for k in range(count))


@dataclass(frozen=True, slots=True)
class Swap:
    """A transposition between the ranks of one row or column of the process grid.

    Before it an axis `gather` is cut over the ranks and an axis `scatter`
    whole; afterwards it is the other way round.

    Attributes
    ----------
    rank : int
        This rank in the row or column.
    gather, scatter : int
        Axes, 0 to 2.
    gathered : tuple of Part
        By rank: its part of the `gather` axis, where it stands in the target array.
    scattered : tuple of Part
        By rank: its part of the `scatter` axis, where it stands in the source array.
    other : int
        Extent of the third axis, the same on these ranks.
    """

    rank: int
    gather: int
    scatter: int
    gathered: tuple[Part, ...]
    scattered: tuple[Part, ...]
    other: int

    def source_shape(self, rank: int) -> tuple[int, int, int]:
        """Return the shape of the array that a rank has before the exchange."""
        return self._shape(self.gathered[rank].size, sum(part.size for part in self.scattered))

    def block_shape(self, source: int, target: int) -> tuple[int, int, int]:
        """Return the shape of what one rank sends another."""
        return self._shape(self.gathered[source].size, self.scattered[target].size)

    def _shape(self, gather: int, scatter: int) -> tuple[int, int, int]:
        sizes = {self.gather: gather, self.scatter: scatter}
        return sizes.get(0, self.other), sizes.get(1, self.other), sizes.get(2, self.other)

    def sent(self, target: int) -> tuple[slice, ...]:
        """Return where in a source array the block for a rank stands."""
        return _only(self.scatter, self.scattered[target])

    def received(self, source: int) -> tuple[slice, ...]:
        """Return where in the target array the block of a rank stands."""
        return _only(self.gather, self.gathered[source])

    @property
    def even(self) -> bool:
        """Whether all blocks have one size and stand at equal steps; one answer on all ranks."""
        return all(
            len({part.size for part in parts}) == 1
            and len({b.start - a.start for a, b in pairwise(parts)}) <= 1
            for parts in (self.gathered, self.scattered)
        )


def _only(axis: int, part: Part) -> tuple[slice, ...]:
    """Return the index of a part of one axis and all of the others."""
    return tuple(part.slice if k == axis else slice(None) for k in range(3))
