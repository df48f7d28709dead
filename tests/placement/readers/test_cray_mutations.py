# SPDX-License-Identifier: Apache-2.0
"""Damaged dumps of every Cray format: a dump or one line that names file and line, nothing else."""

import re

import pytest
from hypothesis import given

from nidmap.placement.errors import NidmapError
from nidmap.placement.readers import read_text
from nidmap.placement.support.reading import decode
from tests.placement.readers.test_samples import CHANGES, damaged, read_or_refused
from tests.samples import SAMPLES

XC_HEADER = b"   NID    (HEX)    NODENAME     TYPE    STATUS        MODE\n"
CRAY = ("xtprocadmin", "xtdb2proc", "meshcoords", "torus-coordinates", "system-map")


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
    if dump.nodes is not None:
        lines = text.split("\n")
        assert ((dump.nodes.nid >= 0) & (dump.nodes.nid < 2**31)).all()
        for line, name in zip(dump.nodes.line.tolist(), dump.nodes.cname.tolist(), strict=True):
            assert name == printed_name(lines[line - 1].lower(), dump.format)


@pytest.mark.parametrize("name", CRAY)
@given(changes=CHANGES)
def test_what_is_read_of_a_damaged_dump_is_what_its_lines_say(name, changes):
    data = damaged(SAMPLES[name].encode(), changes)
    dump = read_or_refused(data)
    if dump is not None and dump.format in CRAY:
        consistent(dump, data)


@pytest.mark.parametrize("name", ["xtprocadmin", "xtdb2proc", "rtr-aries", "rtr-gemini"])
def test_a_dump_cut_inside_its_last_line_is_never_taken_for_whole(name):
    """Formats whose rows end in a word: a row that lost its end is seen as such."""
    data = SAMPLES[name].encode().rstrip(b"\n")
    last = data[data.rindex(b"\n") :].lstrip()
    for missing in range(1, len(last)):
        dump = read_or_refused(data[:-missing])
        assert dump is None or any(fault.fault for fault in dump.findings), last[:-missing]


def test_a_header_of_another_dump_is_named():
    for name in ("meshcoords", "xtdb2proc", "torus-coordinates", "rtr-aries", "rtr-gemini"):
        with pytest.raises(NidmapError) as caught:
            read_text(SAMPLES["xtprocadmin"] + SAMPLES[name], "d")
        message = str(caught.value)
        assert "two formats in one file" in message
        assert name in message
        assert "xtprocadmin" in message


def test_words_that_look_like_formats_are_quoted_safely():
    evil = XC_HEADER + b"1 0x1 c0-0c0s0n1 compute up batch\n" + b"x\xc2\x9b31m" * 50 + b"\n"
    assert read_or_refused(evil) is None
