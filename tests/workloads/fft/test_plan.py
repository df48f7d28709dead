"""Who holds what and which blocks move: numbers only, checked by moving numbers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.errors import UsageError
from tests.effort import examples
from workloads.fft.plan import ArrayLayout, cut_axis, field_of, process_grid

sizes = st.integers(1, 9)
grids = st.tuples(st.integers(1, 4), st.integers(1, 4))


@given(st.integers(0, 1000), st.integers(1, 40))
def test_cuts_cover_an_axis_evenly(extent, count):
    parts = cut_axis(extent, count)
    assert [k for part in parts for k in range(part.start, part.stop)] == list(range(extent))
    assert max(p.size for p in parts) - min(p.size for p in parts) <= 1


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 9))
def test_a_stretch_is_cut_where_it_stands(start, size, count):
    pieces = cut_axis(size, count, start)
    assert [k for p in pieces for k in range(p.start, p.stop)] == list(range(start, start + size))


def layouts(shape, grid, pieces, real):
    field = field_of(shape, real)
    rows, columns = process_grid(grid, math.prod(grid), field)
    return {k: ArrayLayout(field, (rows, columns), k, 16, pieces) for k in range(rows * columns)}


@examples(60)
@given(st.tuples(sizes, sizes, sizes), grids, st.integers(0, 4), st.booleans())
def test_blocks_bring_every_element_to_its_place(shape, grid, pieces, real):
    try:
        every = layouts(shape, grid, pieces, real)
    except UsageError:
        assert 1 in shape or math.prod(grid) == 0
        return
    if every[0].grid[0] == 1:
        return
    spectrum = every[0].field.spectrum
    numbers = np.arange(math.prod(spectrum)).reshape(spectrum)
    results = {}
    for rank, layout in every.items():
        results[rank] = np.full(layout.local_spectrum, -1)
    for piece in range(every[0].count):
        for column in range(every[0].grid[1]):
            members = [rank for rank, layout in every.items() if layout.column == column]
            swaps = {rank: every[rank].column_swaps()[0][piece] for rank in members}
            for to in members:
                for place, source in enumerate(members):
                    layout = every[source]
                    part = layout.forward_pieces[piece]
                    first = layout.x[layout.row].start + part.start
                    whole = numbers[first : first + part.size, :, layout.kz[layout.column].slice]
                    block = whole[swaps[source].sent(members.index(to))]
                    results[to][swaps[to].received(place)] = block
    for rank, layout in every.items():
        assert np.array_equal(results[rank], numbers[layout.spectrum_slices])


@given(st.tuples(sizes, sizes, sizes), grids, st.integers(0, 5))
def test_all_ranks_agree_on_the_number_of_pieces(shape, grid, pieces):
    try:
        every = layouts(shape, grid, pieces, real=False)
    except UsageError:
        return
    assert len({layout.count for layout in every.values()}) == 1
    for layout in every.values():
        assert len(layout.forward_pieces) == layout.count
        assert sum(part.size for part in layout.forward_pieces) == layout.local[0]


@pytest.mark.parametrize(
    ("shape", "real", "spectrum", "half"),
    [
        ((8, 6, 4), True, (8, 6, 3), 2),
        ((8, 6, 4), False, (8, 6, 4), -1),
        ((8, 1, 4), True, (8, 3, 1), 1),
        ((8, 4, 1), True, (8, 4, 1), 2),
        ((8, 5), True, (8, 3, 1), 1),
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


@pytest.mark.parametrize(
    "grid", ["3x", "x", "slabs", "2x2x2", (2,), "-1x-4", (0, 4), (2, 3), "²x2"]
)
def test_grids_that_are_none(grid):
    with pytest.raises(UsageError):
        process_grid(grid, 4, field_of((8, 8, 8), real=False))
