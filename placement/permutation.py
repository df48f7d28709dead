# SPDX-License-Identifier: Apache-2.0
"""Permutations: their inverse, and what exactly is wrong with an invalid one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nidmap.placement.support.array_types import Ints


@dataclass(frozen=True, slots=True)
class Broken:
    """The first fault in an alleged permutation of 0 … n-1."""

    kind: str  # ``outside``, ``twice`` or ``missing``
    value: int  # the value that is outside, listed twice, or missing
    at: int  # where it is (the second time); the number of entries where it is missing
    first: int  # where it is first, for ``twice``; else -1
    count: int  # how many values have this fault


def inverse(values: Ints) -> Ints:
    """Return the inverse of a permutation of 0 … n-1."""
    out = np.empty_like(values)
    out[values] = np.arange(len(values), dtype=values.dtype)
    return out


def why_broken(values: Ints, n: int) -> Broken | None:
    """Return what keeps `values` from being a permutation of 0 … n-1; None if it is one."""
    outside = np.flatnonzero((values < 0) | (values >= n))
    if len(outside):
        return Broken("outside", int(values[outside[0]]), int(outside[0]), -1, len(outside))
    held = np.bincount(values, minlength=n)
    if (held > 1).any():
        _, first = np.unique(values, return_index=True)
        at = int(np.setdiff1d(np.arange(len(values)), first)[0])
        start = int(np.flatnonzero(values == values[at])[0])
        return Broken("twice", int(values[at]), at, start, int((held > 1).sum()))
    missing = np.flatnonzero(held == 0)
    if len(missing):
        return Broken("missing", int(missing[0]), len(values), -1, len(missing))
    return None
