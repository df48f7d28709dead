# SPDX-License-Identifier: Apache-2.0
"""Permutations, transpositions and lists of messages: who sends to whom, and what it takes."""

import numpy as np
import pytest

import nidmap
from nidmap.placement.errors import ParseError, UsageError
from nidmap.placement.options import with_figures
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.pattern.sends import permutation
from nidmap.rankmap.predict import Job, predict


def messages(spec, ranks):
    """Return (source, destination, bytes) of every message of a pattern."""
    directed = parse_pattern(spec).fit(ranks).directed
    return list(zip(*(column.tolist() for column in directed.columns[:3]), strict=True))


@pytest.mark.parametrize("ranks", [1, 2, 7, 64])
def test_a_permutation_sends_and_receives_once_a_rank(ranks):
    sent = messages("permutation:seed=5", ranks)
    assert len({a for a, _, _ in sent}) == len({b for _, b, _ in sent}) == len(sent)
    assert all(a != b and size == 1 for a, b, size in sent)
    assert sent == messages("permutation:seed=5", ranks)


def test_seeds_differ_and_none_is_seed_0():
    assert messages("permutation", 50) == messages("permutation:seed=0", 50)
    assert messages("permutation", 50) != messages("permutation:seed=1", 50)


@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (3, 4), (4, 4), (2, 8)])
def test_a_transposition_puts_a_row_major_grid_in_column_major_order(rows, columns):
    grid = np.arange(rows * columns).reshape(rows, columns)
    moved = np.empty(rows * columns, dtype=int)
    for a, b, _ in messages(f"transposition:{rows}x{columns}", rows * columns):
        moved[b] = a
    stay = [r for r in range(rows * columns) if grid.T.ravel()[r] == r]
    moved[stay] = stay
    assert moved.tolist() == grid.T.ravel().tolist()


def test_every_line_of_a_list_is_a_message(tmp_path):
    path = tmp_path / "sent.csv"
    path.write_text("source,target,bytes\n0,1,100\n0,1,50\n2,0,7\n1,1,9\n")
    assert messages(f"sends:{path}", 4) == [(0, 1, 100.0), (0, 1, 50.0), (2, 0, 7.0)]
    machine = nidmap.load_machine("torus:4,bw=1")
    found = predict(with_figures(machine, latency=0), "0-3", Job(f"sends:{path}", bytes=1e6))
    assert found.time_s == pytest.approx(0.15)
    assert found.asked["bytes"] == 1e6
    posted = next(
        t for t in predict(machine, "0-3", Job(f"sends:{path}")).terms if t.name == "messages"
    )
    assert "at most 2 posted by a rank" in posted.rests_on


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 1 8\n1 2\n", ":2: 2 numbers where the lines above have 3"),
        ("0 1\n1 2\n", ":1: 2 numbers, not 3"),
        ("0 1 8\n1 2 x\n", ":2: 'x' is not a number"),
        ("0 1 8\n\n-1 2 4\n", ":3: "),
        ("0 1.5 8\n", ":1: 1.5 is not a rank"),
        ("0 1 -8\n", ":1: "),
        ("# nothing\n", "no numbers"),
        ("3 3 8\n", "no edge between two ranks"),
    ],
)
def test_a_list_that_is_none_is_refused_with_its_line(tmp_path, text, said):
    path = tmp_path / "sent.txt"
    path.write_text(text)
    with pytest.raises(ParseError, match=r"sent\.txt") as caught:
        parse_pattern(f"sends:{path}")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "spec",
    ["permutation:1", "permutation:seed=x", "transposition:4", "transposition:2x2x2", "sends"],
)
def test_what_makes_no_pattern_is_refused(spec):
    with pytest.raises(UsageError):
        parse_pattern(spec)


def test_more_ranks_than_a_list_names_keep_its_messages(tmp_path):
    path = tmp_path / "sent.txt"
    path.write_text("0 1 8\n1 0 2\n")
    assert messages(f"sends:{path}", 6) == [(0, 1, 8.0), (1, 0, 2.0)]
    path.write_text("# ranks=2\n0 1 8\n1 0 2\n")
    with pytest.raises(UsageError, match="has 2 ranks"):
        parse_pattern(f"sends:{path}").fit(6)


def test_one_each():
    assert permutation("seed=1").fit(8).ranks == 8
