# SPDX-License-Identifier: Apache-2.0
"""``nidmap minicray``: a small machine with real links, emulated on this one."""

from nidmap.workloads.minicray.commands import rank_nodes


def test_rank_nodes():
    assert rank_nodes({"names": ["n0", "n1"], "nodes": 2}, None, 8, None) == ["n0", "n1"]
