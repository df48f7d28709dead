# SPDX-License-Identifier: Apache-2.0
"""Trees of switches, and fat trees under d-mod-k: one path between any two nodes."""

import numpy as np

from nidmap.placement.network.demand import Demand
from nidmap.placement.network.switches import channels
from nidmap.placement.network.trees import notes, passed_channels, ports
from nidmap.placement.specs import parse_spec
from nidmap.placement.traffic import Traffic


def test_passed_channels():
    m = parse_spec("tree:1x2x2")
    _message, channel = passed_channels(m, np.array([0]), np.array([3]))
    assert channels(m).names(channel).tolist()[::3] == [
        "level1-0->level2-0 up1",
        "level2-1->level1-3 down1",
    ]


def test_notes():
    assert notes(parse_spec("tree:2x2")) == ()
    assert notes(parse_spec("fattree:leaf=2,leaves=2,spines=2")) == ()


def test_ports():
    m = parse_spec("fattree:down=2x2,up=2x2")
    assert [x.tolist() for x in ports(m, Demand.of(m, Traffic.everyone(np.arange(4), 1, 1.0)))] == [
        [4.0, 4.0, 4.0, 4.0],
        [6.0, 6.0, 6.0, 6.0],
    ]
