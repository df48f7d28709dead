# SPDX-License-Identifier: Apache-2.0
"""xtprocadmin: XC and XT headers, every line accounted for, every fault named by its line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import ParseError
from nidmap.placement.readers import read_text
from nidmap.placement.readers.xtprocadmin import read

XC = "%6s %8s %11s %8s %9s %11s"
HEADER = XC % ("NID", "(HEX)", "NODENAME", "TYPE", "STATUS", "MODE")


def row(nid, cname, role="compute", status="up", mode="interactive"):
    return XC % (nid, f"0x{nid:x}", cname, role, status, mode)


def xc(positions, nid):
    """Return the cname of a NID on an XC."""
    cabinet, rest = divmod(nid, 192)
    r, c = divmod(cabinet, positions)
    return f"c{c}-{r}c{rest // 64}s{rest % 64 // 4}n{rest % 4}"


def dump(*lines, end="\n"):
    return "\n".join((HEADER, *lines)) + end


def refusal(text, name="d"):
    with pytest.raises(ParseError) as caught:
        read_text(text, name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


NODES = st.builds(
    lambda nids, draw: [
        (nid, draw.choice(["compute", "service"]), draw.choice(["up", "down", "admindown", "halt"]),
         draw.choice(["interactive", "batch", "other"]))
        for nid in nids
    ],
    st.lists(st.integers(0, 20_000), min_size=1, max_size=40, unique=True),
    st.randoms(use_true_random=False),
)  # fmt: skip


@given(nodes=NODES, positions=st.sampled_from([2, 8, 12]), crlf=st.booleans(), bare=st.booleans())
def test_records_are_those_of_a_line_by_line_reading(nodes, positions, crlf, bare):
    lines = [row(nid, xc(positions, nid), *rest) for nid, *rest in nodes]
    lines = lines if bare else [HEADER, *lines]
    text = "\n".join(lines) + "\n"
    found = read_text(text.replace("\n", "\r\n") if crlf else text, "x")
    words = [(i, line.split()) for i, line in enumerate(lines, 1) if "NID" not in line]
    nodes = found.nodes
    assert found.format == "xtprocadmin"
    assert found.findings == ()
    assert nodes.line.tolist() == [i for i, _ in words]
    assert nodes.nid.tolist() == [int(w[0]) for _, w in words]
    assert nodes.cname.tolist() == [w[2] for _, w in words]
    assert nodes.role.tolist() == [w[3] for _, w in words]
    assert nodes.state.tolist() == [w[4] for _, w in words]
    assert nodes.mode.tolist() == [w[5] for _, w in words]
    assert found.counts.total == len(lines)
    assert found.counts.headers == (not bare)


def test_every_line_is_accounted_for():
    text = "# taken today\n\n" + dump(row(1, "c0-0c0s0n1"), "", "  # half", row(4, "c0-0c0s1n0"))
    counts = read(text + HEADER + "\n" + row(5, "c0-0c0s1n1") + "\n\n\n", "x").counts
    assert (counts.rows, counts.comments, counts.headers, counts.blank) == (3, 2, 2, 4)
    assert counts.total == (text + HEADER + "\n" + row(5, "c0-0c0s1n1") + "\n\n\n").count("\n")


def test_the_last_line_may_lack_its_newline_and_names_may_be_long_or_upper_case():
    found = read(dump(row(123456, "C105-203C2S15N3"), end=""), "x")
    assert found.nodes.cname.tolist() == ["c105-203c2s15n3"]
    assert found.counts.total == 2


def test_columns_follow_an_xt_header():
    text = (
        "   NID    (HEX)    NODENAME     TYPE ARCH        OS CORES AVAILMEM   PAGESZ CLOCKMHZ\n"
        "    12      0xc  c0-0c0s3n0  service   xt (service)     2     4000     4096     2400\n"
        "    13      0xd  c0-0c0s3n1  compute   xt       CNL     8    16000     4096     2400\n"
        "    14      0xe  c0-0c0s3n2  compute\n"
    )
    nodes = read(text, "x").nodes
    assert nodes.state.tolist() == ["", "", "down"]
    assert nodes.cores.tolist() == [2, 8, 0]
    assert nodes.mode is None  # no column says one
    swapped = "MODE STATUS TYPE NODENAME (HEX) NID CPUS\nbatch up compute c0-0c0s3n1 0xd 13 24\n"
    nodes = read_text(swapped, "x").nodes
    assert (nodes.nid[0], nodes.mode[0], nodes.state[0], nodes.cores[0]) == (13, "batch", "up", 24)


def test_a_row_of_four_fields_is_a_down_compute_node_under_an_xt_header_only():
    short = "    14      0xe  c0-0c0s3n2  %s\n"
    xt = "   NID    (HEX)    NODENAME     TYPE    STATUS        MODE   OS CPUS\n"
    assert read(xt + short % "compute", "x").nodes.state.tolist() == ["down"]
    assert ":2: xtprocadmin: 4 of 8 fields" in refusal(xt + short % "service")
    assert ":2: xtprocadmin: 4 of 6 fields" in refusal(HEADER + "\n" + short % "compute")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("7679 0x1dff c9-3c2s15n3 comp", "'comp' is not a TYPE"),
        ("7679 0x1dff c9-3c2s15n3", "3 of 6 fields (TYPE"),
        ("7679 0x1dff c9-3c2s15n3 compute up intera", "'intera' is not a MODE"),
        ("7679 0x1dff c9-3c2s15n3 compute up batch extra", "7 fields where 6"),
        ("-5 0x5 c0-0c0s1n1 compute up batch", "'-5' is not a NID; a NID is"),
        ("5.0 0x5 c0-0c0s1n1 compute up batch", "'5.0' is not a NID"),
        (
            "2147483648 0x80000000 c0-0c0s1n1 compute up batch",
            "'2147483648' is not a NID; a NID is",
        ),
        (
            "99999999999999999999 0x5 c0-0c0s1n1 compute up batch",
            "'99999999999999999999' is not a NID",
        ),
        (
            "5 0x500000000000 c0-0c0s1n1 compute up batch",
            "'0x500000000000' is not a hexadecimal NID",
        ),
        ("5 5 c0-0c0s1n1 compute up batch", "'5' is not a hexadecimal NID"),
        ("5 00x5 c0-0c0s1n1 compute up batch", "'00x5' is not a hexadecimal NID"),
        ("5 8x5 c0-0c0s1n1 compute up batch", "'8x5' is not a hexadecimal NID"),
        ("5 1234x5 c0-0c0s1n1 compute up batch", "'1234x5' is not a hexadecimal NID"),
        ("5 0x c0-0c0s1n1 compute up batch", "'0x' is not a hexadecimal NID"),
        ("5 0x5 c0-0c0s1 compute up batch", "'c0-0c0s1' is not a node's cname"),
        ("5 0x5 c0-0c0s1n1a0 compute up batch", "'c0-0c0s1n1a0' is not a node's cname"),
        ("5 0x5 x1000c0s0b0n0 compute up batch", "'x1000c0s0b0n0' is not a node's cname"),
        ("5 0x5 c0-0c0s1n1 gpu up batch", "'gpu' is not a TYPE (service or compute)"),
        ("5 0x5 c0-0c0s1n1 compute 99 batch", "'99' is not a STATUS"),
        ("٥ 0x5 c0-0c0s1n1 compute up batch", "'٥' is not a NID"),
        ("c0-0c0s0a0l00(0:0:0) green -> c0-0c0s6a0l10(0:0:6)", "looks like rtr-aries"),
        ("6 c0-0c0s1n0 compute 0 0 1", "looks like torus-coordinates"),
        ("NID (HEX) NODENAME TYPE STATUS", "the header differs from the one above"),
        ("NID NODENAME TYPE CORES X Y Z", "looks like meshcoords"),
        ("\x1b[0m", "'\\x1b[0m' is not a NID"),
    ],
)
def test_a_line_that_is_no_row_is_refused_by_its_number(line, says):
    message = refusal(dump(row(4, "c0-0c0s1n0"), row(6, "c0-0c0s1n2"), line, row(7, "c0-0c0s1n3")))
    assert message.startswith("d:4: ")
    assert says in message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEADER + "\n", "d: has no row for xtprocadmin"),
        ("NID (HEX) NODENAME STATUS\n", "d:1: xtprocadmin: the header lacks TYPE"),
        ("NID (HEX) NODENAME TYPE TYPE\n", "d:1: xtprocadmin: the header names a column twice"),
    ],
)
def test_a_dump_without_rows_or_with_half_a_header_is_refused(text, says):
    assert says in refusal(text)


def test_contradictions_are_faults_with_both_lines():
    found = read(
        dump(
            row(4, "c0-0c0s1n0"),
            row(5, "c0-0c0s1n1").replace("0x5", "0x6"),
            row(4, "c0-0c0s1n2"),
            row(7, "c0-0c0s1n0"),
            row(8, "c0-0c3s0n0"),
            row(9, "c0-0c0s16n0"),
            row(10, "c0-0c0s0n4"),
        ),
        "x",
    )
    assert [(f.line, f.kind, f.text, f.fault) for f in found.findings] == [
        (3, "hex", "HEX 0x6 is not NID 5 (0x5)", True),
        (4, "duplicate-nid", "NID 4 again, first on line 2", True),
        (5, "duplicate-cname", "cname c0-0c0s1n0 again, first on line 2", True),
        (6, "cname", "there is no c0-0c3s0n0: cages are 0 to 2", True),
        (7, "cname", "there is no c0-0c0s16n0: slots are 0 to 15", True),
        (8, "cname", "there is no c0-0c0s0n4: nodes are 0 to 3", True),
    ]
    assert str(found.findings[0].error()).startswith("x:3: HEX 0x6")


def test_a_dump_taken_twice_lists_some_faults_and_counts_the_rest():
    lines = [row(nid, xc(8, nid)) for nid in range(500)]
    faults = read(dump(*lines, *lines), "x").findings
    for kind in ("duplicate-nid", "duplicate-cname"):
        of_kind = [f for f in faults if f.kind == kind]
        assert len(of_kind) == 101
        assert of_kind[0].line == 502
        assert any(f.text == f"400 more of kind {kind}" for f in of_kind)


def test_more_nodes_than_any_machine_has_are_refused(monkeypatch):
    monkeypatch.setattr("nidmap.placement.readers.split_lines.__defaults__", ("", 9))
    lines = [row(nid, xc(8, nid)) for nid in range(10)]
    assert "more than 9 lines" in refusal("\n".join(lines) + "\n")
    assert len(read("\n".join(lines[:9]) + "\n", "x").nodes) == 9


def test_a_big_dump_crosses_pieces(monkeypatch):
    monkeypatch.setattr("nidmap.placement.readers.rows._PIECE", 1000)
    lines = [row(nid, xc(12, nid), "compute" if nid % 3 else "service") for nid in range(3000)]
    found = read(dump(*lines), "x")
    assert found.nodes.nid.tolist() == list(range(3000))
    assert found.nodes.line.tolist() == list(range(2, 3002))
    assert found.nodes.cname.tolist() == [xc(12, nid) for nid in range(3000)]
    assert "d:2502: xtprocadmin: 5 of 6" in refusal(
        dump(*lines[:2500], lines[2500].rsplit(None, 1)[0], *lines[2501:])
    )
