# SPDX-License-Identifier: Apache-2.0
"""Sizes, keys, buckets and orders of the bucket sort, without MPI."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import UsageError
from nidmap.workloads import isx
from nidmap.workloads.isx import model_traffic, order, problem


@given(st.integers(1, 40), st.integers(0, 10_000))
def test_strong_scaling_keeps_every_key(ranks, keys):
    what = problem("strong", ranks, keys, max_key=1000)
    counts = [what.count(rank) for rank in range(ranks)]
    assert sum(counts) == keys
    assert max(counts) - min(counts) <= 1


@given(st.integers(1, 60), st.sampled_from(["strong", "weak", "weak_iso"]), st.integers(60, 5000))
def test_every_key_has_a_bucket(ranks, mode, max_key):
    what = problem(mode, ranks, 500, max_key=max_key, width=17)
    keys = what.generate(ranks - 1)
    assert keys.size == 0 or (keys.min() >= 0 and keys.max() < what.max_key)
    assert (what.max_key - 1) // what.width < ranks
    for rank in range(ranks):
        low, high = what.extent(rank)
        assert (high - low + 1) == what.width


def test_the_modes_scale_what_they_say():
    strong = [problem("strong", p, 1 << 16) for p in (2, 8)]
    weak = [problem("weak", p, 1 << 16) for p in (2, 8)]
    iso = [problem("weak_iso", p, 1 << 16) for p in (2, 8)]
    assert [s.keys for s in strong] == [1 << 16] * 2
    assert [s.width for s in strong] == [1 << 27, 1 << 25]
    assert [w.keys for w in weak] == [1 << 17, 1 << 19]
    assert [w.max_key for w in weak] == [1 << 28] * 2
    assert [w.width for w in iso] == [8192] * 2
    assert [w.max_key for w in iso] == [16384, 65536]


def test_the_same_keys_for_a_number_of_ranks():
    one, other = (problem("weak", 4, 1000, dtype="u8", max_key=2**63) for _ in range(2))
    assert (one.generate(1) == other.generate(1)).all()
    assert (one.generate(1) != one.generate(2)).any()
    # PCG64DXSM with SeedSequence((0, 0)): a change of generator must be seen
    first = np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence((0, 0))))
    assert (
        problem("weak", 4, 3).generate(0).tolist()
        == first.integers(0, 2**28 - 1, 3, np.int32, endpoint=True).tolist()
    )


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize(("buckets", "width"), [(4, 256), (3, 342), (1, 1024), (1000, 2)])
def test_kernels_put_keys_into_buckets_in_their_order(dtype, buckets, width):
    rng = np.random.default_rng(buckets)
    keys = rng.integers(0, min(1024, buckets * width), 1003).astype(dtype)
    expected = keys[np.argsort(keys // dtype(width), kind="stable")]
    sizes = np.bincount(keys // width, minlength=buckets)
    ways = [(width, False)]
    if width & (width - 1) == 0:
        ways.append((width.bit_length() - 1, True))
    for by, shifted in ways:
        counts, out = np.zeros((4, buckets), np.int64), np.empty_like(keys)
        isx.compiled(isx.count_keys)(keys, dtype(by), shifted, counts)
        assert counts.sum(0).tolist() == sizes.tolist()
        isx.compiled(isx.deal_keys)(keys, dtype(by), shifted, np.cumsum(sizes) - sizes, out)
        assert out.tolist() == expected.tolist()


@pytest.mark.parametrize("ranks", [1, 3, 8])
@pytest.mark.parametrize("dtype", ["i4", "u8"])
def test_few_keys_are_bucketed_as_many_are(monkeypatch, ranks, dtype):
    what = problem("weak", ranks, 777, dtype=dtype, max_key=1 << 20)
    keys = what.generate(ranks - 1)
    found = []
    for least in (10**9, 0):
        monkeypatch.setattr(isx, "COMPILED", least)
        out = np.empty_like(keys)
        found.append((isx.fill_buckets(what, keys, out).tolist(), out.tolist()))
    assert found[0] == found[1]
    assert found[0][0] == np.bincount(keys // what.width, minlength=ranks).tolist()
    assert found[0][1] == keys[np.argsort(keys // what.width, kind="stable")].tolist()


@pytest.mark.parametrize("scheme", ["naive", "round-robin", "random"])
@given(size=st.integers(1, 30))
def test_every_rank_turns_to_every_other_once(scheme, size):
    for rank in range(size):
        turns = order(scheme, rank, size)
        assert sorted(turns) == [q for q in range(size) if q != rank]


def test_naive_is_an_in_cast_and_random_is_not():
    first = {s: [order(s, rank, 64)[0] for rank in range(64)] for s in ("naive", "random")}
    assert first["naive"].count(0) == 63
    assert max(first["random"].count(q) for q in range(64)) < 10
    # a permutation that has an effect: not one order for all
    assert len({tuple(order("random", rank, 64)[:5]) for rank in range(64)}) > 50


@pytest.mark.parametrize(
    "wrong",
    [
        {"keys": -1},
        {"max_key": 3},
        {"max_key": 2**31 + 1},
        {"dtype": "u8", "max_key": 2**63 + 1},
        {"mode": "weak_iso", "width": 0},
    ],
)
def test_sizes_that_make_no_sense_are_refused(wrong):
    given_words = {"mode": "weak", "keys": 10, **wrong}
    with pytest.raises(UsageError):
        problem(given_words.pop("mode"), 4, given_words.pop("keys"), **given_words)


def test_the_model_is_what_uniform_keys_send():
    what = problem("weak", 12, 20_000, dtype="u8")
    nodes = np.arange(12) // 4
    sent = np.zeros(3)
    for rank in range(12):
        target = what.generate(rank) // np.uint64(what.width)
        sent[nodes[rank]] += 8 * (nodes[target.astype(int)] != nodes[rank]).sum()
    assert sent.mean() == pytest.approx(model_traffic(what, 4).off_node, rel=0.01)
