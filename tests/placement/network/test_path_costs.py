# SPDX-License-Identifier: Apache-2.0
"""Costs are loads, transposed: sum of price x load = sum of bytes x cost, whatever the prices."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.network import Demand, channels, loads
from nidmap.placement.network.path_costs import path_costs
from nidmap.placement.specs import parse_spec
from nidmap.placement.traffic import Traffic

#: Costs follow minimal ways where routers leave them.
PATHS = {"slingshot": "minimal"}

SPECS = [
    "dragonfly:groups=4,chassis=2,blades=3,nodes=2,global=8",
    "dragonfly:groups=3,chassis=2,blades=4,nodes=1,wiring=same-chassis,global=4",
    "dragonfly:groups=1,chassis=3,blades=4,nodes=2",
    "slingshot:groups=3,switches=4,nodes=4,nics=2",
    "torus:5x4x2,nodes=2",
    "torus:4x6",
    "torus:7",
    "fattree:leaf=4,leaves=5,spines=3",
    "fattree:down=3x2x4,up=1x2x3",
    "tree:2x3x4,bw=1",
    "tree:2x2x3x2x2,bw=1",
]


@cache
def machine_of(spec):
    return parse_spec(spec)


@pytest.mark.parametrize("spec", SPECS)
@given(seed=st.integers(0, 2**32 - 1))
def test_bills_add_up_to_priced_loads(spec, seed):
    machine = machine_of(spec)
    rng = np.random.default_rng(seed)
    many = int(rng.integers(1, 30))
    a, b = rng.integers(0, len(machine), (2, many))
    size = rng.random(many)
    price = rng.random(len(channels(machine))) * (rng.random(len(channels(machine))) < 0.3)
    bill = path_costs(machine, price)(a, b)
    load = loads(
        machine, Demand.of(machine, Traffic.of(a, b, size)), PATHS.get(machine.topology.fabric, "")
    ).load
    apart = a != b
    assert (size * bill)[apart].sum() == pytest.approx((price * load).sum(), rel=1e-9, abs=1e-12)


def test_ends_broadcast():
    machine = machine_of(SPECS[0])
    rng = np.random.default_rng(0)
    cost = path_costs(machine, rng.random(len(channels(machine))))
    a, b = np.arange(5), np.arange(10, 17)
    table = cost(a[:, None], b[None, :])
    assert table.shape == (5, 7)
    assert table[3, 2] == cost(a[3:4], b[2:3])[0]


def test_groups_without_a_link_have_no_costs():
    machine = parse_spec("dragonfly:groups=9,chassis=1,blades=4,nodes=1,global=1")
    assert path_costs(machine, np.ones(len(channels(machine)))) is not None
    from dataclasses import replace

    from nidmap.placement.topologies import links

    found = links(machine)
    kept = np.flatnonzero((found.kind != found.kinds.index("blue")) | (np.arange(len(found)) % 2))
    columns = (found.a, found.b, found.kind, found.count, found.bandwidth)
    a, b, kind, count, bandwidth = (x[kept] for x in columns)
    fewer = type(found)(a, b, kind, found.kinds, count, bandwidth)
    cut = replace(machine, links=fewer, _cache={})
    assert path_costs(cut, np.ones(2 * len(kept))) is None
