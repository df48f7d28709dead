# SPDX-License-Identifier: Apache-2.0
"""Where everything stands: every node in its box, every box in the one around it, nothing twice."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.placement.names import parse_cnames
from nidmap.placement.specs import parse_spec
from nidmap.web.layout import document, layout, view_parts
from nidmap.web.layout.boxes import ASPECT, CELL, best_columns
from tests.web.machines import without

GOLDEN = Path(__file__).parents[1] / "machines"
SITES = ("shaheen2", "bluewaters", "tara", "frontier", "hazelhen", "titan", "aurora", "edison",
         "leonardo")  # fmt: skip
SPECS = (
    "dragonfly:groups=3,chassis=2,blades=4,nodes=2",
    "torus:4x3x2,nodes=2",
    "torus:5x4",
    "torus:7",
    "torus:2x3x2x2",
    "fattree:leaf=18,leaves=16,spines=9",
    "tree:4x16x6",
    "tree:3x1",
)


def holds(view, machine):
    """Assert all that must be true of any view."""
    n = len(machine)
    assert len(view.x) == len(view.y) == len(view.box) == n
    corners = set(zip(view.x.tolist(), view.y.tolist(), strict=True))
    assert len(corners) == n, "two nodes in one place"
    vacant = set(map(tuple, view.vacant.tolist()))
    assert len(vacant) == len(view.vacant)
    assert not corners & vacant, "a node in a vacant place"
    if n and view.levels:
        inner = view.levels[-1]
        inside(view.x, view.y, CELL, CELL, inner, view.box)
    for outer, level in zip(view.levels, view.levels[1:], strict=False):
        own = level.parent >= 0
        inside(level.x[own], level.y[own], level.w[own], level.h[own], outer, level.parent[own])
    for level in view.levels:
        assert len(level.label) == len(level)
        apart(level)
        assert (level.x >= 0).all()
        assert (level.x + level.w <= view.width).all()
        assert (level.y + level.h <= view.height).all()


def inside(x, y, w, h, outer, parent):
    assert (x >= outer.x[parent]).all()
    assert (y >= outer.y[parent]).all()
    assert (x + w <= outer.x[parent] + outer.w[parent]).all()
    assert (y + h <= outer.y[parent] + outer.h[parent]).all()


def apart(level):
    """Assert that no two boxes of a level overlap (of many: those of the first hundred)."""
    m = min(len(level), 400)
    x, y, w, h = level.x[:m], level.y[:m], level.w[:m], level.h[:m]
    across = (x[:, None] < x + w) & (x < (x + w)[:, None])
    down = (y[:, None] < y + h) & (y < (y + h)[:, None])
    both = across & down & ~np.eye(m, dtype=bool)
    assert not both.any(), f"{level.level} boxes overlap"


@pytest.mark.parametrize("name", SITES)
def test_bundled_sites(name):
    machine = nidmap.load_machine(name)
    for view in layout(machine):
        holds(view, machine)


@pytest.mark.parametrize("spec", SPECS)
def test_synthetic_machines(spec):
    machine = parse_spec(spec)
    for view in layout(machine):
        holds(view, machine)


def golden():
    folders = sorted(path.parent for path in GOLDEN.glob("*/expected.json"))
    said = {folder: json.loads((folder / "expected.json").read_text()) for folder in folders}
    return [
        pytest.param(
            [*map(str, sorted(folder.glob("source*"))), *said[folder].get("specs", [])],
            id=folder.name,
        )
        for folder in folders
        if "refused" not in said[folder]
    ]


@pytest.mark.parametrize("sources", golden())
def test_golden_machines(sources):
    machine = nidmap.load_machine(*sources)
    for view in layout(machine):
        holds(view, machine)


@given(
    st.integers(1, 5), st.integers(1, 4), st.integers(1, 6), st.integers(1, 4), st.integers(0, 99)
)
def test_dragonflies_with_holes(groups, chassis, blades, nodes, seed):
    machine = parse_spec(
        f"dragonfly:groups={groups},chassis={chassis},blades={blades},nodes={nodes}"
    )
    rng = np.random.default_rng(seed)
    kept = rng.random(len(machine)) < 0.7
    if not kept.any():
        return
    part = without(machine, kept)
    for view in layout(part):
        holds(view, part)


def test_cabinets_stand_upright_with_two_columns_of_blades(shaheen2):
    (view,) = layout(shaheen2)
    parts = parse_cnames(shaheen2.cname)
    rows = {name: k for k, name in enumerate(shaheen2.cname.tolist())}
    low, high = rows["c0-0c0s4n0"], rows["c0-0c0s4n3"]
    assert view.y[high] == view.y[low]
    assert view.x[high] > view.x[low]
    assert view.y[rows["c0-0c2s4n0"]] < view.y[rows["c0-0c1s4n0"]] < view.y[low]
    assert view.x[rows["c0-0c0s5n0"]] == view.x[low]
    assert view.x[rows["c0-0c0s12n0"]] > view.x[high]
    assert view.y[rows["c0-0c0s12n0"]] == view.y[low]
    assert view.x[rows["c1-0c0s4n0"]] > view.x[rows["c0-0c0s15n0"]]
    assert view.y[rows["c0-1c0s4n0"]] > view.y[low]
    assert parts[low].tolist() == [0, 0, 0, 4, 0]


def test_a_group_is_two_cabinets(shaheen2):
    (view,) = layout(shaheen2)
    group, cabinet = view.levels[0], view.levels[1]
    assert np.bincount(cabinet.parent[~cabinet.vacant]).tolist() == [2] * len(group)
    assert cabinet.label[:2] == ["c0-0", "c0-1"]


def test_cabinets_that_are_not_there_have_their_places_among_groups():
    (view,) = layout(nidmap.load_machine(str(GOLDEN / "xc-absent-cabinets" / "source.txt")))
    group = view.levels[0]
    assert [group.label[box] for box in np.flatnonzero(group.vacant)] == ["c2-1"]
    left, below = group.label.index("g3"), group.label.index("g7")
    assert group.x[group.vacant] == group.x[below]
    assert group.y[group.vacant] == group.y[left]


def test_a_view_fills_a_frame_of_the_pages_shape():
    """Boxes of different widths leave no holes: Leonardo's groups are packed as rows of a shelf."""
    (view,) = layout(nidmap.load_machine("leonardo"))
    groups = view.levels[0]
    filled = int((groups.w * groups.h).sum()) / (view.width * view.height)
    assert filled > 0.75
    frame = max(view.width / ASPECT, view.height)
    assert int((groups.w * groups.h).sum()) / (frame * ASPECT * frame) > 0.6
    below = groups.y[1:] > groups.y[:-1]
    assert ((groups.x[1:] > groups.x[:-1]) | below).all(), "in the order of their numbers"


def test_a_floor_of_cabinets_is_as_wide_as_a_screen(shaheen2):
    (view,) = layout(shaheen2)
    assert 0.8 * ASPECT < view.width / view.height < 1.2 * ASPECT


def test_a_torus_has_its_slices():
    machine = nidmap.load_machine("bluewaters")
    cabinets, slices, _, _ = layout(machine)
    assert cabinets.id == "cabinets"
    assert slices.levels[0].label[:3] == ["z0", "z1", "z2"]
    x, y = slices.x, slices.y
    same = (machine.coords[:, 1] == 5) & (machine.coords[:, 2] == 7) & (machine.coords[:, 3] == 0)
    assert len(set(y[same].tolist())) == 1
    assert (np.diff(x[same][np.argsort(machine.coords[same, 0])]) > 0).all()


def test_vacant_places_are_those_without_a_node(shaheen2):
    (view,) = layout(shaheen2)
    assert len(view.vacant) == 36 * 3 * 16 * 4 - len(shaheen2)


def test_links_begin_in_the_middle_of_their_nodes(small):
    (view,) = layout(small)
    for router in (0, 5, 31):
        mine = small.router[:, 0] == router
        assert abs(view.routers[router, 0] - (view.x[mine] + CELL / 2).mean()) <= 1
        assert abs(view.routers[router, 1] - (view.y[mine] + CELL / 2).mean()) <= 1


def test_spines_have_a_place_above():
    machine = parse_spec("fattree:leaf=4,leaves=3,spines=2")
    (view,) = layout(machine)
    assert view.spines.label == ["spine0", "spine1"]
    assert (view.routers >= 0).all()
    assert view.routers[3:, 1].max() < view.y.min()


@given(st.integers(1, 5000), st.floats(0.5, 80))
def test_columns_stay_in_bounds(count, wanted):
    assert 1 <= best_columns(count, wanted) <= count


def test_view_parts():
    found = view_parts(document(parse_spec("torus:4x4x4")))
    assert list(found) == ["usual", "slices", "slices-y", "slices-x"]
    assert [len(view) > 2 for view in found["usual"]["views"]] == [True, False, False]
