# SPDX-License-Identifier: Apache-2.0
"""Aligned: every pair of a row or a column one router hop, by the machine's own links."""

import itertools

import numpy as np
import pytest

import nidmap
from nidmap.placement.errors import UsageError
from nidmap.placement.specs import parse_spec
from nidmap.placement.topologies import links
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.predict import Job

CUBE = "dragonfly:groups=18,chassis=6,blades=16,nodes=4,wiring=aligned"


def hops_from(machine, router):
    """Return the links from a router to every other, by breadth-first search."""
    found = links(machine)
    near = {}
    for a, b in zip(found.a.tolist(), found.b.tolist(), strict=True):
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    far, layer = {router: 0}, [router]
    while layer:
        layer = [
            b for a in layer for b in near.get(a, []) if far.setdefault(b, far[a] + 1) == far[a] + 1
        ]
    return far


def blades(machine, count, chassis=2, groups=range(18), nodes=1):
    """Return the rows of the first nodes on blades 0 … count-1 of one chassis in these groups."""
    c = machine.coords
    kept = (
        np.isin(c[:, 0], list(groups))
        & (c[:, 1] == chassis)
        & (c[:, 2] < count)
        & (c[:, 3] < nodes)
    )
    return np.flatnonzero(kept)


@pytest.mark.parametrize(("grid", "turned", "seed"), [((18, 12), False, 0), ((12, 18), True, 1)])
def test_every_pair_of_a_row_or_a_column_is_one_router_hop(grid, turned, seed):
    machine = parse_spec(CUBE)
    rows = np.random.default_rng(seed).permutation(blades(machine, 12))
    made = arrange(place_ranks(machine, rows, 1), f"fft:{grid[0]}x{grid[1]}", "aligned")
    router = machine.router[rows[made.node_of_rank], 0].reshape(grid)
    assert len(np.unique(router)) == 216
    lines = [*router, *router.T]
    for first in np.unique(router[:, 0]):
        far = hops_from(machine, int(first))
        for line in lines:
            if first in line:
                assert {far[r] for r in line.tolist()} == {0, 1}
    green = router if not turned else router.T
    chassis = np.unique(machine.coords[:, :2], axis=0).shape[0]
    assert chassis == 108
    for line in green:
        assert len({tuple(machine.coords[machine.router[:, 0] == r][0, :2]) for r in line}) == 1


def test_several_ranks_a_node_and_nodes_a_blade():
    machine = parse_spec(CUBE)
    rows = blades(machine, 8, groups=range(4), nodes=4)
    made = arrange(place_ranks(machine, rows, 6), "fft:16x48", "aligned")
    coords = machine.coords[rows[made.node_of_rank]].reshape(16, 48, 4)
    assert all(len(np.unique(row[:, :2], axis=0)) == 1 for row in coords)
    for column in coords.transpose(1, 0, 2):
        assert len(np.unique(column[:, 1:3], axis=0)) == 1
    assert np.bincount(made.node_of_rank).tolist() == [6] * len(rows)


def test_the_front_door_takes_it():
    machine = nidmap.load_machine(CUBE)
    made = nidmap.order(machine, blades(machine, 12), Job("fft:18x12", 1), strategy="aligned")
    assert made.origin.strategy == "aligned"


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("stencil:18x12", "is for pencils"),
        ("fft:216", "is for pencils"),
        ("fft:24x9", "does not fit 18 groups x 12 blades x 1 slots"),
    ],
)
def test_other_patterns_are_refused(pattern, says):
    machine = parse_spec(CUBE)
    with pytest.raises(UsageError, match=says):
        arrange(place_ranks(machine, blades(machine, 12), 1), pattern, "aligned")


def test_other_allocations_are_refused():
    machine = parse_spec(CUBE)
    ragged = blades(machine, 12)[:-1]
    with pytest.raises(UsageError, match="the same number of ranks on each"):
        arrange(place_ranks(machine, ragged, 1), "fft:215x1", "aligned")
    two = np.concatenate([blades(machine, 2, chassis=c, groups=[0, 1]) for c in (0, 1)])
    with pytest.raises(UsageError, match="nodes are in 2 chassis"):
        arrange(place_ranks(machine, two, 1), "fft:2x4", "aligned")
    with pytest.raises(UsageError, match="needs a dragonfly"):
        arrange(place_ranks(parse_spec("torus:4x4"), None, 1), "fft:4x4", "aligned")


def test_slingshot_groups_have_no_chassis():
    machine = parse_spec("slingshot:groups=4,switches=8,nodes=2,wiring=aligned")
    made = arrange(place_ranks(machine, None, 1), "fft:4x16", "aligned")
    group = machine.coords[made.rows[made.node_of_rank], 0].reshape(4, 16)
    assert all(len(set(row)) == 1 for row in group.tolist())
    assert all(len(set(c)) == 4 for c in group.T.tolist())
    assert list(itertools.chain.from_iterable(group.tolist()))[:16] == [0] * 16
