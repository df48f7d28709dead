# SPDX-License-Identifier: Apache-2.0
"""`hilbert` and `morton`: the order of the curve and the tightest stretch of it."""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.curves import hilbert_curve, hilbert_key, morton_key
from nidmap.placement.planners import Request, find
from nidmap.placement.planners.plain import (
    curve_positions,
    hilbert,
    hilbert_groups,
    morton,
    morton_groups,
)
from nidmap.placement.specs import parse_spec

SMALL = [
    "torus:4x3",
    "dragonfly:groups=2,chassis=1,blades=3,nodes=2",
    "tree:3x2x2",
    "torus:3x2,nodes=2",
]


def all_nodes(planner, machine):
    rows = planner(machine, Request(count=len(machine), free=machine.free))
    return machine.coords[rows]


def hilbert_2d(order):
    """The Hilbert curve by its picture: four copies, the first and last turned over."""
    if order == 0:
        return [(0, 0)]
    half, inner = 1 << order - 1, hilbert_2d(order - 1)
    return (
        [(y, x) for x, y in inner]
        + [(x, y + half) for x, y in inner]
        + [(x + half, y + half) for x, y in inner]
        + [(2 * half - 1 - y, half - 1 - x) for x, y in inner]
    )


def same_up_to_symmetry(ours, theirs, side):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    found = False
    for axes in permutations(range(ours.shape[1])):
        for flips in product((False, True), repeat=ours.shape[1]):
            turned = np.where(flips, side - 1 - ours[:, axes], ours[:, axes])
            found |= bool((turned == theirs).all() or (turned == theirs[::-1]).all())
    return found


def test_hilbert_on_a_square_torus_is_the_curve_by_its_picture():
    cells = all_nodes(hilbert, parse_spec("torus:16x16"))[:, :2]
    assert same_up_to_symmetry(cells, hilbert_2d(4), 16)


def test_morton_on_a_torus_interleaves_the_bits():
    cells = all_nodes(morton, parse_spec("torus:4x4x4"))[:, :3]
    low, high = cells & 1, cells >> 1
    bits = np.column_stack([high, low])
    assert (bits @ [32, 16, 8, 4, 2, 1]).tolist() == list(range(64))


def test_the_nodes_of_a_torus_router_stay_together():
    coords = all_nodes(hilbert, parse_spec("torus:3x5x2,nodes=2"))
    assert (coords[::2, :3] == coords[1::2, :3]).all()
    assert (np.abs(np.diff(coords[::2, :3].astype(int), axis=0)).sum(axis=1) == 1).all()
    assert coords[:, 3].tolist() == [0, 1] * 30


@pytest.mark.parametrize("shape", ["groups=4,chassis=4,blades=4", "groups=18,chassis=6,blades=16"])
def test_on_a_dragonfly_the_curve_runs_through_all_four_levels(shape):
    machine = parse_spec(f"dragonfly:{shape},nodes=4")
    assert (all_nodes(hilbert, machine) == hilbert_curve(machine.topology.extents)).all()


@pytest.mark.parametrize("planner", [hilbert_groups, morton_groups])
def test_groups_outermost_finishes_a_group_before_the_next(planner):
    coords = all_nodes(planner, parse_spec("dragonfly:groups=3,chassis=2,blades=4,nodes=2"))
    assert coords[:, 0].tolist() == [0] * 16 + [1] * 16 + [2] * 16
    assert (coords[:16, 1:] == coords[16:32, 1:]).all()
    job = parse_spec("dragonfly:groups=18,chassis=6,blades=16,nodes=4")
    rows = planner(job, Request(count=216, free=job.free))
    assert len(np.unique(job.coords[rows, 0])) == 1


@pytest.mark.parametrize("planner", [hilbert, morton])
@pytest.mark.parametrize("spec", ["fattree:leaf=3,leaves=4,spines=2", "tree:2x3x4"])
def test_on_trees_the_curve_is_the_order_of_the_leaves(planner, spec):
    machine = parse_spec(spec)
    rows = planner(machine, Request(count=len(machine), free=machine.free))
    assert rows.tolist() == np.lexsort(machine.coords.T[::-1]).tolist()


@pytest.mark.parametrize("strategy", ["hilbert", "morton"])
@pytest.mark.parametrize("spec", SMALL)
@given(data=st.data())
@settings(deadline=None)
def test_no_set_spans_fewer_places_of_the_curve(strategy, spec, data):
    machine = parse_spec(spec)
    rows = sorted(data.draw(st.sets(st.integers(0, len(machine) - 1), min_size=1)))
    count = data.draw(st.integers(1, len(rows)))
    include = sorted(data.draw(st.sets(st.sampled_from(rows), max_size=count)))
    free = np.zeros(len(machine), dtype=bool)
    free[rows] = True
    request = Request(count=count, free=free, include=np.array(include, dtype=int))
    key = {"hilbert": hilbert_key, "morton": morton_key}[strategy]
    place = dict(zip(rows, curve_positions(machine, np.array(rows), key).tolist(), strict=True))
    found = [place[row] for row in find(strategy)(machine, request).tolist()]
    assert found == sorted(found)
    choices = [c for c in combinations(rows, count) if set(include) <= set(c)]
    spans = [max(place[r] for r in c) - min(place[r] for r in c) for c in choices]
    assert found[-1] - found[0] == min(spans)
    ends = zip(choices, spans, strict=True)
    assert found[0] == min(min(place[r] for r in c) for c, span in ends if span == min(spans))


def test_the_stretch_avoids_busy_parts():
    machine = parse_spec("torus:16")
    free = machine.free.copy()
    free[[2, 5, 6]] = False
    assert hilbert(machine, Request(count=4, free=free)).tolist() == [7, 8, 9, 10]
    including = Request(count=4, free=free, include=np.array([8]))
    assert hilbert(machine, including).tolist() == [7, 8, 9, 10]
    including = Request(count=4, free=free, include=np.array([1, 8]))
    assert hilbert(machine, including).tolist() == [1, 3, 4, 8]
