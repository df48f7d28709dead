# SPDX-License-Identifier: Apache-2.0
"""Orders on one rank against numpy's stable lexsort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.workloads.sort.data import item_type
from nidmap.workloads.sort.local import flat_items, gather_items, order, sort_keys
from tests.effort import examples


def expected(keys):
    return np.argsort(keys, kind="stable").tolist()


@examples(300)
@given(st.lists(st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 2)), max_size=40))
def test_order_is_the_stable_one(values):
    keys = np.array(values, np.uint64)
    assert order(keys).tolist() == expected(keys)


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
    assert order(keys).tolist() == expected(keys)
    items = np.zeros(count, [("key", "u8"), ("rest", "u1", (3,))])
    items["key"] = keys
    assert order(items["key"]).tolist() == expected(keys)


@pytest.mark.parametrize("runs", [1, 2, 5, 33])
def test_runs_are_merged_stably(runs):
    rng = np.random.default_rng(runs)
    keys = np.concatenate(
        [np.sort(rng.integers(0, 100, 700)).astype(np.uint64) for _ in range(runs)]
    )
    assert order(keys, runs).tolist() == expected(keys)
    plain = keys.copy()
    sort_keys(plain, runs)
    assert plain.tolist() == sorted(keys.tolist())


@pytest.mark.parametrize("share", [0.0, 0.001, 0.03, 0.5, 1.0])
def test_an_outlier_that_takes_the_high_bits_from_all_others(share):
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 2**64 - 1, 70_000, np.uint64, endpoint=True)
    near = rng.random(len(keys)) < share
    keys[near] = 5 + keys[near] % np.uint64(2**14)  # all in the bits that do not fit
    keys[-1] = 2**64 - 1
    assert order(keys).tolist() == expected(keys)


@pytest.mark.parametrize("payload", [0, 1, 3, 8, 16, 92])
@pytest.mark.parametrize("kind", [np.int64, np.uint32])
def test_gather_moves_whole_items(payload, kind):
    rng = np.random.default_rng(payload)
    raw = rng.integers(0, 256, (70_001, 8 + payload), np.uint8)
    items = raw.view(item_type(payload))[:, 0]
    places = rng.permutation(len(items)).astype(kind)
    moved = gather_items(flat_items(items), places).view(np.uint8).reshape(raw.shape)
    assert (moved == raw[places]).all()


def test_flat_takes_nothing():
    assert flat_items(np.empty(0, item_type(5))).shape == (0,)
