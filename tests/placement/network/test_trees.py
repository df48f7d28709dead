# SPDX-License-Identifier: Apache-2.0
"""Trees of switches, and fat trees under d-mod-k: one path between any two nodes."""

import itertools

import networkx as nx
import numpy as np
import pytest

from nidmap.placement.network import loads, routings
from nidmap.placement.network.demand import Demand
from nidmap.placement.network.switches import channels
from nidmap.placement.network.trees import notes, passed_channels, ports
from nidmap.placement.options import with_figures
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


@pytest.mark.parametrize("spec", ["leaf=4,leaves=5,spines=3", "down=2x3x2,up=1x2x3"])
def test_packets_that_climb_anywhere_take_all_shortest_paths_alike(spec):
    plain, any_way = (parse_spec(f"fattree:{spec},bw=2"), parse_spec(f"fattree:{spec},bw=2"))
    any_way = with_figures(any_way, routing="shortest")
    assert (routings(plain)[0], routings(any_way)[0]) == ("d-mod-k", "shortest")
    table = channels(any_way)
    graph = nx.DiGraph(zip(table.source.tolist(), table.target.tolist(), strict=True))
    row = {ends: k for k, ends in enumerate(zip(table.source, table.target, strict=True))}
    expected = np.zeros(len(table))
    node = np.arange(len(plain))
    goal = np.random.default_rng(2).permutation(node)
    for a, b in zip(*(plain.router[ends, 0].tolist() for ends in (node, goal)), strict=True):
        paths = [] if a == b else list(nx.all_shortest_paths(graph, a, b))
        for path in paths:
            for ends in itertools.pairwise(path):
                expected[row[ends]] += 1 / len(paths)
    traffic = Traffic.of(node, goal, 1.0)
    for machine, routing in ((plain, "shortest"), (any_way, "")):
        found = loads(machine, Demand.of(machine, traffic), routing)
        np.testing.assert_allclose(found.load, expected)
    ways = [loads(m, Demand.of(m, traffic), "d-mod-k").load for m in (plain, any_way)]
    np.testing.assert_allclose(*ways)
    assert ways[0].max() > expected.max()
