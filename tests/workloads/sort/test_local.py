"""Orders on one rank against numpy's stable lexsort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import examples
from workloads.sort import local
from workloads.sort.local import flat, gather, gather_last, order, sort_keys

INTS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


def expected(words):
    return np.lexsort(tuple(words[::-1])).tolist()


@st.composite
def words(draw):
    count = draw(st.integers(0, 40))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        info = np.iinfo(draw(st.sampled_from(INTS)))
        value = st.one_of(st.integers(info.min, info.max), st.integers(0, 2))
        value = draw(st.sampled_from([value, st.sampled_from([info.min, info.max])]))
        found.append(np.array(draw(st.lists(value, min_size=count, max_size=count)), info.dtype))
    return found


@examples(300)
@given(words())
def test_order_is_the_stable_one(given_words):
    assert order(given_words).tolist() == expected(given_words)


@pytest.mark.parametrize("count", [2, 1000, 66_000, 140_000])
@pytest.mark.parametrize("shape", ["wide", "ties in the high bits", "few values", "heavy and wide"])
def test_order_of_wide_keys(count, shape):
    rng = np.random.default_rng(count)
    wide = rng.integers(0, 2**64 - 1, count, np.uint64, endpoint=True)
    keys = {
        "wide": wide,
        "ties in the high bits": (wide & np.uint64(2**63)) | (wide >> np.uint64(50)),
        "few values": wide % np.uint64(3),
        "heavy and wide": np.where(rng.random(count) < 0.9, np.uint64(7), wide),
    }[shape]
    assert order([keys]).tolist() == expected([keys])
    assert order([keys.view(np.int64)]).tolist() == expected([keys.view(np.int64)])
    assert order([keys, wide]).tolist() == expected([keys, wide])


@pytest.mark.parametrize("runs", [1, 2, 5, 33])
def test_runs_are_merged_stably(runs):
    rng = np.random.default_rng(runs)
    keys = np.concatenate([np.sort(rng.integers(-50, 50, 700)) for _ in range(runs)])
    assert order([keys], runs).tolist() == expected([keys])
    plain = keys.copy()
    sort_keys(plain, runs)
    assert plain.tolist() == sorted(keys.tolist())


def test_more_places_than_can_be_packed_fall_back():
    keys = np.array([5, -3, 5, 2**62])
    column = local._KeyColumn([keys], [-3], [63])
    column.count = 2**33
    assert local._order(column, None, 0).tolist() == [1, 0, 2, 3]
    before = np.array([3, 2, 1, 0])
    assert local._order(column, before, 0).tolist() == [1, 2, 0, 3]


@pytest.mark.parametrize("share", [0.0, 0.001, 0.03, 0.5, 1.0])
@pytest.mark.parametrize("words", [1, 2])
def test_an_outlier_that_takes_the_high_bits_from_all_others(share, words):
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 2**64 - 1, 70_000, np.uint64, endpoint=True)
    near = rng.random(len(keys)) < share
    keys[near] = 5 + keys[near] % np.uint64(2**14)  # all in the bits that do not fit
    keys[-1] = 2**64 - 1
    given_words = [rng.integers(0, 3, len(keys)).astype(">i4")] * (words - 1) + [keys]
    assert order(given_words).tolist() == expected(given_words)


@pytest.mark.parametrize("kind", [">u8", ">i2", "<i4"])
def test_keys_of_any_byte_order_and_stride(kind):
    rng = np.random.default_rng(4)
    keys = rng.integers(-300, 300, (5000, 2)).astype(kind)[::-1, 1]
    assert order([keys]).tolist() == expected([keys])
    assert order([keys, keys[::-1]]).tolist() == expected([keys, keys[::-1]])


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 12, 16, 24, 100])
@pytest.mark.parametrize("kind", [np.int64, np.uint32])
def test_gather_moves_whole_items(size, kind):
    rng = np.random.default_rng(size)
    items = rng.integers(0, 256, (70_001, size), np.uint8)
    places = rng.permutation(len(items)).astype(kind)
    expected_items = items[places]
    for move in (gather, gather_last):  # the second takes the places' memory
        out = move(flat(items), places).view(np.uint8).reshape(-1, size)
        assert (out == expected_items).all()


def test_flat_takes_rows_and_nothing():
    assert flat(np.zeros((3, 2, 2), np.float32)).dtype.itemsize == 16
    assert flat(np.empty((0, 5), np.int16)).shape == (0,)
