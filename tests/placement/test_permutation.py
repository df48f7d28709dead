# SPDX-License-Identifier: Apache-2.0
"""Permutations: the inverse, and the first fault named exactly."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.permutation import Broken, inverse, why_broken


@settings(deadline=None)
@given(st.integers(1, 50).flatmap(lambda n: st.permutations(range(n))))
def test_inverse_undoes(values):
    values = np.array(values)
    assert why_broken(values, len(values)) is None
    assert values[inverse(values)].tolist() == list(range(len(values)))
    assert inverse(inverse(values)).tolist() == values.tolist()


@settings(deadline=None)
@given(st.integers(1, 8), st.lists(st.integers(-2, 9), max_size=9))
def test_faults_equal_a_slow_search(n, values):
    seen = {}
    expected = None
    for at, value in enumerate(values):
        if not 0 <= value < n:
            expected = ("outside", value, at, -1)
            break
    if expected is None:
        for at, value in enumerate(values):
            if value in seen:
                expected = ("twice", value, at, seen[value])
                break
            seen[value] = at
    if expected is None:
        missing = [v for v in range(n) if v not in values]
        expected = ("missing", missing[0], len(values), -1) if missing else None
    found = why_broken(np.array(values, dtype=np.int64), n)
    assert (found and (found.kind, found.value, found.at, found.first)) == expected


def test_all_missing_values_are_counted():
    assert why_broken(np.array([3, 0]), 5) == Broken("missing", 1, 2, -1, 3)
