# SPDX-License-Identifier: Apache-2.0
"""Sums by key, even samples, and matrix products on a single core."""

import numpy as np

from nidmap.placement.support.arrays import (
    add_by_key,
    connected_components,
    count_distinct,
    each_once,
    find_sorted,
    finish_bits,
    mix_bits,
    product,
    ragged_ranges,
    sum_boxes,
    sum_by_key,
    sum_by_pair,
)


def test_add_by_key():
    assert add_by_key(np.array([0, 2, 2]), np.array([1.0, 2.0, 3.0]), 4).tolist() == [
        1.0,
        0.0,
        5.0,
        0.0,
    ]


def test_count_distinct():
    assert count_distinct(np.array([3, 1, 3])) == 2
    assert count_distinct(np.array([], dtype=np.int64)) == 0


def test_each_once():
    assert each_once(np.array([3, 1, 3, 2])).tolist() == [3, 1, 2]


def test_sum_by_key():
    assert [x.tolist() for x in sum_by_key(np.array([7, 3, 7]), np.array([1.0, 2.0, 4.0]))] == [
        [3, 7],
        [2.0, 5.0],
    ]


def test_sum_by_pair():
    a = np.array
    assert [x.tolist() for x in sum_by_pair(a([1, 0, 1]), a([5, 2, 5]), a([1.0, 2.0, 3.0]), 9)] == [
        [0, 1],
        [2, 5],
        [2.0, 4.0],
    ]


def test_connected_components():
    assert connected_components(4, np.array([3]), np.array([1])).tolist() == [0, 1, 2, 1]


def test_find_sorted():
    assert find_sorted(np.array([2, 5]), np.array([5, 3])).tolist() == [1, -1]


def test_ragged_ranges():
    assert [x.tolist() for x in ragged_ranges(np.array([7, 2]), np.array([2, 3]))] == [
        [0, 0, 1, 1, 1],
        [7, 8, 2, 3, 4],
    ]


def test_product():
    assert product(np.ones((2, 1, 300)), np.ones((300, 500))).sum(axis=(1, 2)).tolist() == [
        150000.0,
        150000.0,
    ]


def test_mix_bits():
    assert len(set(mix_bits(np.arange(1000)).tolist())) == 1000


def test_finish_bits():
    assert finish_bits(np.array([0, 1], dtype=np.uint64)).tolist() == [0, 6238072747940578789]


def test_sum_boxes():
    assert sum_boxes(np.array([1, 0, 2]), (2,)).tolist() == [1, 2, 3]
