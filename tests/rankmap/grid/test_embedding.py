# SPDX-License-Identifier: Apache-2.0
"""Embedding a grid into a torus, neighbours on neighbouring routers."""

import numpy as np

from nidmap.rankmap.grid.embedding import box_of, embeddings, lay_grid


def test_box_of():
    assert box_of(np.array([[0, 3], [1, 3], [1, 4], [0, 4]])) == (2, 2)
    assert box_of(np.array([[0, 0], [1, 1]])) is None


def test_embeddings():
    assert list(embeddings((48, 8), (8, 8, 6))) == [((0, 2), (1,)), ((1, 2), (0,))]


def test_lay_grid():
    assert lay_grid((6,), (2, 3), ((0, 1),)).tolist() == [
        [0, 0],
        [0, 1],
        [0, 2],
        [1, 2],
        [1, 1],
        [1, 0],
    ]
