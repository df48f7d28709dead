# SPDX-License-Identifier: Apache-2.0
"""Ranks on nodes as users write them: numbering, counts, Slurm's own sorting, what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.errors import NidmapError, ParseError, PlanError, UsageError
from nidmap.placement.load import load_machine
from nidmap.placement.nodelist import NodeList
from nidmap.placement.placement import MOST_RANKS, Placement
from nidmap.rankmap.place_ranks import parse_counts, place_ranks
from tests.rankmap.helpers import layouts, named, slots


@pytest.fixture(scope="module")
def torus():
    return load_machine("torus:4x4x4")


@settings(deadline=None)
@given(layouts())
def test_slots_are_numbered_node_by_node(on):
    expected = [k for k, count in enumerate(on.counts.tolist()) for _ in range(count)]
    assert on.node_of_slot.tolist() == expected
    assert on.ranks == len(expected)
    assert on.first_slot.tolist() == [expected.index(k) for k in range(len(on.names))]


@settings(deadline=None)
@given(layouts())
def test_sorting_keeps_each_node_with_its_ranks(on):
    placed = dict(zip(on.names.tolist(), on.counts.tolist(), strict=True))
    ordered = on.sorted().with_order(None)
    assert ordered.names.tolist() == sorted(on.names.tolist())
    assert dict(zip(ordered.names.tolist(), ordered.counts.tolist(), strict=True)) == placed
    assert ordered.sorted() == ordered


def test_numbers_inside_a_name_count_as_numbers():
    names = ["x1000c0s10b0n0", "x1000c0s2b0n0", "x999c7s7b1n1"]
    assert slots(names, 1).sorted().names.tolist() == [names[2], names[1], names[0]]


def test_nodes_of_a_machine_by_list_cname_free_and_rows(torus):
    assert place_ranks(torus, "nid[00008,00003]", 2).names.tolist() == named(8, 3)
    assert place_ranks(torus, "8,3", "2,1").counts.tolist() == [2, 1]
    assert place_ranks(torus, np.array([8, 3]), [2, 1]).rows.tolist() == [8, 3]
    assert place_ranks(torus, NodeList(named(8, 3)), 1).rows.tolist() == [8, 3]
    assert place_ranks(torus, named(8, 3), 1).rows.tolist() == [8, 3]
    assert place_ranks(torus, None, 24).rows.tolist() == list(range(64))


def test_no_ppn_means_as_often_as_the_list_says(torus):
    on = place_ranks(torus, "nid00045*3,nid00002")
    assert on.names.tolist() == named(45, 2)
    assert on.counts.tolist() == [3, 1]


def test_a_host_file_repeats_by_lines(torus):
    text = "nid00045\nnid00002\nnid00045\n"
    on = place_ranks(torus, text, source="hosts", repeats=True)
    assert on.names.tolist() == named(45, 2)
    assert on.counts.tolist() == [2, 1]


@pytest.mark.parametrize("ppn", [None, "2"])
def test_a_duplicate_that_is_no_repeat_count_is_an_error(torus, ppn):
    with pytest.raises(NidmapError, match="nid00045") as caught:
        place_ranks(torus, "nid00045,nid00002,nid00045", ppn)
    assert caught.value.exit_code == 3


def test_a_repeat_count_does_not_excuse_another_duplicate(torus):
    with pytest.raises(NidmapError, match="nid00002"):
        place_ranks(torus, "nid00045*3,nid00002,nid00002")


def test_a_repeat_count_and_ppn_contradict_each_other(torus):
    with pytest.raises(NidmapError, match="nid00045 has 3 slots, --ppn wants 24 ranks there"):
        place_ranks(torus, "nid00045*3,nid00002", 24)


@pytest.mark.parametrize("ppn", [1, 2, 3, "3,2"])
@pytest.mark.parametrize(
    "text", ["nodeA slots=3\nnodeB slots=3\n", "nodeA:3\nnodeB:3\n", "nodeA\nnodeB\n" * 3]
)
def test_a_host_file_with_slots_takes_as_many_ranks_or_fewer(text, ppn):
    on = place_ranks(None, text, ppn, source="hosts", repeats=True)
    assert on.names.tolist() == ["nodeA", "nodeB"]
    assert on.counts.tolist() == ([3, 2] if ppn == "3,2" else [ppn, ppn])
    with pytest.raises(ParseError, match="hosts: nodeB has 3 slots, --ppn wants 4 ranks there"):
        place_ranks(None, text, "3,4", source="hosts", repeats=True)


@pytest.mark.parametrize("repeats", [True, False])
def test_rows_that_repeat_are_refused_with_a_ppn(torus, repeats):
    with pytest.raises(NidmapError, match="nid00003 is given twice"):
        place_ranks(torus, np.array([3, 5, 3]), 2, repeats=repeats)


def test_without_a_machine_names_are_enough():
    on = place_ranks(None, "nid[00045,00012]", 4)
    assert on.names.tolist() == named(45, 12)
    assert (on.machine, len(on.rows)) == (None, 0)
    with pytest.raises(ParseError, match="nid00045 is given twice"):
        place_ranks(None, "nid00045,nid00045", 4)
    with pytest.raises(UsageError, match="no nodes"):
        place_ranks(None, None, 4)


def test_a_host_may_be_an_address_or_begin_with_a_digit():
    on = place_ranks(None, "10.0.0.1\n10.0.0.1\n3com\n", source="hosts", repeats=True)
    assert (on.names.tolist(), on.counts.tolist()) == (["10.0.0.1", "3com"], [2, 1])


@pytest.mark.parametrize("machine", [True, False])
def test_a_number_behind_a_name_is_its_ranks(torus, machine):
    on = place_ranks(torus if machine else None, "nid00003 2 nid00005 1")
    assert (on.names.tolist(), on.counts.tolist()) == (named(3, 5), [2, 1])


@pytest.mark.parametrize("text", ["12-15", "#0-3", "nid00001,7", "7 8"])
def test_without_a_machine_numbers_name_no_node(text):
    with pytest.raises(NidmapError, match="NIDs need a machine: use -m"):
        place_ranks(None, text, 4)


def test_a_machine_without_free_nodes_is_an_answer_no(torus):
    down = replace(torus, state=np.full(len(torus), "down"))
    with pytest.raises(PlanError, match="torus:4x4x4 has no free compute node"):
        place_ranks(down, None, 4)


@pytest.mark.parametrize(
    ("ppn", "nodes", "expected"),
    [
        (24, 3, [24, 24, 24]),
        ("24", 3, [24, 24, 24]),
        ("24,24,12", 3, [24, 24, 12]),
        ("24*2,12", 3, [24, 24, 12]),
        ("32(x4),16", 5, [32, 32, 32, 32, 16]),
        ([3, 1], 2, [3, 1]),
        ("7", 1, [7]),
    ],
)
def test_counts(ppn, nodes, expected):
    assert parse_counts(ppn, nodes).tolist() == expected


@pytest.mark.parametrize(
    ("ppn", "nodes", "says"),
    [
        ("24,12", 3, "--ppn has 2 numbers, but there are 3 nodes"),
        ("24*4", 3, "--ppn has 4 numbers, but there are 3 nodes"),
        ("24(x999999999)", 3, "999999999 numbers"),
        ("24,24", 1, "there are 1 node"),
        ("0", 3, "'0' is not a number of ranks"),
        ("-4", 3, "'-4' is not a number of ranks"),
        ("", 3, "'' is not a number of ranks"),
        ("1e3", 3, "'1e3'"),
        ("24,", 2, "''"),
        ("9" * 400, 2, "is not a number of ranks"),
        ([], 2, "''"),
    ],
)
def test_counts_that_make_no_sense(ppn, nodes, says):
    with pytest.raises(UsageError) as caught:
        parse_counts(ppn, nodes)
    assert says in str(caught.value)


@settings(deadline=None)
@given(st.text("0123456789,*(x) ", max_size=25), st.integers(1, 50))
def test_any_counts_text_is_read_or_refused(text, nodes):
    try:
        counts = parse_counts(text, nodes)
    except UsageError:
        return
    assert len(counts) == nodes
    assert (counts >= 1).all()


def test_a_layout_must_have_nodes_and_a_size_that_exists():
    with pytest.raises(UsageError, match="no nodes"):
        slots([], 1)
    with pytest.raises(UsageError, match="node nid00002 has no ranks"):
        slots(named(1, 2), [1, 0])
    with pytest.raises(UsageError, match=f"at most {MOST_RANKS}"):
        slots(named(1, 2), 10**18)
    with pytest.raises(UsageError, match="1 counts of ranks for 2 nodes"):
        Placement(np.array(named(1, 2)), np.array([1]))


def test_words_for_a_person():
    assert slots(named(1), 24).words() == "1 node x 24"
    assert slots(named(1, 2), 24).words() == "2 nodes x 24"
    assert slots(named(1, 2), [24, 12]).words() == "2 nodes, 12 to 24 ranks each"
