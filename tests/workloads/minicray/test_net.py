# SPDX-License-Identifier: Apache-2.0
"""What is to be built: routes are the predictor's, names and sizes are held to what can stand."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.placement.errors import UsageError
from nidmap.placement.network import Demand, loads
from nidmap.placement.specs import MINICRAY_HEADER
from nidmap.placement.traffic import Traffic
from nidmap.workloads.minicray.blueprint import blueprint
from nidmap.workloads.minicray.net import (
    HEADER,
    channel_pairs,
    compute_rows,
    creation_lines,
    design_network,
    host_names,
    hosts_file,
    namespaces,
    segment_bytes,
    stated_words,
)

SPECS = [
    "minicray:dragonfly",
    "minicray:torus",
    "minicray:fattree",
    "torus:2x2x2,nodes=2,bw=5",
    "tree:4x2x2,bw=5:10:20",
    "dragonfly:groups=3,switches=4,nodes=2,injection=25",
    "fattree:leaf=4,leaves=3,spines=2",
]


def walk(net, a, b):
    """Return the channels of the route tables from one node to another."""
    here, used = int(net.router[a]), []
    while here != int(net.router[b]):
        used.append(int(net.hops[here, b]))
        here = int(net.channels.target[used[-1]])
        assert len(used) < 100
    return used


@pytest.mark.parametrize("spec", SPECS)
def test_route_tables_put_bytes_where_the_predictor_says(spec):
    machine = nidmap.load_machine(spec)
    net = design_network(machine)
    rng = np.random.default_rng(1)
    counted = np.zeros(len(net.channels))
    pairs_of_nodes = list(itertools.permutations(range(len(net.names)), 2))
    amount = rng.random(len(pairs_of_nodes))
    for (a, b), bytes_ in zip(pairs_of_nodes, amount, strict=True):
        counted[walk(net, a, b)] += bytes_
    a, b = np.array(pairs_of_nodes).T
    found = loads(machine, Demand.of(machine, Traffic.of(a, b, amount)), "single")
    assert np.allclose(counted, found.load)


@pytest.mark.parametrize("spec", SPECS)
def test_every_cable_leads_both_ways_and_every_name_is_one_things(spec):
    net = design_network(nidmap.load_machine(spec))
    cables = list(channel_pairs(net.channels))
    assert sorted(c for cable in cables for c in cable) == list(range(len(net.channels)))
    for c, d in cables:
        assert net.channels.source[c] == net.channels.target[d]
        assert net.channels.source[d] == net.channels.target[c]
    assert len(set(namespaces(net))) == len(net.names) + net.routers
    plan = blueprint(net, "x", (spec,), None)
    counted = [link for space in plan["spaces"] for link in space["counts"].values()]
    assert len(set(counted)) == len(counted) == len(net.channels) + 2 * len(net.names)
    assert all(len(word) < 16 for line in creation_lines(net) for word in line.split()
               if word[0] in "cphm" and word[1:].isdigit())  # fmt: skip
    assert len({line.split()[0] for line in hosts_file(net).splitlines()}) == len(net.names) + 2
    json.dumps(plan)


@pytest.mark.parametrize("spec", SPECS)
def test_links_keep_their_proportions(spec):
    net = design_network(nidmap.load_machine(spec), scale=1234.0)
    finite = np.isfinite(net.channels.bandwidth)
    assert np.allclose(net.rates[finite] * 1234, net.channels.bandwidth[finite] * 1e9)


@pytest.mark.parametrize(
    "name",
    ["a/b", "router+1", "", "12", "0x1f", "1.2.3.4", "-x", "x-", "a b", "nid\n1", "x" * 64, "é"],
)
def test_names_that_are_no_hosts_are_refused(name):
    with pytest.raises(UsageError, match="cannot be the name"):
        host_names([name])


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["login"], "a node cannot be called login"),
        (["Localhost"], "a node cannot be called Localhost"),
        (["nid1", "nid1"], "two nodes are called nid1"),
        (["nid1", "NID1"], "the same name on the network"),
    ],
)
def test_names_that_clash_are_refused(names, said):
    with pytest.raises(UsageError, match=said):
        host_names(names)


@given(st.lists(st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True), unique=True, max_size=20))
def test_plain_names_pass(names):
    if not {"login", "localhost"} & set(names):
        assert host_names(names) == tuple(names)


def test_a_machine_that_is_too_large_is_refused():
    with pytest.raises(UsageError, match="too large: 512 at most"):
        design_network(nidmap.load_machine("shaheen2"))
    with pytest.raises(UsageError, match=r"routers and .* cables are too many"):
        design_network(
            nidmap.load_machine("dragonfly:groups=5,chassis=6,blades=16,nodes=1,injection=10")
        )


def test_a_machine_that_does_not_fit_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr("nidmap.workloads.minicray.net.available_bytes", lambda: 1 << 20)
    with pytest.raises(UsageError, match="MiB are free here"):
        design_network(nidmap.load_machine("minicray:torus"))


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan"), 1e15, 1e-9])
def test_a_scale_that_cannot_be_is_refused(scale):
    with pytest.raises(UsageError, match="scale"):
        design_network(nidmap.load_machine("minicray:torus"), scale)


def test_no_proportions_without_bandwidths():
    with pytest.raises(UsageError, match="states no bandwidth"):
        design_network(nidmap.load_machine("tree:2x2"))


def test_service_nodes_and_nodes_without_a_place_are_left_out():
    whole = nidmap.load_machine("minicray:dragonfly")
    role = whole.role.astype("U8")
    role[0] = "service"
    router = whole.router.copy()
    router[23] = -1
    machine = replace(whole, role=role, router=router, _cache={})
    net = design_network(machine)
    assert net.names == tuple(whole.names[1:23].tolist())
    assert net.notes == (
        "1 node not for computing has no namespace",
        "1 node without a place in the network has no namespace",
    )
    assert walk(net, 0, 21)


def test_several_nics_become_one_and_every_node_is_reached():
    machine = nidmap.load_machine("dragonfly:groups=2,switches=4,nodes=2,nics=2,injection=25")
    net = design_network(machine)
    assert net.notes == ("16 nodes with several NICs have a link for the first one only",)
    for a, b in itertools.permutations(range(16), 2):
        walk(net, a, b)


def test_minicray_specs_are_small_machines_of_their_kind():
    torus = nidmap.load_machine("minicray:torus")
    assert (torus.name, torus.topology.kind, len(torus)) == ("minicray:torus", "torus", 18)
    more = nidmap.load_machine("minicray:dragonfly,groups=4,green=2")
    assert (len(more), more.topology.bandwidth["green"]) == (32, 2.0)


@pytest.mark.parametrize("spec", ["minicray:", "minicray:hypercube", "minicray:torus,groups=2"])
def test_minicray_specs_that_are_none(spec):
    with pytest.raises(UsageError, match=r"mini-Cray|unknown option"):
        nidmap.load_machine(spec)


def test_a_header_counts_half_an_acknowledgement():
    assert 1.5 * HEADER == MINICRAY_HEADER


def test_segment_bytes():
    assert segment_bytes(9000) == 8948
    assert segment_bytes(1500) == 1448


def test_stated_words():
    assert stated_words(
        ["torus:2x2,process=1", "links-down:cut.txt"], routing="single", process="inf"
    ) == ("links-down:cut.txt", "torus:2x2,process=1,routing=single")


def test_compute_rows():
    assert compute_rows(nidmap.load_machine("torus:2x2")).tolist() == [0, 1, 2, 3]
