# SPDX-License-Identifier: Apache-2.0
"""Machines from dumps, alone and together, against the cells that the dumps were made of."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.errors import ParseError, UsageError
from nidmap.placement.geometry.slingshot import parse_groups
from nidmap.placement.readers import read_text
from nidmap.placement.sites import load_site
from nidmap.placement.topologies import links, router_coords, router_count, router_names
from tests.placement import machine_shapes as shapes
from tests.same_machine import same_machine

XC = shapes.xc_cells(4, 2, absent={(3, 1)})
XE = shapes.xe_cells(4, 2)


def built(*texts, site=None, groups=None):
    dumps = [read_text(text, f"dump{i}") for i, text in enumerate(texts)]
    return assemble(dumps, site, groups=groups)


def bundles(machine):
    found = links(machine)
    at = [tuple(row) for row in router_coords(machine).tolist()]
    out = Counter()
    columns = (found.a.tolist(), found.b.tolist(), found.kind.tolist(), found.count.tolist())
    for a, b, kind, count in zip(*columns, strict=True):
        out[(*sorted((at[a], at[b])), found.kinds[kind])] = count
    return out


# --- XC ------------------------------------------------------------------------


def test_an_xc_by_its_cnames():
    machine = built(shapes.xtprocadmin(XC, service={1, 2}, states={5: "down"}))
    assert machine.topology.fabric == "aries"
    assert machine.topology.parameters["positions"] == 4
    assert machine.nid.tolist() == [nid for nid, _, _ in XC]
    assert machine.coords.tolist() == [list(place) for _, _, place in XC]
    assert machine.cname.tolist() == [name for _, name, _ in XC]
    assert machine.names[0] == "nid00000"
    assert machine.role[1] == "service"
    assert not machine.free[5]
    assert machine.topology.extents == (4, 6, 16, 4)
    assert "assumed" in machine.notes[0]


@given(st.integers(1, 8), st.integers(1, 4), st.randoms(use_true_random=False))
def test_any_part_of_any_xc_is_recognised(half, rows, random):
    cells = shapes.xc_cells(2 * half, rows)
    some = sorted(random.sample(cells, min(len(cells), random.randint(2, 40))))
    machine = built(shapes.xtprocadmin(some))
    told = machine.topology.parameters["positions"]
    by_row = any(name.split("-")[1][0] != "0" for _, name, _ in some)
    assert told == 2 * half or not by_row
    assert machine.coords.tolist() == [list(place) for _, _, place in some]


def test_the_order_of_lines_does_not_matter():
    shuffled = XC[::-1]
    assert same_machine(built(shapes.xtprocadmin(shuffled)), built(shapes.xtprocadmin(XC)))


def test_one_wrong_nid_is_named_with_its_line():
    cells = list(XC)
    cells[7] = (5000, *cells[7][1:])
    with pytest.raises(ParseError) as error:
        built(shapes.xtprocadmin(cells))
    assert error.value.line == 9
    assert "NID 5000 is not c0-0c0s1n3's, which is 7" in str(error.value)


def test_nids_without_a_rule_need_a_coordinate_file():
    cells = [(nid * 7 % 1009 + 3, name, at) for nid, name, at in XC[:300]]
    with pytest.raises(ParseError, match="coordinate file"):
        built(shapes.xtprocadmin(cells))


def test_states_from_one_dump_and_coordinates_from_another():
    both = built(shapes.xtprocadmin(XC, states={9: "down"}), shapes.meshcoords(XC, cores=68))
    swapped = built(shapes.meshcoords(XC, cores=68), shapes.xtprocadmin(XC, states={9: "down"}))
    assert same_machine(both, swapped)
    assert both.cores.tolist() == [68] * len(XC)
    assert both.state[9] == "down"


def test_two_parts_of_a_dump_are_one_machine():
    half = len(XC) // 2
    parts = shapes.xtprocadmin(XC[half - 1 :]), shapes.xtprocadmin(XC[:half])
    assert same_machine(built(*parts), built(shapes.xtprocadmin(XC)))


def test_dumps_of_two_machines_are_refused():
    other = shapes.xc_cells(8, 1)
    with pytest.raises(ParseError, match="same machine") as error:
        built(shapes.xtprocadmin(XC), shapes.xtprocadmin(other))
    assert error.value.source == "dump1"


def test_dumps_that_share_nothing_are_refused():
    with pytest.raises(ParseError, match="shares no node with dump0"):
        built(shapes.xtprocadmin(XC), shapes.sinfo([("login1", "idle"), ("login2", "idle")]))


def test_coordinates_of_another_machine_are_refused():
    wrong = [(nid, name, (at[0], at[1], (at[2] + 1) % 16)) for nid, name, at in XC[:64]]
    with pytest.raises(ParseError):
        built(shapes.xtprocadmin(XC), shapes.meshcoords(wrong))


# --- link lists ------------------------------------------------------------------

ROUTERS = sorted({place[:3] for _, _, place in XC})


@pytest.fixture(scope="module")
def rtr():
    return shapes.rtr_aries(ROUTERS, shapes.aries_links(ROUTERS), 4)


def test_a_link_list_is_the_machine_itself(rtr):
    machine = built(rtr)
    assert machine.nid.tolist() == [nid for nid, _, _ in XC]
    assert machine.coords.tolist() == [list(place) for _, _, place in XC]
    assert machine.compute.all()
    assert bundles(machine) == shapes.aries_links(ROUTERS)
    assert router_names(machine).tolist() == [shapes.aries_name(r, 4) for r in ROUTERS]
    assert machine.topology.wiring == "links of dump0"
    assert machine.notes == (
        "a link list does not mark service nodes: all are taken as compute nodes",
    )


def test_names_and_states_from_one_links_from_the_other(rtr):
    some = [cell for cell in XC if cell[2][3] in (1, 2)]
    machine = built(shapes.xtprocadmin(some, service={1}), rtr)
    assert len(machine) == len(some)
    assert bundles(machine) == shapes.aries_links(ROUTERS)
    assert machine.topology.wiring == "links of dump1"
    index = {tuple(row): i for i, row in enumerate(router_coords(machine).tolist())}
    assert machine.router[:, 0].tolist() == [index[place[:3]] for _, _, place in some]


def test_the_list_is_what_the_rule_makes(rtr):
    by_rule = built(shapes.xtprocadmin(XC))
    assert bundles(by_rule) == bundles(built(rtr))


def test_a_node_whose_router_is_not_listed(rtr):
    fewer = [r for r in ROUTERS if r != (0, 0, 3)]
    text = shapes.rtr_aries(fewer, shapes.aries_links(fewer), 4)
    with pytest.raises(ParseError, match=r"router \(0:0:3\)"):
        built(shapes.xtprocadmin(XC), text)


def test_links_bandwidths_follow_their_class(rtr):
    found = links(built(rtr))
    each = found.bandwidth / found.count
    assert set(each[found.kind == 0]) == {5.25}
    assert set(each[found.kind == 1]) == {5.25}
    assert set(each[found.kind == 2]) == {4.6875}


# --- XE --------------------------------------------------------------------------


def test_an_xe_by_its_cnames():
    machine = built(shapes.xtprocadmin(XE))
    assert machine.topology.fabric == "gemini"
    assert machine.topology.extents == (4, 4, 24, 2)
    assert machine.topology.parameters == {"columns": 4, "rows": 2}
    expected = [[*at, int(name[-1]) % 2] for _, name, at in XE]
    assert machine.coords.tolist() == expected
    assert router_count(machine) == 4 * 4 * 24


@given(st.integers(2, 5), st.integers(1, 3), st.randoms(use_true_random=False))
def test_any_large_part_of_any_xe_is_recognised(columns, rows, random):
    cells = shapes.xe_cells(columns, rows)
    some = sorted(random.sample(cells, len(cells) * 3 // 4))
    machine = built(shapes.xtprocadmin(some))
    assert machine.topology.kind == "torus"
    assert machine.coords[:, :3].tolist() == [list(at) for _, _, at in some]


@pytest.mark.parametrize("make", [shapes.coordinate_file, shapes.system_map, shapes.meshcoords])
def test_coordinates_are_a_torus(make):
    machine = built(make(XE))
    assert machine.topology.extents == (4, 4, 24, 2)
    assert machine.coords[:, :3].tolist() == [list(at) for _, _, at in XE]


def test_a_coordinate_file_wins_over_the_rule():
    small = [(nid + 3, name, (x, y, z % 8)) for nid, name, (x, y, z) in XE if z < 8]
    machine = built(shapes.coordinate_file(small), shapes.xtprocadmin(small))
    assert machine.topology.extents == (4, 4, 8, 2)
    assert machine.topology.parameters == {}
    assert machine.coords[:, :3].tolist() == [list(at) for _, _, at in small]


def test_a_coordinate_file_of_some_nodes_and_the_rule_for_the_rest():
    machine = built(shapes.xtprocadmin(XE), shapes.coordinate_file(XE[:40]))
    assert same_machine(machine, built(shapes.xtprocadmin(XE)))


def test_one_wrong_nid_of_an_xe_is_named_with_its_line():
    cells = list(XE)
    cells[100] = (9999, *cells[100][1:])
    with pytest.raises(ParseError) as error:
        built(shapes.xtprocadmin(cells))
    assert error.value.line == 102
    assert "NID 9999" in str(error.value)


def test_gemini_links_from_a_list():
    machine = built(shapes.rtr_gemini(XE, (4, 4, 24), tiles=2))
    by_rule = built(shapes.xtprocadmin(XE))
    assert machine.nid.tolist() == by_rule.nid.tolist()
    assert machine.coords.tolist() == by_rule.coords.tolist()
    expected = {key: 2 * n for key, n in shapes.torus_links((4, 4, 24)).items()}
    assert bundles(machine) == expected


def test_gemini_links_are_unequal():
    found = links(built(shapes.xtprocadmin(XE)))
    machine = built(shapes.xtprocadmin(XE))
    at = router_coords(machine)
    for a, b, kind, gbs in zip(found.a, found.b, found.kind, found.bandwidth, strict=True):
        axis = int(kind)
        low, high = sorted((int(at[a][axis]), int(at[b][axis])))
        if axis == 0:
            assert gbs == 9.375
        elif axis == 1:
            assert gbs == (9.375 if high == low + 1 and low % 2 == 0 else 4.6875)
        else:
            assert gbs == (15.0 if high == low + 1 and low % 8 != 7 else 9.375)


def test_an_absurd_coordinate_does_not_fill_the_memory():
    with pytest.raises(ParseError, match="mistyped"):
        built("0 c0-0c0s0n0 compute 6000 6000 6000\n")


def test_two_nodes_in_one_place():
    text = "0 c0-0c0s0n0 compute 0 0 0\n5 c1-0c0s0n0 compute 0 0 0\n"
    with pytest.raises(ParseError, match="both at"):
        built(text)


# --- Slurm -----------------------------------------------------------------------


def test_slurm_s_states_count_more_and_its_features_are_kept():
    query = (
        "NODELIST|PARTITION|AVAIL|STATE|CPUS|MEMORY|SOCKETS|CORES|WEIGHT|GRES|AVAIL_FEATURES\n"
        "nid00004|normal*|up|idle|64|128000|2|16|7|(null)|haswell\n"
        "nid00005|normal*|up|allocated|64|128000|2|16|9|(null)|haswell\n"
    )
    machine = built(shapes.xtprocadmin(XC), query)
    assert machine.state[4:6].tolist() == ["idle", "allocated"]
    assert machine.features[4] == "haswell"
    assert machine.memory_mb[4] == 128000
    assert machine.weight[[4, 5]].tolist() == [7, 9]
    assert machine.free.sum() == 1
    assert machine.state[6] == "unlisted"
    assert any("not listed by Slurm" in note for note in machine.notes)


def test_nodes_that_slurm_has_and_the_cray_has_not_are_left_out():
    machine = built(shapes.xtprocadmin(XC), shapes.sinfo([("nid00004", "idle"), ("gw1", "idle")]))
    assert len(machine) == len(XC)
    assert any("gw1" in note for note in machine.notes)


def test_a_tree_of_switches():
    text = (
        "SwitchName=s0 Nodes=n[0-3]\nSwitchName=s1 Nodes=n[4-7]\nSwitchName=s2 Nodes=n[8-9]\n"
        "SwitchName=a Switches=s[0-1]\nSwitchName=top Switches=a,s2\n"
    )
    machine = built(text)
    assert machine.topology.kind == "tree"
    assert machine.topology.levels == ("level2", "level1", "node")
    expected = [[0, 0, i] for i in range(4)] + [[0, 1, i] for i in range(4)]
    assert machine.coords.tolist() == [*expected, [1, 0, 0], [1, 0, 1]]
    assert router_names(machine).tolist() == ["s0", "s1", "s2", "a", "top"]
    found = links(machine)
    assert sorted(zip(found.a.tolist(), found.b.tolist(), strict=True)) == [
        (0, 3), (1, 3), (2, 4), (3, 4),
    ]  # fmt: skip
    assert machine.switches.names == ("s0", "s1", "s2", "a", "top")
    assert machine.switches.parent.tolist() == [3, 3, 4, 4, -1]
    assert machine.switches.leaf_of.tolist() == [0] * 4 + [1] * 4 + [2] * 2
    assert machine.scheduler == "slurm"


def parent_of(lists):
    return {child: name for name, children in lists.items() for child in children}


@st.composite
def forests(draw):
    """Draw {switch: children} and {leaf: number of nodes} of any shape."""
    leaves = [f"l{i}" for i in range(draw(st.integers(1, 8)))]
    loose, children, count = list(leaves), {}, 0
    while len(loose) > 1 and draw(st.booleans()):
        take = draw(st.integers(1, len(loose)))
        name = f"s{count}"
        count += 1
        children[name], loose = loose[:take], [*loose[take:], name]
    nodes = {leaf: draw(st.integers(1, 4)) for leaf in leaves}
    return children, nodes


def path(parent, switch):
    out = [switch]
    while out[-1] in parent:
        out.append(parent[out[-1]])
    return out


def height(children, switch):
    below = children.get(switch, [])
    return 1 + max(height(children, s) for s in below) if below else 1


@given(forests())
def test_nodes_of_any_forest_part_at_the_level_of_the_switch_above_both(forest):
    children, nodes = forest
    lines, first = [], 0
    leaf_of = []
    for leaf, n in nodes.items():
        lines.append(f"SwitchName={leaf} Nodes=n[{first}-{first + n - 1}]")
        leaf_of += [leaf] * n
        first += n
    lines += [f"SwitchName={name} Switches={','.join(below)}" for name, below in children.items()]
    machine = built("\n".join(lines) + "\n")
    parent = parent_of(children)
    levels = len(machine.topology.levels)
    for i, one in enumerate(leaf_of):
        for j in range(i):
            other = leaf_of[j]
            shared = [s for s in path(parent, one) if s in path(parent, other)]
            differ = np.flatnonzero(machine.coords[i] != machine.coords[j])
            part = levels - int(differ[0])  # 1: on one leaf
            if shared:
                assert part == height(children, shared[0])
            else:
                assert part == levels
    found = links(machine)
    names = router_names(machine).tolist()
    got = {(names[a], names[b]) for a, b in zip(found.a.tolist(), found.b.tolist(), strict=True)}
    got |= {(b, a) for a, b in got}
    assert got == {x for c, p in parent.items() for x in ((c, p), (p, c))}


def test_blocks_group_by_their_sizes():
    lines = [f"BlockName=b{i} Nodes=n[{4 * i}-{4 * i + 3}]" for i in range(8)]
    machine = built("\n".join(lines) + "\nBlockSizes=4,8,16,32\n")
    assert machine.topology.extents == (2, 2, 2, 4)
    assert machine.coords[20].tolist() == [1, 0, 1, 0]
    assert machine.switches.kind == "block"
    assert machine.switches.block_sizes == (4, 8, 16, 32)


def test_trees_without_a_common_root_are_apart():
    machine = built("SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-4]\n")
    assert machine.coords.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert len(links(machine)) == 0
    assert "without a common root" in machine.notes[0]


def test_states_and_a_tree():
    tree = "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-4]\nSwitchName=t Switches=a,b\n"
    machine = built(tree, shapes.sinfo([("n1", "idle"), ("n3", "down*"), ("n4", "idle-")]))
    assert machine.state.tolist() == ["idle", "unlisted", "down", "idle"]
    assert machine.planned.tolist() == [False, False, False, True]
    assert machine.free.tolist() == [True, False, False, False]


def test_a_tree_over_a_cray_keeps_the_dragonfly():
    names = ",".join(f"nid{nid:05d}" for nid, _, _ in XC[:8])
    machine = built(shapes.xtprocadmin(XC), f"SwitchName=s Nodes={names}\n")
    assert machine.topology.kind == "dragonfly"
    assert machine.switches.leaf_of.tolist() == [0] * 8 + [-1] * (len(XC) - 8)


def test_states_alone_are_a_flat_machine():
    machine = built(shapes.sinfo([("n2", "idle"), ("n10", "alloc"), ("n1", "idle")]))
    assert machine.names.tolist() == ["n1", "n2", "n10"]
    assert machine.nid.tolist() == [1, 2, 10]
    assert "equally near" in machine.notes[0]


def test_names_with_two_prefixes_keep_their_order():
    machine = built(shapes.sinfo([("r2n1", "idle"), ("r1n1", "idle"), ("r1n2", "idle")]))
    assert machine.names.tolist() == ["r2n1", "r1n1", "r1n2"]
    assert machine.nid.tolist() == [0, 1, 2]


# --- InfiniBand ------------------------------------------------------------------

LEAVES = {"leafb": ["n10", "n11"], "leafa": ["n1", "n2", "n3"], "leafc": ["n20"]}


def test_a_fat_tree_that_was_discovered():
    machine = built(shapes.ibnetdiscover(LEAVES, ["sp1", "sp2"], links=2))
    assert machine.topology.kind == "fattree"
    assert machine.topology.parameters == {"spines": 2}
    assert machine.names.tolist() == ["n1", "n2", "n3", "n10", "n11", "n20"]
    assert machine.coords.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [2, 0]]
    names = router_names(machine).tolist()
    assert names == ["leafa", "leafb", "leafc", "sp1", "sp2"]
    found = links(machine)
    got = sorted((names[a], names[b]) for a, b in zip(found.a, found.b, strict=True))
    assert got == [(leaf, spine) for leaf in sorted(LEAVES) for spine in ("sp1", "sp2")]
    assert set(found.count.tolist()) == {2}
    assert set(found.bandwidth.tolist()) == {25.0}
    assert machine.topology.bandwidth == {"up0": 12.5, "up1": 12.5}
    assert machine.topology.wiring == "links of dump0"


def test_three_levels_have_pods():
    leaves = {f"leaf{i}": [f"n{i}"] for i in range(4)}
    extra = [("leaf0", "m0"), ("leaf1", "m0"), ("leaf2", "m1"), ("leaf3", "m1")]
    extra += [("m0", "core"), ("m1", "core")]
    machine = built(shapes.ibnetdiscover(leaves, ["m0", "m1", "core"], links=0, extra=extra))
    assert machine.topology.levels == ("level2", "leaf", "node")
    assert machine.coords.tolist() == [[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]]
    assert router_coords(machine).tolist()[4:] == [[0, -1], [1, -1], [-1, -1]]
    assert links(machine).kinds == ("up1", "up2")


def test_cables_between_leaves_are_a_graph():
    machine = built(shapes.ibnetdiscover(LEAVES, ["sp1"], extra=[("leafa", "leafb")]))
    assert machine.topology.kind == "tree"
    assert links(machine).kinds == ("ib",)
    assert any("not a fat tree" in note for note in machine.notes)


def test_a_host_with_two_adapters_hangs_on_two_switches():
    leaves = {"a": ["n1", "n2"], "b": ["n3"]}
    text = shapes.ibnetdiscover(leaves, ["s"])
    spare = shapes.ibnetdiscover({"b": ["n1"]}, [])
    guid = "00000000000f0000"
    port = f'[9]\t"H-{guid}"[1]({guid}) \t\t# "n1 HCA-2" lid 7 4xEDR\n'
    switch = next(line for line in text.splitlines() if line.endswith("lmc 0") and '"b"' in line)
    text = text.replace(switch + "\n", switch + "\n" + port)
    assert spare
    machine = built(text)
    assert machine.router.tolist() == [[0, 1], [0, -1], [1, -1]]
    assert machine.nics.tolist() == [2, 1, 1]


# --- Slingshot -------------------------------------------------------------------

EX = shapes.ex_nodes([1000, 1001])


def test_an_ex_by_its_xnames():
    machine = built(shapes.sls(EX))
    assert machine.topology.fabric == "slingshot"
    assert machine.topology.extents == (2, 2, 16)
    assert machine.names[0] == "nid001000"
    assert machine.coords[[0, 16, 32]].tolist() == [[0, 0, 0], [0, 1, 0], [1, 0, 0]]
    assert any("cabinet = group" in note for note in machine.notes)


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("xname:group=rack", [0, 0, 1, 1]),
        ("xname:group=half-cabinet", [0, 1, 2, 3]),
        ("xname:group=2-racks", [0, 0, 0, 0]),
    ],
)
def test_groups_by_preset(text, groups):
    nodes = shapes.ex_nodes([1000, 1001], chassis=8)
    machine = built(shapes.sls(nodes), groups=parse_groups(text))
    half = len(nodes) // 4
    assert machine.coords[::half, 0].tolist() == groups


def test_switches_are_counted_where_sls_lists_them():
    switches = [f"x{x}c{c}r{r}" for x in (1000, 1001) for c in (0, 1) for r in (1, 3)]
    machine = built(shapes.sls(EX, switches), groups=parse_groups("xname:group=cabinet,nics=2"))
    assert machine.topology.extents == (2, 4, 8)
    assert machine.coords[[0, 8, 16]].tolist() == [[0, 0, 0], [0, 1, 0], [0, 2, 0]]
    assert machine.router.shape == (64, 2)
    assert machine.router[0].tolist() == [0, 1]
    assert not any("assumed: one for every" in note for note in machine.notes)


@pytest.mark.parametrize(
    "text", ["xname:group=odd", "xname:grp=rack", "xname:table=x1000", "xname:nics=x", "xname:"]
)
def test_wrong_groups_are_refused(text):
    with pytest.raises(UsageError):
        parse_groups(text)


def test_nodes_without_a_nid_come_first():
    machine = built(shapes.sls([*EX, ("x3000c0s1b0n0", None, "Application")]))
    assert machine.nid[0] == -1
    assert machine.role[0] == "service"
    assert (np.diff(machine.nid) > 0).all()


# --- all -------------------------------------------------------------------------


def test_a_fatal_fault_is_the_error():
    text = shapes.xtprocadmin(XC).replace("     0      0x0", "     0      0x9")
    with pytest.raises(ParseError, match="0x9"):
        built(text)


def test_nothing_is_no_machine():
    with pytest.raises(ParseError):
        assemble([])


# --- sites -----------------------------------------------------------------------


def test_a_link_list_for_a_site_that_has_no_coordinates_in_it():
    titan = load_site("titan")
    cells = [c for c in shapes.xe_cells(25, 8) if c[2][0] in (3, 4) and c[2][1] < 2]
    text = shapes.rtr_gemini(cells, (25, 16, 24), tiles=1)
    bare = re.sub(r"\[\(\d+,\d+,\d+\)\]", "", text)
    nodes = shapes.xtprocadmin(cells)
    with_coordinates = built(nodes, text, site=titan)
    without = built(nodes, bare, site=titan)
    assert same_machine(with_coordinates, without)
    assert router_count(without) == 2 * 2 * 24
    assert without.cores.any()


def test_a_link_list_of_a_larger_machine_than_the_site():
    cells = [c for c in shapes.xe_cells(30, 8) if c[2][0] in (27, 28)]
    text = shapes.rtr_gemini(cells, (30, 16, 24), tiles=1)
    with pytest.raises(ParseError, match="outside"):
        built(text, site=load_site("titan"))


def test_a_fabric_that_is_not_the_site_s():
    text = shapes.ibnetdiscover({"leaf": ["other1"]}, [])
    with pytest.raises(ParseError, match="none of its nodes is in") as error:
        built(text, site=load_site("tara"))
    assert error.value.source == "dump0"


def test_a_discovered_fabric_has_the_site_s_roles():
    leaves = {"m1": [f"n{i}" for i in range(1, 6)], "m2": [f"n{i}" for i in range(37, 55)]}
    tara = load_site("tara")
    machine = built(shapes.ibnetdiscover(leaves, ["s1", "s2"]), site=tara)
    whole = assemble([tara.records()], tara)
    role = dict(zip(whole.names.tolist(), whole.role.tolist(), strict=True))
    assert machine.role.tolist() == [role[name] for name in machine.names.tolist()]
    assert machine.topology.bandwidth == tara.topology().bandwidth
    assert machine.topology.wiring == "links of dump0"


@pytest.mark.parametrize("name", ["edison", "bluewaters", "lumi", "tara", "polaris"])
def test_a_site_s_nodes_stay_where_it_puts_them(name):
    site = load_site(name)
    records = site.records()
    machine = assemble([records], site)
    order = np.argsort(machine.names)
    own = np.argsort(records.nodes.name)
    assert machine.names[order].tolist() == records.nodes.name[own].tolist()
    assert machine.coords[order].tolist() == records.nodes.position[own].tolist()
    switches = records.parameters.get("attachments")
    if switches is not None:
        at = router_coords(machine)
        for row, source in zip(order[:200], own[:200], strict=True):
            told = [s for s in switches[source].tolist() if s >= 0]
            got = [at[r].tolist() for r in machine.router[row].tolist() if r >= 0]
            assert got == [[machine.coords[row, 0], s] for s in told]


def test_a_link_list_for_a_site_takes_the_site_s_nodes():
    theta = load_site("theta")
    routers = sorted({tuple(at[:3]) for at in theta.records().nodes.position.tolist()})
    some = shapes.aries_links(routers[::7])
    text = shapes.rtr_aries(routers, some, 12)
    machine = built(text, site=theta)
    assert machine.nid.tolist() == sorted(theta.records().nodes.nid.tolist())
    assert (machine.role == "service").any()
    assert bundles(machine) == some
    assert machine.topology.wiring == "links of dump0"


def test_nodes_with_and_without_nids_are_joined_each_by_its_own_key():
    """A partition of other names among the NIDs must not be taken for unlisted."""
    conf = "SwitchName=s0 Nodes=nid[00001-00002],gpu[1-2]\nSwitchName=s1 Nodes=nid[00003-00004]\n"
    states = (
        "NODELIST STATE\nnid00001 idle\nnid00002 alloc\nnid00003 idle\nnid00004 idle\n"
        "gpu1 idle\ngpu2 drain\n"
    )
    machine = assemble([read_text(conf, "t.conf"), read_text(states, "sinfo")])
    assert dict(zip(machine.names.tolist(), machine.state.tolist(), strict=True)) == {
        "nid00001": "idle",
        "nid00002": "allocated",
        "nid00003": "idle",
        "nid00004": "idle",
        "gpu1": "idle",
        "gpu2": "drained",
    }
