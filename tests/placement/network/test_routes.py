"""Routes between few nodes are what `loads` puts where a byte is sent between each two."""

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.network import Demand, channels, loads, routings
from placement.network.routes import routes
from placement.specs import parse_spec
from tests.effort import examples

PATHS = {"slingshot": "minimal"}
SPECS = [
    "dragonfly:groups=4,chassis=2,blades=3,nodes=2,global=8",
    "dragonfly:groups=3,chassis=3,blades=2,nodes=1,wiring=same-chassis,global=4",
    "slingshot:groups=3,switches=4,nodes=4,nics=2",
    "dragonfly+:groups=4,leaves=2,spines=3,nodes=2,links=2,global=4",
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
    [
        *((spec, PATHS.get(spec.partition(":")[0], "")) for spec in SPECS),
        (SPECS[0], "single"),
    ],
)
@examples(15)
@given(seed=st.integers(0, 2**32 - 1))
def test_routes_are_loads_of_single_bytes(spec, routing, seed):
    machine = machine_of(spec)
    rows = np.random.default_rng(seed).permutation(len(machine))[:5]
    used, share = routes(machine, rows, routing or routings(machine)[0])
    for i, j in itertools.product(range(5), repeat=2):
        wanted = np.zeros(len(channels(machine)))
        if i != j:
            one = Demand.pairs(machine, rows[[i]], rows[[j]], 1.0)
            wanted = loads(machine, one, routing).load
        found = np.zeros(len(wanted))
        found[used] = share[i, j]
        assert found == pytest.approx(wanted, abs=1e-12)


def test_other_routings_and_broken_rings_are_not_followed():
    machine = machine_of(SPECS[0])
    assert routes(machine, np.arange(4), "valiant") is None
