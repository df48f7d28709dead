# SPDX-License-Identifier: Apache-2.0
"""Local transforms along one or two axes, in chunks that fit into the cache."""

import numpy as np

from nidmap.workloads.fft.local import axis_chunks, local_transforms


def test_axis_chunks():
    assert list(axis_chunks(5, 100, limit=200)) == [
        slice(0, 2, None),
        slice(2, 4, None),
        slice(4, 5, None),
    ]


def test_local_transforms():
    x = np.array([[1.0, 2.0, 3.0]]) + 0j
    local_transforms("numpy").c2c(x, (1,), True, x)
    assert x[0, 0] == 6
