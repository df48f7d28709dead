# SPDX-License-Identifier: Apache-2.0
"""`level-spread`: the level chosen and the spread inside it, against every unit looked at."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.planners import Request
from nidmap.placement.planners.plain import level_spread
from nidmap.placement.specs import parse_spec

SMALL = [
    "dragonfly:groups=2,chassis=2,blades=1,nodes=3",
    "dragonfly:groups=2,chassis=3,blades=2,nodes=1",
    "slingshot:groups=3,switches=2,nodes=2",
    "tree:2x2x3",
    "torus:2x3x2",
]


def smallest_unit(machine, rows, count, include):
    """The coordinates of the unit that must be chosen: () is the machine."""
    depth = machine.coords.shape[1] - 1
    for level in range(depth, 0, -1):
        units = {}
        for row in rows:
            units.setdefault(tuple(machine.coords[row, :level].tolist()), []).append(row)
        held = {u: r for u, r in units.items() if len(r) >= count and set(include) <= set(r)}
        if held:
            return max(sorted(held), key=lambda unit: len(held[unit]))
    return ()


def unevenness(machine, rows, below):
    coords = machine.coords[list(rows)]
    levels = range(below + 1, coords.shape[1])
    shares = [np.unique(coords[:, :k], axis=0, return_counts=True)[1] for k in levels]
    return tuple(int((share**2).sum()) for share in shares)


@pytest.mark.parametrize("spec", SMALL)
@given(data=st.data())
@settings(deadline=None)
def test_the_smallest_level_that_holds_the_job_is_taken_and_evened_out(spec, data):
    machine = parse_spec(spec)
    rows = sorted(data.draw(st.sets(st.integers(0, len(machine) - 1), min_size=1)))
    count = data.draw(st.integers(1, len(rows)))
    include = sorted(data.draw(st.sets(st.sampled_from(rows), max_size=min(count, 2))))
    free = np.zeros(len(machine), dtype=bool)
    free[rows] = True
    request = Request(count=count, free=free, include=np.array(include, dtype=int))
    unit = smallest_unit(machine, rows, count, include)
    found = level_spread(machine, request)
    inside = [r for r in rows if tuple(machine.coords[r, : len(unit)].tolist()) == unit]
    assert set(found.tolist()) <= set(inside)
    choices = [c for c in combinations(inside, count) if set(include) <= set(c)]
    best = min(unevenness(machine, choice, len(unit)) for choice in choices)
    assert unevenness(machine, found, len(unit)) == best


def test_the_papers_three_cases_and_the_chassis():
    machine = parse_spec("dragonfly:groups=9,chassis=6,blades=16,nodes=4")
    # So many nodes -> how many of the outermost levels all of them share.
    for count, shared in {4: 3, 5: 2, 64: 2, 65: 1, 384: 1, 385: 0}.items():
        coords = machine.coords[level_spread(machine, Request(count=count, free=machine.free)), :3]
        assert (coords == coords[0]).all(axis=0).tolist().count(True) >= shared
        assert not (coords[:, : shared + 1] == coords[0, : shared + 1]).all() or shared == 3


def test_the_unit_with_most_free_nodes_is_taken_not_the_tightest():
    machine = parse_spec("dragonfly:groups=3,chassis=2,blades=2,nodes=2")
    free = machine.free.copy()
    free[[0, 1, 8, 9, 16]] = False
    rows = level_spread(machine, Request(count=6, free=free))
    assert set(machine.coords[rows, 0].tolist()) == {2}
