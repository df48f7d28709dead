# SPDX-License-Identifier: Apache-2.0
"""Strategies side by side: which nodes and which order, and what each is predicted to take."""

from nidmap.rankmap.compare import _family_name


def test_family_name():
    assert _family_name("22 blades") == "blade"
    assert _family_name("box 4x2x8") == "box"
    assert _family_name("blades --per-blade 2") == "blades --per-blade 2"
