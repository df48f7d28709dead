# SPDX-License-Identifier: Apache-2.0
"""Planners: ``(Machine, Request) -> rows``, one file a strategy."""

import numpy as np

from nidmap.placement.planners import Needs, nested_units
from nidmap.placement.specs import parse_spec


def test_needs_lacking():
    torus = parse_spec("torus:4x4")
    assert Needs(("dragonfly",)).lacking(torus) == "a dragonfly, and torus:4x4 is a torus"
    assert Needs(("torus",)).lacking(torus) == ""


def test_nested_units():
    machine = parse_spec("dragonfly:groups=2,chassis=2,blades=2,nodes=1")
    assert [level.tolist() for level in nested_units(machine, np.array([0, 3, 4, 5]))] == [
        [0, 0, 1, 1],
        [0, 1, 2, 2],
        [0, 1, 2, 3],
    ]
