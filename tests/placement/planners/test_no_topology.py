# SPDX-License-Identifier: Apache-2.0
"""`random`: the same for a seed, and every node and set equally likely over seeds."""

from collections import Counter
from itertools import combinations

import numpy as np

from nidmap.placement.planners import Request
from nidmap.placement.planners.plain import draw_nodes
from nidmap.placement.specs import parse_spec

MACHINE = parse_spec("torus:4x3")


def sets_drawn(count, seeds, **more):
    free = MACHINE.free.copy()
    free[[2, 7]] = False
    found = (draw_nodes(MACHINE, Request(count, free, seed=seed, **more)) for seed in range(seeds))
    return Counter(tuple(rows.tolist()) for rows in found)


def chi_square(counts, ways):
    """Sum of squared deviations over expectation; its mean is ways - 1."""
    expected = sum(counts.values()) / ways
    seen = sum((n - expected) ** 2 / expected for n in counts.values())
    return seen + (ways - len(counts)) * expected


def test_every_set_is_equally_likely():
    counts = sets_drawn(3, 6000)
    ways = len(list(combinations(range(10), 3)))
    # Six standard deviations: the seeds are fixed, so this either always holds or never.
    assert abs(chi_square(counts, ways) - (ways - 1)) < 6 * (2 * (ways - 1)) ** 0.5


def test_with_an_included_node_the_others_are_drawn_evenly():
    counts = sets_drawn(3, 3000, include=np.array([5]))
    assert all(5 in rows for rows in counts)
    ways = len(list(combinations(range(9), 2)))
    assert abs(chi_square(counts, ways) - (ways - 1)) < 6 * (2 * (ways - 1)) ** 0.5


def test_a_seed_decides_the_draw():
    request = [Request(5, MACHINE.free, seed=seed) for seed in (1, 1, 2)]
    first, again, other = (draw_nodes(MACHINE, r).tolist() for r in request)
    assert first == again != other
    assert first == sorted(first)
