# SPDX-License-Identifier: Apache-2.0
"""How many bytes each channel of a network carries, under a given routing."""

import numpy as np

from nidmap.placement.network import loads_of_each, usual_loss
from nidmap.placement.network.demand import Demand
from nidmap.placement.specs import parse_spec
from nidmap.placement.traffic import Traffic


def test_usual_loss():
    assert usual_loss(parse_spec("slingshot:groups=4,switches=4,nodes=2")) == 0.24


def test_loads_of_each():
    m = parse_spec("torus:4,bw=1")
    steps = [Demand.of(m, Traffic.of(np.arange(4), (np.arange(4) + k) % 4, k)) for k in (1, 2)]
    assert [float(found.load.max()) for found in loads_of_each(m, steps)] == [1.0, 4.0]
