# SPDX-License-Identifier: Apache-2.0
"""What a routing puts where: directed channels, and the bytes on each of them."""

import numpy as np

from nidmap.placement.network import Demand, loads
from nidmap.placement.network.channel_loads import (
    TAKEN,
    from_links,
    has_spines,
    pay_for_detours,
    slowest_attachment,
)
from nidmap.placement.specs import parse_spec
from nidmap.placement.traffic import Traffic


def test_from_links():
    two = from_links(parse_spec("dragonfly:groups=1,chassis=1,blades=2,nodes=1"))
    assert two.source.tolist() == [0, 1]
    assert two.target.tolist() == [1, 0]
    assert two.bandwidth.tolist() == [5.25, 5.25]


def test_has_spines():
    assert has_spines(parse_spec("dragonfly+:groups=2,leaves=2,spines=2,nodes=1"))


def test_slowest_attachment():
    assert slowest_attachment(
        parse_spec("slingshot:groups=2,switches=1,nodes=1,nics=2")
    ).tolist() == [25.0, 25.0]


def test_pay_for_detours():
    seconds, busy, taken = pay_for_detours(np.linspace(4.0, 1.0, 17), 2.0, 0.15)
    assert round(seconds, 3) == 2.206
    assert round(busy, 3) == 0.969
    assert float(TAKEN[taken]) == 0.6875


def test_loads_by_class():
    m = parse_spec("dragonfly:groups=1,chassis=1,blades=2,nodes=1,injection=10")
    demand = Demand.of(m, Traffic.of(np.array([0]), np.array([1]), 1e9))
    assert loads(m, demand).by_class()["injection"] == 0.1
