"""Bounds: never above what brute force finds, and the figures known from the literature."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.specs import parse_spec
from rankmap.orders import arrange
from rankmap.pattern import parse_pattern
from rankmap.pattern.structured import Lines, Stencil
from rankmap.score import score
from rankmap.score.distance import job_distance
from rankmap.score.grid_bounds import fewest, grid_bound, lindsey, most_inside, shadows
from rankmap.slots import slots_of
from tests.effort import examples

SMALL = (
    st.lists(st.integers(1, 6), min_size=1, max_size=3)
    .map(tuple)
    .filter(lambda d: math.prod(d) <= 12)
)


MACHINES = [
    "tree:2x2x2,dist=1:2:5",
    "tree:3x2,dist=0:4",
    "torus:3x3",
    "torus:4x2,nodes=2",
    "dragonfly:groups=2,chassis=2,blades=2,nodes=2",
]


def subsets(cells):
    """Return all subsets of so many cells as rows of booleans."""
    return (np.arange(1 << cells)[:, None] >> np.arange(cells) & 1).astype(bool)


def lines_lost(dims, weights, periodic):
    """Return by brute force the least weight of lines lost by sets of each size."""
    cells = math.prod(dims)
    chosen = subsets(cells).reshape(-1, *dims)
    lost = np.zeros(len(chosen))
    for axis, (extent, weight, closes) in enumerate(zip(dims, weights, periodic, strict=True)):
        held = chosen.sum(axis=axis + 1)
        open_lines = (held > 0) & ~((held == extent) & closes)
        lost += weight * open_lines.reshape(len(chosen), -1).sum(axis=1)
    size = chosen.reshape(len(chosen), -1).sum(axis=1)
    return np.array([lost[size == s].min() for s in range(cells + 1)])


def inside_most(pattern):
    """Return by brute force the most weight of edges inside sets of each size."""
    chosen = subsets(pattern.ranks)
    held = np.zeros(len(chosen))
    for edges in pattern.edges():
        held += (chosen[:, edges.a] & chosen[:, edges.b]) @ edges.weight
    size = chosen.sum(axis=1)
    return [held[size == s].max() for s in range(pattern.ranks + 1)]


@settings(deadline=None)
@given(st.data())
def test_no_set_of_cells_loses_less_than_the_slices_say(data):
    dims = data.draw(SMALL)
    weights = data.draw(st.tuples(*[st.sampled_from([0, 1, 1.5, 2, 7]) for _ in dims]))
    periodic = data.draw(st.tuples(*[st.booleans() for _ in dims]))
    true = lines_lost(dims, weights, periodic)
    found = fewest(dims, weights, periodic, len(true) - 1)
    assert (found <= true + 1e-9).all()


@settings(deadline=None)
@given(SMALL)
def test_the_slices_are_exact_for_the_plain_grid(dims):
    flat = (False,) * len(dims)
    true = lines_lost(dims, (1,) * len(dims), flat)
    assert fewest(dims, (1,) * len(dims), flat, len(true) - 1).tolist() == true.tolist()


@settings(deadline=None)
@given(st.data())
def test_no_set_of_cells_has_smaller_shadows(data):
    dims = data.draw(SMALL)
    weights = data.draw(st.tuples(*[st.sampled_from([0, 1, 1.5, 2, 7]) for _ in dims]))
    true = lines_lost(dims, weights, (False,) * len(dims))
    for size in range(1, len(true)):
        assert shadows(dims, weights, size) <= true[size] + 1e-9


@settings(deadline=None)
@given(SMALL)
def test_lindsey_is_exact(dims):
    true = inside_most(Lines("fft", tuple(dims)))
    assert [lindsey(dims, s) for s in range(len(true))] == true


@settings(deadline=None)
@given(st.data())
def test_no_set_of_ranks_has_more_inside(data):
    dims = data.draw(SMALL)
    pattern = Stencil(
        dims,
        data.draw(st.booleans()),
        data.draw(st.tuples(*[st.sampled_from([0.0, 1.0, 2.5, 4.0]) for _ in dims])),
        data.draw(st.integers(1, len(dims))),
    )
    true = inside_most(pattern)
    found = most_inside(pattern, np.arange(1, len(true)))
    assert all(found[s] >= true[s] - 1e-9 for s in range(1, len(true)))


def least_cost(pattern, on):
    """Return the least J of all placements of ranks on nodes."""
    far = job_distance(on).matrix()
    ways = np.array(sorted(set(itertools.permutations(on.node.tolist()))))
    total = np.zeros(len(ways))
    for edges in pattern.edges():
        total += far[ways[:, edges.a], ways[:, edges.b]] @ edges.weight
    return total.min()


@examples(60)
@given(st.data())
def test_no_order_is_below_the_bound(data):
    machine = parse_spec(data.draw(st.sampled_from(MACHINES)))
    counts = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    ranks = sum(counts)
    rows = data.draw(st.permutations(range(min(6, len(machine)))))[: len(counts)]
    on = slots_of(machine, np.array(rows), counts)
    first = data.draw(st.sampled_from([k for k in range(1, ranks + 1) if ranks % k == 0]))
    grid = f"{first}x{ranks // first}"
    specs = [f"stencil:{grid}", f"stencil:{grid},periodic,weights=1:3", f"stencil:{grid},points=9"]
    specs += [f"fft:{grid}", "ring", "alltoall", f"stencil:{grid},points=9,periodic"]
    pattern = parse_pattern(data.draw(st.sampled_from(specs))).fit(ranks)
    if math.factorial(ranks) > 50_000:
        return
    assert grid_bound(pattern, on, job_distance(on)).value <= least_cost(pattern, on) + 1e-9


def on_tree(ppn, nodes=None, tree="4x16x6,dist=1:2:3"):
    return slots_of(parse_spec(f"tree:{tree}"), nodes, ppn)


def test_the_known_bound_of_the_stencil_on_384_nodes():
    on = on_tree(24)
    found = grid_bound(Stencil((24, 24, 16)), on, job_distance(on))
    assert found == (14520.0, "isoperimetric")


@pytest.mark.parametrize(("grid", "ppn", "nodes"), [("64x64", 32, 128), ("32x64", 64, 32)])
def test_a_pencil_grid_that_tiles_is_proven_to_need_nothing(grid, ppn, nodes):
    on = on_tree(ppn, f"#0-{nodes - 1}")
    default = score(arrange(on, f"fft:{grid}", "row-major"))
    assert default.optimal
    assert default.bound.why == "Lindsey"


def test_a_torus_that_the_grid_fits_is_proven():
    on = slots_of(parse_spec("torus:8x8x6"), None, 24)
    made = score(arrange(on, "stencil:24x24x16", "boxes"))
    assert made.optimal
    assert made.cost == made.off_node == made.hop_bytes


def test_patterns_without_a_grid_have_no_bound_here():
    on = on_tree(1, "#0-3")
    pattern = parse_pattern("training:tp=2,dp=2")
    assert grid_bound(pattern, on, job_distance(on)) is None
    assert grid_bound(pattern, on, job_distance(on)) is None
