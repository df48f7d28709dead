# SPDX-License-Identifier: Apache-2.0
"""Patterns with possessive quantifiers match the same with greedy ones, as Python 3.10 has them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.names import hostlist, pasted

WHOLE = [hostlist._PLAIN]
SEARCHED = [hostlist._WORD, pasted._HEAD, pasted._EXEC]

PIECES = st.sampled_from(
    (*"nA7.-, \t\n[]!=", "nid00012", "#3", "[1-3]", "[1,2]", "*2", ":3", " slots=2", " up ", " R ",
     " max-slots=4", "exec_host = ", "        n1/0", " 1:00 ")
)  # fmt: skip


def greedy(pattern):
    return re.compile(re.sub(r"(?<=[*+?}])\+", "", pattern.pattern), pattern.flags)


@pytest.mark.parametrize("pattern", WHOLE, ids=lambda pattern: pattern.pattern[:20])
@given(text=st.lists(PIECES, max_size=12).map("".join))
def test_greedy_matches_the_same_texts(pattern, text):
    assert bool(greedy(pattern).fullmatch(text)) == bool(pattern.fullmatch(text))


@pytest.mark.parametrize("pattern", SEARCHED, ids=lambda pattern: pattern.pattern[:20])
@given(text=st.lists(PIECES, max_size=12).map("".join))
def test_greedy_finds_the_same_parts(pattern, text):
    found = [match.span() for match in pattern.finditer(text)]
    assert [match.span() for match in greedy(pattern).finditer(text)] == found
