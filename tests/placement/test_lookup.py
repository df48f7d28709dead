# SPDX-License-Identifier: Apache-2.0
"""Rows of what a user calls nodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.placement.errors import ParseError
from nidmap.placement.lookup import first_repeat, nodes_of, rows_of
from nidmap.placement.names import format_cnames
from nidmap.placement.names.numbering import GeminiNumbering, Xc
from nidmap.placement.nodelist import NodeList
from tests.places import places_of

XC = Xc(4)
#: NIDs of the dump: two rows of cabinets, some blades absent, a service node pair a cabinet.
NIDS = np.array([n for n in range(2 * 4 * 192) if n // 4 % 16 != 7 and n not in (40, 41)])


def cname(rule, nid):
    return str(format_cnames(places_of(rule, [nid]))[0])


def xc_dump(order=NIDS):
    """Return an xtprocadmin in the shape of an XC with holes."""
    rows = ["   NID    (HEX)    NODENAME     TYPE    STATUS        MODE"]
    for nid in np.asarray(order).tolist():
        kind = "service" if nid % 192 < 2 else "compute"
        rows.append(f"{nid:6d} {nid:#8x} {cname(XC, nid):>11} {kind:>8}        up       batch")
    return "\n".join(rows) + "\n"


@pytest.fixture(scope="module")
def daint(tmp_path_factory):
    path = tmp_path_factory.mktemp("xc") / "daint.xtprocadmin"
    path.write_text(xc_dump())
    return nidmap.load_machine(str(path))


@pytest.fixture(scope="module")
def titan(tmp_path_factory):
    """A torus by coordinate file: 4 x 3 cabinets of an XK."""
    rule = GeminiNumbering(4, 3)
    nids = np.arange(96 * 12)
    places = rule.coords(places_of(rule, nids))
    lines = [
        f"{nid} {cname(rule, nid)} compute {x} {y} {z}"
        for nid, (x, y, z, _) in zip(nids.tolist(), places.tolist(), strict=True)
    ]
    path = tmp_path_factory.mktemp("xk") / "titan.map"
    path.write_text("\n".join(lines) + "\n")
    return nidmap.load_machine(str(path))


@pytest.fixture(scope="module")
def lumi(tmp_path_factory):
    """A Slingshot machine: nodes with xnames."""
    hardware = {}
    for number in range(32):
        slot, board, node = number // 4, number // 2 % 2, number % 2
        xname = f"x1000c{number // 16}s{slot % 4}b{board}n{node}"
        hardware[xname] = {
            "Parent": xname[:-2], "Xname": xname, "Type": "comptype_node", "Class": "Mountain",
            "TypeString": "Node",
            "ExtraProperties": {"NID": 1000 + number, "Role": "Compute",
                                "Aliases": [f"nid{1000 + number:06d}"]},
        }  # fmt: skip
    import json

    path = tmp_path_factory.mktemp("ex") / "sls.json"
    path.write_text(json.dumps({"Hardware": hardware, "Networks": {}}))
    return nidmap.load_machine(str(path))


@pytest.fixture(scope="module")
def small():
    return nidmap.load_machine("dragonfly:groups=4,chassis=2,blades=4,nodes=4")


def nids(machine, text, **options):
    return machine.nid[rows_of(machine, text, **options)].tolist()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("nid00045", [45]),
        ("nid[00045,00012]", [45, 12]),
        ("45,12", [45, 12]),
        ("45-47 12", [45, 46, 47, 12]),
        ("[45-47]", [45, 46, 47]),
        ("00045", [45]),
        ("c0-0c0s0n3", [3]),
        ("C0-0C0S0N3 c1-0c0s0n0", [3, 192]),
        ("c0-0c1s3", [64 + 12, 64 + 13, 64 + 14, 64 + 15]),
        ("c0-0c1s3a0", [64 + 12, 64 + 13, 64 + 14, 64 + 15]),
        ("c0-0c1s3n1a0", [64 + 13]),
        ("nid00020,c0-0c1s3,5", [20, 76, 77, 78, 79, 5]),
        ("#0,#3", [0, 3]),
        ("#0-3 nid00020", [0, 1, 2, 3, 20]),
        ("nid00045\nnid00012  # slow\n", [45, 12]),
    ],
)
def test_every_way_to_call_a_node(daint, text, wanted):
    assert nids(daint, text) == wanted


def test_a_chassis_or_cabinet_is_all_its_nodes(daint):
    in_chassis = [n for n in NIDS.tolist() if n // 64 == 4]
    assert nids(daint, "c1-0c1") == in_chassis
    assert nids(daint, "c3-1") == [n for n in NIDS.tolist() if n // 192 == 7]


def test_indices_are_of_the_table_and_nids_are_not(daint):
    assert nids(daint, "#28-31") == NIDS[28:32].tolist()
    assert NIDS[28] != 28


def test_on_a_synthetic_machine_indices_and_nids_agree(small):
    assert rows_of(small, "#5-9").tolist() == rows_of(small, "5-9").tolist() == [5, 6, 7, 8, 9]
    assert nodes_of(small, [5, 9]).fold() == "nid[00005,00009]"


def test_a_gemini_is_two_nodes(titan):
    blade = nids(titan, "c1-2c0s3")
    first, second = nids(titan, "c1-2c0s3g0"), nids(titan, "c1-2c0s3g1")
    assert len(first) == len(second) == 2
    assert sorted(first + second) == sorted(blade)
    rule = GeminiNumbering(4, 3)
    assert {cname(rule, nid) for nid in first} == {"c1-2c0s3n0", "c1-2c0s3n1"}


def test_xnames_in_any_writing_and_their_prefixes(lumi):
    assert nids(lumi, "x1000c0s1b0n1") == [1005]
    assert nids(lumi, "X1000C0S01B0N01") == [1005]
    assert nids(lumi, "x1000c0s1b0n1h0") == [1005]
    assert nids(lumi, "x1000c0s1") == [1004, 1005, 1006, 1007]
    assert nids(lumi, "x1000c0s1b1") == [1006, 1007]
    assert nids(lumi, "x1000c1") == list(range(1016, 1032))
    assert nids(lumi, "x1000") == list(range(1000, 1032))
    assert nids(lumi, "nid001003,1001") == [1003, 1001]


def test_a_router_is_its_nodes(small):
    from nidmap.placement.topologies import router_names

    name = str(router_names(small)[3])
    assert rows_of(small, name).tolist() == np.flatnonzero((small.router == 3).any(axis=1)).tolist()
    assert len(rows_of(small, name)) == 4


@given(st.data())
def test_all_ways_meet(data):
    machine = nidmap.load_machine("dragonfly:groups=4,chassis=2,blades=4,nodes=4")
    rows = data.draw(st.lists(st.integers(0, len(machine) - 1), min_size=1, unique=True))
    ways = [
        nodes_of(machine, rows),
        nodes_of(machine, rows).fold(),
        "\n".join(machine.names[rows]),
        ",".join(map(str, machine.nid[rows])),
        NodeList(map(str, machine.nid[rows])).fold(),
        " ".join(f"#{row}" for row in rows),
    ]
    for way in ways:
        assert rows_of(machine, way).tolist() == rows


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 0, ["names no nodes"]),
        (" \n# nothing\n", 0, ["names no nodes"]),
        ("nid45", 0, ["'nid45'", "did you mean nid00045?"]),
        ("NID45", 0, ["'NID45'", "did you mean nid00045?"]),
        ("nid00045\nnid99999\n", 2, ["'nid99999'", "its nodes run from nid00000 to nid01535"]),
        ("nid[00000-00003]\nnid[00004-00006,01536]\n", 2, ["'nid01536'", "nid01535"]),
        ("4711", 0, ["no NID 4711", "its nodes run from 0 to 1535"]),
        ("40", 0, ["no NID 40", "the nearest are 39 and 42"]),
        ("36-42", 0, ["no NID 40 of '36-42'", "39 and 42"]),
        ("0-999999999", 0, ["no NID", "0-999999999"]),
        ("7-3", 0, ["'7-3' runs backwards"]),
        ("#1440-1441", 0, ["'#1440' is not in the table"]),
        ("#9999", 0, ["'#9999' is not in the table", "#0 to #"]),
        ("login1", 0, ["no node 'login1'", "its names look like nid00000"]),
        ("c0-0c0s7n0", 0, ["'c0-0c0s7n0' is an empty slot"]),
        ("c0-0c0s7", 0, ["no node 'c0-0c0s7'"]),
        ("c9-0", 0, ["no node 'c9-0'"]),
        ("c0-0c3s0n0", 0, ["cage 3 is impossible", "cages 0 to 2"]),
        ("x1000c0s0b0n0", 0, ["no node 'x1000c0s0b0n0'"]),
        ("nid00045,nid00012,nid00045", 0, ["'nid00045' is listed twice"]),
        ("nid00045 c0-0c0s11n1", 0, ["'nid00045' is listed twice"]),
        ("nid00001\nnid00002\nnid00001\n", 0, ["'nid00001' is listed twice"]),
        ("nid[00001", 0, ["bracket"]),
        ("nid[00000-99999999]", 0, ["makes 100000000 names", "there are"]),
    ],
)
def test_what_names_no_node_is_refused(daint, text, line, words):
    with pytest.raises(ParseError) as caught:
        rows_of(daint, text, source="hosts")
    assert caught.value.exit_code == 3
    message = str(caught.value)
    assert message.isprintable()
    assert message.startswith("hosts:")
    if line:
        assert caught.value.line == line
    for word in words:
        assert word in message


def test_text_given_directly_has_no_line(daint):
    with pytest.raises(ParseError, match=r"^node list: daint\.xtprocadmin has no node 'x'"):
        rows_of(daint, "x")
    with pytest.raises(ParseError, match=r"^--nodes: "):
        rows_of(daint, "x", source="--nodes")


def test_repeats_are_slots_where_they_are_allowed(daint):
    assert nids(daint, "nid00045*3,nid00012", repeats=True) == [45, 45, 45, 12]
    assert nids(daint, "12 slots=2", repeats=True) == [12, 12]
    with pytest.raises(ParseError, match="listed twice"):
        rows_of(daint, "nid00045*3")


@pytest.fixture(scope="module")
def domains(tmp_path_factory):
    """Hosts of every kind: without a domain, with one, and two alike to the first dot."""
    path = tmp_path_factory.mktemp("fq") / "topology.conf"
    path.write_text("SwitchName=s0 Nodes=n[1-3],b.x.org,a.x.org,a.y.org,10.0.0.1\n")
    return nidmap.load_machine(str(path))


def test_short_and_long_host_names_find_each_other(domains):
    def names(text, **options):
        return list(nodes_of(domains, rows_of(domains, text, **options)))

    assert names("n1.cm,n2.cm.example.org,b,a.y.org") == ["n1", "n2", "b.x.org", "a.y.org"]
    assert names("b.x 10.0.0.1") == ["b.x.org", "10.0.0.1"]
    assert names("n1\nn1.cm\nn1.cm.org\n", repeats=True) == ["n1"] * 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("n1.x.org,n1.y.org", "'n1.x.org' and 'n1.y.org' would both mean n1"),
        ("a", "'a' may be a.x.org or a.y.org"),
        ("a.z.org", "no node 'a.z.org'"),
        ("10", "no NID 10"),
        ("10.0", "no node '10.0'"),
    ],
)
def test_a_host_name_that_may_be_two_is_refused(domains, text, says):
    with pytest.raises(ParseError, match=says):
        rows_of(domains, text, repeats=True)


def test_dumps_of_short_and_long_names_are_of_the_same_nodes(tmp_path):
    (tmp_path / "topology.conf").write_text("SwitchName=s0 Nodes=n[1-2]\n")
    both = str(tmp_path / "topology.conf"), str(tmp_path / "sinfo")
    states = "NODELIST STATE\nn1.cm.org idle\nn2.cm.org drained\n"
    (tmp_path / "sinfo").write_text(states)
    machine = nidmap.load_machine(*both)
    assert machine.free.tolist() == [True, False]
    (tmp_path / "sinfo").write_text(states.replace("n2.cm", "n1.ac"))
    with pytest.raises(ParseError, match=r"'n1.cm.org' and 'n1.ac.org' would both mean n1"):
        nidmap.load_machine(*both)


def test_names_without_text_are_taken_as_they_are(daint):
    assert nids(daint, NodeList(["nid00045", "12", "#0"])) == [45, 12, 0]
    assert nids(daint, ["nid00045", "c0-0c0s0n1"]) == [45, 1]


def test_a_bare_number_that_is_a_name_is_that_node():
    machine = nidmap.load_machine("torus:2x2x2,nodes=2")
    from dataclasses import replace

    renamed = replace(machine, names=np.array([str(15 - n) for n in range(16)]))
    assert rows_of(renamed, "15,0").tolist() == [0, 15]


def test_a_machine_of_renamed_nodes_is_not_looked_up_in_the_old_table(small):
    from dataclasses import replace

    rows_of(small, "nid00003")
    renamed = replace(small, names=np.char.replace(small.names, "nid", "node"))
    assert rows_of(renamed, "node00003").tolist() == [3]
    with pytest.raises(ParseError):
        rows_of(renamed, "nid00003")


def test_a_large_machine_and_a_long_list():
    """Every name, NID, index of 100,000 nodes, each found in its place."""
    machine = nidmap.load_machine("dragonfly:groups=261,chassis=6,blades=16,nodes=4")
    rows = np.random.default_rng(1).permutation(len(machine))
    for text in (
        nodes_of(machine, rows).fold(),
        ",".join(map(str, machine.nid[rows].tolist())),
        ",".join(f"#{row}" for row in rows.tolist()),
    ):
        assert (rows_of(machine, text) == rows).all()


@pytest.mark.parametrize("word", ["n[0-3999999]", "nid[00000-00064]", "#[0-99]", "n[0-9]x[0-9]"])
@pytest.mark.parametrize("text", ["{}", "nid00001,{}", "nid00001*2 {}", "nid00001\n{}\n"])
def test_a_word_of_more_names_than_nodes_is_refused_unexpanded(monkeypatch, word, text):
    machine = nidmap.load_machine("torus:4x4x4")
    monkeypatch.setattr("nidmap.placement.names.hostlist._ListWord.names", lambda entry: 1 / 0)
    with pytest.raises(ParseError, match=r"makes \d+ names; there are 64 nodes"):
        rows_of(machine, text.format(word), repeats=True)


def test_a_host_file_may_hold_more_lines_than_there_are_nodes():
    machine = nidmap.load_machine("torus:4x4")
    assert len(rows_of(machine, "nid[00000-00015]*500", repeats=True)) == 8000
    assert len(rows_of(machine, "nid00003\n" * 100, repeats=True)) == 100


@pytest.mark.parametrize("zeros", [1, 5, 17, 18, 20, 200])
def test_leading_zeros_of_a_number_mean_nothing(zeros):
    machine = nidmap.load_machine("torus:4x4")
    assert rows_of(machine, "0" * zeros).tolist() == [0]
    assert rows_of(machine, "0" * zeros + "7").tolist() == [7]
    assert rows_of(machine, "#" + "0" * zeros + "7").tolist() == [7]
    with pytest.raises(ParseError, match="no NID 99"):
        rows_of(machine, "0" * zeros + "99")


def test_first_repeat():
    assert first_repeat(np.array([45, 12, 45, 12])) == (0, 2)
    assert first_repeat(np.array(["a", "b"])) is None
