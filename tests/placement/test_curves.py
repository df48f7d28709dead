# SPDX-License-Identifier: Apache-2.0
"""The curves: canonical on powers of two, unit steps, locality elsewhere, keys the inverse."""

import math
from functools import cache
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.curves import (
    _walk_parts,
    hilbert_curve,
    hilbert_key,
    morton_curve,
    morton_key,
)
from nidmap.placement.errors import UsageError

#: Boxes of real machines, and others as awkward, none very long.
AWKWARD = [
    (18, 6, 16), (25, 16, 24), (24, 24, 24), (7, 11, 13), (12, 12, 12), (10, 12, 14), (17, 17, 17),
    (9, 9, 9), (11, 19, 21), (20, 20), (33, 35), (6, 10), (40, 64), (48, 24), (26, 32, 16),
    (18, 6, 16, 4), (9, 6, 16, 4), (15, 6, 16, 4), (20, 6, 16, 4), (34, 6, 16, 4), (41, 6, 16, 4),
]  # fmt: skip

#: Long boxes, in which every curve must go far.
LONG = [(1, 5, 64), (2, 101), (6, 63), (8, 128), (100, 3)]

LAGS = (4, 8, 16, 32, 64, 128, 256)

extents = st.one_of(
    st.lists(st.integers(1, 40), min_size=1, max_size=2),
    st.lists(st.integers(1, 12), min_size=3, max_size=3),
    st.lists(st.integers(1, 7), min_size=4, max_size=4),
).map(tuple)


def skilling(index, bits, n):
    """One cell of the Hilbert curve, cell by cell as Skilling's paper writes it."""
    x = [0] * n
    for k in range(bits * n):
        bit = index >> (bits * n - 1 - k) & 1
        x[k % n] |= bit << (bits - 1 - k // n)
    carry = x[n - 1] >> 1
    for i in range(n - 1, 0, -1):
        x[i] ^= x[i - 1]
    x[0] ^= carry
    q = 2
    while q < 1 << bits:
        for i in range(n - 1, -1, -1):
            if x[i] & q:
                x[0] ^= q - 1
            else:
                swap = (x[0] ^ x[i]) & (q - 1)
                x[0] ^= swap
                x[i] ^= swap
        q *= 2
    return x


@cache
def canonical(bits, n):
    return np.array([skilling(i, bits, n) for i in range(1 << bits * n)])


def interleaved(cell, bits):
    """The Morton number of one cell: bits from the top, the first axis first in each round."""
    key = 0
    for bit in range(bits - 1, -1, -1):
        for value in cell:
            key = key << 1 | (value >> bit & 1)
    return key


def snake(box):
    """Boustrophedon through a box: unit steps, but no locality."""
    cells = [()]
    for extent in box:
        rows = []
        for i, cell in enumerate(cells):
            line = range(extent) if i % 2 == 0 else range(extent - 1, -1, -1)
            rows += [(*cell, v) for v in line]
        cells = rows
    return np.array(cells)


def distances(curve):
    """Mean distance of cells LAGS steps apart, as far as the curve is long enough."""
    curve = np.asarray(curve, dtype=np.int64)
    lags = [lag for lag in LAGS if 4 * lag <= len(curve)]
    return np.array([np.abs(curve[lag:] - curve[:-lag]).sum(axis=1).mean() for lag in lags])


@cache
def canonical_in(box, kind):
    """The canonical curve of the smallest cube of 2^k a side, the cells outside left out."""
    bits = max(1, (max(box) - 1).bit_length())
    cube = canonical(bits, len(box))
    if kind == "morton":
        cube = np.array(sorted(cube.tolist(), key=lambda cell: interleaved(cell, bits)))
    return cube[(cube < np.array(box)).all(axis=1)]


def steps(curve):
    return np.abs(np.diff(curve.astype(np.int64), axis=0)).sum(axis=1)


def every_cell_once(curve, box):
    flat = np.ravel_multi_index(tuple(curve.T), box)
    return len(curve) == math.prod(box) and len(np.unique(flat)) == math.prod(box)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("bits", [1, 2, 3])
def test_hilbert_on_cubes_is_the_canonical_curve_up_to_symmetry(bits, n):
    ours, theirs = hilbert_curve((1 << bits,) * n), canonical(bits, n)
    top = (1 << bits) - 1
    found = False
    for axes in permutations(range(n)):
        for flips in product((False, True), repeat=n):
            turned = np.where(flips, top - ours[:, axes], ours[:, axes])
            found |= bool((turned == theirs).all())
    assert found


@pytest.mark.parametrize("box", [(4, 4), (8, 2), (2, 16, 4), (8, 8, 8), (4, 2, 8, 2), (1, 8, 4)])
def test_morton_on_powers_of_two_interleaves_the_bits(box):
    bits = max(box).bit_length()
    cells = sorted(product(*map(range, box)), key=lambda cell: interleaved(cell, bits))
    assert morton_curve(box).tolist() == [list(cell) for cell in cells]


def test_morton_4x4_is_table_ii_of_the_fft_paper():
    keys = morton_key([(i, j) for i in range(4) for j in range(4)], (4, 4)).reshape(4, 4)
    assert keys.tolist() == [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]


@given(extents)
@settings(deadline=None)
def test_hilbert_takes_unit_steps_through_every_cell(box):
    curve = hilbert_curve(box)
    assert every_cell_once(curve, box)
    assert (steps(curve) == 1).all()


def test_hilbert_takes_unit_steps_in_all_small_boxes():
    boxes = [
        box for n, most in ((2, 14), (3, 7), (4, 4)) for box in product(*[range(1, most + 1)] * n)
    ]
    broken = [box for box in boxes if (steps(hilbert_curve(box)) != 1).any()]
    assert not broken


@pytest.mark.parametrize("box", [(3, 3, 3, 3, 3), (2, 3, 4, 5, 2), (4, 4, 4, 4, 4)])
def test_five_dimensions_are_walked_too(box):
    assert every_cell_once(hilbert_curve(box), box)
    assert every_cell_once(morton_curve(box), box)


@given(extents)
@settings(deadline=None)
def test_morton_goes_through_every_cell_in_bit_order(box):
    bits = max(box).bit_length()
    curve = morton_curve(box)
    assert every_cell_once(curve, box)
    numbers = [interleaved(cell, bits) for cell in curve.tolist()]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("kind", ["hilbert", "morton"])
@given(box=extents, seed=st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_a_key_is_the_place_on_the_curve(kind, box, seed):
    curve, key = {"hilbert": (hilbert_curve, hilbert_key), "morton": (morton_curve, morton_key)}[
        kind
    ]
    cells = curve(box)
    some = np.random.default_rng(seed).integers(0, len(cells), 17)
    assert key(cells[some], box).tolist() == some.tolist()


def in_a_cube(kind, box):
    """Mean distances of the canonical curve in a cube of 2^k a side and as many dimensions."""
    bits = {2: 6, 3: 4, 4: 3}[len(box)]
    cube = canonical_in((1 << bits,) * len(box), kind)
    return distances(cube)[: len(distances(np.zeros((math.prod(box), 1))))]


@pytest.mark.parametrize("box", AWKWARD)
def test_hilbert_is_as_local_as_the_canonical_curve_at_every_lag(box):
    assert (distances(hilbert_curve(box)) <= 1.3 * in_a_cube("hilbert", box)).all()


@pytest.mark.parametrize("box", [box for box in AWKWARD if box != (11, 19, 21)])  # there 1.31
def test_morton_is_as_local_as_the_canonical_curve_at_every_lag(box):
    assert (distances(morton_curve(box)) <= 1.3 * in_a_cube("morton", box)).all()


@pytest.mark.parametrize("box", AWKWARD)
def test_a_snake_is_not(box):
    curve = snake(box)
    assert (steps(curve) == 1).all()
    assert (distances(curve) > 1.3 * in_a_cube("hilbert", box)).any()


@pytest.mark.parametrize("kind", ["hilbert", "morton"])
@pytest.mark.parametrize("box", LONG)
def test_in_long_boxes_the_curves_are_as_local_as_the_canonical_one_is_there(kind, box):
    curve = (hilbert_curve if kind == "hilbert" else morton_curve)(box)
    real = tuple(extent for extent in box if extent > 1)
    assert (distances(curve) <= 1.3 * distances(canonical_in(real, kind))).all()


def test_a_box_of_one_line_is_counted_through():
    line = hilbert_curve((1, 100_000, 1))[:, 1]
    assert line.tolist() == list(range(100_000))
    assert hilbert_key([[0, 7]], (1, 9)).tolist() == [7]


@pytest.mark.parametrize("key", [hilbert_key, morton_key])
def test_what_is_outside_the_box_is_refused(key):
    with pytest.raises(UsageError, match="axis 1 is outside 0 to 2"):
        key([[0, 3]], (4, 3))
    with pytest.raises(UsageError, match="outside"):
        key([[-1, 0]], (4, 3))
    with pytest.raises(UsageError, match="2 axes are needed"):
        key([[0, 0, 0]], (4, 3))
    with pytest.raises(UsageError, match="0x3"):
        key([[0, 0]], (0, 3))
    with pytest.raises(UsageError, match="no curve"):
        key(np.zeros((1, 3), dtype=int), (10**9, 10**9, 10**9))


@pytest.mark.parametrize("key", [hilbert_key, morton_key])
def test_no_cells_have_no_keys(key):
    assert key(np.empty((0, 2), dtype=int), (3, 4)).tolist() == []


def test_walk_parts():
    assert [p.low for p in _walk_parts((2, 2))] == [(0, 0), (1, 0), (1, 1), (0, 1)]
