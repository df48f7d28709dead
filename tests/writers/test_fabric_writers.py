# SPDX-License-Identifier: Apache-2.0
"""What is written in a format of Slurm, SLS or InfiniBand reads back to an equal machine."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.errors import UsageError
from nidmap.placement.geometry.slingshot import parse_groups
from nidmap.placement.readers import read_text
from nidmap.placement.specs import parse_spec
from tests.placement.readers.fabric_shapes import (
    fabrics,
    full_text,
    ports_text,
    scontrol_topology,
    topology_conf,
    topology_yaml,
    trees,
)
from tests.same_machine import same_machine
from tests.writers import write

TREES = {
    "topology-conf": topology_conf,
    "topology-yaml": topology_yaml,
    "scontrol-topology": scontrol_topology,
}


def machine_of(text, **options):
    return assemble([read_text(text, "t")], **options)


def again(machine, form, **options):
    """Write a machine, check that the text is recognised, and read it."""
    dump = read_text(write(machine, form), "again")
    assert dump.format == form.replace("scontrol-topology", "topology-conf")
    assert not any(f.fault for f in dump.findings)
    return assemble([dump], **options)


@pytest.mark.parametrize("form", TREES)
@given(trees())
def test_trees(form, tree):
    machine = machine_of(TREES[form](tree))
    assert same_machine(again(machine, form), machine)


@given(trees())
def test_the_three_formats_say_the_same(tree):
    machine = machine_of(topology_conf(tree))
    for form in TREES:
        assert same_machine(again(machine, form), machine)


@given(st.lists(st.integers(2, 4), min_size=1, max_size=9), st.integers(0, 3))
def test_blocks(counts, more):
    text, start = "", 1
    for i, count in enumerate(counts):
        text += f"BlockName=b{i} Nodes=n[{start}-{start + count - 1}]\n"
        start += count
    sizes = ",".join(str(2 << k) for k in range(more))
    machine = machine_of(text + (f"BlockSizes={sizes}\n" if sizes else ""))
    assert machine.switches.block_sizes == tuple(2 << k for k in range(more))
    for form in TREES:
        assert same_machine(again(machine, form), machine)


@given(st.lists(st.integers(1, 16), min_size=1, max_size=4))
def test_rings(counts):
    text = "".join(f"RingName=r{i} Nodes=n{i}x[1-{count}]\n" for i, count in enumerate(counts))
    machine = machine_of(text)
    for form in TREES:
        assert same_machine(again(machine, form), machine)


def test_flat_is_only_said_in_yaml():
    machine = assemble(
        [
            read_text("NODELIST STATE\nn1 idle\n", "a"),
            read_text("- topology: t\n  flat: true\n", "b"),
        ]
    )
    assert machine.switches.kind == "flat"
    assert "flat: true" in write(machine, "topology-yaml")
    with pytest.raises(UsageError, match="cannot describe flat"):
        write(machine, "topology-conf")


def test_names_that_yaml_would_take_for_something_else():
    text = "SwitchName=1e3 Nodes=007\nSwitchName=no Nodes=n1\nSwitchName=t Switches=1e3,no\n"
    machine = machine_of(text)
    assert same_machine(again(machine, "topology-yaml"), machine)


@pytest.mark.parametrize(
    "spec",
    [
        "tree:4x3x2",
        "dragonfly:groups=3,chassis=2,blades=4,nodes=4",
        "fattree:leaf=3,leaves=4,spines=2",
        "torus:2x3x2,nodes=2",
        "slingshot:groups=2,switches=2,nodes=8",
    ],
)
@pytest.mark.parametrize("form", TREES)
def test_any_machine_can_be_given_to_slurm(spec, form):
    """The leaves of the file are those that the planners see; all nodes are in it once."""
    from nidmap.placement.switch_tree import slurm_switches

    machine = parse_spec(spec)
    dump = read_text(write(machine, form), "t")
    switches = slurm_switches(machine)
    leaf = dict(zip(dump.nodes.name.tolist(), dump.nodes.router.tolist(), strict=True))
    assert dump.findings == ()
    assert leaf == {
        str(name): switches.names[at]
        for name, at in zip(machine.names, switches.leaf_of.tolist(), strict=True)
    }


STATES = ["idle", "allocated", "mixed", "drained", "down", "planned", "reserved", "inactive"]


@st.composite
def nodes(draw):
    """Draw rows of a sinfo with bars: every column, any state."""
    count = draw(st.integers(1, 8))
    rows = []
    for number in draw(st.permutations(range(count))):
        state = draw(st.sampled_from(STATES)) + draw(st.sampled_from(["", "-"]))
        sockets, cores = draw(st.integers(0, 4)), draw(st.integers(0, 32))
        gpus, memory = draw(st.integers(0, 8)), draw(st.integers(0, 10**7))
        features = draw(st.sampled_from(["(null)", "a", "a,b_2"]))
        weight = draw(st.integers(0, 9))
        cells = (f"n{number}", state, memory, sockets, cores, weight, f"gpu:{gpus}", features)
        rows.append("|".join(map(str, cells)))
    header = "NODELIST|STATE|MEMORY|SOCKETS|CORES|WEIGHT|GRES|AVAIL_FEATURES"
    return "\n".join([header, *rows, ""])


@given(nodes())
def test_sinfo(text):
    machine = machine_of(text)
    assert same_machine(again(machine, "sinfo"), machine)


def test_sinfo_without_columns_stays_without():
    machine = machine_of("NODELIST STATE\nn1 idle\nn2 drng\n")
    assert write(machine, "sinfo") == (
        "NODELIST|STATE|AVAIL_FEATURES\nn1|idle|(null)\nn2|draining|(null)\n"
    )
    assert same_machine(again(machine, "sinfo"), machine)


GROUPS = st.sampled_from(["", "xname:group=half-cabinet", "xname:group=2-racks,nics=2"])


@st.composite
def sls_files(draw):
    """Draw nodes in some chassis of a few cabinets, listed switches, service nodes."""
    hardware, nid = {}, draw(st.integers(0, 5000))
    for cabinet in draw(st.lists(st.integers(1000, 1004), min_size=1, max_size=3, unique=True)):
        for chassis in draw(st.lists(st.integers(0, 7), min_size=1, max_size=3, unique=True)):
            for slot in range(draw(st.integers(0, 4))):
                for board, node in ((0, 0), (0, 1), (1, 0), (1, 1)):
                    xname = f"x{cabinet}c{chassis}s{slot}b{board}n{node}"
                    role = draw(st.sampled_from(["Compute", "Compute", "Application"]))
                    extra = {"NID": nid, "Role": role, "Aliases": [f"nid{nid:06d}"]}
                    hardware[xname] = {"Type": "comptype_node", "ExtraProperties": extra}
                    nid += draw(st.integers(1, 3))
    assume(hardware)
    listed = draw(st.booleans())
    for place in sorted({x.partition("s")[0] for x in hardware}) if listed else ():
        for slot in range(draw(st.integers(1, 6))):
            hardware[f"{place}r{slot}b0"] = {"Type": "comptype_rtr_bmc"}
    return json.dumps({"Hardware": hardware})


@given(sls_files(), GROUPS)
def test_sls(text, rule):
    groups = parse_groups(rule) if rule else None
    machine = machine_of(text, groups=groups)
    assert same_machine(again(machine, "sls", groups=groups), machine)


def test_sls_keeps_chassis_that_have_only_switches():
    node = {"Type": "comptype_node", "ExtraProperties": {"NID": 1, "Role": "Compute"}}
    for empty in ("x1000c1r0b0", "x1000c3r0b0"):
        routers = {r: {"Type": "comptype_rtr_bmc"} for r in ("x1000c2r0b0", "x1000c2r1b0", empty)}
        machine = machine_of(json.dumps({"Hardware": {"x1000c2s0b0n0": node, **routers}}))
        assert machine.topology.extents[1] == 3
        assert same_machine(again(machine, "sls"), machine)


PRINTS = {"ibnetdiscover": full_text, "ibnetdiscover-ports": ports_text}


@pytest.mark.parametrize("form", PRINTS)
@given(fabrics(), st.sampled_from(["QDR", "FDR", "HDR", "???"]))
def test_fabrics(form, fabric, rate):
    machine = machine_of(PRINTS[form](fabric, rate))
    for written in PRINTS:
        assert same_machine(again(machine, written), machine)


def test_cables_of_two_rates_in_one_bundle():
    fabric = "".join(
        f"SW 1 {p} 0x00000000000000a1 4x {rate} - SW 2 {p} 0x00000000000000a2 ( 'a' - 'b' )\n"
        for p, rate in ((1, "EDR"), (2, "EDR"), (3, "HDR"))
    )
    fabric += "CA 5 1 0x00000000000000b1 2x NDR - SW 1 9 0x00000000000000a1 ( 'n1 HCA-1' - 'a' )\n"
    machine = machine_of(fabric)
    assert machine.links.bandwidth.tolist() == [50.0]
    for form in PRINTS:
        assert same_machine(again(machine, form), machine)


@pytest.mark.parametrize("form", PRINTS)
def test_synthetic_fat_trees_have_their_cables(form):
    machine = parse_spec("fattree:leaf=3,leaves=4,spines=2,bw=12.5")
    back = again(machine, form)
    assert back.names.tolist() == machine.names.tolist()
    assert back.coords.tolist() == machine.coords.tolist()
    assert (len(back.links), back.links.count.sum()) == (8, 8)
