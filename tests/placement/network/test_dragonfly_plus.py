"""DragonFly+ by enumeration: every shortest path of every pair carries as much as any other."""

from collections import defaultdict
from itertools import pairwise, product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.errors import UsageError
from placement.network import Demand, hops, loads, routings
from placement.specs import parse_spec
from placement.topologies import links, router_coords, router_names


def spec_of(groups, leaves, spines, nodes, between):
    sizes = f"groups={groups},leaves={leaves},spines={spines},nodes={nodes}"
    return parse_spec(f"dragonfly+:{sizes},global={between},bw=10,injection=20")


def graph_of(machine):
    graph = nx.MultiGraph()
    found = links(machine)
    for a, b, kind, count in zip(found.a, found.b, found.kind, found.count, strict=True):
        for _ in range(int(count)):
            graph.add_edge(int(a), int(b), kind=found.kinds[kind])
    return graph


@given(
    st.integers(1, 4), st.integers(1, 3), st.integers(1, 4), st.integers(1, 2), st.integers(1, 6)
)
@settings(deadline=None, max_examples=12)
def test_loads_are_those_of_all_shortest_paths(groups, leaves, spines, nodes, between):
    machine = spec_of(groups, leaves, spines, nodes, between)
    graph = graph_of(machine)
    want = defaultdict(float)
    for source, target in product(range(len(machine)), repeat=2):
        a, b = int(machine.router[source, 0]), int(machine.router[target, 0])
        if a == b:
            continue
        paths = list(nx.all_shortest_paths(nx.Graph(graph), a, b))
        ways = [  # each cable of a bundle is a way of its own
            np.prod([graph.number_of_edges(*step) for step in pairwise(p)]) for p in paths
        ]
        for path, many in zip(paths, ways, strict=True):
            for step in pairwise(path):
                want[step] += many / sum(ways)
    found = loads(machine, Demand.complete(machine, np.arange(len(machine)), 1, 1.0))
    got = defaultdict(float)
    ends = zip(found.channels.source.tolist(), found.channels.target.tolist(), strict=True)
    for step, load in zip(ends, found.load.tolist(), strict=True):
        got[step] += load
    assert {step: x for step, x in got.items() if x} == pytest.approx(dict(want))


def test_groups_are_joined_by_as_many_links_as_said_over_all_spines():
    machine = spec_of(5, 2, 4, 1, 6)
    found, coords = links(machine), router_coords(machine)
    between = found.kind == found.kinds.index("global")
    group = coords[:, 0]
    joined = defaultdict(int)
    spine = np.zeros(len(coords), dtype=int)
    for a, b, count in zip(found.a[between], found.b[between], found.count[between], strict=True):
        joined[int(group[a]), int(group[b])] += int(count)
        spine[[a, b]] += count
    assert set(joined.values()) == {6}
    assert len(joined) == 10
    assert set(spine[coords[:, 1] < 0].tolist()) == {6}  # 4 other groups x 6 links / 4 spines
    assert (spine[coords[:, 1] >= 0] == 0).all()
    assert router_names(machine)[[0, -1]].tolist() == ["g0leaf0", "g4spine3"]


def test_at_most_one_hop_goes_between_groups():
    machine = spec_of(3, 2, 2, 1, 2)
    assert routings(machine) == ("shortest", "single")
    far = hops(machine, np.array([0, 0]), np.array([1, 5]))
    assert far.sum(axis=1).tolist() == [2, 3]


@pytest.mark.parametrize("text", ["groups=2,leaves=2,spines=0,nodes=1", "groups=2,leaves=2"])
def test_what_is_no_dragonfly_plus_is_refused(text):
    with pytest.raises(UsageError, match="spines"):
        parse_spec(f"dragonfly+:{text}")
