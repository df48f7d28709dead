# SPDX-License-Identifier: Apache-2.0
"""The grid of units, its neighbours, and how often they exchange."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import UsageError
from nidmap.workloads.stencil import NONE, OPPOSITE, grid_of, per_repetition, rank_neighbours

extents = st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))


@given(extents, st.booleans())
def test_neighbours_are_those_of_the_coordinates(grid, periodic):
    numbers = np.arange(math.prod(grid)).reshape(grid)
    for place in np.ndindex(*grid):
        found = rank_neighbours(int(numbers[place]), grid, periodic)
        for way, other in enumerate(found):
            there = list(place)
            there[way // 2] += 1 if way % 2 else -1
            inside = 0 <= there[way // 2] < grid[way // 2]
            if inside or periodic:
                assert other == numbers[tuple(np.mod(there, grid))]
            else:
                assert other == NONE


@given(extents, st.booleans())
def test_each_block_has_a_way_back(grid, periodic):
    for rank in range(math.prod(grid)):
        for way, other in enumerate(rank_neighbours(rank, grid, periodic)):
            if other != NONE:
                assert rank_neighbours(other, grid, periodic)[OPPOSITE[way]] == rank


@given(st.integers(1, 5000))
def test_auto_is_a_grid_of_all_ranks(ranks):
    assert math.prod(grid_of("auto", ranks)) == ranks


@pytest.mark.parametrize("dims", ["", "x", "2x", "2x2x2x1", "3", "0x4", "-2x-2", "2,2", "٤"])
def test_grids_that_are_none(dims):
    with pytest.raises(UsageError):
        grid_of(dims, 4)


@given(st.integers(1, 10**7), st.integers(1, 50))
def test_the_papers_iterations_unless_they_are_too_many(moved, repeat):
    total = per_repetition(None, moved, repeat) * repeat
    assert total >= min(10_000, (4 << 30) // moved)
    assert per_repetition(7, moved, repeat) * repeat >= 7
