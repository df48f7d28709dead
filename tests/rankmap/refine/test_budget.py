# SPDX-License-Identifier: Apache-2.0
"""Search effort: the parameters of the search, and the measurements they come from."""

from nidmap.rankmap.refine.budget import total_work


def test_total_work():
    assert total_work(4096) == 160000000.0
    assert total_work(16 * 4096) / total_work(4096) == 16**0.65
