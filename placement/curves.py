"""Space-filling curves through boxes of any extents: Hilbert and Morton.

A curve numbers the cells of a box so that cells near each other on the curve
are near each other in the box. Node planners run over the machine's
coordinates with it, rank orders over a grid of processes.

Both curves are made the same way. A rule cuts a box into parts and says in
which order and how they are walked (`placement.hilbert` and `_morton_parts`);
boxes of one shape are walked alike, so only the few different shapes are ever
worked out, and all cells follow by numpy.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement import hilbert
from placement.errors import UsageError
from placement.hilbert import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    Shape = tuple[int, ...]

__all__ = ["hilbert_curve", "hilbert_key", "morton_curve", "morton_key"]

#: A box of at most so many cells is looked up in a table, whatever is asked of it.
TABLE = 4096
#: More cells than this are no box of a machine or a process grid.
MOST = 2**62


class _Rule(NamedTuple):
    """How a whole box is walked, and how a part of it is cut further."""

    root: Callable[[Shape], tuple[Part, ...]]
    parts: Callable[[Shape], tuple[Part, ...]]


def hilbert_key(coords: ArrayLike, extents: Sequence[int]) -> NDArray[np.int64]:
    """Return the position of cells along the Hilbert curve of a box.

    On cubes of 2^k a side it is the Hilbert curve of J. Skilling (AIP Conf.
    Proc. 707, 2004) up to symmetry; in any other box of up to four dimensions a
    generalisation that takes unit steps throughout and keeps its locality.

    Parameters
    ----------
    coords : int (n, d)
        Cells, inside the box.
    extents : sequence of int
        The box, d extents of at least 1.

    Returns
    -------
    int64 (n,)
        0 at the curve's start, one less than the number of cells at its end.

    Raises
    ------
    UsageError
        Where a coordinate lies outside the box, or the box is impossible.

    Examples
    --------
    >>> hilbert_key([[0, 0], [1, 0], [1, 1], [0, 1]], (2, 2)).tolist()
    [0, 3, 2, 1]
    """
    return _keys(_HILBERT, coords, extents)


def hilbert_curve(extents: Sequence[int]) -> NDArray[np.int32]:
    """Return the cells of a box in the order of its Hilbert curve (see `hilbert_key`).

    Parameters
    ----------
    extents : sequence of int
        The box, d extents of at least 1.

    Returns
    -------
    int32 (cells, d)

    Examples
    --------
    >>> hilbert_curve((2, 3)).tolist()
    [[0, 0], [1, 0], [1, 1], [0, 1], [0, 2], [1, 2]]
    """
    return _curve(_HILBERT, extents)


def morton_key(coords: ArrayLike, extents: Sequence[int]) -> NDArray[np.int64]:
    """Return the position of cells along the Morton curve (Z order) of a box.

    Where the extents are powers of two it interleaves the bits of the
    coordinates, those of the last axis lowest, as table II of Aseeri et al.,
    "A scheduling policy to improve 10% of communication time in parallel FFT",
    has it for 4 x 4. Elsewhere it is the same order with the cells outside the
    box left out of the count.

    Parameters
    ----------
    coords : int (n, d)
        Cells, inside the box.
    extents : sequence of int
        The box, d extents of at least 1.

    Returns
    -------
    int64 (n,)
        0 at the curve's start, one less than the number of cells at its end.

    Raises
    ------
    UsageError
        Where a coordinate lies outside the box, or the box is impossible.

    Examples
    --------
    >>> morton_key([[0, 1], [1, 0], [0, 2], [3, 3]], (4, 4)).tolist()
    [1, 2, 4, 15]
    """
    return _keys(_MORTON, coords, extents)


def morton_curve(extents: Sequence[int]) -> NDArray[np.int32]:
    """Return the cells of a box in the order of its Morton curve (see `morton_key`).

    Parameters
    ----------
    extents : sequence of int
        The box, d extents of at least 1.

    Returns
    -------
    int32 (cells, d)

    Examples
    --------
    >>> morton_curve((2, 3)).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [1, 2]]
    """
    return _curve(_MORTON, extents)


def _morton_root(extents: Shape) -> tuple[Part, ...]:
    return (_plain_part((0,) * len(extents), extents),)


def _morton_parts(shape: Shape) -> tuple[Part, ...]:
    """Cut the axes that take the most bits at that bit; the first axis counts highest."""
    top = max(extent - 1 for extent in shape).bit_length() - 1
    ends = [_ends(extent, 1 << top) for extent in shape]
    return tuple(
        _plain_part(tuple(low for low, _ in spans), tuple(extent for _, extent in spans))
        for spans in product(*ends)
    )


def _ends(extent: int, half: int) -> list[tuple[int, int]]:
    return [(0, half), (half, extent - half)] if extent > half else [(0, extent)]


def _plain_part(low: Shape, size: Shape) -> Part:
    axes = tuple(a for a in range(len(size)) if size[a] > 1)
    return Part(low, size, axes, (False,) * len(size))


_HILBERT = _Rule(hilbert.root, hilbert.parts)
_MORTON = _Rule(_morton_root, _morton_parts)


def _curve(rule: _Rule, extents: Sequence[int]) -> NDArray[np.int32]:
    box = _box(extents)
    return np.ascontiguousarray(_joined(rule, box, rule.root(box), {}).T)


def _box(extents: Sequence[int]) -> Shape:
    box = tuple(int(extent) for extent in extents)
    if not box or min(box) < 1 or math.prod(box) > MOST:
        raise UsageError(f"no curve through a box of {'x'.join(map(str, box)) or 'no extents'}")
    return box


def _cells(rule: _Rule, shape: Shape, known: dict[Shape, NDArray[np.int32]]) -> NDArray[np.int32]:
    """Return the cells of a part in walking order, one row an axis; shapes seen are `known`."""
    if shape not in known:
        if len(shape) < 2:
            known[shape] = np.arange(math.prod(shape), dtype=np.int32)[None][: len(shape)]
        else:
            known[shape] = _joined(rule, shape, rule.parts(shape), known)
    return known[shape]


def _joined(
    rule: _Rule, box: Shape, parts: tuple[Part, ...], known: dict[Shape, NDArray[np.int32]]
) -> NDArray[np.int32]:
    """Return the cells of a box, one row an axis, part after part."""
    out = np.empty((len(box), math.prod(box)), dtype=np.int32)
    start = 0
    for part in parts:
        cells = _cells(rule, part.shape, known)
        stop = start + math.prod(part.size)
        out[:, start:stop] = np.array(part.low, dtype=np.int32)[:, None]
        for row, axis in enumerate(part.axes):
            last = part.low[axis] + part.size[axis] - 1
            if part.flip[axis]:
                np.subtract(last, cells[row], out=out[axis, start:stop])
            else:
                out[axis, start:stop] += cells[row]
        start = stop
    return out


class _Batch(NamedTuple):
    """Cells asked for that lie in parts of one shape: their rows, place in the part, its start."""

    rows: NDArray[np.int64]
    cells: NDArray[np.int64]
    start: NDArray[np.int64]


def _keys(rule: _Rule, coords: ArrayLike, extents: Sequence[int]) -> NDArray[np.int64]:
    """Return the positions of cells: the box is cut until a table of its cells is small enough."""
    box = _box(extents)
    cells = _inside(coords, box)
    key = np.empty(cells.shape[1], dtype=np.int64)
    known: dict[Shape, NDArray[np.int32]] = {}
    todo: dict[Shape, list[_Batch]] = {}
    whole = _Batch(np.arange(len(key)), cells, np.zeros(len(key), dtype=np.int64))
    _answer(rule, box, rule.root(box), whole, key, known, todo)
    while todo:
        shape = max(todo, key=math.prod)
        batch = _merged(todo.pop(shape))
        parts = rule.parts(shape) if len(shape) > 1 else ()
        _answer(rule, shape, parts, batch, key, known, todo)
    return key


def _inside(coords: ArrayLike, box: Shape) -> NDArray[np.int64]:
    """Return the coordinates one row an axis, all inside the box."""
    table = np.asarray(coords, dtype=np.int64)
    if table.ndim != 2 or table.shape[1] != len(box):
        raise UsageError(f"coordinates of {len(box)} axes wanted, got an array {table.shape}")
    cells = np.ascontiguousarray(table.T)
    for axis, extent in enumerate(box):
        if len(table) and not 0 <= cells[axis].min() <= cells[axis].max() < extent:
            raise UsageError(f"a coordinate of axis {axis} is outside 0 to {extent - 1}")
    return cells


def _merged(batches: list[_Batch]) -> _Batch:
    if len(batches) == 1:
        return batches[0]
    return _Batch(
        np.concatenate([b.rows for b in batches]),
        np.concatenate([b.cells for b in batches], axis=1),
        np.concatenate([b.start for b in batches]),
    )


def _answer(
    rule: _Rule,
    box: Shape,
    parts: tuple[Part, ...],
    batch: _Batch,
    key: NDArray[np.int64],
    known: dict[Shape, NDArray[np.int32]],
    todo: dict[Shape, list[_Batch]],
) -> None:
    """Answer a batch from a table where its box is small, else hand it on to the parts."""
    if len(box) < 2:
        key[batch.rows] = batch.start + (batch.cells[0] if len(box) else 0)
    elif math.prod(box) <= max(TABLE, 4 * len(batch.rows)):
        walk = known.get(box)
        walk = _joined(rule, box, parts, known) if walk is None else walk
        table = np.empty(math.prod(box), dtype=np.int64)
        table[_flat(walk, box)] = np.arange(len(table))
        key[batch.rows] = batch.start + table[_flat(batch.cells, box)]
    else:
        _hand_on(parts, batch, todo)


def _flat(cells: NDArray[np.int32] | NDArray[np.int64], box: Shape) -> NDArray[np.int64]:
    flat: NDArray[np.int64] = cells[0].astype(np.int64)
    for axis in range(1, len(box)):
        flat *= box[axis]
        flat += cells[axis]
    return flat


def _hand_on(parts: tuple[Part, ...], batch: _Batch, todo: dict[Shape, list[_Batch]]) -> None:
    start = 0
    for part in parts:
        low = np.array(part.low)[:, None]
        size = np.array(part.size)[:, None]
        here = ((batch.cells >= low) & (batch.cells < low + size)).all(axis=0)
        if here.any():
            local = (batch.cells[:, here] - low)[list(part.axes)]
            turned = [row for row, axis in enumerate(part.axes) if part.flip[axis]]
            local[turned] = np.array(part.shape, dtype=np.int64)[turned, None] - 1 - local[turned]
            found = _Batch(batch.rows[here], local, batch.start[here] + start)
            todo.setdefault(part.shape, []).append(found)
        start += math.prod(part.size)
