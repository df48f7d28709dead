# SPDX-License-Identifier: Apache-2.0
"""Host names with more or less of their domains, against the rule said one pair at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import ParseError
from nidmap.placement.lookup import find_hosts
from nidmap.placement.support.hosts import HostNames, same_host

names = st.lists(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(".".join), max_size=6, unique=True
)


def alike(a, b):
    """One is the other, or begins with all its labels."""
    a, b = a.split("."), b.split(".")
    return a[: len(b)] == b[: len(a)]


@given(names, st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(".".join))
def test_a_word_finds_the_names_that_are_alike(known, word):
    found = [known[k] for k in HostNames(known).find(word)]
    shorter = [name for name in known if alike(name, word) and len(name) <= len(word)]
    longer = [name for name in known if alike(name, word) and len(name) > len(word)]
    assert found == ([max(shorter, key=len)] if shorter else longer)
    assert all(same_host(name, word) for name in found)


@given(names, names)
def test_no_two_hosts_become_one(have, want):
    try:
        rows = find_hosts(np.array(have, dtype=np.str_), np.array(want, dtype=np.str_), "-")
    except ParseError:
        assert any(not alike(a, b) for a in want for b in want)
        return
    for a, row in zip(want, rows.tolist(), strict=True):
        assert row < 0 or alike(have[row], a)
        assert all(
            alike(a, b) for b, other in zip(want, rows.tolist(), strict=True) if row == other >= 0
        )


@pytest.mark.parametrize("word", ["10", "10.0", "10.0.0"])
def test_the_parts_of_an_address_are_no_domain(word):
    assert HostNames(["10.0.0.1"]).find(word) == HostNames([word]).find("10.0.0.1") == []


def test_case_counts_only_where_the_names_tell_it():
    """DNS knows no case: NODE1 is node1, but of N1 and n1 each is its own."""
    hosts = HostNames(["node1", "b.hpc.org", "N1", "n1", "A.x.org", "a.y.org"])
    words = ("NODE1", "Node1.CM", "B", "B.HPC.ORG", "N1", "n1", "a", "A.X.ORG", "c")
    assert [hosts.find(word) for word in words] == [
        [0], [0], [1], [1], [2], [3], [5], [4], []]  # fmt: skip
    assert same_host("N1.Cm", "n1")
    assert HostNames(["N1", "n1"]).find("n1.cm") == [1]
    assert HostNames(["NODE1", "Node1"]).find("node1") == [0, 1]
