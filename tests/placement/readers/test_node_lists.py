# SPDX-License-Identifier: Apache-2.0
"""xtdb2proc, meshcoords, torus coordinate files and system maps: nodes with coordinates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import ParseError
from nidmap.placement.readers import read_text

FIELDS = (
    "cpu={n},slot={s},cage={h},cabinet=null,cab_position={c},cab_row={r},x_coord={x},y_coord={y},"
    "z_coord={z},process_slots=4,process_slots_free=4,processor_status='{status}',"
    "processor_type='{role}',alloc_mode='{mode}',processor_id={nid},od_allocator_id=0,"
    "next_red_black_switch=null,processor_spec=null"
)
MESH = "  NID   NODENAME      TYPE   CORES   X  Y  Z"
MAP = "NID HEX NODE GEMINI X Y Z\n=========================\n"


def node(nid, positions=12, **more):
    """Return what an XC's node is printed with."""
    cabinet, rest = divmod(nid, 192)
    r, c = divmod(cabinet, positions)
    h, s, n = rest // 64, rest % 64 // 4, rest % 4
    at = {"x": r * (positions // 2) + c // 2, "y": h + 3 * (c % 2), "z": s}
    words = {"status": "up", "role": "compute", "mode": "batch"}
    return {"nid": nid, "c": c, "r": r, "h": h, "s": s, "n": n, **at, **words, **more}


def cname(x):
    return "c{c}-{r}c{h}s{s}n{n}".format(**x)


def mesh(x):
    return "{nid:5d}  {name:12s} {role:8s} {cores:5d} {x:3d} {y:2d} {z:2d}".format(
        name=cname(x), cores=68, **x
    )


def torus(x):
    return "{nid} {name} {role} {x} {y} {z}".format(name=cname(x), **x)


def system_map(x, form="0x{:x}"):
    gemini = "c{c}-{r}c{h}s{s}g{g}".format(g=x["n"] // 2, **x)
    return "{nid} {hex} {name} {gemini} {x} {y} {z}".format(
        name=cname(x), gemini=gemini, hex=form.format(x["nid"]), **x
    )


def gemini_node(index, **more):
    """Return a node of a torus whose coordinates follow the blades."""
    c, rest = divmod(index, 96)
    h, rest = divmod(rest, 32)
    s, n = divmod(rest, 4)
    at = {"x": c, "y": n // 2, "z": 8 * h + s}
    return {"nid": index, "c": c, "r": 0, "h": h, "s": s, "n": n, "role": "compute", **at, **more}


def refusal(text):
    with pytest.raises(ParseError) as caught:
        read_text(text, "d")
    assert "\n" not in str(caught.value)
    return str(caught.value)


NIDS = st.lists(st.integers(0, 13_823), min_size=1, max_size=30, unique=True)
WORDS = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["compute", "service"]),
        "status": st.sampled_from(["up", "down", "admindown", "suspect"]),
        "mode": st.sampled_from(["batch", "interactive", "other"]),
    }
)


def check_nodes(found, nodes, first_line):
    records = found.nodes
    assert records.nid.tolist() == [x["nid"] for x in nodes]
    assert records.cname.tolist() == [cname(x) for x in nodes]
    assert records.coords.tolist() == [[x["x"], x["y"], x["z"]] for x in nodes]
    assert records.line.tolist() == list(range(first_line, first_line + len(nodes)))


@given(nids=NIDS, data=st.data())
def test_xtdb2proc(nids, data):
    nodes = [node(nid, **data.draw(WORDS)) for nid in nids]
    text = "#\n# a comment with 12 numbers\n" + "".join(FIELDS.format(**x) + "\n" for x in nodes)
    found = read_text(text, "x")
    assert found.format == "xtdb2proc"
    check_nodes(found, nodes, 3)
    assert found.nodes.role.tolist() == [x["role"] for x in nodes]
    assert found.nodes.state.tolist() == [x["status"] for x in nodes]
    assert found.nodes.mode.tolist() == [x["mode"] for x in nodes]
    assert found.counts.comments == 2
    assert found.counts.total == text.count("\n")
    assert found.fabric == "aries"
    assert found.findings == ()


@given(nids=NIDS, headed=st.booleans())
def test_meshcoords(nids, headed):
    nodes = [node(nid) for nid in nids]
    text = (MESH + "\n" if headed else "") + "\n".join(map(mesh, nodes))
    found = read_text(text, "x")
    assert found.format == "meshcoords"
    check_nodes(found, nodes, 1 + headed)
    assert found.nodes.cores.tolist() == [68] * len(nodes)
    assert found.fabric == "aries"
    assert found.findings == ()


@given(indices=st.lists(st.integers(0, 959), min_size=1, max_size=30, unique=True))
def test_torus_coordinates_and_system_maps(indices):
    nodes = [gemini_node(i, role="service" if i % 7 == 0 else "compute") for i in indices]
    found = read_text("\n".join(map(torus, nodes)) + "\n", "x")
    assert (found.format, found.fabric, found.findings) == ("torus-coordinates", "gemini", ())
    check_nodes(found, nodes, 1)
    assert found.nodes.role.tolist() == [x["role"] for x in nodes]
    for form in ("0x{:x}", "{:x}", "0X{:X}"):
        found = read_text(MAP + "\n".join(system_map(x, form) for x in nodes) + "\n", "x")
        assert (found.format, found.fabric, found.findings) == ("system-map", "gemini", ())
        check_nodes(found, nodes, 3)
        assert found.counts.headers == 2
        homes = [cname(x)[:-2] + f"g{x['n'] // 2}" for x in nodes]
        assert found.nodes.router.tolist() == homes


def test_fields_of_xtdb2proc_may_come_in_another_order_and_lack_coordinates():
    record = "processor_id=7,processor_type='service',cab_row=0,cab_position=1,cage=2,slot=3,cpu=1"
    found = read_text(record + "\n", "x")
    assert found.nodes.cname.tolist() == ["c1-0c2s3n1"]
    assert found.nodes.coords is None
    assert found.nodes.state is None
    assert found.fabric == ""


def test_words_of_xtdb2proc_may_be_null_or_empty():
    record = FIELDS.format(**node(9, mode="")).replace("'up'", "null")
    found = read_text(record, "x")
    assert (found.nodes.state[0], found.nodes.mode[0]) == ("", "")


RECORD = FIELDS.format(**node(5000))


def test_a_record_of_xtdb2proc_cut_anywhere_is_refused():
    for end in range(1, len(RECORD)):
        assert refusal(f"{RECORD}\n{RECORD[:end]}").startswith("d:2: "), end


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (RECORD.replace("cpu=0", "cpu=zero"), "cpu=zero is not a number"),
        (RECORD.replace("cpu=0", "cpu=-1"), "cpu=-1 is not a number"),
        (RECORD.replace("cpu=0", "cpu=null"), "cpu=null is not a number"),
        (RECORD.replace("cpu=0", "cpu=1,cpu=2"), "has cpu twice"),
        (RECORD.replace("cpu=0,", ""), "has no cpu"),
        (RECORD.replace("cabinet=null,", ""), "has no cabinet, unlike all above"),
        (RECORD + ",more=1", "has more, unlike all above"),
        (RECORD.replace("'compute'", "'gpu'"), "processor_type='gpu' is not service or compute"),
        (RECORD.replace("'up'", "'u p'"), "processor_status='u p' is not a word"),
        (RECORD.replace("=5000", "=2147483648"), "processor_id=2147483648 is not a number"),
        (RECORD.replace(",", ";"), "is not field=value"),
        (mesh(node(1)), "looks like meshcoords"),
    ],
)
def test_bad_records_of_xtdb2proc(record, says):
    message = refusal(f"{RECORD}\n{record}\n{RECORD}\n")
    assert message.startswith("d:2: ")
    assert says in message


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("2305  c0-1c0s0n1    compute    68   6  0", "6 of 7 fields (Z coordinate"),
        ("2305  c0-1c0s0n1    compute    68   6  0  -1", "'-1' is not a Z coordinate"),
        ("2305  c0-1c0s0n1    other    68   6  0  0", "'other' is not a TYPE"),
        ("2305  nid02305    compute    68   6  0  0", "'nid02305' is not a node's cname"),
        ("NID NODENAME TYPE X Y Z", "the header is not NID NODENAME TYPE CORES X Y Z"),
        (RECORD, "looks like xtdb2proc"),
    ],
)
def test_bad_lines_of_meshcoords(line, says):
    message = refusal(f"{MESH}\n{mesh(node(2307))}\n{line}")
    assert message.startswith("d:3: ")
    assert says in message


def test_two_formats_after_one_another_are_refused_by_both_names():
    text = f"# quoted\n{MESH}\n{mesh(node(2307))}\n# more\n{RECORD}\n{RECORD}\n"
    message = refusal(text)
    assert message.startswith("d:5: two formats in one file")
    assert "meshcoords" in message
    assert "xtdb2proc" in message
    message = refusal(f"{RECORD}\n{MESH}\n{mesh(node(2307))}\n")
    assert message.startswith("d:2: two formats in one file: this line looks like meshcoords")
    assert "xtdb2proc" in message


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("3 c0-0c0s1n1 compute 0 0", "5 of 6 fields"),
        ("3 c0-0c0s1n1 compute 0 0 x", "'x' is not a Z coordinate"),
        ("99999999999 c0-0c0s1n1 compute 0 0 1", "'99999999999' is not a NID"),
        ("3 c0-0c0s1n1 compute 0 0 99999999999", "'99999999999' is not a Z coordinate"),
        ("5 0x5 c0-0c0s1n1 compute up batch", "looks like xtprocadmin"),
    ],
)
def test_bad_lines_of_a_torus_file(line, says):
    message = refusal(f"2 c0-0c0s1n0 compute 0 0 1\n{line}\n4 c0-0c0s2n0 compute 0 0 2\n")
    assert message.startswith("d:2: ")
    assert says in message


def test_bad_lines_of_a_system_map():
    good = system_map(gemini_node(5))
    assert refusal(f"{MAP}{good}\nmore\n").startswith("d:4: system-map: 'more' is not a NID")
    assert refusal(f"{MAP}more\n{good}\n").startswith("d:3: system-map: 'more' is not a NID")
    faults = read_text(f"{MAP}{good.replace('g0', 'g1')}\n{system_map(gemini_node(7), '1')}", "x")
    assert [(f.line, f.kind) for f in faults.findings] == [(3, "router"), (4, "hex")]


def test_coordinates_that_contradict_a_name_are_faults():
    nodes = [node(nid) for nid in range(2304, 2320)]
    nodes[7]["y"] += 1
    nodes[9]["x"] = 7_000
    found = read_text("\n".join(map(mesh, nodes)), "x")
    assert [(f.line, f.kind) for f in found.findings] == [
        (8, "coordinates"),
        (10, "coordinates"),
    ]
    assert found.findings[0].text == "c0-1c0s1n3 is at (6,1,1), an XC's name says (6,0,1)"
    torn = [gemini_node(4), gemini_node(5, z=2), gemini_node(6)]
    [fault] = read_text("\n".join(map(torus, torn)), "x").findings
    assert (fault.line, fault.kind) == (2, "coordinates")
    assert "another node of its Gemini is at (0,0,1)" in fault.text


def test_mesh_coordinates_of_a_torus_are_told_from_those_of_an_xc():
    found = read_text("\n".join(mesh(gemini_node(i)) for i in range(96)), "x")
    assert (found.fabric, found.findings) == ("gemini", ())
