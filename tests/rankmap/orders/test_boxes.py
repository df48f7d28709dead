# SPDX-License-Identifier: Apache-2.0
"""Nested boxes against brute force, the figures they are to meet, and allocations of any shape."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.specs import parse_spec
from nidmap.rankmap.grid.carving import carve_grid
from nidmap.rankmap.grid.coarse import Coarse
from nidmap.rankmap.grid.dims import boxes_of
from nidmap.rankmap.grid.embedding import hops, layouts
from nidmap.rankmap.grid.traversal import cells_in, line_stretches
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.pattern.structured import Lines, Stencil
from nidmap.rankmap.pattern.tiling import coarse_pattern, weight_inside
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.score import cost, score
from nidmap.rankmap.score.distance import job_distance
from nidmap.rankmap.score.traffic import cost_of
from nidmap.rankmap.units import bisect_points, units_of, unwrap_coords
from tests.effort import examples

TREE = "tree:4x16x6,dist=1:2:3"


def on(spec, ppn, nodes=None):
    return place_ranks(parse_spec(spec), nodes, ppn)


def made(spec, ppn, pattern, nodes=None, strategy="boxes"):
    return score(arrange(on(spec, ppn, nodes), pattern, strategy))


def brute(grid, periodic, weights, sizes, steps):
    """Return the least J of nested box tilings, boxes of `sizes` inside each other."""
    pattern = Stencil(grid, periodic, weights)
    least = math.inf
    for chain in itertools.product(*(divisors_of(s, grid) for s in sizes)):
        if all(fits(a, b) for a, b in itertools.pairwise([*chain, grid])):
            total = 0.0
            for box, step in zip(chain, steps, strict=True):
                label = np.ravel_multi_index(
                    tuple(np.indices(grid)[k].ravel() // box[k] for k in range(len(grid))),
                    tuple(-(-e // b) for e, b in zip(grid, box, strict=True)),
                )
                for e in pattern.edges():
                    total += step * e.bytes[label[e.source] != label[e.target]].sum()
            least = min(least, total)
    return least


def divisors_of(size, grid):
    return [b for b in itertools.product(*(range(1, e + 1) for e in grid)) if math.prod(b) == size]


def fits(inner, outer):
    return all(o % i == 0 for i, o in zip(inner, outer, strict=True))


@examples(40)
@given(st.data())
def test_boxes_are_no_worse_than_the_best_tiling_by_brute_force(data):
    ppn, blade, upper = (data.draw(st.sampled_from(k)) for k in ([2, 3, 4, 6], [2, 3], [2, 4]))
    total = ppn * blade * upper
    first = data.draw(st.sampled_from([k for k in range(1, total + 1) if total % k == 0]))
    rest = total // first
    second = data.draw(st.sampled_from([k for k in range(1, rest + 1) if rest % k == 0]))
    grid = (first, second, rest // second)
    periodic = data.draw(st.booleans())
    weights = data.draw(st.tuples(*[st.sampled_from([1.0, 2.0, 5.0]) for _ in grid]))
    spec = Stencil(grid, periodic, weights).spec
    found = made(f"tree:{blade}x{upper},dist=1:3", ppn, spec)
    assert found.cost <= brute(grid, periodic, weights, [ppn, ppn * blade], [1, 2]) + 1e-9
    assert found.cost <= made(f"tree:{blade}x{upper},dist=1:3", ppn, spec, None, "row-major").cost


def test_the_stencil_on_384_nodes():
    found = made(TREE, 24, "stencil:24x24x16")
    assert found.cost <= 14_592
    assert (found.min_ranks_a_node, found.max_ranks_a_node) == (24, 24)


def test_with_weights_no_box_holds_more():
    assert made(TREE, 24, "stencil:24x24x16,weights=1:2:4").cost == 26_880


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("wrap", ["", ",periodic"])
def test_on_a_torus_every_edge_off_a_router_is_one_hop(nodes, wrap):
    found = made(f"torus:8x8x6,nodes={nodes}", 24 // nodes, f"stencil:24x24x16{wrap}")
    assert found.hop_bytes == found.by_level[2] == (9984 if wrap else 8640)


def test_a_plane_is_folded_into_a_torus():
    found = made("torus:8x8x8", 16, "stencil:64x128")
    assert found.cost <= 1.04 * 3904  # what routers leave at least


def test_an_allocation_round_the_edge_of_a_torus_is_one_piece():
    nodes = [x % 8 + 8 * y + 64 * z for z in range(2) for y in range(4) for x in range(6, 10)]
    text = ",".join(f"#{n}" for n in nodes)
    found = made("torus:8x8x4", 8, "stencil:8x8x4", text)
    assert found.cost == found.hop_bytes == found.off_node


def test_pencils_that_tile_keep_the_default():
    place = on(TREE, 32, "#0-127")
    assert arrange(place, "fft:64x64", "boxes").slot_of_rank.tolist() == list(range(4096))


@pytest.mark.parametrize(
    ("pattern", "ppn", "nodes"), [("fft:64x64", "24*170,16", 171), ("fft:128x32", "64", 64)]
)
@pytest.mark.parametrize("spec", ["tree:4x16x6,dist=1:2:3", "torus:8x8x4", "tree:256"])
def test_pencils_that_do_not_tile_get_a_better_order(pattern, ppn, nodes, spec):
    text = f"#0-{nodes - 1}"
    default = made(spec, ppn, pattern, text, "row-major")
    assert made(spec, ppn, pattern, text).cost < default.cost


@pytest.mark.parametrize(
    ("grid", "least"), [("20x20x20", 13_892), ("40x20x10", 13_292), ("25x16x20", 13_832)]
)
def test_levels_that_no_box_fills_stay_near_the_isoperimetric_bound(grid, least):
    found = made("tree:4x16x7,dist=1:2:3", 20, f"stencil:{grid}", "#0-399")
    assert found.cost <= 1.02 * least


def test_uneven_nodes_get_exactly_what_they_hold():
    place = on("tree:4x16x6", "24,24,12", "#0-2")
    order = arrange(place, "stencil:6x10", "boxes")
    assert np.bincount(order.node_of_rank).tolist() == [24, 24, 12]
    assert cost(order) < cost(arrange(place, "stencil:6x10", "row-major"))


@examples(50)
@given(st.data())
def test_carving_keeps_every_size(data):
    grid = tuple(data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    total = math.prod(grid)
    fine = np.array(sorted(data.draw(st.sets(st.integers(0, total))) | {0, total}))
    rough = np.array(sorted({0, total, *data.draw(st.sets(st.sampled_from(fine.tolist())))}))
    pattern = coarse_pattern(Stencil(grid), (1,) * len(grid))
    assert sorted(carve_grid(pattern, [fine, rough]).tolist()) == list(range(total))


def test_a_carved_grid_costs_much_less_than_the_default():
    place = on("tree:4x16x6,dist=1:2:3", 24, ",".join(f"#{n}" for n in range(384) if n % 3))
    distance = job_distance(place)
    units = units_of(place, distance)
    pattern = Stencil((16, 16, 24))
    model, levels = coarse_pattern(pattern, (1, 1, 1)), [level.starts for level in units.levels]
    carved = cost_of(pattern, place.node_of_slot[units.order(carve_grid(model, levels))], distance)
    assert carved < 0.75 * cost_of(pattern, place.node_of_slot, distance)


@pytest.mark.parametrize("spec", ["torus:12x12x12", "tree:4x16x32", "tree:3x5x120"])
def test_large_irregular_allocations_are_exact(spec):
    machine = parse_spec(spec)
    rows = np.random.default_rng(2).permutation(len(machine))[:1201]
    counts = np.full(1201, 16)
    counts[::7] = 23
    counts[-1] += 31 * 29 * 24 - counts.sum()
    place = place_ranks(machine, rows, counts.tolist())
    order = arrange(place, "stencil:31x29x24", "boxes")
    assert np.bincount(order.node_of_rank).tolist() == counts.tolist()
    assert cost(order) < 0.6 * cost(arrange(place, "stencil:31x29x24", "row-major"))


def test_carving_cuts_where_it_costs_least():
    # Two parts of a 2x8 strip: across it, not along it.
    strip = Coarse((2, 8), (((0, 1), 1.0), ((1, 0), 1.0)))
    assert sorted(carve_grid(strip, [np.array([0, 8, 16])])[:8].tolist()) == [
        0,
        1,
        2,
        3,
        8,
        9,
        10,
        11,
    ]


@examples(40)
@given(st.data())
def test_between_boxes_the_weight_is_that_between_their_cells(data):
    grid = data.draw(st.sampled_from([(6, 4), (4, 4, 6), (12,)]))
    reach = data.draw(st.integers(1, len(grid)))
    box = tuple(data.draw(st.sampled_from([1, 2])) for _ in grid)
    for pattern in (Stencil(grid, False, (), reach), Lines("fft", grid)):
        model = coarse_pattern(pattern, box)
        label = cells_in(grid, [box]).argsort() // math.prod(box)
        true = sum(
            float(e.bytes[label[e.source] != label[e.target]].sum()) for e in pattern.edges()
        )
        masks = np.arange(math.prod(model.grid)).reshape(model.grid)
        pairs = itertools.combinations(range(math.prod(model.grid)), 2)
        assert sum(model.cut(masks == a, masks == b) for a, b in pairs) == pytest.approx(true)


@settings(deadline=None)
@given(st.data())
def test_what_stays_inside_a_box_is_counted_edge_by_edge(data):
    grid = data.draw(st.sampled_from([(6, 4), (4, 2, 6), (12,), (1, 4), (3, 3, 3)]))
    pattern = Stencil(grid, data.draw(st.booleans()), (), data.draw(st.integers(1, len(grid))))
    for box in boxes_of(data.draw(st.sampled_from([1, 2, 3, 4, 6])), grid).tolist():
        held = np.zeros(grid, dtype=bool)
        held[tuple(slice(0, side) for side in box)] = True
        held = held.ravel()
        true = sum(float(e.bytes[held[e.source] & held[e.target]].sum()) for e in pattern.edges())
        assert weight_inside(pattern, np.array([box]))[0] == true


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=2),
    st.lists(st.integers(1, 5), min_size=1, max_size=6),
    st.booleans(),
)
def test_stretches_hold_every_cell_once(dims, sizes, turned):
    found = line_stretches(dims, np.array(sizes), turned)
    assert sorted(found.tolist()) == list(range(math.prod(dims)))


@pytest.mark.parametrize(
    ("grid", "box"), [((8, 8, 6), (8, 6, 8)), ((48, 8), (8, 8, 6)), ((16, 32), (8, 8, 8))]
)
def test_layouts_use_every_point_once(grid, box):
    for layout in itertools.islice(layouts(grid, box), 20):
        points = layout.points(grid, len(box))
        assert len(np.unique(points, axis=0)) == math.prod(box)
        assert (points.max(axis=0) < box).all()


def test_hops_are_those_of_the_order():
    place = on("torus:4x3", 2)
    order = arrange(place, "stencil:8x3,periodic", "boxes")
    model = coarse_pattern(Stencil((8, 3), True), (2, 1))
    layout = next(layouts(model.grid, (4, 3)))
    points = layout.points(model.grid, 2)
    assert hops(model, (True, True), points, (4, 3)) == score(order).hop_bytes


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 5)), min_size=1, max_size=20))
def test_halving_nests(points):
    blocks = bisect_points(unwrap_coords(np.array(points), (8, 6)))
    for inner, outer in itertools.pairwise(blocks.T):
        assert len(np.unique(np.stack([inner, outer], axis=1), axis=0)) == len(np.unique(inner))
    if blocks.shape[1]:
        assert len(np.unique(blocks[:, 0])) == len(set(points))


def test_distances_of_a_big_dragonfly_are_not_tabled():
    # 1,200 routers: the levels' typical distances decide, and the counts stay exact.
    place = on("dragonfly:groups=25,chassis=6,blades=8,nodes=1", 4)
    order = arrange(place, "stencil:20x12x20", "boxes")
    assert np.bincount(order.node_of_rank).tolist() == [4] * 1200
    assert job_distance(place)._table is None
