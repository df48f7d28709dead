# SPDX-License-Identifier: Apache-2.0
"""`blades-linked`: pairs of blades joined by links, against the best of all small sets."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.machine import Links
from nidmap.placement.planners import Request
from nidmap.placement.planners.blades import Joined, blades, blades_linked, count_joined
from nidmap.placement.specs import parse_spec
from nidmap.placement.topologies import links, router_coords

SMALL = [
    "dragonfly:groups=4,chassis=2,blades=2,nodes=1,wiring=same-chassis",
    "dragonfly:groups=5,chassis=1,blades=3,nodes=1,global=2",
    "dragonfly:groups=3,chassis=2,blades=2,nodes=1,global=4",
    "dragonfly:groups=7,chassis=1,blades=2,nodes=1,global=1",
    "slingshot:groups=4,switches=3,nodes=1,global=2",
    "dragonfly:groups=4,chassis=1,blades=3,nodes=1,wiring=aligned",
]


def edges(machine):
    """Pairs of routers of different groups with a link, straight from the list of links."""
    found = links(machine)
    group = router_coords(machine)[:, 0]
    pairs = zip(found.a.tolist(), found.b.tolist(), strict=True)
    return {pair for pair in pairs if group[pair[0]] != group[pair[1]]}


def joined_pairs(machine, rows):
    routers = set(machine.router[list(rows), 0].tolist())
    return sum(a in routers and b in routers for a, b in edges(machine))


@pytest.mark.parametrize("spec", SMALL)
@given(data=st.data())
@settings(deadline=None)
def test_at_least_three_quarters_of_the_most_pairs_possible(spec, data):
    machine = parse_spec(spec)
    rows = sorted(data.draw(st.sets(st.integers(0, len(machine) - 1), min_size=1)))
    count = data.draw(st.integers(1, len(rows)))
    free = np.zeros(len(machine), dtype=bool)
    free[rows] = True
    found = joined_pairs(machine, blades_linked(machine, Request(count, free, per_blade=1)))
    pairs = edges(machine)
    best = 0
    for choice in combinations(rows, count):
        routers = set(machine.router[list(choice), 0].tolist())
        best = max(best, sum(a in routers and b in routers for a, b in pairs))
    assert found >= 0.75 * best


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_it_follows_the_links_of_a_dump_whatever_they_are(seed):
    machine = parse_spec("dragonfly:groups=5,chassis=1,blades=6,nodes=2")
    lot = np.random.default_rng(seed)
    a, b = np.triu_indices(30, 1)
    apart = (a // 6 != b // 6) & (lot.random(len(a)) < 0.05)
    # A clique across the groups that no rule would make: one blade in each.
    clique = np.arange(5) * 6 + lot.integers(0, 6, 5)
    apart |= np.isin(a, clique) & np.isin(b, clique)
    number = int(apart.sum())
    listed = Links(
        a=a[apart].astype(np.int32),
        b=b[apart].astype(np.int32),
        kind=np.zeros(number, dtype=np.int8),
        kinds=("blue",),
        count=np.ones(number, dtype=np.int32),
        bandwidth=np.full(number, np.nan),
    )
    machine = replace(machine, links=listed, _cache={})
    rows = blades_linked(machine, Request(count=10, free=machine.free))
    assert count_joined(machine, rows).pairs >= 10
    assert len(np.unique(machine.router[rows, 0])) == 5


@pytest.mark.parametrize("wiring", ["aligned", "consecutive", "same-chassis"])
def test_it_joins_at_least_the_pairs_that_blades_joins(wiring):
    machine = parse_spec(f"dragonfly:groups=9,chassis=6,blades=16,nodes=4,wiring={wiring}")
    request = Request(count=216, free=machine.free)
    ours, theirs = (count_joined(machine, p(machine, request)) for p in (blades_linked, blades))
    assert ours.blades == theirs.blades == 54
    assert ours.pairs >= theirs.pairs
    if wiring == "same-chassis":
        assert ours.pairs > 2 * theirs.pairs


def test_on_the_papers_cube_it_is_the_column():
    machine = parse_spec("dragonfly:groups=18,chassis=6,blades=16,nodes=4,wiring=aligned")
    request = Request(count=216, free=machine.free, per_blade=1)
    found = count_joined(machine, blades_linked(machine, request))
    assert found == Joined(blades=216, pairs=12 * 18 * 17 // 2, groups=18, group_pairs=18 * 17 // 2)


def test_counts_are_those_of_the_list_of_links():
    machine = parse_spec("dragonfly:groups=6,chassis=2,blades=4,nodes=2")
    rows = np.random.default_rng(4).choice(len(machine), 40, replace=False)
    group = router_coords(machine)[:, 0]
    routers = set(machine.router[rows, 0].tolist())
    inside = [(a, b) for a, b in edges(machine) if a in routers and b in routers]
    assert count_joined(machine, rows) == Joined(
        blades=len(routers),
        pairs=len(inside),
        groups=len({group[r] for r in routers}),
        group_pairs=len({frozenset((group[a], group[b])) for a, b in inside}),
    )


def test_included_nodes_bring_their_blades():
    machine = parse_spec("dragonfly:groups=4,chassis=2,blades=4,nodes=2,wiring=aligned")
    include = np.array([3, 60])
    rows = blades_linked(machine, Request(12, machine.free, include))
    assert set(include.tolist()) <= set(rows.tolist())
    assert len(np.unique(machine.router[rows, 0])) == 6
