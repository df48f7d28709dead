# SPDX-License-Identifier: Apache-2.0
"""Both prints of ibnetdiscover against fabrics at random, and what administrators' dumps hold."""

import math
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.errors import ParseError
from nidmap.placement.readers import ibnetdiscover, ibnetdiscover_ports, read_text
from nidmap.placement.readers.ibnetdiscover import bandwidth, host_name
from tests.placement.readers.fabric_shapes import fabrics, full_text, ports_text
from tests.same_machine import same_machine
from tests.samples import SAMPLES

PRINTS = {
    "ibnetdiscover": (ibnetdiscover.read, full_text),
    "ibnetdiscover-ports": (ibnetdiscover_ports.read, ports_text),
}


def expected_links(fabric):
    """Return the multiset of (a, port, b, port), both directions of every cable."""

    def name(end):
        return fabric.hosts[end[1]] if end[0] == "H" else fabric.switches[end[1]]

    both = [(c[0], c[1], c[2], c[3]) for c in fabric.cables]
    both += [(c[2], c[3], c[0], c[1]) for c in fabric.cables]
    return Counter((name(a), pa, name(b), pb) for a, pa, b, pb in both)


@pytest.mark.parametrize("form", PRINTS)
@given(fabrics(), st.sampled_from([("QDR", 4.0), ("EDR", 12.5), ("NDR", 50.0), ("???", math.nan)]))
def test_any_fabric(form, fabric, rate):
    read, show = PRINTS[form]
    text = show(fabric, rate[0])
    dump = read(text, "t")
    links = dump.links
    columns = (links.a, links.a_port, links.b, links.b_port)
    rows = zip(*(c.tolist() for c in columns), strict=True)
    assert Counter(rows) == expected_links(fabric)
    np.testing.assert_array_equal(links.bandwidth, np.full(len(links), rate[1]))
    assert links.host_a.tolist() == [n in fabric.hosts for n in links.a.tolist()]
    assert links.host_b.tolist() == [n in fabric.hosts for n in links.b.tolist()]
    nodes = dump.nodes
    assert dict(zip(nodes.name.tolist(), nodes.nics.tolist(), strict=True)) == Counter(fabric.hosts)
    assert sorted(dump.routers.tolist()) == sorted(fabric.switches)
    assert (dump.fabric, dump.findings) == ("infiniband", ())
    assert dump.counts.total == len(text.splitlines())
    assert read_text(text).format == form


@given(fabrics())
def test_hosts_keep_the_order_of_the_lines_and_hang_on_their_first_switch(fabric):
    text = ports_text(fabric)
    dump = ibnetdiscover_ports.read(text, "t")
    first = {}
    for number, line in enumerate(text.splitlines(), 1):
        for (kind, adapter), _, (_, leaf), _ in fabric.cables:
            guid = f"0x{fabric.guid((kind, adapter)):016x}"
            if kind == "H" and guid in line:
                first.setdefault(fabric.hosts[adapter], (number, fabric.switches[leaf]))
    rows = zip(dump.nodes.name, dump.nodes.line, dump.nodes.router, strict=True)
    assert [(str(n), (int(i), str(r))) for n, i, r in rows] == list(first.items())


@given(fabrics())
def test_rows_headers_comments_and_blanks_of_the_full_print(fabric):
    counts = ibnetdiscover.read(full_text(fabric), "t").counts
    things = len(fabric.switches) + len(fabric.hosts)
    assert counts.rows == things + 2 * len(fabric.cables)
    assert (counts.headers, counts.comments, counts.blank) == (3 * things, 4, things)


@pytest.mark.parametrize("form", PRINTS)
@given(fabrics(), st.data())
def test_every_missing_side_is_a_remark(form, fabric, data):
    read, show = PRINTS[form]
    lines = show(fabric).splitlines()
    links = [i for i, line in enumerate(lines) if re.match(r"\[|.* - (SW|CA) ", line)]
    gone = data.draw(st.sampled_from(links))
    dump = read("\n".join(lines[:gone] + lines[gone + 1 :]), "t")
    assert [(f.kind, f.fault) for f in dump.findings if f.kind != "no-nodes"] == [
        ("one-ended-link", False)
    ]
    kept = len(dump.links) if dump.links is not None else 0
    assert kept == 2 * len(fabric.cables) - 1


@pytest.mark.parametrize(
    ("description", "name"),
    [
        ("node018 HCA-1", "node018"),
        ("worker20 mlx5_3", "worker20"),
        ("n1.cluster mlx4_0", "n1.cluster"),
        ("gpu-7 mlx5_bond_0", "gpu-7"),
        ("opa3 hfi1_0", "opa3"),
        ("r1i0n3 ibp65s0", "r1i0n3"),
        ("node7", "node7"),
        ("", ""),
        ("Mellanox Technologies Aggregation Node", ""),
        ("MT4115 ConnectX4 Mellanox Technologies", ""),
        ("MT25408 ConnectX Mellanox Technologies", ""),
        ("Infiniscale-IV Mellanox Technologies", ""),
        ("localhost mlx5_0", ""),
        ("localhost.localdomain HCA-1", ""),
    ],
)
def test_host_names(description, name):
    assert host_name(description) == name


def test_adapters_that_name_no_host_are_hosts_called_by_their_guid():
    factory = "MT23108 InfiniHost Mellanox Technologies"
    text = (
        'Switch\t24 "S-00000000000000aa"\t\t# "ISR9024 Voltaire" base port 0 lid 6 lmc 0\n'
        f'[22]\t"H-0000000000000b01"[1](b02) \t\t# "{factory}" lid 4 4xSDR\n'
        f'[8]\t"H-0000000000000b03"[2](b05) \t\t# "{factory}" lid 14 4xSDR\n'
        f'[12]\t"H-0000000000000b03"[1](b04) \t\t# "{factory}" lid 10 4xSDR\n'
        '[9]\t"H-0000000000000c01"[1](c01) \t\t# "Mellanox Technologies Aggregation Node" lid 1\n'
    )
    dump = ibnetdiscover.read(text, "t")
    assert dump.nodes.name.tolist() == ["H-0000000000000b01", "H-0000000000000b03"]
    assert dump.nodes.nics.tolist() == [1, 2]
    [remark] = [f for f in dump.findings if f.kind == "unnamed-host"]
    assert "2 adapters name no host (2 'MT23108 InfiniHost'): hosts are named after" in remark.text
    one_named = ibnetdiscover.read(text.replace(f'"{factory}" lid 4', '"n1 HCA-1" lid 4'), "t")
    assert one_named.nodes.name.tolist() == ["n1"]


@pytest.mark.parametrize(
    ("width", "rate", "gbs"),
    [
        ("4x", "SDR", 1.0),
        ("4x", "DDR", 2.0),
        ("4x", "QDR", 4.0),
        ("4x", "FDR10", 5.0),
        ("4x", "FDR", 6.82),
        ("4x", "EDR", 12.5),
        ("4x", "HDR", 25.0),
        ("4x", "NDR", 50.0),
        ("4x", "XDR", 100.0),
        ("1x", "EDR", 3.125),
        ("12x", "QDR", 12.0),
    ],
)
def test_rates(width, rate, gbs):
    assert bandwidth(width, rate) == pytest.approx(gbs)


def test_unknown_rates_are_nan():
    assert math.isnan(bandwidth("??", "EDR"))
    assert math.isnan(bandwidth("4x", "???"))


LINK = "SW     1 {:2d} 0x00000000000000a1 4x EDR - {} ( 'leaf1' - '{}' )\n"


def test_hosts_and_what_is_none():
    text = (
        LINK.format(1, "CA 5 1 0x00000000000000b1", "Mellanox Technologies Aggregation Node")
        + LINK.format(2, "CA 6 1 0x00000000000000b2", "localhost mlx5_0")
        + LINK.format(3, "CA 7 1 0x00000000000000b3", "node1 mlx5_0")
        + LINK.format(4, "RT 8 1 0x00000000000000b4", "router to elsewhere")
    )
    dump = ibnetdiscover_ports.read(text, "t")
    assert dump.nodes.name.tolist() == ["node1"]
    assert dump.links.b.tolist() == ["node1"]
    assert "unnamed-host" in {f.kind for f in dump.findings}
    assert not any(f.fault for f in dump.findings)
    assert dump.counts.rows == 4


def test_adapters_that_name_no_host_are_counted_aloud():
    """As a fabric prints whose hosts never told their adapters a name."""
    text = "".join(
        f"CA {i} 1 0x00000000000000b{i} 4x NDR - SW 1 {i} 0x00000000000000a1 "
        f"( '{name}' - 'leaf1' )\n"
        for i, name in enumerate(
            ["node1 mlx5_0", *["MT4129 ConnectX7 Mellanox Technologies"] * 3, "localhost HCA-1"], 1
        )
    )
    dump = ibnetdiscover_ports.read(text, "t")
    [remark] = [f for f in dump.findings if f.kind == "unnamed-host"]
    assert remark.text == (
        "4 adapters name no host (3 'MT4129 ConnectX7', 1 'localhost HCA-1'): left out"
    )
    machine = assemble([dump])
    assert machine.names.tolist() == ["node1"]
    assert any(remark.text in note for note in machine.notes)


def test_switches_with_one_description_are_told_apart():
    text = LINK.format(1, "SW 2 1 0x00000000000000a2", "leaf1")
    text += "SW 2 1 0x00000000000000a2 4x EDR - SW 1 1 0x00000000000000a1 ( 'leaf1' - 'leaf1' )\n"
    dump = ibnetdiscover_ports.read(text, "t")
    assert dump.routers.tolist() == ["leaf1 0x00000000000000a1", "leaf1 0x00000000000000a2"]
    assert len(dump.links) == 2


def test_dark_ports_and_names_without_quotes():
    text = (
        "SW  2052 37 0x506b4b03005c2740 4x ???                                    'ib-leaf'\n"
        "SW   479 22 0x0002c9020040f161 4x QDR                                   Some Spine 7\n"
        "CA   480  2 0x0002c9020040f162 4x SDR                                   'node1 HCA-2'\n"
        "SW 1 81 0x946dae030053ec1a 4x HDR - CA 60 1 0x946dae0300630bfe ( leaf 9 - node2 mlx5_0 )\n"
    )
    dump = ibnetdiscover_ports.read(text, "t")
    assert dump.routers.tolist() == ["ib-leaf", "Some Spine 7", "leaf 9"]
    assert dump.nodes.name.tolist() == ["node2"]
    assert dump.counts.rows == 4


def test_a_port_has_one_cable():
    one = LINK.format(1, "CA 5 1 0x00000000000000b1", "n1 HCA-1")
    two = LINK.format(1, "CA 6 1 0x00000000000000b2", "n2 HCA-1")
    faults = ibnetdiscover_ports.read(one + two, "t").findings
    assert [(f.line, f.fault) for f in faults if f.kind == "duplicate-port"] == [(2, True)]
    faults = ibnetdiscover_ports.read(one + one, "t").findings
    assert [(f.line, f.fault) for f in faults if f.kind == "duplicate-port"] == [(2, False)]


def test_two_ends_must_agree():
    """Port 1 of the leaf sees n1; n1 sees port 2, which sees n2: no cable is like that."""
    one = LINK.format(1, "CA 5 1 0x00000000000000b1", "n1 HCA-1")
    two = LINK.format(2, "CA 6 1 0x00000000000000b2", "n2 HCA-1")
    back = "CA 5 1 0x00000000000000b1 4x EDR - SW 1 2 0x00000000000000a1 ( 'n1 HCA-1' - 'leaf1' )\n"
    faults = ibnetdiscover_ports.read(one + two + back, "t").findings
    assert [(f.line, f.kind, f.fault) for f in faults] == [
        (1, "contradicting-link", True),
        (2, "one-ended-link", False),
        (3, "contradicting-link", True),
    ]
    assert "port 1 of n1, which sees another port" in faults[0].text
    unnamed = (one + two + back).replace("n1 HCA-1", "Mellanox Technologies Aggregation Node")
    assert not any(f.fault for f in ibnetdiscover_ports.read(unnamed, "t").findings)


def test_cables_that_make_no_fabric_are_left_out():
    host = (
        "CA 5 1 0x00000000000000b1 4x EDR - CA 6 1 0x00000000000000b2 ( 'n1 HCA-1' - 'n2 HCA-1' )\n"
    )
    loop = LINK.format(1, "SW 1 2 0x00000000000000a1", "leaf1")
    dump = ibnetdiscover_ports.read(host + loop, "t")
    assert dump.links is None
    assert [f.line for f in dump.findings if f.kind == "odd-link"] == [1, 2]
    assert [f.fault for f in dump.findings if f.kind == "no-nodes"] == [True]


def test_groupings_full_information_and_extended_ports():
    text = (
        "#\n# Topology file\n#\n\nChassis 1 (guid 0x8f1040)\n\n# Spine Nodes\n"
        "vendid=0x8f1\ndevid=0x5a30\nsysimgguid=0x8f1040\t\t# Chassis 1\n"
        "switchguid=0x8f1041(8f1041)\t# ISR2012 spine 1 chip 1\n"
        'Switch\t24 "S-00000000008f1041"\t\t# "big "one" sw" enhanced port 0 lid 48 lmc 0\n'
        '[1][ext 3]\t"H-00000000000000b1"[1][ext 4](b1) \t\t# "n1 HCA-1" lid 67 4xEDR s=4 w=2 v=4\n'
        "\n# Line Nodes\nNon-Chassis Nodes\n\nvendid=0x2c9\ncaguid=0xb1\n"
        'Ca\t1 "H-00000000000000b1"\t\t# "n1 HCA-1" (scp)\n'
        '[1](b1) \t"S-00000000008f1041"[1][ext 3]\t\t# lid 67 lmc 0 "big "one" sw" lid 48 4xEDR\n'
    )
    dump = ibnetdiscover.read(text, "t")
    assert dump.findings == ()
    assert (dump.nodes.name.tolist(), dump.routers.tolist()) == (["n1"], ['big "one" sw'])
    assert dump.links.bandwidth.tolist() == [12.5, 12.5]
    assert dump.counts.total == len(text.splitlines())


ROW = "CA 134 1 0x7cfe9003003b4bde 4x EDR - SW 1719 10 0x7cfe9003009ce5b0 ( 'o1 HCA-1' - 'ib1' )"


@pytest.mark.parametrize(
    "cut",
    ["CA 134", ROW[:40], ROW[:37], ROW[:60], ROW[:-3], ROW[:30], ROW.replace("0x7", "0y7", 1)],
)
def test_cut_off_ports_are_refused(cut):
    with pytest.raises(ParseError, match=r"^t:2: .* is the line cut off\?"):
        ibnetdiscover_ports.read(f"{ROW}\n{cut}\n", "t")


@pytest.mark.parametrize(
    "line",
    [
        '[1]\t"S-00000000000000a2"[1',
        '[1]\t"S-00000000000000a2"[1]\t\t# "leaf2',
        'Switch\t36 "S-zz"',
        "hello",
    ],
)
def test_lines_that_are_no_line_of_the_full_print(line):
    with pytest.raises(ParseError, match=r"^t:2: "):
        ibnetdiscover.read(
            f'Switch\t36 "S-00000000000000a1"\t\t# "leaf1" base port 0\n{line}\n', "t"
        )


def test_a_port_before_any_paragraph_is_refused():
    with pytest.raises(ParseError, match=r"^t:1: "):
        ibnetdiscover.read('[1]\t"S-00000000000000a2"[1]\t\t# "leaf2" lid 1 4xEDR\n', "t")


@pytest.mark.parametrize("form", PRINTS)
def test_empty_and_endless_input(form):
    read, _ = PRINTS[form]
    for text in ("", "# only\n", "x" * 2_000_000, "\n" * 1_000_001):
        with pytest.raises(ParseError):
            read(text, "t")


WARNINGS = """\
ibwarn: [2345] mad_rpc: _do_madrpc failed; dport (Lid 12)
src/query_smp.c:230; umad (DR path slid 0; dlid 0; 0,1,3) bad status 110; Connection timed out
ibnetdiscover: iberror: discover failed
"""


@pytest.mark.parametrize("form", [full_text, ports_text])
@given(fabric=fabrics())
def test_messages_of_ibnetdiscover_itself_are_remarks(form, fabric):
    text, (first, *rest) = form(fabric), WARNINGS.splitlines(keepends=True)
    with_them = first + text + "".join(rest)
    plain, warned = read_text(text, "x"), read_text(with_them, "x")
    assert same_machine(assemble([plain]), assemble([warned]))
    (said,) = (f for f in warned.findings if f.kind == "discovery")
    assert (said.line, said.fault) == (1, False)
    assert said.text.startswith("3 lines besides the fabric, such as: ibwarn: [2345]")
    assert warned.counts.rows == plain.counts.rows


@pytest.mark.parametrize(
    ("above", "kind"),
    [("-I- Using port 1 as local.\n", "discovery"),
     ("Warning: Permanently added 'mgmt' to the list of known hosts.\n\n", "message")],
)  # fmt: skip
def test_what_a_shell_printed_above_is_left_out_and_said(above, kind):
    text = SAMPLES["ibnetdiscover"]
    dump = read_text(above + text, "t")
    assert same_machine(assemble([dump]), assemble([read_text(text, "t")]))
    (said,) = [f for f in dump.findings if f.kind == kind]
    assert above.split("\n")[0] in said.text


def test_two_hosts_of_one_name_are_said():
    """Two machines that were installed from one image, say: neither has two adapters mlx5_0."""
    line = "CA {0} 1 0x00000000000000b{0} 4x HDR - SW 1 {0} 0x00000000000000a1 ( '{1}' - 'l' )\n"
    names = ["node1 mlx5_0", "node1 mlx5_1", "node2 mlx5_0", "node2 mlx5_0", "node3", "node3"]
    text = "".join(line.format(k, name) for k, name in enumerate(names, 1))
    (said,) = [f.text for f in read_text(text, "t").findings if f.kind == "same-host"]
    assert said.startswith("node2 has two adapters mlx5_0 (0x00000000000000b3, 0x00000000000000b4)")


@pytest.mark.parametrize(
    "adapter", ["bond0", "ib0", "enp1s0f0", "ibp23s0", "mlx5_bond_0", "rocep1s0", "eth2", "hsn0"]
)
def test_adapters_by_the_names_that_linux_gives(adapter):
    text = SAMPLES["ibnetdiscover"].replace("n1 HCA-1", f"n1 {adapter}")
    dump = read_text(text, "t")
    assert dump.nodes.name.tolist() == ["n1"]
    assert set(dump.links.adapter.tolist()) == {adapter}
