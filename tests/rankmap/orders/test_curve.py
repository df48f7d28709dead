# SPDX-License-Identifier: Apache-2.0
"""Curves through the process grid: the paper's tables, and locality against row-major."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.errors import UsageError
from nidmap.rankmap.orders import arrange, find
from nidmap.rankmap.pattern import Pattern
from nidmap.rankmap.pattern.structured import Stencil
from tests.rankmap.helpers import named, slots

#: Tables I and II of the FFT job placement paper.
ROW_MAJOR = np.arange(16).reshape(4, 4)
MORTON = np.array([[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]])


def made(grid, strategy, ppn=1):
    total = int(np.prod([int(e) for e in grid.split("x")]))
    return arrange(slots(named(*range(total // ppn)), ppn), f"stencil:{grid}", strategy)


@pytest.mark.parametrize(("strategy", "table"), [("row-major", ROW_MAJOR), ("morton", MORTON)])
def test_the_papers_tables_hold_the_slot_of_each_rank(strategy, table):
    order = made("4x4", strategy)
    # The rank that row-major numbering puts in a cell gets the slot printed there.
    assert order.slot_of_rank.reshape(4, 4).tolist() == table.tolist()


def test_on_the_papers_grid_slots_and_ranks_are_the_same_numbers():
    # Swapping the two middle bits is its own inverse: the table cannot tell
    # which of the two the paper prints; a grid that is not square can.
    order = made("4x4", "morton")
    assert order.rank_at_slot.tolist() == order.slot_of_rank.tolist()
    wide = made("4x8", "morton")
    assert wide.rank_at_slot.tolist() != wide.slot_of_rank.tolist()


def interleaved(dims):
    """Sort the cells by their interleaved bits, the last dimension least: Morton's own words."""
    cells = list(np.ndindex(*dims))
    width = max(dims).bit_length()

    def key(cell):
        return [c >> bit & 1 for bit in reversed(range(width)) for c in cell]

    order = sorted(range(len(cells)), key=lambda k: key(cells[k]))
    return np.argsort(order).tolist()


@settings(deadline=None)
@given(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=3))
def test_morton_is_bit_interleaving_on_powers_of_two(dims):
    # Extents that differ: a dimension without bits left takes no part, as in the key.
    assert made("x".join(map(str, dims)), "morton").slot_of_rank.tolist() == interleaved(dims)


@settings(deadline=None)
@given(st.lists(st.integers(2, 8), min_size=1, max_size=3))
def test_hilbert_takes_neighbouring_cells_one_after_the_other(dims):
    order = made("x".join(map(str, dims)), "hilbert")
    cells = np.array(np.unravel_index(order.rank_at_slot, dims)).T
    assert (np.abs(np.diff(cells, axis=0)).sum(axis=1) == 1).all()


def cut(order, pattern):
    """Count the pattern's edges between different nodes."""
    return sum(
        int((order.node_of_rank[e.source] != order.node_of_rank[e.target]).sum())
        for e in pattern.edges()
    )


@pytest.mark.parametrize(
    ("grid", "ppn"), [("16x16", 16), ("32x32", 16), ("16x16x16", 64), ("8x8x8", 8)]
)
def test_curves_cut_fewer_stencil_edges_than_row_major(grid, ppn):
    pattern = Stencil(tuple(int(e) for e in grid.split("x")))
    default = cut(made(grid, "row-major", ppn), pattern)
    for strategy in ("morton", "hilbert"):
        assert cut(made(grid, strategy, ppn), pattern) < default


def test_morton_tears_the_rows_of_a_pencil_fft_as_the_paper_found():
    # 512 ranks, 32 a node: row-major keeps each row of 32 on one node.
    pattern = "fft:16x32"
    on = slots(named(*range(16)), 32)
    row, morton = (arrange(on, pattern, s) for s in ("row-major", "morton"))
    ranks = np.arange(512).reshape(16, 32)
    assert all(len(set(row.node_of_rank[r])) == 1 for r in ranks)
    assert all(len(set(morton.node_of_rank[r])) > 1 for r in ranks)


def test_a_pattern_without_a_grid_is_refused_in_one_line():
    class Cloud(Pattern):
        spec, ranks, dims = "cloud", 4, None

        def edges(self, block=1):
            yield from ()

        def resized(self, ranks):
            return self

    with pytest.raises(
        UsageError, match="strategy hilbert needs a process grid, but pattern cloud"
    ):
        find("hilbert")(Cloud(), slots(named(1), 4))
