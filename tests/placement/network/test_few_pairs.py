"""Loads of a few pairs link by link: those of the tables of all routers."""

from unittest.mock import patch

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from placement.network import Demand, few_pairs, loads
from placement.network.group_ways import group_ways_of
from placement.specs import parse_spec
from placement.traffic import Traffic
from tests.effort import examples
from tests.placement.network.small_dragonflies import (
    Reference,
    listed,
    listed_demand,
    messages,
    ruled,
    slingshots,
)


@examples(30)
@given(data=st.data())
def test_as_by_tables(data):
    machine = data.draw(st.one_of(listed(), ruled(), slingshots()))
    assume(len(machine))
    sent = data.draw(messages(machine))
    assume(Reference(machine).connected(sent))
    demand = listed_demand(machine, sent)
    with patch.object(few_pairs, "NUMBERS", 1e-9):
        found = loads(machine, demand, "minimal").load
    with patch.object(few_pairs, "loads", lambda *_: None):
        wanted = loads(machine, demand, "minimal").load
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-9)


def test_which_demands_are_few():
    machine = parse_spec("dragonfly:groups=9,chassis=6,blades=16,nodes=4")
    ways = group_ways_of(machine)
    step = Demand.of(machine, Traffic.of(np.arange(0, 99), np.arange(1000, 1099), 1.0))
    everyone = Demand.of(machine, Traffic.everyone(np.arange(99), 1, 1.0))
    assert few_pairs.loads(ways, step) is not None
    assert few_pairs.loads(ways, everyone) is None
