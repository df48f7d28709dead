"""Damaged dumps of every Cray format: a dump or one line that names file and line, nothing else."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.dumps.assemble import assemble
from placement.errors import NidmapError
from placement.names.columns import format_cnames
from placement.names.gemini import GeminiNumbering
from placement.names.xc import Xc
from placement.readers import find, read_text
from placement.support.reading import decode
from tests.writers import write

XC_HEADER = b"   NID    (HEX)    NODENAME     TYPE    STATUS        MODE\n"


def node_rows(rule, nids):
    """Return rows of xtprocadmin for some nodes."""
    names = format_cnames(rule.parts(nids)).tolist()
    return "".join(
        f"{n:6d} 0x{n:x} {name} {'service' if n % 5 == 0 else 'compute'} up batch\n"
        for n, name in zip(nids.tolist(), names, strict=True)
    )


def seeds():
    """Return a small sound dump of each format."""
    xc = assemble([read_text(node_rows(Xc(2), np.arange(0, 400, 11)), "d")])
    xe = assemble([read_text(node_rows(GeminiNumbering(2, 1), np.arange(40)), "d")])
    text = {name: write(xc, name) for name in ("xtprocadmin", "xtdb2proc", "meshcoords")}
    text["torus-coordinates"] = write(xe, "torus-coordinates")
    rows = [line.split() for line in text["torus-coordinates"].splitlines()]
    text["system-map"] = "nid hex node gemini x y z\n----\n" + "".join(
        f"{n} 0x{int(n):x} {name} {name[:-2]}g{int(name[-1]) // 2} {x} {y} {z}\n"
        for n, name, _, x, y, z in rows
    )
    text["rtr-aries"] = "".join(
        f"c0-0c0s{s}a0l{t:02o}(0:0:{s}) "
        + (f"green -> c0-0c0s{1 - s}a0l{t:02o}(0:0:{1 - s})\n" if t < 9 else "blue -> unused\n")
        for s in (0, 1)
        for t in range(48)
    )
    text["rtr-gemini"] = "".join(
        f"c0-0c0s{s}g0l{t:02o}[(0,0,{s})] Z{'+-'[s]} -> c0-0c0s{1 - s}g0l{t:02o}[(0,0,{1 - s})]"
        " LinkType: backplane\n"
        for s in (0, 1)
        for t in range(9)
    )
    text["xt"] = (
        "NID (HEX) NODENAME TYPE ARCH OS CORES\n12 0xc c0-0c0s3n0 compute xt CNL 8\n"
        "13 0xd c0-0c0s3n1 compute\n14 0xe c0-0c0s3n2 service xt (service) 2\n"
    )
    return {name: found.encode() for name, found in text.items()}


SEEDS = seeds()
BYTES = st.one_of(
    st.integers(0, 255).map(lambda i: bytes([i])),
    st.sampled_from([b"\n", b" ", b"-", b"0", b"9" * 12, b"0x", b"#", b"\r", b"\xc2\xa0", b"\xff"]),
)
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["flip", "insert", "cut", "end", "copy", "drop-line", "swap-lines", "mix"]),
        st.integers(0, 10_000),
        st.integers(0, 300),
        BYTES,
    ),
    min_size=1,
    max_size=5,
)


def damaged(data, changes):
    """Return the bytes after some accidents."""
    for what, at, size, byte in changes:
        at = at % (len(data) + 1)
        if what == "flip":
            data = data[:at] + byte + data[at + len(byte) :]
        elif what == "insert":
            data = data[:at] + byte + data[at:]
        elif what == "cut":
            data = data[:at] + data[at + size :]
        elif what == "end":
            data = data[:at]
        elif what == "copy":
            data = data[:at] + data[at : at + size] * 2 + data[at + size :]
        elif what == "mix":
            other = list(SEEDS.values())[size % len(SEEDS)]
            data = data[:at] + other[: at + 1] + data[at:]
        else:
            lines = data.split(b"\n")
            i = at % len(lines)
            if what == "drop-line":
                del lines[i]
            else:
                lines[i], lines[size % len(lines)] = lines[size % len(lines)], lines[i]
            data = b"\n".join(lines)
    return data


def outcome(data, name=None):
    """Read bytes; return the dump, or None after checking the error."""
    try:
        text = decode(data, "d")
        return read_text(text, "d") if name is None else find(name).read(text, "d")
    except NidmapError as error:
        message, code = str(error), error.exit_code
    assert code == 3
    assert message.isprintable()
    assert message.startswith("d:") or message.startswith("d ")
    assert len(message) < 700
    return None


def printed_name(line, name):
    """Return the cname that a line names, in one regular expression."""
    if name == "xtdb2proc":
        fields = dict(pair.split("=") for pair in line.strip().rstrip(",").split(","))
        parts = [fields[x] for x in ("cab_position", "cab_row", "cage", "slot", "cpu")]
    else:
        parts = re.search(r"c(\d+)-(\d+)c(\d+)s(\d+)n(\d+)(?:\s|$)", line).groups()
    return "c{}-{}c{}s{}n{}".format(*map(int, parts))


def consistent(dump, data):
    """Check what must hold of any dump that is handed on."""
    text = decode(data, "d")
    assert dump.counts.total == text.count("\n") + (not text.endswith("\n"))
    for fault in dump.faults:
        assert 0 <= fault.line <= dump.counts.total
        assert fault.text.isprintable()
    if dump.nodes is not None:
        lines = text.split("\n")
        for column in (dump.nodes.nid, dump.nodes.cname):
            assert len(column) == len(dump.nodes)
        assert ((dump.nodes.nid >= 0) & (dump.nodes.nid < 2**31)).all()
        for line, name in zip(dump.nodes.line.tolist(), dump.nodes.cname.tolist(), strict=True):
            assert name == printed_name(lines[line - 1].lower(), dump.format)


def test_the_seeds_are_sound():
    for name, data in SEEDS.items():
        dump = read_text(data.decode(), name)
        assert dump.format == ("xtprocadmin" if name == "xt" else name)
        assert dump.faults == ()


@pytest.mark.parametrize("name", SEEDS)
@given(changes=CHANGES)
def test_a_damaged_dump_is_read_or_refused_in_one_line(name, changes):
    data = damaged(SEEDS[name], changes)
    dump = outcome(data)
    if dump is not None and dump.format in SEEDS:
        consistent(dump, data)


@pytest.mark.parametrize("name", [x for x in SEEDS if x != "xt"])
@given(data=st.binary(max_size=200))
def test_any_bytes_given_to_any_reader_are_read_or_refused(name, data):
    outcome(data, name)


@pytest.mark.parametrize("name", SEEDS)
@given(changes=CHANGES)
def test_a_damaged_dump_makes_a_machine_or_one_line(name, changes):
    dump = outcome(damaged(SEEDS[name], changes))
    if dump is None:
        return
    try:
        assemble([dump])
    except NidmapError as error:
        message = str(error)
    else:
        return
    assert message.isprintable()


@pytest.mark.parametrize("name", ["xtprocadmin", "xtdb2proc", "rtr-aries", "rtr-gemini"])
def test_a_dump_cut_inside_its_last_line_is_never_taken_for_whole(name):
    """Formats whose rows end in a word: a row that lost its end is seen as such."""
    data = SEEDS[name].rstrip(b"\n")
    last = data[data.rindex(b"\n") :].lstrip()
    for missing in range(1, len(last)):
        dump = outcome(data[:-missing])
        assert dump is None or any(fault.fatal for fault in dump.faults), last[:-missing]


def test_a_header_of_another_dump_is_named():
    for name in ("meshcoords", "xtdb2proc", "torus-coordinates", "rtr-aries", "rtr-gemini"):
        with pytest.raises(NidmapError) as caught:
            read_text((SEEDS["xtprocadmin"] + SEEDS[name]).decode(), "d")
        message = str(caught.value)
        assert "two formats in one file" in message
        assert name in message
        assert "xtprocadmin" in message


def test_words_that_look_like_formats_are_quoted_safely():
    evil = XC_HEADER + b"1 0x1 c0-0c0s0n1 compute up batch\n" + b"x\xc2\x9b31m" * 50 + b"\n"
    assert outcome(evil) is None
