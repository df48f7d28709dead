"""The grid of units, its neighbours, and who is how far."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from placement.errors import NidmapError, UsageError
from workloads.stencil.kinds import meeting_levels, partners, per_repetition
from workloads.stencil.trial import NONE, OPPOSITE, grid_of, neighbours

extents = st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))


@given(extents, st.booleans())
def test_neighbours_are_those_of_the_coordinates(grid, periodic):
    numbers = np.arange(math.prod(grid)).reshape(grid)
    for place in np.ndindex(*grid):
        found = neighbours(int(numbers[place]), grid, periodic)
        for way, other in enumerate(found):
            there = list(place)
            there[way // 2] += 1 if way % 2 else -1
            inside = 0 <= there[way // 2] < grid[way // 2]
            if inside or periodic:
                assert other == numbers[tuple(np.mod(there, grid))]
            else:
                assert other == NONE


@given(extents, st.booleans())
def test_each_block_has_a_way_back(grid, periodic):
    for rank in range(math.prod(grid)):
        for way, other in enumerate(neighbours(rank, grid, periodic)):
            if other != NONE:
                assert neighbours(other, grid, periodic)[OPPOSITE[way]] == rank


@given(st.integers(1, 5000))
def test_auto_is_a_grid_of_all_ranks(ranks):
    assert math.prod(grid_of("auto", ranks)) == ranks


@pytest.mark.parametrize("dims", ["", "x", "2x", "2x2x2x1", "3", "0x4", "-2x-2", "2,2", "٤"])
def test_grids_that_are_none(dims):
    with pytest.raises(UsageError):
        grid_of(dims, 4)


def test_levels_of_a_dragonfly_and_hops_of_a_torus():
    machine = nidmap.load_machine("dragonfly:groups=2,chassis=2,blades=2,nodes=2")
    hosts = [f"nid{k:05d}" for k in (0, 0, 1, 2, 4, 8)]
    found = meeting_levels(hosts, [0, 0, 0, 0, 0, 0], machine)
    assert found == ["self", "socket", "blade", "chassis", "group", "system"]
    torus = nidmap.load_machine("torus:4x4x4,nodes=2")
    assert meeting_levels(["nid00000", "nid00001", "nid00002", "nid00004"], [0] * 4, torus)[1:] == [
        "0 hops",
        "1 hop",
        "2 hops",
    ]


def test_an_unknown_host_is_an_error_with_a_hint():
    with pytest.raises(NidmapError, match="login1"):
        meeting_levels(["login1", "nid00000"], [0, 0], nidmap.load_machine("tree:2x2"))


@given(st.lists(st.sampled_from(["socket", "node", "blade", "group"])), st.integers(1, 5))
def test_every_level_has_its_partners(found, most):
    chosen = partners(["self", *found], most)
    for level in set(found):
        ranks = [rank for name, rank in chosen if name == level]
        assert 1 <= len(ranks) <= most
        assert all(found[rank - 1] == level for rank in ranks)
    assert len({rank for _, rank in chosen}) == len(chosen)


@given(st.integers(1, 10**7), st.integers(1, 50))
def test_the_papers_iterations_unless_they_are_too_many(moved, repeat):
    total = per_repetition(None, moved, repeat) * repeat
    assert total >= min(10_000, (4 << 30) // moved)
    assert per_repetition(7, moved, repeat) * repeat >= 7
