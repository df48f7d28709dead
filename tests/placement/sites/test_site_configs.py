# SPDX-License-Identifier: Apache-2.0
"""The shipped site configurations: figures marked, counts published, names and places by rule."""

import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import nidmap
from nidmap.placement.errors import SiteError
from nidmap.placement.load import load_machine
from nidmap.placement.network import routings
from nidmap.placement.sites import load_site, site_names
from nidmap.placement.topologies import links, router_coords
from tests.placement.machine_shapes import aries_links

SHIPPED = {
    # name: compute nodes, service nodes (None: not stated), groups (0: no dragonfly), scheduler
    "shaheen2": (6174, None, 18, "slurm"),
    "hazelhen": (7712, None, 21, "alps"),
    "edison": (5586, None, 15, "slurm"),
    "bluewaters": (26864, 784, 0, "alps"),
    "tara": (82, 4, 0, "slurm"),
    "pizdaint": (7516, 118, 20, "slurm"),
    "theta": (3240, None, 9, "alps"),
    "cori": (12076, None, 34, "slurm"),
    "titan": (18688, 512, 0, "alps"),
    "perlmutter": (4864, 0, 26, "slurm"),
    "lumi": (5026, 0, 32, "slurm"),
    "aurora": (10624, 0, 166, "pbs"),
    "polaris": (560, 0, 10, "pbs"),
    "archer2": (5860, 0, 46, "slurm"),
    "frontier": (9408, 0, 74, "slurm"),
    "alps": (3712, 0, 25, "slurm"),
    "jupiter": (6000, 0, 25, "slurm"),
    "juwels-booster": (936, 0, 20, "slurm"),
    "leonardo": (4992, 0, 23, "slurm"),
}
XC = {"shaheen2": 12, "hazelhen": 12, "edison": 8, "pizdaint": 10, "theta": 12, "cori": 12}
GEMINI = {"titan": (25, 8), "bluewaters": (24, 12)}
SLINGSHOT = ("perlmutter", "lumi", "aurora", "polaris", "archer2", "frontier", "alps")
#: Leaves of a group, and ports of a switch: NICs of half a port's rate share one.
LEAVES_AND_SPINES = {"jupiter": (15, 64, 2), "juwels-booster": (10, 40, 1), "leonardo": (18, 40, 2)}
PAPERS = {
    "shaheen2": "Aseeri et al.",
    "hazelhen": "Idrees et al.",
    "edison": "ISx paper",
    "bluewaters": "Feng et al.",
    "tara": "Mistry et al.",
}


def nodes_of(name):
    return load_site(name).records().nodes


def parts_of(cnames):
    """Column, row, cage, slot, node of cnames, read the slow way."""
    return np.array([[int(n) for n in re.findall(r"\d+", cname)] for cname in cnames.tolist()])


def test_all_machines_are_there():
    assert set(SHIPPED) <= set(site_names())


@pytest.mark.parametrize("name", SHIPPED)
def test_counts_are_the_published_ones(name):
    compute, service, groups, scheduler = SHIPPED[name]
    site = load_site(name)
    roles = Counter(site.records().nodes.role.tolist())
    assert (site.name, site.scheduler) == (name, scheduler)
    assert roles["compute"] == compute == dict(site.figures())["nodes.compute"].value
    if service is not None:
        assert roles["service"] == service
    if groups:
        assert len(np.unique(site.records().nodes.position[:, 0])) == groups


@pytest.mark.parametrize("name", SHIPPED)
def test_every_figure_has_its_mark_and_source(name):
    figures = dict(load_site(name).figures())
    assert len(figures) > 20
    for key, figure in figures.items():
        assert figure.mark in ("measured", "published", "assumed"), key
        assert len(figure.source) >= 4, key
        assert not re.search(r"(^|\s)/\w|\.md\b|facts", figure.source), key


@pytest.mark.parametrize("name", PAPERS)
def test_what_a_paper_states_names_paper_and_section(name):
    paper = PAPERS[name]
    quoted = [f for _, f in load_site(name).figures() if paper in f.source and f.mark != "assumed"]
    assert len(quoted) > 12
    assert all(re.search(r"sec\.|app\.|table|fig\.", f.source) for f in quoted)


@pytest.mark.parametrize("name", SHIPPED)
def test_nodes_have_one_name_and_one_seat_each(name):
    site = load_site(name)
    nodes, extents = site.records().nodes, site.topology().extents
    assert len(set(nodes.name.tolist())) == len(nodes)
    assert len({tuple(position) for position in nodes.position.tolist()}) == len(nodes)
    assert nodes.position.min() >= 0
    assert (nodes.position.max(axis=0) < np.array(extents)).all()
    assert len(extents) == len(site.topology().levels)
    if nodes.nid is not None:
        assert (np.diff(nodes.nid) > 0).all()


@pytest.mark.parametrize("name", SHIPPED)
def test_records_are_a_dump_of_equal_columns(name):
    dump = load_site(name).records()
    n = len(dump.nodes)
    assert dump.format == "site"
    assert dump.counts.total == n
    for key in ("nid", "name", "cname", "role", "position", "cores", "memory_mb", "features"):
        column = getattr(dump.nodes, key)
        assert column is None or len(column) == n


@pytest.mark.parametrize("name", XC)
def test_xc_nids_and_groups_follow_the_cnames(name):
    p = XC[name]
    nodes = nodes_of(name)
    c, r, h, s, n = parts_of(nodes.cname).T
    assert (nodes.nid == 192 * (r * p + c) + 64 * h + 4 * s + n).all()
    expected = np.column_stack([r * (p // 2) + c // 2, h + 3 * (c % 2), s, n])
    assert (nodes.position == expected).all()
    assert load_site(name).topology().parameters["positions"] == p
    assert nodes.name[0] == f"nid{nodes.nid[0]:05d}"


@pytest.mark.parametrize("name", GEMINI)
def test_gemini_nids_and_coordinates_follow_the_cnames(name):
    p, q = GEMINI[name]
    nodes = nodes_of(name)
    pick = slice(None, None, 97)
    for cname, nid, position in zip(
        nodes.cname[pick].tolist(),
        nodes.nid[pick].tolist(),
        nodes.position[pick].tolist(),
        strict=True,
    ):
        c, r, h, s, n = (int(x) for x in re.findall(r"\d+", cname))
        x = 0 if c == 0 else (c + 1) // 2 if c % 2 else p - c // 2
        k = q - 1 - r // 2 if r % 2 else r // 2
        y = 2 * k + n // 2
        z = (16 + s, 15 - s, s)[h] if k % 2 else (s, 15 - s, 16 + s)[h]
        b = (p - x) % p
        place = 24 * y + (23 - z if y % 2 else z)
        place = 48 * q - 1 - place if b % 2 else place
        assert position == [x, y, z, n % 2]
        assert nid == 96 * q * b + 2 * place + n % 2  # two nodes a router, 48 Q routers a plane
    assert load_site(name).topology().extents == (p, 2 * q, 24, 2)


def test_shaheen_has_55_to_60_usable_nodes_in_every_chassis():
    nodes = nodes_of("shaheen2")
    chassis = nodes.position[:, 0] * 6 + nodes.position[:, 1]
    usable = np.bincount(chassis[nodes.role == "compute"], minlength=108)
    assert len(usable) == 18 * 6
    assert (usable.min(), usable.max()) == (55, 60)
    assert load_site("shaheen2").topology().extents == (18, 6, 16, 4)
    assert dict(load_site("shaheen2").figures())["cabinets.service_blades"].mark == "assumed"


def test_shaheen_keeps_the_nodes_that_examples_name():
    roles = dict(zip(nodes_of("shaheen2").name.tolist(), nodes_of("shaheen2").role, strict=True))
    assert {roles[f"nid000{n}"] for n in range(12, 16)} == {"compute"}


def test_edison_leaves_out_the_group_of_its_absent_cabinets():
    site = load_site("edison")
    groups = np.unique(site.records().nodes.position[:, 0]).tolist()
    assert groups == [*range(12), 13, 14, 15]
    assert site.topology().extents[0] == 16
    assert (site.topology().wiring, site.topology().parameters["global"]) == ("same-chassis", 24)
    assert dict(site.figures())["network.links"].mark == "measured"


def test_daint_has_its_measured_holes():
    nodes = nodes_of("pizdaint")
    missing = sorted(set(range(7680)) - set(nodes.nid.tolist()))
    assert len(missing) == 7680 - 7634
    assert missing[:4] == [0, 3, 68, 71]
    assert set(range(708, 712)) <= set(missing)
    mixed = nodes.role[np.isin(nodes.cname, ["c0-0c0s15n2", "c0-0c0s15n3"])].tolist()
    assert mixed == ["compute", "service"]
    assert Counter(nodes.features.tolist()) == {"gpu": 5704, "mc": 1812, "": 118}


def test_hazel_hen_stands_in_41_cabinets():
    cabinets = {cname.split("c", 2)[1] for cname in nodes_of("hazelhen").cname.tolist()}
    assert len(cabinets) == 41
    assert "11-2" in cabinets  # the DASH paper's example node is c11-2c0s15n3


def test_cori_tells_its_two_kinds_apart():
    nodes = nodes_of("cori")
    kinds = Counter(zip(nodes.features.tolist(), nodes.cores.tolist(), strict=True))
    assert kinds[("haswell", 32)] == 2388
    assert kinds[("knl", 68)] == 9688
    assert nodes.role[nodes.nid == 1].tolist() == ["service"]
    assert nodes.role[np.isin(nodes.nid, range(2305, 2312))].tolist() == ["compute"] * 7
    assert nodes.cname[nodes.nid == 13055].tolist() == ["c7-5c2s15n3"]


def test_blue_waters_has_two_kinds_of_nodes():
    nodes = nodes_of("bluewaters")
    assert Counter(nodes.gpus.tolist()) == {0: 22640 + 784, 1: 4224}
    assert Counter(nodes.cores.tolist()) == {32: 22640, 16: 4224, 0: 784}
    assert Counter(nodes.memory_mb.tolist())[65536] == 22640


@pytest.mark.parametrize(("name", "blades"), [("edison", 2), ("theta", 4)])
def test_measured_links_are_the_site_s(name, blades):
    """The public link lists: so many blades in turn of every chassis to each other group."""
    machine = nidmap.load_machine(name)
    found, places = links(machine), list(map(tuple, router_coords(machine).tolist()))
    ends = zip(found.a.tolist(), found.b.tolist(), found.count.tolist(), strict=True)
    between = {(places[a], places[b]): n for a, b, n in ends if places[a][0] != places[b][0]}
    expected = aries_links(set(places), blades)
    assert between == {(a, b): n for (a, b, colour), n in expected.items() if colour == "blue"}


def test_tara_has_the_papers_leaf_modules():
    site = load_site("tara")
    nodes = site.records().nodes
    leaf = dict(zip(nodes.name.tolist(), nodes.position[:, 0].tolist(), strict=True))
    assert len({leaf[f"n{i}"] for i in range(37, 55)}) == 1
    assert len({leaf[f"n{i}"] for i in range(55, 73)}) == 1
    assert leaf["n54"] != leaf["n55"]
    full = np.bincount(nodes.position[nodes.role == "compute", 0]) == 18
    assert full.sum() == dict(site.figures())["stated.full_leaves"].value
    chosen = nidmap.plan(nidmap.load_machine("tara"), 36).nodes
    assert chosen.fold() == "n[37-72]"
    assert site.topology().extents == (6, 18)
    assert site.topology().bandwidth["injection"] == 3.5
    latency = dict(site.figures())["latency.mpi_us"]
    assert (latency.value, latency.mark) == (1.2, "published")
    assert nodes.nid is None


def test_lumi_numbers_both_partitions():
    site = load_site("lumi")
    nodes = site.records().nodes
    small = nodes.position[:, 0] < 8
    assert nodes.nid[small].tolist() == list(range(1000, 3048))
    assert nodes.nid[~small].tolist() == list(range(5000, 7978))
    sizes = np.bincount(nodes.position[:, 0])
    assert sizes.tolist() == [256] * 8 + [124] * 23 + [126]
    assert (set(nodes.nics[small]), set(nodes.nics[~small])) == ({1}, {4})
    assert nodes.name[0] == "nid001000"


def test_lumi_links_make_the_published_bandwidths():
    table = np.array(load_site("lumi").topology().parameters["global_table"])
    assert (table == table.T).all()
    assert (np.diag(table) == 0).all()
    both_ways = 50e-3  # TB/s of one link, both directions
    assert math.isclose(table[:8, :8].sum() / 2 * both_ways, 22.4)
    assert math.isclose(table[8:, 8:].sum() / 2 * both_ways, 276)
    assert math.isclose(table[:8, 8:].sum() * both_ways, 38.4)
    assert table[10].sum() <= 32 * 16  # ports of a group


@pytest.mark.parametrize("name", SLINGSHOT)
def test_no_switch_has_more_than_16_nodes_ports(name):
    site = load_site(name)
    dump = site.records()
    nodes = dump.nodes
    attachments = dump.parameters.get("attachments", nodes.position[:, 1:2])
    used = Counter()
    for group, switches, nics in zip(
        nodes.position[:, 0].tolist(), attachments.tolist(), nodes.nics.tolist(), strict=True
    ):
        there = [s for s in switches if s >= 0]
        assert len(set(there)) == len(there)
        for switch in there:
            used[(group, switch)] += nics // len(there)
    assert max(used.values()) <= 16
    assert sum(used.values()) == int(nodes.nics.sum())
    assert [row[0] for row in attachments.tolist()] == nodes.position[:, 1].tolist()


def test_four_nics_sit_on_four_switches_that_a_chassis_shares():
    dump = load_site("frontier").records()
    attachments = dump.parameters["attachments"]
    assert {tuple(sorted(row)) for row in attachments[:16].tolist()} == {(0, 1, 2, 3)}
    assert {tuple(sorted(row)) for row in attachments[16:32].tolist()} == {(4, 5, 6, 7)}
    lumi = load_site("lumi").records()
    assert lumi.parameters["attachments"][0].tolist() == [0, -1, -1, -1]


def test_polaris_groups_are_four_racks():
    nodes = nodes_of("polaris")
    racks = {}
    for name, group in zip(nodes.name.tolist(), nodes.position[:, 0].tolist(), strict=True):
        racks.setdefault(group, set()).add(int(name[1:5]))
    assert racks[0] == {3001, 3002, 3003, 3004}
    assert racks[4] == {3101, 3102, 3103, 3104}
    assert racks[9] == {3209, 3210, 3211, 3212}
    assert nodes.name[:4].tolist() == [
        "x3001c0s1b0n0",
        "x3001c0s1b1n0",
        "x3001c0s7b0n0",
        "x3001c0s7b1n0",
    ]
    assert (nodes.name == nodes.cname).all()


def test_an_aurora_rack_is_a_group():
    nodes = nodes_of("aurora")
    racks = np.array([name[1:5] for name in nodes.name.tolist()])
    assert all(len(set(racks[nodes.position[:, 0] == g])) == 1 for g in range(166))
    assert {"x4000c0s0b0n0", "x4519c2s7b0n0", "x4713c3s2b0n0"} <= set(nodes.name.tolist())


@pytest.mark.parametrize("name", SHIPPED)
def test_topologies_carry_what_the_network_model_needs(name):
    topology = load_site(name).topology()
    assert topology.bandwidth["injection"] > 0
    assert {"mpi_us", "hop_ns"} <= topology.parameters.keys()
    port = {"jupiter": 50}.get(name, 25)
    classes = {
        "dragonfly+": {"local": port, "global": port},
        "aries": {"green": 5.25, "black": 15.75, "blue": 4.6875},
        "gemini": {"x": 9.375, "y": 9.375, "y-cable": 4.6875, "z": 15.0, "z-cable": 9.375},
        "slingshot": {"local": 25, "global": 25},
        "infiniband": {"up": 3.5},
    }[topology.kind if topology.kind == "dragonfly+" else topology.fabric]
    assert {key: topology.bandwidth[key] for key in classes} == classes
    if topology.kind == "dragonfly":
        assert topology.parameters["global"] >= 1
        assert topology.wiring


@pytest.mark.parametrize("name", [*XC, *SLINGSHOT])
def test_the_wiring_rule_can_make_the_links(name):
    from nidmap.placement.topologies.dragonfly import DragonflyShape, wire_groups

    topology = load_site(name).topology()
    routers = topology.extents[1 : topology.router_levels]
    chassis, blades = routers if len(routers) == 2 else (1, routers[0])
    made = wire_groups(
        topology.wiring, DragonflyShape(4, chassis, blades, topology.parameters["global"])
    )
    assert len(made.g) * made.count == 6 * topology.parameters["global"]


@pytest.mark.parametrize("name", LEAVES_AND_SPINES)
def test_no_switch_of_a_dragonfly_plus_has_more_cables_than_ports(name):
    leaves, ports, share = LEAVES_AND_SPINES[name]
    machine = load_machine(name)
    found, coords = links(machine), router_coords(machine)
    cables = np.bincount(np.concatenate([found.a, found.b]), np.tile(found.count, 2), len(coords))
    several = machine.nics > 1
    table = machine.router[several]
    assert all(len(set(row)) == len(row) for row in table.tolist())
    nics = np.bincount(table.ravel(), minlength=len(coords))
    assert (cables + nics / share <= ports).all()
    own = nics[(coords[:, 0] == 0) & (coords[:, 1] >= 0)]
    assert len(own) == leaves
    assert own.max() - own.min() <= 4
    assert routings(machine)[0] == "adaptive"


def test_unlike_groups_are_no_dragonfly_plus(tmp_path):
    text = Path(load_site("leonardo").source).read_text(encoding="utf-8")
    before, word, after = text.rpartition("group_switches = { value = 18")
    path = tmp_path / "odd.toml"
    path.write_text(before + word.replace("18", "17") + after, encoding="utf-8")
    with pytest.raises(SiteError, match=r"\[17, 18\]: the groups of a DragonFly"):
        load_site(str(path))
