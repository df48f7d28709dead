# SPDX-License-Identifier: Apache-2.0
"""Messages of a usual algorithm: who hears of what."""

import numpy as np
import pytest

from nidmap.rankmap.collectives.algorithms import collective_messages


def pairs(kind, size, root):
    """Return who sends to whom in a short call."""
    (source, target, _), _ = collective_messages(kind, size, root, 8)
    return list(zip(source.tolist(), target.tolist(), strict=True))


@pytest.mark.parametrize("size", range(1, 18))
@pytest.mark.parametrize("root", [0, 1, 5])
def test_a_tree_reaches_every_rank_once_and_its_reverse_is_the_reduction(size, root):
    root %= size
    down = pairs("bcast", size, root)
    up = [(to, r) for r, to in pairs("reduce", size, root)]
    assert sorted(to for _, to in down) == [r for r in range(size) if r != root]
    assert sorted(down) == sorted(up)


@pytest.mark.parametrize("size", range(1, 18))
def test_doubling_is_mutual_and_lets_everyone_know(size):
    swapped = set(pairs("allreduce", size, 0))
    assert swapped == {(b, a) for a, b in swapped}
    assert all(a != b and 0 <= b < size for a, b in swapped)
    known = [1 << r for r in range(size)]
    for _ in range(size):
        known = [known[r] | sum_of(known, swapped, r) for r in range(size)]
    assert known == [(1 << size) - 1] * size


def sum_of(known, pairs, rank):
    found = 0
    for a, b in pairs:
        found |= known[a] if b == rank else 0
    return found


@pytest.mark.parametrize("size", range(1, 18))
@pytest.mark.parametrize("call_bytes", [8, 40_000, 10**7])
def test_every_block_of_an_allgather_reaches_every_rank(size, call_bytes):
    (_, target, _), share = collective_messages("allgather", size, 0, call_bytes)
    assert np.bincount(target, share, minlength=size) == pytest.approx(np.full(size, size - 1))


@pytest.mark.parametrize(
    ("kind", "size", "call_bytes", "partners"),
    [
        # MPICH: doubling below 512 KiB in all where ranks are a power of two, Bruck's below 80 KiB
        ("allgather", 8, 65_535, {1, 2, 4}),
        ("allgather", 8, 65_536, {7}),
        ("allgather", 12, 6_826, {1, 2, 4, 8}),
        ("allgather", 12, 6_827, {11}),
        ("reduce_scatter", 8, 65_536, set(range(1, 8))),
        ("scan", 8, 8, {7}),
    ],
)
def test_messages_are_those_of_the_algorithm_for_so_many_bytes(kind, size, call_bytes, partners):
    (source, target, _), _ = collective_messages(kind, size, 0, call_bytes)
    back = (source - target) % size
    doubling = partners == {1, 2, 4}
    assert set(np.minimum(back, size - back) if doubling else back) == partners
