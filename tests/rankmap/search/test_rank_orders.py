# SPDX-License-Identifier: Apache-2.0
"""Rank orders to start from, on given nodes."""

from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.search.rank_orders import ranks_alike


def test_ranks_alike():
    assert ranks_alike(parse_pattern("alltoall"))
    assert not ranks_alike(parse_pattern("fft:2x2"))
