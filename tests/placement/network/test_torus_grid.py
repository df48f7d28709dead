# SPDX-License-Identifier: Apache-2.0
"""The positions of a torus, their outgoing links, and vectorised loads on its rings."""

import numpy as np

from nidmap.placement.network.torus_grid import ring_hops, ring_loads


def test_ring_hops():
    assert [way.tolist() for way in ring_hops(np.array([0, 3, 0]), np.array([2, 0, 3]), 4)] == [
        [2, 1, 0],
        [0, 0, 1],
    ]


def test_ring_loads():
    """Each of four positions sends one byte to each other: those half way round go to +."""
    assert ring_loads(4, lambda hops: np.ones(4)).tolist() == [[3.0] * 4, [1.0] * 4]
