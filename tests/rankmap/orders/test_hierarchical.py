# SPDX-License-Identifier: Apache-2.0
"""Hierarchical: Algorithm 1 word by word, both ways to sort, and grids that nothing divides."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.errors import UsageError
from nidmap.placement.readers import read_text
from nidmap.placement.specs import parse_spec
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.orders.hierarchical import chain_of, sorted_nodes
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.score import cost
from tests.effort import examples
from tests.rankmap.helpers import named, slots

HAZEL_HEN = "dragonfly:groups=2,chassis=6,blades=16,nodes=4"


def algorithm_1(n4, n3, n2, n1, n0, nt):
    """Return the unit at every hardware slot: the paper's loops, the elided offsets as line 18."""
    total = nt[0] * nt[1] * nt[2]
    unit = []
    blade = (n0[0], n1[0] * n0[1], n1[1] * n0[2])
    chassis = tuple(n2[k] * blade[k] for k in range(3))
    group = tuple(n3[k] * chassis[k] for k in range(3))

    def offset(place, side):
        return (place[0] * side[0] * nt[1] + place[1] * side[1]) * nt[2] + place[2] * side[2]

    for xyz in itertools.product(*map(range, n4)):
        for abc in itertools.product(*map(range, n3)):
            for de_f in itertools.product(*map(range, n2)):
                for g, h in itertools.product(*map(range, n1)):
                    first = g * n0[1] * nt[2] + h * n0[2]
                    for i, j, k in itertools.product(*map(range, n0)):
                        if len(unit) >= total:
                            return unit
                        unit.append(
                            offset(xyz, group) + offset(abc, chassis) + offset(de_f, blade)
                            + first + i * nt[1] * nt[2] + j * nt[2] + k
                        )  # fmt: skip
    return unit


def factors(dims, chain):
    """Return the sides of each level in blocks of the level below, the top one too."""
    ladder = [(1,) * len(dims), *chain, dims]
    return [
        tuple(o // i for i, o in zip(*pair, strict=True)) for pair in itertools.pairwise(ladder)
    ]


@pytest.mark.parametrize("grid", [(24, 24, 16), (24, 16, 24), (48, 24, 8)])
def test_it_is_algorithm_1(grid):
    on = place_ranks(parse_spec(HAZEL_HEN), "#0-383", 24)
    pattern = parse_pattern("stencil:" + "x".join(map(str, grid)))
    n0, n1, n2, n3, n4 = factors(grid, chain_of(pattern, on))
    assert n1[0] == 1  # a blade's nodes lie in the last two dimensions
    assert (sorted(n0), math.prod(n1), math.prod(n2), math.prod(n3)) == ([2, 3, 4], 4, 16, 6)
    made = arrange(on, pattern, "hierarchical")
    assert made.rank_at_slot.tolist() == algorithm_1(n4, n3, n2, n1[1:], n0, grid)


def test_it_beats_the_default_on_the_papers_case():
    on = place_ranks(parse_spec(HAZEL_HEN), "#0-383", 24)
    default = cost(arrange(on, "stencil:24x24x16", "row-major"))
    assert cost(arrange(on, "stencil:24x24x16", "hierarchical")) < default / 1.8


def test_a_sparse_allocation_fills_the_nodes_that_are_there():
    machine = parse_spec(HAZEL_HEN)
    rows = np.sort(np.random.default_rng(7).permutation(768)[:384])
    on = place_ranks(machine, np.random.default_rng(8).permutation(rows), 24)
    made = arrange(on, "stencil:24x24x16", "hierarchical")
    # Nodes in machine order hold one multicore group each, one after another.
    groups = made.rank_at_slot.reshape(384, 24)[np.argsort(on.rows)]
    corner = np.stack(np.unravel_index(groups, (24, 24, 16)))
    assert (np.ptp(corner, axis=2).prod(axis=0) == (4 - 1) * (3 - 1) * (2 - 1)).all()
    assert cost(made) < 0.9 * cost(arrange(on, "stencil:24x24x16", "row-major"))


def cabinets():
    """Return an XC of two rows of cabinets, in each a group of two side by side."""
    head = "NID (HEX) NODENAME TYPE STATUS MODE\n"
    places = itertools.product(range(2), range(2), range(3), range(16), range(4))
    rows = [
        f"{nid} {nid:#x} c{column}-{row}c{cage}s{slot}n{node} compute up batch\n"
        for nid, (row, column, cage, slot, node) in enumerate(places)
    ]
    return assemble([read_text(head + "".join(rows), "xtprocadmin")])


def test_levels_paper_tears_a_groups_cabinets_apart_and_levels_machine_does_not():
    machine = cabinets()
    on = place_ranks(machine, None, 2)
    ours, papers = sorted_nodes(on), sorted_nodes(on, paper=True)
    first = np.array([name[:4] for name in machine.cname.tolist()])
    assert list(dict.fromkeys(first[ours].tolist())) == ["c0-0", "c1-0", "c0-1", "c1-1"]
    assert list(dict.fromkeys(first[papers].tolist())) == ["c0-0", "c0-1", "c1-0", "c1-1"]
    default = arrange(on, "stencil:24x8x8", "hierarchical")
    assert default == arrange(on, "stencil:24x8x8", "hierarchical:levels=machine")
    assert default != arrange(on, "stencil:24x8x8", "hierarchical:levels=paper")
    # A group is two cabinets side by side in a row: its half of the grid is in one piece.
    group = machine.coords[default.node_of_rank, 0]
    assert len(np.unique(group)) == 2
    torn = machine.coords[
        arrange(on, "stencil:24x8x8", "hierarchical:levels=paper").node_of_rank, 0
    ]

    def parted(of):
        table = of.reshape(24, 8, 8)
        return sum(int((np.diff(table, axis=k) != 0).sum()) for k in range(3))

    assert parted(group) < parted(torn)


def test_where_no_permutation_divides_the_error_names_those_tried():
    on = slots(named(*range(10)), 24)
    with pytest.raises(
        UsageError, match="grid 5x6x8: tried 4x3x2, 4x2x3, 3x4x2, 3x2x4, 2x4x3, 2x3x4"
    ):
        arrange(on, "stencil:5x6x8", "hierarchical")


def test_relax_takes_another_shape():
    on = slots(named(*range(10)), 24)
    made = arrange(on, "stencil:5x6x8", "hierarchical:relax")
    boxes = np.stack(np.unravel_index(made.rank_at_slot.reshape(10, 24), (5, 6, 8)))
    assert ((np.ptp(boxes, axis=2) + 1).prod(axis=0) == 24).all()
    with pytest.raises(UsageError, match="hierarchical:relax"):
        arrange(slots(named(*range(6)), 4), "stencil:3x8", "hierarchical")


def test_a_flat_grid_has_no_cube_of_eight():
    place = slots(named(1, 2, 3), 8)
    pattern = parse_pattern("stencil:4x6x1")
    with pytest.raises(UsageError, match="no multicore group of 8 units divides the grid 4x6x1"):
        chain_of(pattern, place)
    assert chain_of(pattern, place, relax=True) == [(4, 2, 1)]


def test_uneven_nodes_hold_whole_groups_of_what_they_share():
    made = arrange(slots(named(1, 2, 3), [24, 24, 12]), "stencil:6x10", "hierarchical:relax")
    assert np.bincount(made.node_of_rank).tolist() == [24, 24, 12]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("levels=cray", "unknown option 'levels=cray'"),
        ("levels=paper,levels=machine", "given twice"),
        ("levels=paper", "sorts by cnames"),
    ],
)
def test_bad_options_are_refused(options, says):
    on = place_ranks(parse_spec("tree:2x2"), None, 4)
    with pytest.raises(UsageError, match=says):
        arrange(on, "stencil:4x4", f"hierarchical:{options}")


def test_levels_paper_needs_a_machine():
    with pytest.raises(UsageError, match="no machine"):
        arrange(slots(named(1, 2), 2), "stencil:2x2", "hierarchical:levels=paper")


@examples(60)
@given(st.data())
def test_every_group_is_a_box_on_one_node(data):
    machine = parse_spec(data.draw(st.sampled_from(["tree:4x3x5", "torus:4x4,nodes=2"])))
    ppn = data.draw(st.sampled_from([2, 4, 6, 8]))
    count = data.draw(st.integers(1, 12))
    nodes = data.draw(st.permutations(range(32)))[:count]
    on = place_ranks(machine, np.array(nodes), ppn)
    pattern = parse_pattern(f"stencil:{count * ppn}x1")
    made = arrange(on, pattern, "hierarchical:relax")
    assert np.bincount(made.node_of_rank).tolist() == [ppn] * count
    held = made.rank_at_slot.reshape(count, ppn)
    assert (np.ptp(held, axis=1) == ppn - 1).all()
