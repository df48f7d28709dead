# SPDX-License-Identifier: Apache-2.0
"""Tables and graphs against what the columns and links say, one by one."""

import json
import math
from collections import Counter, defaultdict

import networkx
import numpy as np
import pytest

from nidmap.placement import exports as graphs
from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.errors import UsageError
from nidmap.placement.readers import read_text
from nidmap.placement.specs import parse_spec
from nidmap.placement.topologies import links, router_coords, router_names
from nidmap.placement.views import attachment_rates, injection, to_networkx, to_pandas
from tests.placement import machine_shapes as shapes

SPECS = [
    "dragonfly:groups=3,chassis=2,blades=3,nodes=2,injection=10",
    "slingshot:groups=2,switches=4,nodes=2,nics=2,injection=25",
    "torus:4x2x1,nodes=2,bw=3",
    "fattree:leaf=3,leaves=4,spines=2,links=2,bw=12.5",
    "tree:2x3x2,bw=5",
    "tree:4",
]


def xc():
    cells = shapes.xc_cells(2, 2, keep=lambda cell: cell[0] % 7)
    return assemble([read_text(shapes.xtprocadmin(cells, service={1, 2}, states={8: "down"}))])


MACHINES = [*map(parse_spec, SPECS), xc()]
each_machine = pytest.mark.parametrize("machine", MACHINES, ids=[*SPECS, "xc"])


@each_machine
def test_a_row_a_node(machine):
    table = to_pandas(machine)
    assert table.index.tolist() == machine.names.tolist()
    assert table.index.name == "name"
    for name in ("nid", "cname", "role", "state", "mode", "cores", "nics", "features", "planned"):
        assert table[name].tolist() == getattr(machine, name).tolist()
    for place, level in enumerate(machine.topology.levels):
        assert table[level].tolist() == machine.coords[:, place].tolist()
    assert table["free"].tolist() == machine.free.tolist()
    assert table["router"].tolist() == router_names(machine)[machine.router[:, 0]].tolist()


@each_machine
def test_the_graph_has_every_node_router_and_link(machine):
    graph = to_networkx(machine)
    names, routers = machine.names.tolist(), router_names(machine).tolist()
    assert set(graph) == set(names) | set(routers)
    expected = Counter()
    gbs = defaultdict(float)
    found = links(machine)
    for a, b, kind, count, width in zip(
        found.a, found.b, found.kind, found.count, found.bandwidth, strict=True
    ):
        key = frozenset((routers[a], routers[b]))
        expected[key, found.kinds[kind]] += int(count)
        gbs[key] += float(width)
    low = "up0" if machine.topology.kind in ("fattree", "tree") else "injection"
    one = machine.topology.bandwidth.get(low, math.nan)
    for name, row in zip(names, machine.router.tolist(), strict=True):
        for router in row:
            key = frozenset((name, routers[router]))
            expected[key, low] += 1
            gbs[key] += one
    got = {(frozenset((a, b)), d["class"]): d["count"] for a, b, d in graph.edges(data=True)}
    assert got == expected
    for a, b, data in graph.edges(data=True):
        width = gbs[frozenset((a, b))]
        assert ("bandwidth" in data) == math.isfinite(width)
        if math.isfinite(width):
            assert data["bandwidth"] == pytest.approx(width)


@each_machine
def test_the_graph_s_attributes_are_the_columns(machine):
    graph = to_networkx(machine)
    for row, name in enumerate(machine.names.tolist()):
        data = graph.nodes[name]
        assert data["kind"] == "node"
        assert data["nid"] == machine.nid[row]
        assert data["role"] == machine.role[row]
        assert data["state"] == machine.state[row]
        assert [data[level] for level in machine.topology.levels] == machine.coords[row].tolist()
        assert type(data["nid"]) is int
    coords = router_coords(machine).tolist()
    for index, name in enumerate(router_names(machine).tolist()):
        data = graph.nodes[name]
        assert (data["kind"], data["index"]) == ("router", index)
        told = [data.get(level, -1) for level in machine.topology.levels[: len(coords[0])]]
        assert told == coords[index]


@each_machine
def test_the_bandwidth_of_each_class_is_that_of_its_edges(machine):
    graph = to_networkx(machine)
    found = links(machine)
    total = Counter()
    for _, _, data in graph.edges(data=True):
        total[data["class"]] += data.get("bandwidth", 0)
    for index, kind in enumerate(found.kinds):
        width = found.bandwidth[found.kind == index]
        if np.isfinite(width).all():
            assert total[kind] == pytest.approx(width.sum())


@each_machine
def test_every_pair_of_nodes_is_connected(machine):
    assert networkx.is_connected(to_networkx(machine))


def test_the_graph_says_which_wiring_it_is():
    graph = to_networkx(parse_spec(SPECS[0]))
    assert "consecutive" in graph.graph["wiring"]
    assert graph.graph["topology"] == "dragonfly"


def test_a_switch_called_like_a_node_is_told_apart():
    text = "SwitchName=n1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n3\nSwitchName=t Switches=n1,s2\n"
    graph = to_networkx(assemble([read_text(text)]))
    assert graph.nodes["n1"]["kind"] == "node"
    assert graph.nodes["router:n1"]["kind"] == "router"
    assert graph.number_of_nodes() == 3 + 3


def test_a_machine_offers_both_views():
    machine = parse_spec("torus:2x2")
    assert len(machine.to_pandas()) == 4
    assert machine.to_networkx().number_of_nodes() == 8


READERS = {
    "graphml": lambda text: networkx.parse_graphml(text),
    "gml": lambda text: networkx.parse_gml(text),
    "gexf": lambda text: networkx.read_gexf(__import__("io").BytesIO(text.encode())),
    "node-link": lambda text: networkx.node_link_graph(json.loads(text), edges="edges"),
}


@pytest.mark.parametrize("name", ["graphml", "gml", "gexf", "node-link"])
@each_machine
def test_graph_files_read_back_to_the_same_graph(machine, name):
    text = graphs.write(machine, name)
    again = READERS[name](text)
    graph = to_networkx(machine)
    assert set(again) == set(graph)
    got = {(frozenset((a, b)), d["class"], d["count"]) for a, b, d in again.edges(data=True)}
    expected = {(frozenset((a, b)), d["class"], d["count"]) for a, b, d in graph.edges(data=True)}
    assert got == expected
    for node, data in graph.nodes(data=True):
        assert again.nodes[node]["kind"] == data["kind"]


@each_machine
def test_an_edge_list_has_an_edge_a_line(machine):
    graph = to_networkx(machine)
    lines = graphs.write(machine, "edgelist").splitlines()
    got = set()
    for line in lines:
        a, b, data = line.split(" ", 2)
        got.add((frozenset((a, b)), json.loads(data)["class"], json.loads(data)["count"]))
    expected = {(frozenset((a, b)), d["class"], d["count"]) for a, b, d in graph.edges(data=True)}
    assert got == expected
    assert len(lines) == graph.number_of_edges()


@each_machine
def test_tables_have_all_rows(machine):
    import csv
    import io

    rows = list(csv.DictReader(io.StringIO(graphs.write(machine, "csv"))))
    assert [row["name"] for row in rows] == machine.names.tolist()
    assert [int(row["nid"]) for row in rows] == machine.nid.tolist()
    rows = list(csv.DictReader(io.StringIO(graphs.write(machine, "links-csv"))))
    ends = int((machine.router >= 0).sum())
    assert sum(int(row["links"]) for row in rows) == int(links(machine).count.sum()) + ends
    rows = list(csv.DictReader(io.StringIO(graphs.write(machine, "routers-csv"))))
    assert [row["router"] for row in rows] == router_names(machine).tolist()


def test_a_formula_in_a_table_stays_a_text():
    lines = shapes.ibnetdiscover({"=cmd|'x'!A1": ["n1"], "b": ["n2"]}, ["s"])
    machine = assemble([read_text(lines)])
    assert "=cmd" in router_names(machine)[0]
    for line in graphs.write(machine, "links-csv").splitlines():
        assert not line.startswith("=")
    assert "'=cmd" in graphs.write(machine, "csv")


def test_an_unknown_format_names_those_there_are():
    with pytest.raises(UsageError, match="graphml"):
        graphs.write(parse_spec("torus:2"), "dot")


def test_injection():
    assert injection(parse_spec("fattree:leaf=2,leaves=2,spines=1,bw=3.5")) == 3.5


def test_attachment_rates():
    assert attachment_rates(parse_spec("torus:2,injection=10")).tolist() == [[10.0], [10.0]]
