# SPDX-License-Identifier: Apache-2.0
"""Patterns: what their texts mean, their edges against brute force, and what is refused."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.errors import UsageError
from nidmap.rankmap import pattern as patterns
from nidmap.rankmap.pattern import parse_options, parse_pattern
from nidmap.rankmap.pattern.structured import Lines, Ring, Stencil, parse_extents, points
from nidmap.rankmap.pattern.sweep import Sweep


def edges_of(pattern, block=1 << 20):
    """Count every edge of a pattern, with its weight."""
    found = Counter()
    for a, b, weight, _ in (edges.columns for edges in pattern.edges(block)):
        assert (a < b).all()
        assert a.dtype == b.dtype == np.int64
        for edge in zip(a.tolist(), b.tolist(), weight.tolist(), strict=True):
            found[edge] += 1
    return found


def brute_stencil(dims, periodic, weights, reach):
    """Every rank sends to its neighbours; an edge is what two ranks send each other, halved."""
    cells = list(itertools.product(*map(range, dims)))
    rank = {cell: r for r, cell in enumerate(cells)}
    sent = Counter()
    for cell in cells:
        for offset in itertools.product((-1, 0, 1), repeat=len(dims)):
            moved = [k for k, o in enumerate(offset) if o]
            if not 1 <= len(moved) <= reach:
                continue
            to = tuple(c + o for c, o in zip(cell, offset, strict=True))
            if periodic:
                to = tuple(t % e for t, e in zip(to, dims, strict=True))
            if to in rank and to != cell:
                sent[rank[cell], rank[to], min(weights[k] for k in moved)] += 1
    return Counter({(a, b, w): n for (a, b, w), n in sent.items() if a < b})


small_grids = st.lists(st.integers(1, 5), min_size=1, max_size=4).filter(
    lambda d: math.prod(d) < 200
)


@settings(deadline=None)
@given(small_grids, st.booleans(), st.data())
def test_stencil_edges_equal_brute_force(dims, periodic, data):
    reach = data.draw(st.integers(1, len(dims)))
    weights = data.draw(
        st.lists(st.sampled_from([1.0, 2.0, 4.0]), min_size=len(dims), max_size=len(dims))
    )
    block = data.draw(st.sampled_from([1, 7, 1 << 20]))
    text = f"stencil:{'x'.join(map(str, dims))}{',periodic' if periodic else ''}"
    text += f",weights={':'.join(map(str, weights))},points={points(len(dims), reach)}"
    assert edges_of(parse_pattern(text), block) == brute_stencil(dims, periodic, weights, reach)


@settings(deadline=None)
@given(st.integers(1, 7), st.integers(1, 7))
def test_pencil_is_all_to_all_in_rows_and_columns(rows, columns):
    expected = Counter()
    for a, b in itertools.combinations(range(rows * columns), 2):
        if a // columns == b // columns or a % columns == b % columns:
            expected[a, b, 1.0] += 1
    assert edges_of(parse_pattern(f"fft:{rows}x{columns}"), block=5) == expected


@pytest.mark.parametrize("spec", ["alltoall", "fft:9"])
def test_one_line_is_all_to_all(spec):
    expected = {(a, b, 1.0): 1 for a, b in itertools.combinations(range(9), 2)}
    assert edges_of(parse_pattern(spec).fit(9)) == expected


def test_sort_sends_each_rank_its_share():
    found = edges_of(parse_pattern("sort").fit(8))
    assert found == {(a, b, 1 / 8): 1 for a, b in itertools.combinations(range(8), 2)}


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        (1, set()),
        (2, {(0, 1)}),
        (3, {(0, 1), (1, 2), (0, 2)}),
        (5, {(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)}),
    ],
)
def test_ring_closes_with_one_edge_a_pair(ranks, expected):
    found = edges_of(parse_pattern("ring").fit(ranks))
    assert found == {(a, b, 1.0): 1 for a, b in expected}


def test_the_stencil_of_the_papers_has_its_known_number_of_edges():
    edges = sum(len(e.source) for e in parse_pattern("stencil:24x24x16").edges())
    assert edges == 23 * 24 * 16 + 24 * 23 * 16 + 24 * 24 * 15


def test_a_pattern_of_a_million_ranks_costs_nothing_until_its_edges_are_asked_for():
    pattern = parse_pattern("fft:1024x1024")
    assert pattern.ranks == 1 << 20
    first = next(iter(pattern.edges(block=1000)))
    assert len(first.source) <= 1000


@pytest.mark.parametrize(
    ("text", "built"),
    [
        ("stencil:24x24x16", Stencil((24, 24, 16))),
        ("stencil:8,periodic", Stencil((8,), wrap=True)),
        ("stencil:4x4,weights=1:2.5", Stencil((4, 4), weights=(1.0, 2.5))),
        ("stencil:4x4x4,points=27,periodic", Stencil((4, 4, 4), wrap=True, reach=3)),
        ("fft:64x32", Lines("fft", (64, 32))),
        ("fft:64", Lines("fft", (64,))),
        ("alltoall", Lines("alltoall")),
        ("sort", Lines("sort", share=True)),
        ("ring", Ring()),
        (" ring ", Ring()),
    ],
)
def test_texts_and_back(text, built):
    assert parse_pattern(text) == built
    assert parse_pattern(built.spec) == built


@settings(deadline=None)
@given(small_grids, st.booleans(), st.data())
def test_every_stencil_reads_back(dims, wrap, data):
    weights = data.draw(
        st.just([]) | st.lists(st.integers(0, 9), min_size=len(dims), max_size=len(dims))
    )
    built = Stencil(
        tuple(dims), wrap, tuple(map(float, weights)), data.draw(st.integers(1, len(dims)))
    )
    assert parse_pattern(built.spec) == built


def test_the_points_of_stencils():
    assert [points(d, 1) for d in (1, 2, 3, 4)] == [3, 5, 7, 9]
    assert [points(d, d) for d in (1, 2, 3, 4)] == [3, 9, 27, 81]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "unknown pattern ''"),
        (
            "halo:4x4",
            "choose from allgather, allreduce, alltoall, ",
        ),
        ("nosuch:tp=8", "unknown pattern 'nosuch'"),
        ("stencil", "'' is not an extent"),
        ("stencil:", "nothing after the colon"),
        ("stencil:0x4", "'0' is not an extent"),
        ("stencil:4x-4", "'-4' is not an extent"),
        ("stencil:4×4", "is not an extent"),
        ("stencil:٤x4", "is not an extent"),
        ("stencil:4x4x4x4x4", "5 dimensions"),
        ("stencil:4x", "'' is not an extent"),
        ("stencil:" + "9" * 5000, "is not an extent"),
        ("stencil:999999999999x999999999", "no machine has that many"),
        ("stencil:4x4,periodic,periodic", "periodic is given twice"),
        ("stencil:4x4,periodic=yes", "unknown option 'periodic=yes'"),
        ("stencil:4x4,colour=red", "unknown option 'colour=red'"),
        ("stencil:4x4,weights", "unknown option 'weights'"),
        ("stencil:4x4,weights=1", "1 weight for 2 dimensions"),
        ("stencil:4x4,weights=1:2:3", "3 weights for 2 dimensions"),
        ("stencil:4x4,weights=1:-2", "'-2' is not a number"),
        ("stencil:4x4,weights=1:nan", "'nan' is not a number"),
        ("stencil:4x4,weights=1:inf", "'inf' is not a number"),
        ("stencil:4x4,weights=1:x", "'x' is not a number"),
        ("stencil:4x4,points=7", "choose from 5, 9"),
        ("stencil:4x4x4,points=9", "choose from 7, 19, 27"),
        ("fft:8x8x8", "3 dimensions"),
        ("fft", "is not an extent"),
        ("fft:8x8,periodic", "is not an extent"),
        ("alltoall:64", "alltoall takes no options"),
        ("ring:4", "ring takes no options"),
        ("sort:\x1b[31m", "\\x1b[31m"),
    ],
)
def test_bad_texts_are_refused_in_one_line(text, says):
    with pytest.raises(UsageError) as caught:
        parse_pattern(text)
    message = str(caught.value)
    assert says in message
    assert message.isprintable()
    assert len(message) < 300
    assert caught.value.exit_code == 2


@settings(deadline=None)
@given(
    st.text(max_size=60) | st.from_regex(r"(stencil|fft|ring|sort):[0-9x,:=a-z.-]*", fullmatch=True)
)
def test_any_text_gives_a_pattern_or_a_usage_error(text):
    said = ""
    try:
        pattern = parse_pattern(text)
    except UsageError as error:
        said = str(error)
    else:
        assert pattern.ranks is None or pattern.ranks == math.prod(pattern.dims)
    assert not said or said.isprintable()


def test_a_rank_count_that_is_not_the_slots_names_both():
    with pytest.raises(UsageError, match="fft:8x8 has 64 ranks, but there are 96 slots"):
        parse_pattern("fft:8x8").fit(96)
    with pytest.raises(UsageError, match="has 1 rank, but there are 2 slots"):
        parse_pattern("stencil:1x1").fit(2)


def test_a_pattern_without_a_rank_count_takes_any_but_has_no_edges_before():
    for name in ("alltoall", "sort", "ring"):
        unbound = parse_pattern(name)
        assert unbound.ranks is None
        assert unbound.dims is None
        assert unbound.fit(7).dims == (7,)
        with pytest.raises(UsageError, match="no rank count"):
            list(unbound.edges())


def test_a_pattern_of_another_distribution_is_found(monkeypatch):
    class Entry:
        name = "pairs"

        def load(self):
            return lambda text: Stencil((2, int(text)))

    found = {"nidmap.patterns": [Entry()]}
    monkeypatch.setattr("nidmap.placement.support.registry.entry_points", found.__getitem__)
    monkeypatch.delitem(patterns._builders.known, "pairs", raising=False)
    assert "pairs" in patterns.names()
    assert parse_pattern("pairs:3").dims == (2, 3)
    monkeypatch.delitem(patterns._builders.known, "pairs")


def test_parse_options():
    assert parse_options("sweep", "pieces=10", {"pieces": "4"}) == {"pieces": "10"}


def test_parse_extents():
    assert parse_extents("24x24x16", "stencil") == (24, 24, 16)


def test_sweep():
    assert Sweep((4, 4)).messages == 2
    assert Sweep((4, 4), pieces=5).spec == "sweep:4x4,pieces=5"
