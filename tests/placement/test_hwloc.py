# SPDX-License-Identifier: Apache-2.0
"""hwloc's XML: what is in it, in the forms of its versions, and what is no such file."""

from contextlib import suppress
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.placement.errors import NidmapError, ParseError, UsageError
from nidmap.placement.hwloc import _read_cpuset, hardware_of, parse_hwloc
from nidmap.placement.views import summarise
from tests.hwloc_xml import device, node_xml


@given(
    st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 2),
    st.sampled_from(["1", "2.0", "3.0"]),
)  # fmt: skip
def test_every_core_knows_what_it_is_in(sockets, domains, caches, cores, threads, version):
    found = parse_hwloc(node_xml(sockets, domains, caches, cores, threads, version))
    total = sockets * domains * caches * cores
    assert [core.pus for core in found.cores] == [
        tuple(core + t * total for t in range(threads)) for core in range(total)
    ]
    for index, core in enumerate(found.cores):
        assert core.l3 == index // cores
        assert core.numa == index // (cores * caches)
        assert core.socket == index // (cores * caches * domains)


def test_devices_stand_beside_the_cores_they_hang_below():
    devices = {
        0: [device("nvml1", 1), device("mlx5_0", 2, "0207 [15b3:101b]", "3")],
        1: [device("nvml0", 3), device("eth0", 4, "0200 [8086:1593]", "2")],
    }
    found = parse_hwloc(node_xml(1, 2, 1, 4, 1, devices=devices))
    assert [(gpu.name, gpu.near) for gpu in found.gpus] == [
        ("nvml0", (4, 5, 6, 7)),
        ("nvml1", (0, 1, 2, 3)),
    ]
    assert [(nic.name, nic.near) for nic in found.nics] == [("mlx5_0", (0, 1, 2, 3))]


@pytest.mark.parametrize(("version", "kind", "nics"), [("3.0", "48", 1), ("2.0", "3", 1),
                                                       ("3.0", "3", 0)])  # fmt: skip
def test_a_fabric_is_a_number_first_and_a_bit_later(version, kind, nics):
    devices = {0: [device("roceP2", 1, "0200 [15b3:101d]", kind)]}
    assert len(parse_hwloc(node_xml(1, 1, 1, 2, 1, version, devices)).nics) == nics


@pytest.mark.parametrize(
    ("allowed", "left"),
    [("0x0000000c", [(2,), (3,)]), ("0xf...f", [(0,), (1,), (2,), (3,)]), ("0x9", [(0,), (3,)])],
)
def test_cores_that_are_not_allowed_are_left_alone(allowed, left):
    text = node_xml(1, 2, 1, 2, 1).replace(
        '<object type="Machine"', f'<object type="Machine" allowed_cpuset="{allowed}"'
    )
    assert [core.pus for core in parse_hwloc(text).cores] == left


def test_gpus_without_a_plugin_are_told_by_their_pci_class():
    devices = {
        0: [device("card0", 1, "0300 [1002:515e]")],  # a console's
        1: [device("card1", 2, "0380 [1002:7408]"), device("card2", 3, "0302 [10de:20b0]")],
    }
    found = parse_hwloc(node_xml(1, 2, 1, 2, 1, devices=devices))
    assert [gpu.near for gpu in found.gpus] == [(2, 3), (2, 3)]


def test_gpus_that_the_driver_does_not_name_follow_those_that_it_does():
    devices = {
        0: [device("eth0", 1, "0302 [10de:1094]"), device("cuda0", 2, "0302 [10de:1094]")],
        1: [device("opencl0d1", 3, "0300 [1002:6798]"), device("card9", 4, "0300 [102b:0532]")],
    }
    found = parse_hwloc(node_xml(1, 2, 1, 2, 1, devices=devices))
    assert [gpu.near for gpu in found.gpus] == [(0, 1), (0, 1), (2, 3)]
    assert [gpu.name for gpu in found.gpus] == ["cuda0", "0302 [10de:1094]", "opencl0d1"]


def test_vga_controllers_of_amd_that_compute_are_gpus():
    devices = {0: [device(f"card{k}", k, "0300 [1002:66a1]") for k in range(1, 5)]}
    assert len(parse_hwloc(node_xml(1, 1, 1, 2, 1, devices=devices)).gpus) == 4


def test_bandwidths_between_gpus_are_read():
    devices = {0: [device("cuda0", 5), device("cuda1", 9)]}
    text = node_xml(1, 1, 1, 2, 1, devices=devices).replace(
        "</topology>",
        '<distances2 type="OSDev" nbobjs="2" name="NVLinkBandwidth" indexing="gp">'
        "<indexes>5 9</indexes><u64values>1000000 40000 40000 1000000</u64values></distances2>"
        "</topology>",
    )
    assert parse_hwloc(text).gpu_links == ((0, 1, 40.0),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "-:1: not XML"),
        ("<a>\n<b>", "-:2: not XML"),
        ("<html/>", "-: XML, but not from hwloc"),
        ("<topology/>", "-: XML, but not from hwloc"),
        (
            node_xml(1, 1, 1, 1, 1).replace('os_index="0"', 'os_index="x"'),
            "'x' is not an hwloc number",
        ),
        (node_xml(1, 1, 1, 1, 1).replace("0x00000001", "0xzz"), "'0xzz' is not an hwloc number"),
        (
            '<topology version="3.0"><object type="Machine" cpuset="0x1"><object type="OSDev" '
            'osdev_type="zz"/></object></topology>',
            "'zz' is not an hwloc number",
        ),
        ('<topology><object type="Machine" cpuset="0x1"/></topology>', "the node has no cores"),
        ('<!DOCTYPE t [<!ENTITY a "b">]><topology/>', "entities"),
        ("<topology>" + "<object>" * 5000 + "</object>" * 5000 + "</topology>", "too deeply"),
    ],
)
def test_what_is_no_node_is_said_in_one_line(text, said):
    with pytest.raises(ParseError) as caught:
        parse_hwloc(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.data())
def test_a_damaged_file_is_an_error_or_a_node(data):
    text = bytearray(node_xml(1, 2, 1, 2, 2, devices={0: [device("nvml0", 1)]}).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=4))
    with suppress(NidmapError):
        assert parse_hwloc(bytes(text)).cores


def test_a_file_is_laid_over_a_machine(tmp_path):
    path = tmp_path / "node.xml"
    path.write_text(node_xml(2, 1, 1, 2, 1))
    machine = nidmap.load_machine("torus:2x2", str(path))
    assert len(hardware_of(machine, machine.nid).cores) == 4
    inside = summarise(machine)["inside"]
    assert inside == [f"4 cores, 2 L3s, 2 NUMA domains, 2 sockets ({path})"]
    with pytest.raises(ParseError, match="only adds to a machine"):
        nidmap.load_machine(str(path))
    with pytest.raises(UsageError, match="is not known"):
        hardware_of(nidmap.load_machine("torus:2x2"), machine.nid)


def test_a_file_is_told_by_its_content_and_fits_the_machine(tmp_path):
    path = tmp_path / "printed by lstopo"
    path.write_text(node_xml(2, 1, 1, 2, 1))
    machine = nidmap.load_machine("torus:2x2", str(path))
    assert hardware_of(machine, machine.nid).source == str(path)
    with pytest.raises(ParseError, match="a node of 4 cores and 0 GPUs, where polaris has 32"):
        nidmap.load_machine("polaris", str(path))
    path.write_text(node_xml(2, 1, 1, 8, 2))
    with pytest.raises(ParseError, match="a node of 16 cores and 0 GPUs, where polaris has 32"):
        nidmap.load_machine("polaris", str(path))
    path.write_text(node_xml(1, 1, 1, 32, 2))  # lstopo without its plugins sees no GPU
    machine = nidmap.load_machine("polaris", str(path))
    assert hardware_of(machine, np.flatnonzero(machine.compute)[:2]).source == str(path)


def test_slurm_that_was_told_cpus_alone_counts_hardware_threads(tmp_path):
    path, nodes = tmp_path / "node.xml", tmp_path / "nodes.txt"
    path.write_text(node_xml(2, 1, 1, 8, 2))
    threads, cores = (
        f"NodeName=n1 CoresPerSocket={32 // sockets} CPUTot=32 Sockets={sockets} State=IDLE"
        for sockets in (32, 2)
    )
    nodes.write_text(threads)
    machine = nidmap.load_machine(str(nodes), str(path))
    assert len(hardware_of(machine, [0]).cores) == 16
    nodes.write_text(cores)
    with pytest.raises(ParseError, match="a node of 16 cores"):
        nidmap.load_machine(str(nodes), str(path))


def test_the_type_of_node_goes_by_its_cores_and_gpus():
    machine = nidmap.load_machine("perlmutter")
    gpu, cpu = (machine.gpus > 0).nonzero()[0], (machine.gpus == 0).nonzero()[0]
    assert len(hardware_of(machine, gpu[:2]).gpus) == 4
    with pytest.raises(UsageError, match="no known hardware for a node of perlmutter"):
        hardware_of(machine, cpu[:2])
    with pytest.raises(UsageError, match="of 2 types"):
        hardware_of(machine, [gpu[0], cpu[0]])


def test_read_cpuset():
    assert sorted(_read_cpuset(ElementTree.Element("object", cpuset="0x3,,0x0000000f"))) == [
        0,
        1,
        2,
        3,
        64,
        65,
    ]
