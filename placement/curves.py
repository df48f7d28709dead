# SPDX-License-Identifier: Apache-2.0
"""Space-filling curves through boxes of any size: Hilbert and Morton.

A curve numbers the cells of a box so that cells near each other on the curve
are near each other in the box. Node planners run over the machine's
coordinates with it, rank orders over a grid of processes.

How the Hilbert curve goes through a box: it enters it at one corner and leaves
it at the corner opposite along one axis, the main axis. To walk the box, it is
cut into parts, each of them again walked from a corner to a neighbouring
corner, so that every part ends next to the start of the next. Parts of one
shape are walked alike, so only the few different shapes are ever worked out.

* A cube of 2^k a side is cut as J. Skilling's algorithm cuts it ("Programming
  the Hilbert curve", AIP Conf. Proc. 707, 2004): the curve of Slurm's 3d_torus
  plugin and of the usual libraries, the same up to symmetry.
* Any other box is cut by A. R. Butz's pattern for one, two, three … of its
  axes ("Alternative algorithm for Hilbert's space-filling curve", IEEE Trans.
  Comput. C-20, 1971), the two sub-boxes of it that follow each other straight
  on taken as one part. Cut unevenly, it still joins corner to corner.

A walk in unit steps between two corners exists only where the colours of a
chess board allow it (`_is_walkable`), so the cuts are chosen among those that
leave walkable parts. In one to four dimensions there always is one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import combinations, islice, permutations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nidmap.placement.errors import UsageError
from nidmap.placement.support.array_types import Ints

Cells = NDArray[np.int32]

#: More cells than this are not a box of a machine or a process grid.
MOST = 2**26

#: A main axis this many times as long as every other is halved alone.
LONG = 1.5
#: Axes at least this share of the longest are cut together with the main axis.
NEAR = 0.8
#: The cost of a cut: unequal parts, parts with too short a main axis, extents that are even
#: but no multiple of four, odd extents. (In boxes of 2^k a side cells 2^k steps apart are
#: nearer than others; multiples of four keep most of that.) These figures and the two above
#: were found by trying a few hundred on 150 boxes: the mean distance at any of the lags 4,
#: 8 … 256 is at most 1.22 times that of the canonical curve in two dimensions, 1.33 in three,
#: and 1.27 in the (group, chassis, blade, node) boxes of Aries machines.
UNEVEN, SHORT, TWO, ODD = 0.05, 2.5, 0.2, 0.9
#: Number of orders of the other axes to try: all of them up to four dimensions.
ORDERS = 6


def hilbert_key(coords: ArrayLike, extents: Sequence[int]) -> Ints:
    """Return the index of each cell along the Hilbert curve of a box.

    On cubes of 2^k a side it is the Hilbert curve of J. Skilling (AIP Conf.
    Proc. 707, 2004) up to symmetry; in any other box of up to four dimensions a
    generalisation that takes unit steps throughout and keeps its locality.

    `coords` (n, d): cells, inside the box. `extents`: the box, d extents of at least 1. Returns
    (n,): 0 at the curve's start, one less than the number of cells at its end.
    """
    return _curve_positions(hilbert_curve(extents), coords, extents)


def hilbert_curve(extents: Sequence[int]) -> NDArray[np.int32]:
    """Return the cells of a box in the order of its Hilbert curve (see `hilbert_key`).

    `extents`: the box, d extents of at least 1. Returns (cells, d).
    """
    box = _whole_box(extents)
    return np.ascontiguousarray(_join_parts(box, _root_part(box), {}).T)


def morton_key(coords: ArrayLike, extents: Sequence[int]) -> Ints:
    """Return the index of each cell along the Morton curve (Z order) of a box.

    Where the extents are powers of two it interleaves the bits of the
    coordinates, those of the last axis lowest, as table II of Aseeri et al.,
    "A scheduling policy to improve 10% of communication time in parallel FFT",
    has it for 4 x 4. Elsewhere it is the same order with the cells outside the
    box left out of the count.

    `coords` (n, d): cells, inside the box. `extents`: the box, d extents of at least 1. Returns
    (n,): 0 at the curve's start, one less than the number of cells at its end.
    """
    return _curve_positions(morton_curve(extents), coords, extents)


def morton_curve(extents: Sequence[int]) -> NDArray[np.int32]:
    """Return the cells of a box in the order of its Morton curve (see `morton_key`).

    `extents`: the box, d extents of at least 1. Returns (cells, d).
    """
    box = _whole_box(extents)
    cells = np.indices(box, dtype=np.int32).reshape(len(box), -1)
    code = np.zeros(cells.shape[1], dtype=np.int64)
    for bit in reversed(range(max(box).bit_length())):
        for axis, extent in enumerate(box):
            if extent - 1 >> bit:
                code = code << 1 | cells[axis] >> bit & 1
    return np.ascontiguousarray(cells[:, np.argsort(code)].T)


def _whole_box(extents: Sequence[int]) -> tuple[int, ...]:
    box = tuple(int(extent) for extent in extents)
    if not box or min(box) < 1 or math.prod(box) > MOST:
        raise UsageError(f"no curve fills a box of {'x'.join(map(str, box)) or 'no extents'}")
    return box


def _curve_positions(curve: NDArray[np.int32], coords: ArrayLike, box: Sequence[int]) -> Ints:
    """Return the index of each given cell on a curve through all cells of a box."""
    cells = np.asarray(coords, dtype=np.int64)
    if cells.ndim != 2 or cells.shape[1] != len(box):
        raise UsageError(
            f"coordinates of {len(box)} axes are needed, not an array of shape {cells.shape}"
        )
    for axis, extent in enumerate(box):
        if len(cells) and not 0 <= cells[:, axis].min() <= cells[:, axis].max() < extent:
            raise UsageError(f"a coordinate of axis {axis} is outside 0 to {extent - 1}")
    key = np.empty(tuple(box), dtype=np.int64)
    key[tuple(curve.T)] = np.arange(len(curve))
    keys: Ints = key[tuple(cells.T)]
    return keys


class BoxPart(NamedTuple):
    """A part of a box, walked from corner to corner."""

    low: tuple[int, ...]  # its lowest cell in the box
    size: tuple[int, ...]  # its extents
    # The box's axes of extent above 1, in the part's own order, main axis last
    axes: tuple[int, ...]
    # For each axis of the box whether the walk of the part starts at its high end
    flip: tuple[bool, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents along the part's own order of axes."""
        return tuple(self.size[a] for a in self.axes)


def _walk_part(shape: tuple[int, ...], known: dict[tuple[int, ...], Cells]) -> Cells:
    """Return the cells of a part, main axis last; `known` caches the shapes seen."""
    if shape not in known:
        if len(shape) < 2:
            known[shape] = np.arange(math.prod(shape), dtype=np.int32)[None][: len(shape)]
        else:
            known[shape] = _join_parts(shape, _walk_parts(shape), known)
    return known[shape]


def _join_parts(
    box: tuple[int, ...], pieces: tuple[BoxPart, ...], known: dict[tuple[int, ...], Cells]
) -> Cells:
    """Return the cells of a box, part after part."""
    out = np.empty((len(box), math.prod(box)), dtype=np.int32)
    start = 0
    for part in pieces:
        cells = _walk_part(part.shape, known)
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


def _root_part(extents: tuple[int, ...]) -> tuple[BoxPart, ...]:
    """Return the parts in which to walk a whole box; the walk may end at any corner.

    The main axis is the longest that a walk in unit steps can have. Where
    the longest has an odd extent and only a much shorter one is even, the
    box is walked along the longest, and its last piece (about a square) along
    the even one.
    """
    longest = sorted(range(len(extents)), key=lambda a: -extents[a])
    main, along = next(a for a in longest if _is_walkable(extents, a)), longest[0]
    zero = (0,) * len(extents)
    if not extents[along] >= LONG * extents[main] > LONG:
        return (_make_part(zero, extents, main),)
    piece = min(extents[main] + 1, extents[along] - 2)
    first, rest, low = list(extents), list(extents), list(zero)
    first[along] = low[along] = extents[along] - piece
    rest[along] = piece
    return _make_part(zero, tuple(first), along), _make_part(tuple(low), tuple(rest), main)


def _make_part(low: tuple[int, ...], size: tuple[int, ...], main: int) -> BoxPart:
    order = _turn_axes(len(size), main)
    return BoxPart(low, size, _long_axes(size, order), (False,) * len(size))


def _turn_axes(n: int, main: int) -> tuple[int, ...]:
    """Return the axes 0 … n-1 turned so that `main` is the last."""
    return tuple((main + 1 + k) % n for k in range(n))


def _long_axes(size: tuple[int, ...], order: Iterable[int]) -> tuple[int, ...]:
    return tuple(a for a in order if size[a] > 1)


def _is_walkable(size: tuple[int, ...], main: int) -> bool:
    """Tell whether unit steps can visit all cells from a corner to the one along `main`.

    Coloured like a chess board, the two corners must differ where the number
    of cells is even, and be of the commoner colour where it is odd.
    """
    if size[main] % 2 == 0:
        return True
    return all(extent % 2 for extent in size) and (size[main] > 1 or math.prod(size) == 1)


@cache
def _walk_parts(shape: tuple[int, ...]) -> tuple[BoxPart, ...]:
    """Return the parts of a box in the order in which they are walked.

    `shape`: extents, all above 1, at least two of them; the main axis is the last. The walk
    starts at the lowest cell and ends at the other end of the main axis.
    """
    if len(set(shape)) == 1 and shape[0] & (shape[0] - 1) == 0:
        return tuple(_skilling_octant(len(shape), shape[0] // 2, w) for w in range(1 << len(shape)))
    for tier in _axes_to_cut(shape):
        cut = min(_possible_cuts(shape, tier), default=None)
        if cut is not None:
            return cut[-1]
    # beyond four dimensions only: a box that no cut suits is halved, with a jump
    longest = max(range(len(shape)), key=lambda a: shape[a])
    halves = _cut_box(shape, (longest,), (shape[longest] // 2,))
    return tuple(half._replace(axes=_long_axes(half.size, range(len(shape)))) for half in halves)


def _axes_to_cut(shape: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
    """Yield sets of axes to cut, in every order, those that suit the shape best first."""
    main = len(shape) - 1
    others = range(main)
    if shape[main] >= LONG * max(shape[:-1]):
        yield [(main,)]
    yield _cutting_orders([a for a in others if shape[a] >= NEAR * max(shape)], main)
    fewer = range(main, -1, -1)
    yield [
        o
        for count in fewer
        for some in combinations(others, count)
        for o in _cutting_orders(some, main)
    ]


def _cutting_orders(axes: Iterable[int], main: int) -> list[tuple[int, ...]]:
    return [(*order, main) for order in islice(permutations(axes), ORDERS)]


def _possible_cuts(
    shape: tuple[int, ...], orders: list[tuple[int, ...]]
) -> Iterator[tuple[float, int, tuple[int, ...], tuple[BoxPart, ...]]]:
    """Yield every cut that leaves only walkable parts, with its cost."""
    volume = math.prod(shape)
    for rank, order in enumerate(orders):
        spread = [_cutting_places(shape[a], len(shape)) for a in order]
        for places in product(*spread):
            pieces = _cut_box(shape, order, tuple(at for _, at in places))
            if pieces:
                cost = sum(math.prod(p.size) * _awkwardness(p.shape) for p in pieces) / volume
                cost += sum(price for price, _ in places)
                yield cost, rank, tuple(at for _, at in places), pieces


@cache
def _cutting_places(extent: int, dimensions: int) -> list[tuple[float, int]]:
    """Return candidate places to cut an axis, with penalties: near the middle, even and odd."""
    near = {at for k in range(3) for at in (extent // 2 - k, extent - extent // 2 + k)}
    priced = sorted(
        (_cut_price(at, extent), abs(2 * at - extent), at) for at in near if 0 < at < extent
    )
    keep = 2 if dimensions <= 4 else 1
    return [
        (price, at)
        for parity in (0, 1)
        for price, _, at in [p for p in priced if p[2] % 2 == parity][:keep]
    ]


def _cut_price(at: int, extent: int) -> float:
    return UNEVEN * math.log2(at / (extent - at)) ** 2 + _odd_price(at) + _odd_price(extent - at)


def _odd_price(extent: int) -> float:
    if extent < 3 or extent % 4 == 0:
        return 0.0
    return ODD if extent % 2 else TWO


@cache
def _awkwardness(shape: tuple[int, ...]) -> float:
    """Return the deviation of a part from a cube, plus a penalty for a short main axis."""
    if not shape:
        return 0.0
    logs = [math.log2(extent) for extent in shape]
    most = max(logs)
    return sum((x - most) ** 2 for x in logs) / len(logs) + SHORT * (most - logs[-1])


def _cut_box(
    shape: tuple[int, ...], order: tuple[int, ...], places: tuple[int, ...]
) -> tuple[BoxPart, ...]:
    """Return the parts for cuts at `places` along the axes `order`; () if one is not walkable."""
    cut = dict(zip(order, places, strict=True))
    ends = [(0, extent) for extent in shape]
    sides = {a: ((0, at), (at, shape[a] - at), (0, shape[a])) for a, at in cut.items()}
    out = []
    for side, main, axes, flip in _butz_pattern(len(shape), order):
        spans = [sides[a][side[a]] if a in cut else ends[a] for a in range(len(shape))]
        size = tuple(extent for _, extent in spans)
        if not _is_walkable(size, main):
            return ()
        out.append(BoxPart(tuple(low for low, _ in spans), size, _long_axes(size, axes), flip))
    return tuple(out)


class _ButzPart(NamedTuple):
    """A part of Butz's pattern: the side of each axis (0 low, 1 high, 2 both), and its walk."""

    side: dict[int, int]
    main: int
    axes: tuple[int, ...]
    flip: tuple[bool, ...]


@cache
def _butz_pattern(n: int, order: tuple[int, ...]) -> tuple[_ButzPart, ...]:
    """Return Butz's pattern on the axes `order` of n, the last being the main axis."""
    at = dict.fromkeys(order, 0)
    flip = [False] * n
    out: list[_ButzPart] = []
    for place, along, entered in _gray_walk(len(order)):
        main = order[along]
        side = {a: place >> r & 1 for r, a in enumerate(order)}
        straight = out and out[-1].main == main and order[entered] == main and len(order) > 1
        if straight:
            out[-1].side[main] = 2
        else:
            for axis, value in side.items():
                if at[axis] != value:  # a part left at its high end is entered at the low one
                    flip[axis] = value < at[axis]
            out.append(_ButzPart(side, main, _turn_axes(n, main), tuple(flip)))
            flip[main] = not flip[main]
        at = {a: place >> r & 1 for r, a in enumerate(order)}
    return tuple(out)


def _gray_walk(k: int) -> Iterator[tuple[int, int, int]]:
    """Yield place, direction and entry axis of each of 2^k sub-cubes."""
    entered = 0
    for i in range(1 << k):
        along = 0 if i == 0 else _trailing_ones(i - 1 if i % 2 == 0 else i) % k
        yield i ^ i >> 1, along, entered
        entered = _trailing_ones(i)


def _trailing_ones(i: int) -> int:
    """Return the number of trailing 1 bits of `i`."""
    return (~i & i + 1).bit_length() - 1


def _skilling_octant(n: int, half: int, w: int) -> BoxPart:
    """Return sub-cube `w` of the 2^n of Skilling's curve; axis n-1 is his first.

    Its place is the Gray code, its walk what Skilling's exchanges make.
    """
    place = [(w ^ w >> 1) >> a & 1 for a in range(n)]
    slots = [(a, False) for a in range(n)]
    if w & 1:
        slots[-1] = (slots[-1][0], True)
    for a in range(n):
        if place[a]:
            slots[-1] = (slots[-1][0], not slots[-1][1])
        else:
            slots[-1], slots[a] = slots[a], slots[-1]
    size = (half,) * n
    axes = tuple(sorted(range(n), key=lambda a: slots[a][0]))
    low = tuple(half * bit for bit in place)
    return BoxPart(low, size, _long_axes(size, axes), tuple(turned for _, turned in slots))
