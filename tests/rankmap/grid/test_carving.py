# SPDX-License-Identifier: Apache-2.0
"""Halving grid and torus together, and swaps along lines: valid always, better where it counts."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.specs import parse_spec
from nidmap.rankmap.grid.carving import halve_together
from nidmap.rankmap.grid.line_swaps import swap_along_lines
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.pattern.structured import Lines, Stencil
from nidmap.rankmap.pattern.tiling import coarse_pattern
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.score import score
from nidmap.rankmap.score.distance import job_distance
from nidmap.rankmap.score.traffic import cost_of
from tests.effort import examples


@examples(60)
@given(st.data())
def test_every_node_gets_one_cell(data):
    grid = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    total = math.prod(grid)
    wrap = data.draw(st.booleans())
    places = data.draw(
        st.lists(st.tuples(st.integers(0, 7), st.integers(0, 5)), min_size=total, max_size=total)
    )
    pattern = Stencil(grid, wrap, (), data.draw(st.integers(1, len(grid))))
    model = coarse_pattern(pattern, (1,) * len(grid))
    if not model.offsets:
        return
    node = halve_together(model, pattern.periodic, np.array(places), (8, 6))
    assert sorted(node.tolist()) == list(range(total))


def test_a_grid_as_large_as_the_torus_is_laid_on_it():
    place = np.stack(np.unravel_index(np.random.default_rng(1).permutation(64), (8, 8)), axis=1)
    model = coarse_pattern(Stencil((8, 8)), (1, 1))
    node = halve_together(model, (False, False), place, (8, 8))
    at = place[node].reshape(8, 8, 2)
    apart = [np.abs(np.diff(at, axis=k)) for k in (0, 1)]
    assert all((np.minimum(a, 8 - a).sum(axis=-1) == 1).mean() > 0.9 for a in apart)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_sparse_torus_allocation_gains(seed):
    machine = parse_spec("torus:12x12x12")
    starts = np.random.default_rng(seed).choice(1700, 20, replace=False)
    rows = np.unique(starts[:, None] + np.arange(8))[:96]
    on = place_ranks(machine, rows, 24)
    costs = {s: score(arrange(on, "stencil:12x12x16", s)).cost for s in ("hilbert", "boxes")}
    assert costs["boxes"] < 0.9 * costs["hilbert"]


@examples(80)
@given(st.data())
def test_swaps_only_ever_gain(data):
    rows, columns = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    total = rows * columns
    nodes = data.draw(st.integers(1, min(total, 8)))
    machine = parse_spec(data.draw(st.sampled_from(["tree:2x2x2,dist=1:2:5", "torus:4x3"])))
    counts = np.bincount(np.arange(total) % nodes).tolist()
    on = place_ranks(machine, np.arange(nodes), counts)
    start = np.array(data.draw(st.permutations(range(total)))).reshape(rows, columns)
    distance = job_distance(on)
    found = swap_along_lines(start, on.node_of_slot, distance.matrix())
    assert sorted(found.ravel().tolist()) == list(range(total))
    pattern = Lines("fft", (rows, columns))
    before, after = (cost_of(pattern, on.node_of_slot[s.ravel()], distance) for s in (start, found))
    assert after <= before + 1e-9
    for row in range(rows):  # every swap that is left costs something
        for p in range(columns):
            turned = found.copy()
            turned[row, [0, p]] = turned[row, [p, 0]]
            assert cost_of(pattern, on.node_of_slot[turned.ravel()], distance) >= after - 1e-9


def test_uneven_pencils_gain_on_a_torus():
    on = place_ranks(parse_spec("torus:8x8x4"), "#0-170", "24*170,16")
    pattern = parse_pattern("fft:64x64")
    default, made = (score(arrange(on, pattern, s)).cost for s in ("row-major", "boxes"))
    assert made < default
