# SPDX-License-Identifier: Apache-2.0
"""The whole sort on simulated ranks against one stable sort of everything."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.workloads.sort.data import hash_sums, in_order, item_type, sort_faults
from nidmap.workloads.sort.partition import Seen, SortPlan, keys_of, sort_items
from tests.effort import examples
from tests.workloads.sort.simulated import simulate


@st.composite
def jobs(draw):
    """Items with or without a payload on several ranks, and how they are sorted."""
    size = draw(st.integers(1, 5))
    value = draw(st.sampled_from([st.integers(0, 2), st.integers(0, 2**64 - 1)]))
    dtype = item_type(draw(st.sampled_from([0, 3, 8, 16])))
    ranks = []
    for _ in range(size):
        keys = draw(st.lists(value, max_size=15))
        items = np.zeros(len(keys), dtype)
        keys_of(items)[:] = keys
        if dtype.names:  # tells items of one key apart
            items[dtype.names[1]] = np.arange(len(keys)).reshape(-1, *[1] * (dtype[1].ndim))
        ranks.append(items)
    plan = SortPlan(
        draw(st.sampled_from(["histogram", "bisection"])),
        draw(st.sampled_from(["auto", "alltoallv", "sparse"])),
        draw(st.sampled_from(["auto", "sort"])),
        draw(st.sampled_from(["mpsort", "mergesort"])),
    )
    return ranks, plan


@examples(100)
@given(jobs())
def test_every_sort_is_the_stable_sort_of_all(problem):
    brought, plan = problem
    before = [items.copy() for items in brought]
    got = simulate(len(brought), lambda ranks: sort_items(ranks, brought[ranks.rank], plan))
    assert [len(part) for part in got] == [len(items) for items in brought]
    everything = np.concatenate(before)
    wanted = everything[np.argsort(keys_of(everything), kind="stable")]
    assert np.concatenate(got).tobytes() == wanted.tobytes()
    for items, kept in zip(brought, before, strict=True):
        assert items.tobytes() == kept.tobytes()


def test_an_item_crosses_the_network_once_and_log_p_times_when_merged():
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 2**56, (8, 4000)).astype("u8")
    moved = {}
    for algorithm in ("mpsort", "mergesort"):

        def main(ranks, algorithm=algorithm):
            seen = Seen()
            sort_items(ranks, keys[ranks.rank], SortPlan(algorithm=algorithm), seen)
            return seen.moved

        moved[algorithm] = sum(simulate(8, main)) / keys.size
    assert moved["mpsort"] == pytest.approx(7 / 8, abs=0.02)
    assert moved["mergesort"] == pytest.approx(1 / 2 + 3 / 4 + 7 / 8, abs=0.05)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda parts: parts[1].__setitem__(0, 10**6), "out of order"),
        (lambda parts: parts.__setitem__(slice(None), parts[::-1]), "neighbouring ranks"),
        (lambda parts: parts.__setitem__(0, parts[0][:-1]), "wrong number"),
        (lambda parts: parts[1].__setitem__(1, parts[1][0]), "checksum"),
        (lambda parts: None, None),
    ],
    ids=["disorder", "boundary", "count", "doubled", "right"],
)
def test_the_check_sees_what_is_wrong(wrong, said):
    whole = np.arange(40)
    before = hash_sums(whole)
    parts = [part.copy() for part in np.split(whole, 4)]
    wrong(parts)

    def main(ranks):
        mine = parts[ranks.rank]
        share = before if ranks.rank == 0 else np.zeros(2, np.uint64)
        return sort_faults(ranks, share, mine, [mine], 10)

    found = simulate(4, main)
    assert all(one == found[0] for one in found)
    if said is None:
        assert found[0] == []
    else:
        assert any(said in text for text in found[0])


def test_the_check_steps_over_empty_ranks():
    parts = [np.array([5]), np.array([], int), np.array([4])]
    found = simulate(
        3,
        lambda r: sort_faults(
            r, hash_sums(parts[r.rank]), parts[r.rank], [parts[r.rank]], len(parts[r.rank])
        ),
    )
    assert found[0] == ["items of neighbouring ranks are out of order"]


def test_order_with_the_origin_as_last_word_tells_a_stable_sort_from_another():
    keys = np.array([1, 1, 2])
    assert in_order([keys, np.array([0, 1, 0], "u8")]).all()
    assert not in_order([keys, np.array([1, 0, 0], "u8")]).all()


@examples(100)
@given(st.binary(min_size=1, max_size=60), st.integers(0, 59), st.integers(0, 255))
def test_the_checksum_changes_with_any_byte_and_not_with_the_order(raw, at, byte):
    items = np.frombuffer(raw, np.uint8)[:, None].repeat(11, axis=1).copy()
    assert (hash_sums(items) == hash_sums(items[::-1].copy())).all()
    other = items.copy()
    other[at % len(items), at % 11] = byte
    assert (hash_sums(items) == hash_sums(other)).all() == (items == other).all()
