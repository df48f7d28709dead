# SPDX-License-Identifier: Apache-2.0
"""The positions of a torus, their outgoing links, and vectorised loads on its rings."""

import numpy as np

from nidmap.placement.network.torus_grid import product_loads, ring_hops


def test_ring_hops():
    assert [way.tolist() for way in ring_hops(np.array([0, 3, 0]), np.array([2, 0, 3]), 4)] == [
        [2, 1, 0],
        [0, 0, 1],
    ]


def test_product_loads():
    assert product_loads(np.ones((1, 4)), np.ones((1, 4))).tolist() == [
        [[3.0, 3.0, 3.0, 3.0]],
        [[1.0, 1.0, 1.0, 1.0]],
    ]
