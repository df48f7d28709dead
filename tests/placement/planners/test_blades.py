# SPDX-License-Identifier: Apache-2.0
"""`blades`: the paper's columns, and a plain reading of the rules on random occupancies."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.errors import PlanError, UsageError
from nidmap.placement.load import load_machine
from nidmap.placement.planners import Request
from nidmap.placement.planners.blades import blades
from nidmap.placement.specs import parse_spec

SHAHEEN = parse_spec("dragonfly:groups=18,chassis=6,blades=16,nodes=4")

SMALL = [
    "dragonfly:groups=3,chassis=2,blades=3,nodes=2",
    "dragonfly:groups=2,chassis=3,blades=2,nodes=3",
    "slingshot:groups=4,switches=3,nodes=3",
]


def by_the_rules(machine, rows, count, per_blade, include):
    """Blade by blade and node by node, with no arrays: [] where too few can be taken."""
    extents = machine.topology.extents
    chassis = extents[1] if len(extents) == 4 else 1
    width = extents[-2]
    at = {}
    for row in rows:
        group, *inner, _ = machine.coords[row].tolist()
        c, b = inner if len(inner) == 2 else (0, inner[0])
        at.setdefault((c, b), {}).setdefault(group, []).append(row)
    columns = [(c, b) for c in range(chassis) for b in range(width)]

    def plan_from(c0, b0):
        turns = [(c0, (b0 + k) % width) for k in range(width)]
        turns += [((c0 + k) % chassis, b) for k in range(1, chassis) for b in range(width)]
        return taken_in_turn(turns, at, count, per_blade, include)

    def slices(column):
        chosen = set(plans[column])
        return len(
            {c for (c, _), held in at.items() if chosen & {r for g in held.values() for r in g}}
        )

    def room(column):
        return sum(
            max(min(per_blade, len(nodes)), len(set(nodes) & set(include)))
            for nodes in at.get(column, {}).values()
        )

    plans = {column: plan_from(*column) for column in columns}
    return plans[min(columns, key=lambda column: (slices(column), -room(column)))]


def taken_in_turn(turns, at, count, per_blade, include):
    """Take blades in the order of their columns' turns."""
    out = []
    for column in turns:
        held = {}
        for group, nodes in at.get(column, {}).items():
            nodes = sorted(nodes, key=lambda row: (row not in include, row))
            held[group] = nodes[: max(per_blade, sum(row in include for row in nodes))]
        for slot in range(max(map(len, held.values()), default=0)):
            out += [held[group][slot] for group in sorted(held) if len(held[group]) > slot]
    if len(out) < count:
        return []
    others = [row for row in out if row not in include][: count - len(include)]
    return [row for row in out if row in include or row in others]


@pytest.mark.parametrize("spec", SMALL)
@given(data=st.data())
@settings(deadline=None)
def test_the_rules_read_plainly_give_the_same_list(spec, data):
    machine = parse_spec(spec)
    rows = sorted(data.draw(st.sets(st.integers(0, len(machine) - 1), min_size=1)))
    count = data.draw(st.integers(1, len(rows)))
    include = sorted(data.draw(st.sets(st.sampled_from(rows), max_size=min(count, 3))))
    per_blade = data.draw(st.integers(1, 4))
    free = np.zeros(len(machine), dtype=bool)
    free[rows] = True
    request = Request(count, free, np.array(include, dtype=int), per_blade=per_blade)
    expected = by_the_rules(machine, rows, count, per_blade, include)
    if not expected:
        with pytest.raises(PlanError, match=f"with {per_blade} per blade only"):
            blades(machine, request)
        return
    assert blades(machine, request).tolist() == expected


def test_the_papers_216_nodes_are_12_blades_in_each_of_18_groups():
    rows = blades(SHAHEEN, Request(count=216, free=SHAHEEN.free, per_blade=1))
    coords = SHAHEEN.coords[rows]
    assert coords[:, 0].tolist() == list(range(18)) * 12
    assert np.repeat(np.arange(12), 18).tolist() == coords[:, 2].tolist()
    assert set(coords[:, 1].tolist()) == set(coords[:, 3].tolist()) == {0}


def test_four_a_blade_fill_three_columns():
    rows = blades(SHAHEEN, Request(count=216, free=SHAHEEN.free))
    coords = SHAHEEN.coords[rows]
    assert coords[:, 0].tolist() == list(range(18)) * 12
    assert coords[:, 2].tolist() == [0] * 72 + [1] * 72 + [2] * 72
    assert coords[:72, 3].tolist() == [0] * 18 + [1] * 18 + [2] * 18 + [3] * 18


def test_a_job_that_fits_in_one_slice_stays_in_it():
    machine = load_machine("shaheen2")
    room = np.bincount(machine.coords[machine.free, 1])
    assert room.max() == 1072  # of 16 x 18 blades, less the service ones
    rows = blades(machine, Request(count=1050, free=machine.free))
    assert len(set(machine.coords[rows, 1].tolist())) == 1


def test_one_a_blade_starts_at_the_column_with_most_free_blades():
    """Column 0 has the most free nodes, on two of three groups; column 1 a node in each."""
    machine = parse_spec("dragonfly:groups=3,chassis=1,blades=2,nodes=4")
    group, _, blade, node = machine.coords.T
    free = ((blade == 0) & (group < 2)) | ((blade == 1) & (node == 0))
    rows = blades(machine, Request(count=3, free=free, per_blade=1))
    assert machine.coords[rows].tolist() == [[0, 0, 1, 0], [1, 0, 1, 0], [2, 0, 1, 0]]


def test_it_starts_at_the_freest_column_and_goes_round_its_chassis_first():
    free = SHAHEEN.free.copy()
    busy = SHAHEEN.coords[:, 3] == 1
    free[busy & ~((SHAHEEN.coords[:, 1] == 2) & (SHAHEEN.coords[:, 2] == 14))] = False
    rows = blades(SHAHEEN, Request(count=18 * 4 + 18 * 3 * 16, free=free))
    columns = [tuple(c) for c in SHAHEEN.coords[rows, 1:3].tolist()]
    seen = list(dict.fromkeys(columns))
    assert seen == [(2, b % 16) for b in range(14, 30)] + [(3, 0)]


def test_what_one_node_a_blade_cannot_reach_is_said():
    with pytest.raises(PlanError) as caught:
        blades(SHAHEEN, Request(count=2000, free=SHAHEEN.free, per_blade=1))
    assert caught.value.message == (
        "2000 nodes wanted, and with 1 per blade only 1728 of 6912 free nodes can be taken: "
        "272 missing"
    )
    assert "--per-blade" in caught.value.hint


@pytest.mark.parametrize("spec", ["torus:4x4", "tree:4x4x2", "fattree:leaf=4,leaves=4,spines=2"])
def test_other_machines_have_no_blades_across_groups(spec):
    machine = parse_spec(spec)
    with pytest.raises(
        UsageError, match=r"needs a dragonfly, and .* strategies that fit: compact, hilbert, "
    ):
        blades(machine, Request(count=2, free=machine.free))


def test_no_nodes_a_blade_make_no_sense():
    with pytest.raises(UsageError, match="0 nodes per blade"):
        blades(SHAHEEN, Request(count=2, free=SHAHEEN.free, per_blade=0))
