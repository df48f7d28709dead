# SPDX-License-Identifier: Apache-2.0
"""Planners without a search: first free nodes, random, evenly spread, or along a curve."""

import numpy as np

from nidmap.placement.planners import Request
from nidmap.placement.planners.plain import take_first
from nidmap.placement.specs import parse_spec


def test_take_first():
    machine = parse_spec("torus:4x4")
    assert take_first(
        machine, Request(count=3, free=machine.free, include=np.array([9]))
    ).tolist() == [0, 1, 9]
