# SPDX-License-Identifier: Apache-2.0
"""Dragonflies: Aries (group, chassis, blade) and Slingshot (group, switch)."""

from nidmap.placement.specs import parse_spec
from nidmap.placement.topologies.dragonfly import DragonflyShape, default_links, global_links


def test_global_links():
    m = parse_spec("dragonfly:groups=9,chassis=6,blades=16,nodes=4,wiring=same-chassis")
    assert global_links(m.topology, 9) == 24


def test_default_links():
    assert (
        default_links("consecutive", DragonflyShape(groups=9, chassis=6, blades=16, links=0), 10)
        == 120
    )
