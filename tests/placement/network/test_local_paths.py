# SPDX-License-Identifier: Apache-2.0
"""Within the groups of a dragonfly: all shortest paths between the routers of a group."""

import numpy as np

from nidmap.placement.network.local_paths import LocalPaths, _grid_sides, _turned_lanes


def test_local_paths():
    ring = np.array([[[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0.0]]])
    paths = LocalPaths(ring)
    assert paths.length[0, 0].tolist() == [0, 1, 2, 1]


def test_grid_sides():
    def one(size):
        return np.ones((size, size)) - np.eye(size)

    assert _grid_sides(np.kron(one(2), np.eye(3)) + np.kron(np.eye(2), one(3))) == (2, 3)


def test_turned_lanes():
    lanes = np.zeros((1, 6, 5))
    lanes[0, 0, 2] = 7  # from the first blade of a row to the third
    assert float(_turned_lanes((2, 3), lanes)[0, 2, 0]) == 7.0
