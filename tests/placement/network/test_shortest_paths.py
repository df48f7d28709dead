# SPDX-License-Identifier: Apache-2.0
"""Shortest paths between arbitrarily connected routers: the search that all modules share."""

import numpy as np

from nidmap.placement.network import channels
from nidmap.placement.network.shortest_paths import distances, graph_of
from nidmap.placement.specs import parse_spec


def test_distances():
    ring = graph_of(channels(parse_spec("torus:4")), 4)
    assert distances(ring, np.array([0])).ravel().tolist() == [0, 1, 2, 1]
