# SPDX-License-Identifier: Apache-2.0
"""Walks of single paths are what `loads` puts where a byte is sent from node to node."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import UsageError
from nidmap.placement.network import Demand, loads, routings
from nidmap.placement.network.routes import walk_paths
from nidmap.placement.specs import parse_spec
from nidmap.placement.traffic import Traffic
from tests.effort import examples

SPECS = [
    "torus:5x4x2,nodes=2",
    "torus:7",
    "fattree:leaf=4,leaves=5,spines=3",
    "fattree:down=3x2x4,up=1x2x3",
    "tree:2x3x4,bw=1",
]


@cache
def machine_of(spec):
    return parse_spec(spec)


@pytest.mark.parametrize(
    ("spec", "routing"),
    [*((spec, "") for spec in SPECS), ("dragonfly:groups=4,chassis=2,blades=3,nodes=2", "single")],
)
@examples(15)
@given(seed=st.integers(0, 2**32 - 1))
def test_walks_are_loads_of_single_bytes(spec, routing, seed):
    machine = machine_of(spec)
    rows = np.random.default_rng(seed).permutation(len(machine))[:6]
    a, b, amount = rows[:3], rows[3:], np.array([1.0, 2.0, 4.0])
    message, channel = walk_paths(machine, a, b, routing or routings(machine)[0])
    wanted = loads(machine, Demand.of(machine, Traffic.of(a, b, amount)), routing).load
    walked = np.bincount(channel, amount[message], minlength=len(wanted))
    assert walked == pytest.approx(wanted, abs=1e-12)


def test_routings_with_several_paths_are_not_walked():
    machine = machine_of("dragonfly:groups=4,chassis=2,blades=3,nodes=2,global=8")
    with pytest.raises(UsageError, match="several paths"):
        walk_paths(machine, np.array([0]), np.array([9]), "valiant")
