# SPDX-License-Identifier: Apache-2.0
"""How a job's nodes are taken apart, from the outside in: block by block, a torus side by side."""

import numpy as np

import nidmap
from nidmap.rankmap.refine.cuts import cut_nodes
from nidmap.rankmap.score.distance import machine_distance


def test_cut_nodes():
    d = machine_distance(nidmap.load_machine("tree:2x2"))
    assert cut_nodes(d, np.full(4, 8)).cuts.tolist() == [[0, 2, 4], [2, 3, 4], [0, 1, 2]]
