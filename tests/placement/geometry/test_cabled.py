# SPDX-License-Identifier: Apache-2.0
"""Fabrics whose dumps list the cables: fat trees, DragonFly+, dragonflies."""

import numpy as np

from nidmap.placement.geometry.cabled import find_islands, idle_leaves


def test_find_islands():
    found = find_islands(
        np.array([0, 1, 3, 4, 2]), np.array([2, 2, 5, 5, 5]), np.array([9, 9, 0, 9, 9, 0])
    )
    assert found.kind == "dragonfly+"
    assert found.group.tolist() == [0, 0, 0, 3, 3, 3]
    assert found.level.tolist() == [0, 0, 1, 0, 0, 1]


def test_idle_leaves():
    assert (
        idle_leaves(
            np.array([0, 0, 1, 1]), np.array([2, 3, 2, 3]), np.array([True, False, False, False])
        ).tolist()
    ) == [False, True, False, False]
