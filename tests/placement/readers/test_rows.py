# SPDX-License-Identifier: Apache-2.0
"""Rows of a text against a slow reading of one line after the other."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import NidmapError, ParseError
from nidmap.placement.readers import rows as r
from nidmap.placement.readers.rows import NID, ROLE, row_layout

COLUMNS = (r.NID, r.HEX_NID, r.ROLE)
SHORT = (r.NID, r.ROLE)


def layout_of(line):
    """Tell rows of two kinds apart, and headers."""
    words = line.split()
    if words[0].lower() == "nid":
        return None
    return r.row_layout(line, COLUMNS if len(words) == 3 else SHORT)


BLANKS = st.sampled_from(["", " ", "\t ", "\r"])
LINES = st.lists(
    st.one_of(
        st.sampled_from(["", "   ", "# 7 0x7 compute", " #", "NID TYPE", "nid"]),
        st.builds("{0}{1:0{2}}{3} 0x{4:X}  {5}{0}".format, BLANKS, st.integers(0, r.BIGGEST),
                  st.integers(1, 9), BLANKS, st.integers(0, 2**32 - 1),
                  st.sampled_from(["compute", "Service", "COMPUTE"])),
        st.builds("{}{} {}".format, BLANKS, st.integers(0, r.BIGGEST),
                  st.sampled_from(["service", "Compute"])),
    ),
    max_size=12,
)  # fmt: skip


@given(lines=LINES, piece=st.integers(1, 5))
def test_columns_are_those_of_a_slow_reading(lines, piece):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(r, "_PIECE", piece)
        wanted = [
            (i, *x.lower().split()) for i, x in enumerate(lines, 1) if x.strip()[:1].isdigit()
        ]
        text = "\n".join(lines) + "\n"
        if not wanted:
            with pytest.raises(ParseError, match="has no row for test"):
                r.read_rows(text, "x", "test", layout_of)
            return
        found = r.read_rows(text, "x", "test", layout_of)
    assert found.line.tolist() == [i for i, *_ in wanted]
    assert found.column("nid").tolist() == [int(words[0]) for _, *words in wanted]
    hexadecimal = [int(words[1], 16) if len(words) == 3 else -1 for _, *words in wanted]
    assert found.column("hex").tolist() == hexadecimal
    assert found.having("hex").tolist() == [x >= 0 for x in hexadecimal]
    assert found.column("role").tolist() == [words[-1] for _, *words in wanted]
    assert found.column("cores").tolist() == [-1] * len(wanted)
    assert found.table(("nid", "cores")).dtype == np.int32
    counts = found.counts
    assert (counts.rows, counts.total) == (len(wanted), len(lines))
    assert counts.headers == sum(x.lower().startswith("nid") for x in lines)


@pytest.mark.parametrize("word", ["1000000000", "99999999999999999999999", "0x7", "-1", "٥", ""])
def test_a_word_that_is_no_number_of_nine_digits_is_refused(word):
    with pytest.raises(NidmapError, match=r"is not a NID|1 of 2 fields"):
        r.row_layout(f"{word} compute", SHORT)


def test_what_a_row_loses_is_said_with_its_line():
    for line, says in (("7", "1 of 2"), ("7 compute x y", "4 fields where 2"), ("x", "'x' is not")):
        with pytest.raises(ParseError, match=rf"d:3: test: {re.escape(says)}"):
            r.read_rows(f"# a\n1 compute\n{line}\n2 compute\n", "d", "test", layout_of)


def test_row_layout():
    assert row_layout("17 compute", (NID, ROLE)).names == ("nid", "role")
    with pytest.raises(
        NidmapError, match=r"1 of 2 fields \(TYPE \(service or compute\) is missing\);"
    ):
        row_layout("17", (NID, ROLE))
