"""Orders on one rank against numpy's stable lexsort."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.sort import local
from workloads.sort.local import flat, gather, order, sort_keys

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


@settings(max_examples=300)
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


def test_more_places_than_can_be_packed_fall_back(monkeypatch):
    keys = np.array([5, -3, 5, 2**62])

    class Huge(np.ndarray):
        def __len__(self):
            return 2**33

    assert local._order(keys.view(Huge), -3, 63, 0).tolist() == [1, 0, 2, 3]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 12, 16, 24, 100])
@pytest.mark.parametrize("kind", [np.int64, np.uint32])
def test_gather_moves_whole_items(size, kind):
    rng = np.random.default_rng(size)
    items = rng.integers(0, 256, (70_001, size), np.uint8)
    places = rng.permutation(len(items)).astype(kind)
    out = np.empty_like(items)
    gather(flat(items), places, flat(out))
    assert (out == items[places]).all()


def test_flat_takes_rows_and_nothing():
    assert flat(np.zeros((3, 2, 2), np.float32)).dtype.itemsize == 16
    assert flat(np.empty((0, 5), np.int16)).shape == (0,)
