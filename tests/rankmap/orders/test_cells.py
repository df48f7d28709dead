# SPDX-License-Identifier: Apache-2.0
"""Cells: grid_order's lists by its manual's words, and its options as they are written."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.errors import NidmapError, UsageError
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.orders.cells import CellOptions, rank_list
from tests.rankmap.helpers import named, slots


def by_hand(grid, cell, columns):
    """List ranks cell by cell, dimension by dimension, as the manual says."""
    axes = range(len(grid))
    fastest_last = list(axes)[::-1] if columns else list(axes)

    def rank(point):
        number = 0
        for k in fastest_last:
            number = number * grid[k] + point[k]
        return number

    def walk(ranges):
        for turned in itertools.product(*(ranges[k] for k in fastest_last)):
            yield dict(zip(fastest_last, turned, strict=True))

    listed = []
    for corner in walk([range(0, g, c) for g, c in zip(grid, cell, strict=True)]):
        inside = [range(corner[k], min(corner[k] + cell[k], grid[k])) for k in axes]
        listed += [rank(point) for point in walk(inside)]
    return listed


@settings(deadline=None)
@given(st.data())
def test_lists_are_those_made_by_hand(data):
    grid = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    cell = tuple(data.draw(st.integers(1, extent)) for extent in grid)
    columns = data.draw(st.booleans())
    found = rank_list(grid, cell, CellOptions(columns=columns))
    assert found.tolist() == by_hand(grid, cell, columns)


def test_a_cell_fills_a_node():
    made = arrange(slots(named(*range(8)), 8), "stencil:8x8", "cells:-R -c 4,2 -g 8,8")
    nodes = made.node_of_rank.reshape(8, 8)
    assert [len(np.unique(nodes[i : i + 4, j : j + 2])) for i in (0, 4) for j in (0, 2, 4, 6)] == [
        1
    ] * 8
    assert nodes[0].tolist() == [
        0,
        0,
        1,
        1,
        2,
        2,
        3,
        3,
    ]  # successive cells along the last dimension


def test_peano_walks_every_other_row_of_cells_backwards():
    assert rank_list((4, 4), (2, 2), CellOptions(walk="P")).tolist() == [
        0, 1, 4, 5, 2, 3, 6, 7, 10, 11, 14, 15, 8, 9, 12, 13,
    ]  # fmt: skip


def test_successive_cells_go_along_the_dimension_named_first():
    assert rank_list((4, 4), (2, 2), CellOptions(along=(1, 2))).tolist() == [
        0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15,
    ]  # fmt: skip


@pytest.mark.parametrize("options", ["-R -H -c 4,2 -g 64,64", "-C -H -g 16,8,32", "-H"])
def test_along_the_hilbert_curve_successive_cells_touch(options):
    wanted = CellOptions.parse(options)
    grid = wanted.grid or (64, 64)
    cell = wanted.cell or (1,) * len(grid)
    ranks = rank_list(grid, cell, wanted).reshape(-1, math.prod(cell))
    shape = grid[::-1] if wanted.columns else grid
    corner = np.stack(np.unravel_index(ranks.min(axis=1), shape), axis=1)
    step = np.abs(np.diff(corner // (cell[::-1] if wanted.columns else cell), axis=0))
    assert (step.sum(axis=1) == 1).all()


def test_all_the_ways_to_write_it():
    plain = CellOptions.parse("-R -c 4,2 -g 64,64")
    assert plain == CellOptions.parse("grid_order -g64x64 -c4,2")
    assert plain == CellOptions.parse("-Z -R -m 4096 -n 8 -N 8 -q -T -c 4,2 -g 64,64")


def test_without_a_cell_it_is_a_box_of_a_nodes_ranks():
    made = arrange(slots(named(*range(4)), 4), "stencil:4x4", "cells")
    assert made.rank_at_slot[:4].tolist() == [0, 1, 4, 5]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("-R -C -g 4,4 -c 2,2", "-R and -C cannot be combined"),
        ("-H -P", "-P and -H cannot be combined"),
        ("-c 2,2 -c 4,1", "-c is given twice"),
        ("-c", "option -c requires argument"),
        ("-c 0,2", "not a list of whole numbers"),
        ("-c 2,x", "not a list of whole numbers"),
        ("-X", "option -X not recognized"),
        ("4 5", "unknown option '4'"),
        ("-s 5", "option -s not recognized"),
        ("-c 2", "-c has 1 numbers, but the grid has 2 dimensions"),
        ("-g 4,5", "has 20 ranks, not 16"),
        ("-o 1,1", "-o must name the dimensions 1 to 2"),
        ("-c '2,2", "unbalanced quotes"),
    ],
)
def test_bad_options_are_refused_in_one_line(options, says):
    with pytest.raises(UsageError, match=says) as caught:
        arrange(slots(named(*range(4)), 4), "stencil:4x4", f"cells:{options}")
    assert "\n" not in str(caught.value)


@settings(deadline=None)
@given(st.text(alphabet="-RCHPZcgonmN 0123456789,x'", max_size=30))
def test_any_text_gives_an_order_or_an_error(text):
    try:
        made = arrange(slots(named(*range(4)), 4), "stencil:4x4", f"cells:{text}")
    except NidmapError:
        return
    assert sorted(made.slot_of_rank.tolist()) == list(range(16))
