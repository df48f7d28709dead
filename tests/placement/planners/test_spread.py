# SPDX-License-Identifier: Apache-2.0
"""`spread` and the dealing in turns behind it, against all subsets of small machines."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.planners import Request
from nidmap.placement.planners.plain import spread
from nidmap.placement.specs import parse_spec

SMALL = [
    "dragonfly:groups=3,chassis=2,blades=2,nodes=1",
    "dragonfly:groups=2,chassis=1,blades=2,nodes=3",
    "torus:2x3x2,nodes=1",
    "slingshot:groups=3,switches=2,nodes=2",
    "fattree:leaf=3,leaves=4,spines=1",
]


def unevenness(machine, rows):
    """Sums of squares of the shares, by level from the outermost in."""
    coords = machine.coords[list(rows)]
    levels = range(1, coords.shape[1])
    shares = [np.unique(coords[:, :k], axis=0, return_counts=True)[1] for k in levels]
    return tuple(int((share**2).sum()) for share in shares)


@pytest.mark.parametrize("spec", SMALL)
@given(data=st.data())
@settings(deadline=None)
def test_no_choice_is_more_even(spec, data):
    machine = parse_spec(spec)
    rows = sorted(data.draw(st.sets(st.integers(0, len(machine) - 1), min_size=1)))
    count = data.draw(st.integers(1, len(rows)))
    include = sorted(data.draw(st.sets(st.sampled_from(rows), max_size=count)))
    free = np.zeros(len(machine), dtype=bool)
    free[rows] = True
    found = spread(machine, Request(count=count, free=free, include=np.array(include, dtype=int)))
    choices = [c for c in combinations(rows, count) if set(include) <= set(c)]
    assert unevenness(machine, found) == min(unevenness(machine, choice) for choice in choices)


def test_216_nodes_of_shaheens_shape_are_12_a_group_and_2_a_chassis():
    machine = parse_spec("dragonfly:groups=18,chassis=6,blades=16,nodes=4")
    rows = spread(machine, Request(count=216, free=machine.free))
    coords = machine.coords[rows]
    assert np.unique(coords[:, 0], return_counts=True)[1].tolist() == [12] * 18
    assert np.unique(coords[:, :2], axis=0, return_counts=True)[1].tolist() == [2] * 108
    assert len(np.unique(coords[:, :3], axis=0)) == 216
    assert (np.diff(rows) > 0).all()
