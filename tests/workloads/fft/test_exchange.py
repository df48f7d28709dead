# SPDX-License-Identifier: Apache-2.0
"""The transposition between two stages of an FFT."""

from nidmap.workloads.fft.exchange import part_extents


def test_part_extents():
    assert part_extents((4, 5, 6), (slice(1, 3), slice(None), slice(5, 9))) == [2, 5, 1]
