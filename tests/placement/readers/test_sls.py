# SPDX-License-Identifier: Apache-2.0
"""SLS against cabinets made by hand, and JSON's own traps."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.errors import ParseError
from nidmap.placement.names import plain_xname
from nidmap.placement.readers import read_text
from nidmap.placement.readers.sls import read, sniff


def node(xname, nid=None, role="Compute", aliases=None, **more):
    """Return one node as SLS describes it."""
    extra = {} if nid is None else {"NID": nid}
    extra |= {"Role": role} if role else {}
    extra |= {"Aliases": aliases} if aliases else {}
    return {
        "Parent": xname[:-2],
        "Xname": xname,
        "Type": "comptype_node",
        "Class": "Mountain",
        "TypeString": "Node",
        "ExtraProperties": extra,
        **more,
    }


def cabinet(number, chassis=2, slots=3):
    """Return the nodes of one cabinet by xname, NIDs from 1000 * number."""
    places = [
        f"x{number}c{c}s{s}b{b}n{n}"
        for c in range(chassis)
        for s in range(slots)
        for b in (0, 1)
        for n in (0, 1)
    ]
    return {
        x: node(x, 1000 * number + i, aliases=[f"nid{1000 * number + i:06d}"])
        for i, x in enumerate(places)
    }


def file_of(hardware, networks=None, indent=None):
    return json.dumps({"Hardware": hardware, "Networks": networks or {}}, indent=indent)


def test_a_cabinet_with_other_hardware_around_it():
    hardware = cabinet(1000)
    hardware["x1000"] = {"Xname": "x1000", "Type": "comptype_cabinet", "Class": "Mountain"}
    hardware["x1000c0r7b0"] = {"Xname": "x1000c0r7b0", "Type": "comptype_rtr_bmc"}
    hardware["x1000c0r3"] = {"Xname": "x1000c0r3", "TypeString": "RouterModule"}
    hardware["x1000c0r3e0"] = {"Xname": "x1000c0r3e0", "TypeString": "HSNBoard"}
    hardware["x3000c0w31"] = {"Xname": "x3000c0w31", "Type": "comptype_mgmt_switch"}
    hardware["x3000c0s5b0n0"] = node("x3000c0s5b0n0", None, "Application", ["uan01", "login"])
    dump = read(file_of(hardware), "sls.json")
    expected = cabinet(1000)
    assert dump.nodes.cname.tolist() == [*expected, "x3000c0s5b0n0"]
    assert dump.nodes.nid.tolist() == [*range(1_000_000, 1_000_024), -1]
    assert dump.nodes.name.tolist()[-2:] == ["nid1000023", "uan01"]
    assert dump.nodes.role.tolist() == ["compute"] * 24 + ["service"]
    assert dump.routers.tolist() == ["x1000c0r7", "x1000c0r3"]
    assert (dump.fabric, dump.findings) == ("slingshot", ())


@given(st.integers(0, 3), st.integers(0, 2**31))
def test_any_layout_of_the_text(indent, seed):
    """Order and white space change nothing; all lines count, each node's line is its own."""
    hardware = cabinet(7, 1, 2)
    keys = random.Random(seed).sample(list(hardware), len(hardware))
    text = file_of({k: hardware[k] for k in keys}, indent=indent or None)
    dump = read(text, "t")
    assert dump.nodes.cname.tolist() == keys
    lines = text.splitlines()
    assert dump.counts.rows == dump.counts.total == len(lines)
    for key, line in zip(keys, dump.nodes.line.tolist(), strict=True):
        assert f'"{key}":' in lines[line - 1]
    assert read_text(text).format == "sls"


def test_blank_lines_are_counted():
    text = "\n" + file_of(cabinet(1, 1, 1), indent=1) + "\n\n \n"
    dump = read(text, "t")
    lines = text.split("\n")[:-1]
    assert dump.counts.total == len(lines)
    assert dump.counts.blank == sum(not line.strip() for line in lines) == 3


def test_a_list_of_hardware():
    text = json.dumps(list(cabinet(1, 1, 1).values()))
    assert sniff(text)
    assert read(text, "t").nodes.nid.tolist() == [1000, 1001, 1002, 1003]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("x1000c0s0b0n0", "x1000c0s0b0n0"),
        ("X1000C0S07B0N1", "x1000c0s7b0n1"),
        ("x0001c0s000b0n0", "x1c0s0b0n0"),
    ],
)
def test_xnames_are_normalised(text, name):
    assert plain_xname(text) == name
    dump = read(file_of({text: node(text, 5)}), "t")
    assert (dump.nodes.cname.tolist(), dump.nodes.name.tolist()) == ([name], [name])
    assert dump.findings == ()


@pytest.mark.parametrize("role", ["Management", "Application", "Storage", "System", ""])
def test_only_compute_is_compute(role):
    dump = read(file_of({"x1c0s0b0n0": node("x1c0s0b0n0", 1, role)}), "t")
    assert dump.nodes.role.tolist() == ["service"]
    assert [f.kind for f in dump.findings] == ([] if role else ["no-role"])


def test_river_racks_on_slingshot_are_known_by_the_network():
    river = {"x3000c0s1b0n0": node("x3000c0s1b0n0", 1, Class="River")}
    assert read(file_of(river), "t").fabric == ""
    assert read(file_of(river, {"HSN": {"Type": "slingshot10"}}), "t").fabric == "slingshot"


TWO = {"x1c0s0b0n0": node("x1c0s0b0n0", 1), "x1c0s0b0n1": node("x1c0s0b0n1", 2)}


@pytest.mark.parametrize(
    ("change", "kind", "fatal"),
    [
        ({"ExtraProperties": {"NID": 1, "Role": "Compute"}}, "duplicate-nid", True),
        (
            {"ExtraProperties": {"NID": 2, "Role": "Compute", "Aliases": ["x1c0s0b0n0"]}},
            "duplicate-name",
            True,
        ),
        ({"ExtraProperties": {"Role": "Compute"}}, "no-nid", False),
    ],
)
def test_faults_stand_on_the_line_of_their_node(change, kind, fatal):
    text = file_of(TWO | {"x1c0s0b0n1": TWO["x1c0s0b0n1"] | change}, indent=1)
    faults = read(text, "t").findings
    assert [(f.kind, f.fault) for f in faults] == [(kind, fatal)]
    assert '"x1c0s0b0n1":' in text.splitlines()[faults[0].line - 1]


@pytest.mark.parametrize(
    "change",
    [
        {"ExtraProperties": {"NID": -1, "Role": "Compute"}},
        {"ExtraProperties": {"NID": 2**31, "Role": "Compute"}},
        {"ExtraProperties": {"NID": 1.5, "Role": "Compute"}},
        {"ExtraProperties": {"NID": True, "Role": "Compute"}},
        {"ExtraProperties": {"NID": "two", "Role": "Compute"}},
        {"ExtraProperties": {"NID": 2, "Role": "Compute", "Aliases": [7]}},
        {"Type": 7},
    ],
)
def test_what_is_of_another_type_is_refused_at_the_line_of_its_node(change):
    text = file_of(TWO | {"x1c0s0b0n1": TWO["x1c0s0b0n1"] | change}, indent=1)
    with pytest.raises(ParseError, match=r"x1c0s0b0n1: .*expected") as raised:
        read(text, "t")
    assert '"x1c0s0b0n1":' in text.splitlines()[raised.value.line - 1]


def test_an_alias_that_is_no_host_name_is_passed_over():
    text = file_of({"x1c0s0b0n0": node("x1c0s0b0n0", 1, aliases=["a b"])})
    assert read(text, "t").nodes.name.tolist() == ["x1c0s0b0n0"]


def test_a_nid_in_quotes_is_a_nid():
    extra = {"NID": "17", "Role": "Compute"}
    text = file_of({"x1c0s0b0n0": node("x1c0s0b0n0") | {"ExtraProperties": extra}})
    assert read(text, "t").nodes.nid.tolist() == [17]


def test_two_spellings_of_one_xname():
    dump = read(
        file_of({"x1c0s0b0n0": node("x1c0s0b0n0", 1), "x01c0s0b0n0": node("x01c0s0b0n0", 2)}), "t"
    )
    assert [f.kind for f in dump.findings] == ["duplicate-cname", "duplicate-name"]


def test_a_key_that_is_no_xname():
    text = file_of({"node7": node("node7", 7), "x1c0r9x": {"Type": "comptype_rtr_bmc"}})
    assert [f.kind for f in read(text, "t").findings] == ["cname", "cname"]


def test_networks_only():
    text = json.dumps({"Networks": {"HSN": {"Name": "HSN"}}}, indent=1)
    dump = read(text, "t")
    assert sniff(text)
    assert (dump.nodes, dump.counts.rows) == (None, len(text.splitlines()))
    assert [(f.kind, f.fault) for f in dump.findings] == [("no-nodes", True)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t:1: not JSON"),
        ('{"Hardware": {\n"x1": \n', "t:3: not JSON"),
        (file_of(TWO, indent=1)[:200], "t:"),
        ("{}", "t: JSON, but with neither Hardware nor Networks"),
        ("7", "t: JSON, but with neither"),
        ('{"Hardware": []}', "t: lists no nodes"),
        ('{"Hardware": [1]}', "t: Hardware and Networks must be objects"),
        ('{"Hardware": {"x1":\n7}}', "t:1: x1: expected an object, got a whole number"),
        ('[{"Type": "comptype_node"}]', "t: an entry of Hardware has no Xname"),
        (
            file_of({"x1c0s0b0n0": node("x1c0s0b0n0") | {"ExtraProperties": [1]}}),
            "t:1: x1c0s0b0n0: expected an object, got a list",
        ),
        ("[" * 100_000, "t: nested too deeply"),
        ('{"a":' * 100_000, "t: nested too deeply"),
        ('{"Hardware": {"a": ' + "9" * 100_000 + "}}", "t: a number with thousands of digits"),
        ("[" + "[]," * 2_000_000 + "[]]", "t: more than 1,500,000 values"),
    ],
)
def test_what_cannot_be_read(text, message):
    with pytest.raises(ParseError) as raised:
        assemble([read(text, "t")])
    assert str(raised.value).startswith(message)


def test_what_others_wrote_is_quoted_safely():
    text = file_of({"x1\x1b[31m\nc0s0b0n0": node("x1c0s0b0n0", 1)})
    (first, *_) = read(text, "t").findings
    assert str(first).isprintable()
    assert str(first.error()).isprintable()
