# SPDX-License-Identifier: Apache-2.0
"""The layout solver against Algorithm 2, and both searches against the definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.workloads.sort.splitters import (
    bisection,
    counts_to_send,
    histogram,
    layout_row,
    solve_layout,
)
from tests.effort import examples
from tests.workloads.sort.simulated import simulate


@st.composite
def problems(draw):
    """Sorted keys of several ranks, and where each one's share ends."""
    size = draw(st.integers(1, 6))
    key = st.integers(0, 3) if draw(st.booleans()) else st.integers(0, 2**64 - 1)
    ranks = [sorted(draw(st.lists(key, max_size=12))) for _ in range(size)]
    total = sum(map(len, ranks))
    cuts = sorted(draw(st.lists(st.integers(0, total), min_size=size - 1, max_size=size - 1)))
    return ranks, np.array([*cuts, total], np.int64)


def laid(keys, apart):
    """Return keys as an array, or as the field of items: apart in memory."""
    items = np.zeros(len(keys), [("key", "u8"), ("rest", "u1", (3,))])
    items["key"] = keys
    return items["key"] if apart else np.array(keys, np.uint64)


def bounds(search, keys, ends, apart=False):
    found = simulate(len(keys), lambda ranks: search(ranks, laid(keys[ranks.rank], apart), ends))
    assert len({one.rounds for one in found}) == 1
    lower, upper = (np.stack([getattr(f, n) for f in found], axis=1) for n in ("lower", "upper"))
    return lower, upper, found[0].rounds


def is_splitter(keys, lower, upper):
    """Tell whether some splitter has these many keys below it, and not above, on each rank.

    Either all keys between are equal and those outside are not, or the two bounds agree and
    part the keys of all ranks.
    """
    below = [k for ks, n in zip(keys, lower, strict=True) for k in ks[:n]]
    tied = [k for ks, n, m in zip(keys, lower, upper, strict=True) for k in ks[n:m]]
    above = [k for ks, m in zip(keys, upper, strict=True) for k in ks[m:]]
    if tied:
        value = tied[0]
        return (
            all(k == value for k in tied)
            and all(k < value for k in below)
            and all(k > value for k in above)
        )
    return not below or not above or max(below) < min(above)


@pytest.mark.parametrize("search", [histogram, bisection])
@pytest.mark.parametrize("apart", [False, True])
@examples(60)
@given(problem=problems())
def test_bounds_are_those_of_a_splitter_and_hold_the_target(search, apart, problem):
    keys, ends = problem
    lower, upper, _ = bounds(search, keys, ends, apart)
    assert (lower.sum(1) <= ends).all()
    assert (ends <= upper.sum(1)).all()
    for row in range(len(ends)):
        if lower[row].sum() < ends[row] < upper[row].sum():
            assert is_splitter(keys, lower[row], upper[row])
        else:  # nothing of what ties is parted: one of the bounds is the cut itself
            cut = lower[row] if lower[row].sum() == ends[row] else upper[row]
            assert is_splitter(keys, cut, cut)


def algorithm_2(lower, upper, counts):
    """Solve the whole layout on one rank, line by line as the paper's Algorithm 2 prints it."""
    size = len(counts)
    ends = np.zeros((size + 1, size), np.int64)
    for i in range(size):
        ends[i + 1] = lower[i]
        s = int((ends[i + 1] - ends[i]).sum())
        for p in range(size):
            if s >= counts[i]:
                break
            d = min(int(upper[i, p] - ends[i + 1, p]), int(counts[i]) - s)
            ends[i + 1, p] += d
            s += d
    return ends[1:]


@pytest.mark.parametrize("search", [histogram, bisection])
@examples(60)
@given(problems())
def test_the_parallel_layout_is_algorithm_2(search, problem):
    keys, ends = problem
    lower, upper, _ = bounds(search, keys, ends)
    counts = np.diff(ends, prepend=0)
    parallel = simulate(
        len(ends), lambda r: solve_layout(r, lower[:, r.rank], upper[:, r.rank], ends)
    )
    assert np.stack(parallel, axis=1).tolist() == algorithm_2(lower, upper, counts).tolist()
    sent = np.stack([counts_to_send(column) for column in parallel])
    assert (sent >= 0).all()
    assert sent.sum(0).tolist() == counts.tolist()
    assert sent.sum(1).tolist() == [len(ks) for ks in keys]


@examples(100)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=9), st.data())
def test_a_row_is_solved_as_the_paper_loops(pairs, data):
    lower = np.array([a for a, _ in pairs])
    upper = lower + np.array([b for _, b in pairs])
    end = data.draw(st.integers(int(lower.sum()), int(upper.sum())))
    expected, s = lower.copy(), int(lower.sum())
    for p in range(len(pairs)):
        if s >= end:
            break
        d = min(int(upper[p] - expected[p]), end - s)
        expected[p] += d
        s += d
    assert layout_row(lower, upper, end).tolist() == expected.tolist()


def test_an_exclusive_distribution_would_give_rank_0_nothing():
    # Definition 1's N^c[0] is 0: Algorithm 3 must be given the inclusive sums.
    lower, upper = np.zeros(2, np.int64), np.full(2, 2)
    assert layout_row(lower, upper, 2).tolist() == [2, 0]
    assert layout_row(lower, upper, 0).tolist() == [0, 0]


def big(size, count, make):
    rng = np.random.default_rng(5)
    return [np.sort(make(rng, rank, count)) for rank in range(size)]


@pytest.mark.parametrize(
    "make",
    [
        lambda rng, rank, n: rng.integers(0, 2**56, n).astype("u8"),
        lambda rng, rank, n: (2.0 ** rng.uniform(0, 63, n)).astype("u8"),
        lambda rng, rank, n: (rng.pareto(0.5, n) * 100).clip(0, 2**62).astype("u8"),
        lambda rng, rank, n: np.arange(n, dtype="u8") + np.uint64(rank * n),
        lambda rng, rank, n: rng.integers(0, 2, n).astype("u8") << np.uint64(60),
        lambda rng, rank, n: np.full(n, 2**63 + 1, "u8"),
    ],
    ids=["random", "logarithmic", "pareto", "sorted", "two", "equal"],
)
def test_many_probes_settle_in_four_rounds(make):
    arrays = big(8, 50_000, make)
    ends = np.arange(1, 9) * 50_000
    lower, upper, rounds = bounds(histogram, arrays, ends)
    assert rounds <= 4
    assert (lower.sum(1) <= ends).all()
    assert (ends <= upper.sum(1)).all()


def test_bisection_takes_a_round_a_bit_and_the_papers_calls():
    arrays = big(4, 5000, lambda rng, rank, n: rng.integers(0, 2**56, n).astype("u8"))
    ends = np.arange(1, 5) * 5000

    def main(ranks):
        found = bisection(ranks, arrays[ranks.rank], ends)
        return found.rounds, ranks.calls

    rounds, calls = simulate(4, main)[0]
    assert 30 <= rounds <= 56
    # two Allreduces of the counts and one of a boolean in every round
    assert calls.count("all") == rounds
    assert calls.count("total") == 2 * rounds
