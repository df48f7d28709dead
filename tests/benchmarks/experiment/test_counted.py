# SPDX-License-Identifier: Apache-2.0
"""Counted loads beside predicted ones."""

import numpy as np
import pytest

from benchmarks.experiment.counted import CountedLinks


def test_links_with_little_are_not_judged():
    wire, counted = np.array([1000.0, 49.0, 51.0]), np.array([1010.0, 490.0, 51.0])
    found = CountedLinks(np.array(["a", "b", "c"]), wire, wire, counted)
    assert found.judged.tolist() == [True, False, True]
    assert found.error.tolist() == pytest.approx([0.01, 0.0])
