# SPDX-License-Identifier: Apache-2.0
"""The contention paper's sizes, input and node sets, and its all-to-alls on real ranks."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import UsageError
from nidmap.placement.specs import parse_spec
from nidmap.workloads.contention.command import PAPER, leaves, node_sets
from nidmap.workloads.contention.trial import (
    PRINTED_N,
    WARN,
    case_sizes,
    parse_length,
    send_counts,
    sorted_ints,
    unsorted_ints,
)

#: Table 3.1 to 4.3 as printed: N, p, l_n, local MB, l_n/p, block kB, global GB at m = 512N.
TABLE_43 = [
    (1, 8, 186_624, 729, 23_328, 93_312, 6),
    (3, 24, 62_208, 729, 2592, 31_104, 17),
    (9, 72, 20_736, 729, 288, 10_368, 51),
    (18, 144, 10_368, 729, 72, 5184, 103),
    (36, 288, 5184, 729, 18, 2592, 205),
]


@pytest.mark.parametrize("row", TABLE_43, ids=lambda row: f"{row[0]} nodes")
def test_sizes_are_those_of_table_4_3(row):
    nodes, ranks, local, megabytes, block, kilobytes, gigabytes = row
    size = case_sizes(PRINTED_N, parse_length("512N").at(nodes), ranks, nodes)
    assert (size.local, size.block) == (local, block)
    assert size.local_bytes == megabytes << 20
    assert size.block_bytes == kilobytes << 10
    assert round(ranks * size.local_bytes / 2**30) == gigabytes


def test_table_4_4_fails_where_a_warning_is_given():
    share = {
        factor: case_sizes(PRINTED_N, factor * 36, 288, 36).node_need / (24 << 30)
        for factor in (512, 800, 810, 1024)
    }
    assert share[512] < share[800] < WARN < share[810] < share[1024]


def test_the_paper_s_matrix_of_48_on_4():
    rows = [unsorted_ints(48, 4, rank).tolist() for rank in range(4)]
    assert rows[1] == [4, 5, 6, 16, 17, 18, 28, 29, 30, 40, 41, 42]
    assert rows[3] == [10, 11, 12, 22, 23, 24, 34, 35, 36, 46, 47, 48]


@given(st.integers(1, 9), st.integers(1, 6))
def test_an_all_to_all_of_equal_blocks_sorts_the_input(ranks, block):
    n = ranks * ranks * block
    rows = [np.split(unsorted_ints(n, ranks, rank), ranks) for rank in range(ranks)]
    for rank in range(ranks):
        got = np.concatenate([theirs[rank] for theirs in rows])
        assert got.tolist() == sorted_ints(n, ranks, rank).tolist()


@pytest.mark.parametrize("text", ["", "0", "512M", "N", "-3", "1.5N", "٣"])
def test_lengths_that_are_none(text):
    with pytest.raises(UsageError):
        parse_length(text)


def test_an_n_that_does_not_divide_names_one_that_does():
    with pytest.raises(UsageError, match="the nearest is 98"):
        case_sizes(100, 1, 7, 1)


@given(st.integers(1, 9), st.integers(1, 6), st.integers(1, 4))
def test_counts_are_those_of_the_data(ranks, block, width):
    n = ranks * ranks * block
    for rank in range(ranks):
        ints = unsorted_ints(n, ranks, rank)
        wanted = [sum((v - 1) // (n // ranks) == to for v in ints.tolist()) for to in range(ranks)]
        assert send_counts(ints, ranks, n // ranks).tolist() == wanted == [block] * ranks
        doubles = ints[:, None] + 0.0001 * np.arange(width)
        assert send_counts(doubles[:, 0], ranks, n // ranks).tolist() == wanted


def test_row_a_sends_one_count_a_process():
    size = case_sizes(PRINTED_N, 512, 288, 36, "alltoall-int")
    assert (size.block_bytes, size.local_bytes) == (4, 4 * 288)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.data())
def test_node_sets_hold_the_first_node_and_are_as_large_as_asked(leaf, data):
    count = data.draw(st.integers(1, len(leaf)))
    found = node_sets(leaf, count)
    assert found
    for one in found:
        assert len(set(one.nodes)) == len(one.nodes) == count
        assert one.nodes[0] == 0
        used = {leaf[node] for node in one.nodes}
        assert {1: "one leaf", 2: "two leaves"}.get(len(used), f"{len(used)} leaves") == one.name
    home = leaf.count(leaf[0])
    assert (found[0].name == "one leaf") == (count <= home)
    others = max([leaf.count(x) for x in set(leaf) - {leaf[0]}], default=0)
    assert any(one.name == "two leaves" for one in found) == (
        others > 0 and 2 <= count <= home + others
    )


def test_two_leaves_of_tara_are_shared_evenly():
    leaf = [0] * 18 + [1] * 18
    found = [one for count in PAPER for one in node_sets(leaf, count)]
    shapes = [(one.name, [sum(leaf[n] == k for n in one.nodes) for k in (0, 1)]) for one in found]
    assert shapes == [
        ("one leaf", [1, 0]),
        ("one leaf", [3, 0]),
        ("two leaves", [2, 1]),
        ("one leaf", [9, 0]),
        ("two leaves", [5, 4]),
        ("one leaf", [18, 0]),
        ("two leaves", [9, 9]),
        ("two leaves", [18, 18]),
    ]


NODES = {"NIDMAP_PROCESSOR_NAMES": "n37,n38,n55,n56"}


@pytest.mark.mpi
@pytest.mark.usefixtures("once")
def test_one_leaf_against_two_on_real_ranks(bench, sizes):
    ppn = 2 if sizes[-1] == 8 else 1
    words = ["contention", "-m", "tara", "--n", "5760", "--m", "3,5N", "--kind", "all"]
    words += ["--nodes", "1,2,4", "--repeat", "1", "--json"]
    document = json.loads(bench(words, 4 * ppn, env=NODES).stdout)
    seen = [(c["kind"], c["m"], c["nodes"], c["ranks"], c["leaves"]) for c in document["cases"]]
    assert len(seen) == len(set(seen)) == (1 + 2 + 1) * 4
    assert ("alltoallv-double", 10, 2, 2 * ppn, "two leaves") in seen
    assert ("alltoallv-double", 20, 4, 4 * ppn, "two leaves") in seen
    assert ("alltoallv-int", 3, 1, ppn, "one leaf") in seen


@pytest.mark.mpi
@pytest.mark.usefixtures("once")
def test_what_does_not_fit_is_refused_and_what_may_not_is_warned_of(bench):
    words = ["contention", "--n", "3600", "--m", "1,2,9", "--repeat", "1", "--json"]
    done = bench([*words, "--memory", "80kB", "--kind", "alltoallv-double"], 3)
    document = json.loads(done.stdout)
    assert [case["m"] for case in document["cases"]] == [1]
    assert [case["m"] for case in document["refused"]] == [2, 9]
    done = bench([*words, "--memory", "70kB", "--kind", "alltoallv-double"], 3)
    assert "82 % of its memory: warned" in done.stderr
    done = bench([*words, "--memory", "1kB", "--kind", "alltoallv-double"], 3, check=False)
    assert done.returncode == 3
    assert "no case fits into a node's memory" in done.stderr


@pytest.mark.mpi
@pytest.mark.usefixtures("once")
def test_wrong_requests_are_one_line(bench):
    for words, said in (
        (["--n", "101"], "does not divide n = 101"),
        (["--n", "9", "--ppn", "7"], "--ppn 7: a node has only 3 ranks"),
    ):
        done = bench(["contention", *words], 3, check=False)
        assert done.returncode == 2
        lines = [line for line in done.stderr.splitlines() if line.startswith("nidmap: ")]
        assert len(lines) == 1
        assert said in lines[0]
        assert "Traceback" not in done.stderr


def test_leaves():
    assert leaves(parse_spec("fattree:leaf=2,leaves=2,spines=1"), ["nid00003", "nid00000"]) == [
        1,
        0,
    ]
