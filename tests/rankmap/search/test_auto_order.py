# SPDX-License-Identifier: Apache-2.0
"""A job's rank order by a strategy's name, for commands, page and Python."""

import numpy as np

from nidmap.rankmap.search.auto_order import _all_layouts


def test_all_layouts():
    assert [row.tolist() for row in _all_layouts(np.array([0, 0, 1]))] == [
        [0, 0, 1],
        [0, 1, 0],
        [1, 0, 0],
    ]
