# SPDX-License-Identifier: Apache-2.0
"""``nidmap plan``: choose the nodes that a job should run on."""

from nidmap.placement.commands.plan import _segment_nodes, _shorten_lines


def test_segment_nodes():
    assert _segment_nodes("12") == 12
    assert _segment_nodes("auto") == 0


def test_shorten_lines():
    assert _shorten_lines("nid[00000-00003]\n") == "nid[00000-00003]\n"
