# SPDX-License-Identifier: Apache-2.0
"""The cost of a placement: predicted seconds, or J if no link bandwidth is known."""

import numpy as np

import nidmap
from nidmap.placement.placement import Placement
from nidmap.rankmap.predict import Predictor
from nidmap.rankmap.search.cost import Candidate, HopCost


def test_hop_cost():
    model = Predictor(nidmap.load_machine("tree:2x2,dist=1:3"), nidmap.Job("ring"))
    assert [HopCost(model).of(model.place(rows)) for rows in ([0, 2, 1, 3], range(4))] == [
        12.0,
        8.0,
    ]


def test_candidate_order_words():
    ones = Placement(np.array(["a", "b"]), np.ones(2, dtype=np.int64))
    assert Candidate("hilbert", "row-major", ones, 1.0).order_words == "node order of hilbert"
