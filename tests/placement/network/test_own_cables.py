# SPDX-License-Identifier: Apache-2.0
"""Domains of accelerators, each of whose nodes has a cable of its own out of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.load import load_machine
from nidmap.placement.network import Demand, channels, loads
from nidmap.placement.network.routes import walk_paths
from nidmap.placement.network.trees import tree_of
from nidmap.placement.options import with_figures
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.predict import Job, Predictor

SIZES = (4, 2, 4, 3)
CONF = (
    "BlockName=a Nodes=n[00-03]\nBlockName=b Nodes=n[04-05]\n"
    "BlockName=c Nodes=n[06-09]\nBlockName=d Nodes=n[10-12]\nBlockSizes=4,8\n"
)
BLOCK = np.repeat(np.arange(4), SIZES)
GB = 1e9


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    path = tmp_path_factory.mktemp("blocks") / "topology.conf"
    path.write_text(CONF)
    return load_machine(str(path))


AMOUNTS = st.lists(st.integers(0, 3), min_size=169, max_size=169)


def demand_of(machine, table):
    a, b = np.nonzero(table)
    return Demand.of(machine, Traffic.of(a, b, table[a, b].astype(float)))


def busiest_own(table):
    """Return what each node sends out of its block, and receives from outside, pair by pair."""
    far = BLOCK[:, None] != BLOCK[None, :]
    return (table * far).sum(axis=1), (table * far).sum(axis=0)


@given(AMOUNTS)
def test_a_cable_carries_what_its_node_sends_out_of_its_block_alone(machine, amounts):
    table = np.array(amounts).reshape(13, 13)
    found = loads(machine, demand_of(machine, table))
    cables = tree_of(machine).layers[0]
    part = cables.part[machine.router[:, 0]]
    out, into = (way[part, cables.port] for way in (cables.up, cables.down))
    sent, received = busiest_own(table)
    assert np.array_equal(found.load[out], sent)
    assert np.array_equal(found.load[into], received)
    assert set(channels(machine).bandwidth[out].tolist()) == {200.0}


@given(st.lists(st.integers(0, 12), min_size=2, max_size=8, unique=True), st.integers(1, 3))
def test_an_all_to_all_is_the_sum_of_its_pairs(machine, rows, ranks):
    table = np.zeros((13, 13))
    table[np.ix_(rows, rows)] = ranks * ranks
    table[np.arange(13), np.arange(13)] = 0
    every = loads(machine, Demand.of(machine, Traffic.everyone(np.array(rows), ranks, 1.0))).load
    assert np.allclose(every, loads(machine, demand_of(machine, table)).load)


@given(AMOUNTS)
def test_walks_know_the_cables(machine, amounts):
    table = np.array(amounts, dtype=float).reshape(13, 13)
    table[np.arange(13), np.arange(13)] = 0
    load = loads(machine, demand_of(machine, table)).load
    a, b = np.nonzero(table)
    message, channel = walk_paths(machine, a, b, "single")
    assert np.allclose(np.bincount(channel, table[a, b][message], minlength=len(load)), load)


@pytest.mark.parametrize(
    ("rows", "us"), [([0, 1, 2, 3], 8 / 3.6), ([0, 1, 4, 5], 40), ([0, 4, 6, 10], 40)]
)
def test_bytes_out_of_a_block_take_their_nodes_own_bandwidth(machine, rows, us):
    ring = Predictor(
        with_figures(machine, latency=0, process=float("inf")), Job("ring", 1, 8e6, algorithm="")
    )
    assert ring.time(ring.place(np.array(rows))) == pytest.approx(us * 1e-6)
