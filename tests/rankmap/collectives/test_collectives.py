# SPDX-License-Identifier: Apache-2.0
"""Every algorithm moves real blocks, and everyone ends up with what MPI says it has."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from nidmap.rankmap.collectives import FAMILIES, ROOTED, partner_in_turn, usual_algorithm
from nidmap.rankmap.collectives.algorithms import (
    _kept_block,
    algorithms_of,
    collective_parts,
    log2_up,
)
from nidmap.rankmap.collectives.libraries import library_of

EVERY = [(family, name) for family in FAMILIES for name in algorithms_of(family)]

#: Rank counts with all roots, and with some.
FEW, MORE = range(1, 10), range(10, 34)

REDUCING = ("reduce", "allreduce", "reducescatter", "barrier")


def moved(step):
    """Return (source, target, blocks) of every message of a step, blocks as (first, count)."""
    columns = np.broadcast_arrays(*step)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def begun(family, ranks, root, blocks):
    """Return for each rank and block whose contributions it has, as a set of bits."""
    if family in ("bcast", "scatter"):
        return [[int(r == root)] * blocks for r in range(ranks)]
    if family in ("gather", "allgather"):
        return [[int(r == b) for b in range(blocks)] for r in range(ranks)]
    return [[1 << r] * blocks for r in range(ranks)]


def resized(state, blocks):
    """Return the same state with the buffer cut into another number of blocks."""
    if blocks == len(state[0]):
        return state
    assert all(len(set(row)) == 1 for row in state), "only whole buffers can be cut anew"
    return [[row[0]] * blocks for row in state]


def applied(part, state, family):
    """Apply a part's steps to a state; return the bytes sent and how often each step came."""
    sent, standing = 0.0, Counter()
    for k in range(part.steps):
        before = [list(row) for row in state]
        messages = moved(part.step(k))
        for source, target, first, count in messages:
            assert source != target
            assert 1 <= count <= part.blocks
            sent += count * part.block
            for block in range(first, first + count):
                b = block % part.blocks
                what = before[source][b]
                assert what, f"{part.name} {k}: {source} sends block {b}, which it has not"
                if part.combine and family != "barrier":
                    assert not state[target][b] & what, "a contribution counted twice"
                state[target][b] = what | (state[target][b] if part.combine else 0)
        standing[traffic(messages)] += 1
    return sent, standing


def traffic(messages):
    """Return who sends how many blocks to whom."""
    return frozenset(Counter((a, b, count) for a, b, _, count in messages).items())


def run(family, name, ranks, root, size=1.0):
    """Apply an algorithm's steps; return the final state and the bytes sent."""
    state, total = None, 0.0
    for part in collective_parts(family, name, ranks, root, size):
        if state is None:
            state = begun(family, ranks, root, part.blocks)
        state = resized(state, part.blocks)
        sent, standing = applied(part, state, family)
        total += sent
        if part.alike:
            told = Counter()
            for k, times in part.alike:
                told[traffic(moved(part.step(k)))] += times
            assert told == standing
    return state, total


def ended(family, ranks, root, state):
    """Check that everyone has what the MPI standard says."""
    every = (1 << ranks) - 1
    blocks = len(state[0])
    if family == "bcast":
        assert all(all(row) for row in state)
    elif family == "gather":
        assert all(state[root])
    elif family == "allgather":
        assert blocks == ranks
        assert all(all(row) for row in state)
    elif family == "scatter":
        assert all(state[r][r] for r in range(ranks))
    elif family == "reduce":
        assert set(state[root]) == {every}
    elif family == "reducescatter":
        assert all(state[r][r] == every for r in range(ranks))
    else:
        assert all(set(row) == {every} for row in state)


@pytest.mark.parametrize(("family", "name"), EVERY)
def test_everyone_ends_up_with_what_mpi_says(family, name):
    for ranks in (*FEW, *MORE):
        roots = range(ranks) if ranks in FEW else (0, ranks // 2, ranks - 1)
        for root in roots if family in ROOTED else (0,):
            if ranks == 1:
                assert collective_parts(family, name, 1, 0, 1.0) == []
                continue
            state, _ = run(family, name, ranks, root)
            ended(family, ranks, root, state)


def tree_bytes(p, size):
    return (p - 1) * size


BYTES = {
    ("bcast", "binomial"): tree_bytes,
    ("reduce", "binomial"): tree_bytes,
    ("gather", "linear"): tree_bytes,
    ("scatter", "linear"): tree_bytes,
    ("allgather", "ring"): lambda p, m: p * (p - 1) * m,
    ("allgather", "bruck"): lambda p, m: p * (p - 1) * m,
    ("reducescatter", "pairwise"): lambda p, m: p * (p - 1) * m,
}

#: Where the ranks are a power of two.
EVEN_BYTES = {
    ("allreduce", "doubling"): lambda p, m: p * math.log2(p) * m,
    ("allreduce", "rabenseifner"): lambda p, m: 2 * (p - 1) * m,
    ("reduce", "rabenseifner"): lambda p, m: (p - 1) * m + math.log2(p) * m / 2,
    ("reducescatter", "halving"): lambda p, m: p * (p - 1) * m,
    ("scatter", "binomial"): lambda p, m: p / 2 * math.log2(p) * m,
    ("gather", "binomial"): lambda p, m: p / 2 * math.log2(p) * m,
    ("bcast", "scatter-ring"): lambda p, m: math.log2(p) * m / 2 + (p - 1) * m,
}


@pytest.mark.parametrize("ranks", [2, 3, 7, 8, 16, 22])
def test_bytes_are_those_of_the_textbook(ranks):
    known = BYTES | ({} if ranks & (ranks - 1) else EVEN_BYTES)
    for (family, name), formula in known.items():
        _, sent = run(family, name, ranks, 0, 24.0)
        assert sent == pytest.approx(formula(ranks, 24.0)), (family, name)


def test_usual_algorithm():
    assert usual_algorithm("bcast", 1000, 64) == "binomial"
    assert usual_algorithm("bcast", 1e6, 64) == "scatter-ring"
    assert usual_algorithm("allgather", 100, 65) == "bruck"
    assert usual_algorithm("allgather", 100, 64) == "doubling"


def test_partner_in_turn():
    assert [partner_in_turn(np.arange(4), 3, 4, pairs).tolist() for pairs in (True, False)] == [
        [3, 2, 1, 0],
        [3, 0, 1, 2],
    ]


def test_log2_up():
    assert log2_up(1) == 0
    assert log2_up(8) == 3
    assert log2_up(9) == 4


def test_kept_block():
    assert _kept_block(np.arange(4), 2, 4).tolist() == [0, 2, 1, 3]


def test_library_of():
    assert library_of("cray-mpich") == "mpich"
    assert library_of("Open MPI 5") == "openmpi"
