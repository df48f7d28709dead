# SPDX-License-Identifier: Apache-2.0
"""Orderings: ``(Pattern, Placement) -> Placement``, one file an idea."""

from nidmap.rankmap.orders import grid_of
from nidmap.rankmap.pattern import parse_pattern


def test_grid_of():
    assert grid_of(parse_pattern("fft:8x4"), "column-major") == (8, 4)
