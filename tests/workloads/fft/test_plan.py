# SPDX-License-Identifier: Apache-2.0
"""Who holds what and which blocks move: numbers only, checked by moving numbers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import UsageError
from nidmap.workloads.fft.plan import ArrayLayout, cut_axis, field_of, index_along, process_grid
from tests.effort import examples

sizes = st.integers(1, 9)
grids = st.tuples(st.integers(1, 4), st.integers(1, 4))


@given(st.integers(0, 1000), st.integers(1, 40))
def test_cuts_cover_an_axis_evenly(extent, count):
    parts = cut_axis(extent, count)
    assert [k for part in parts for k in range(part.start, part.stop)] == list(range(extent))
    counts = [part.stop - part.start for part in parts]
    assert max(counts) - min(counts) <= 1


def layouts(shape, grid, real):
    field = field_of(shape, real)
    rows, columns = process_grid("x".join(map(str, grid)), math.prod(grid), field)
    return [ArrayLayout(field, (rows, columns), rank) for rank in range(rows * columns)]


def exchange(swaps, arrays):
    """Return what each rank has after an exchange, block by block."""
    results = []
    for to, swap in enumerate(swaps):
        result = np.full(swap.target_shape, -1)
        for source, block in enumerate(swap.received_shapes()):
            sent = arrays[source][index_along(swap.scatter, swap.scattered[to])]
            assert sent.shape == block == swaps[source].sent_shapes()[to]
            result[index_along(swap.gather, swap.gathered[source])] = sent
        results.append(result)
    return results


@examples(60)
@given(st.tuples(sizes, sizes, sizes), grids, st.booleans())
def test_blocks_bring_every_element_to_its_place_and_back(shape, grid, real):
    try:
        every = layouts(shape, grid, real)
    except UsageError:
        assert 1 in shape or math.prod(grid) == 0
        return
    spectrum = every[0].field.spectrum
    numbers = np.arange(math.prod(spectrum)).reshape(spectrum)
    for column in range(every[0].grid[1]):
        members = [layout for layout in every if layout.column == column]
        swaps = [layout.column_swap for layout in members]
        before = [numbers[layout.slices[0], :, layout.spectrum_slices[2]] for layout in members]
        assert [part.shape for part in before] == [swap.source_shape for swap in swaps]
        after = exchange(swaps, before)
        for layout, result in zip(members, after, strict=True):
            assert np.array_equal(result, numbers[layout.spectrum_slices])
        again = exchange([swap.reverse() for swap in swaps], after)
        assert all(map(np.array_equal, again, before))


@pytest.mark.parametrize(
    ("shape", "real", "spectrum", "half"),
    [
        ((8, 6, 4), True, (8, 6, 3), 2),
        ((8, 6, 4), False, (8, 6, 4), -1),
        ((8, 1, 4), True, (8, 3, 1), 1),
        ((8, 4, 1), True, (8, 4, 1), 2),
        ((8, 1, 5), True, (8, 3, 1), 1),
    ],
)
def test_fields(shape, real, spectrum, half):
    field = field_of(shape, real)
    assert (field.spectrum, field.half) == (spectrum, half)
    assert field.outside(field.shape) == shape


@pytest.mark.parametrize("shape", [(8,), (), (8, 8, 0), (2, 2, 2, 2)])
def test_fields_that_are_none(shape):
    with pytest.raises(UsageError):
        field_of(shape, real=False)


@pytest.mark.parametrize("grid", ["3x", "x", "slabs", "2x2x2", "2", "-1x-4", "0x4", "2x3", "²x2"])
def test_grids_that_are_none(grid):
    with pytest.raises(UsageError):
        process_grid(grid, 4, field_of((8, 8, 8), real=False))


def test_field():
    field = field_of((8, 1, 6), real=True)
    assert field.shape == (8, 6, 1)
    assert field.spectrum == (8, 4, 1)
    assert field.half == 1
