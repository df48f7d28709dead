# SPDX-License-Identifier: Apache-2.0
"""Fat trees, as extended generalised fat trees XGFT(h; m1…mh; w1…wh)."""

from nidmap.placement.topologies.fattree import TreeShape


def test_tree_shape_switches():
    two = TreeShape(down=(18, 16), up=(1, 9), parallel=(1, 1))
    assert two.switches(1) == 16
    assert two.switches(2) == 9
