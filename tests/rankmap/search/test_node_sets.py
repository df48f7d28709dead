# SPDX-License-Identifier: Apache-2.0
"""Node sets to start from: the planners' choices, and families between packed and spread."""

import numpy as np

from nidmap.placement.planners import Request
from nidmap.placement.specs import parse_spec
from nidmap.rankmap.search.node_sets import _counts_to_try, freest_boxes, spread_over_levels


def test_spread_over_levels():
    m = parse_spec("dragonfly:groups=4,chassis=1,blades=2,nodes=2")
    found = dict(spread_over_levels(m, Request(count=4, free=m.free)))
    assert found["1 group"].tolist() == [0, 1, 2, 3]
    assert found["2 groups"].tolist() == [0, 2, 4, 6]


def test_counts_to_try():
    assert _counts_to_try(np.array([4, 8, 12, 16]), 6, 0) == [2, 3, 4]


def test_freest_boxes():
    m = parse_spec("torus:6x6")
    name, rows = next(freest_boxes(m, Request(count=4, free=m.free)))
    assert name == "box 2x2"
    assert rows.tolist() == [0, 1, 6, 7]
