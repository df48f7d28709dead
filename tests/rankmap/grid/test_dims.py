# SPDX-License-Identifier: Apache-2.0
"""Process grids: compact and node-balanced, and stencil:auto."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.errors import UsageError
from nidmap.placement.specs import parse_spec
from nidmap.rankmap.grid.dims import (
    balanced_factors,
    dims,
    divisors,
    factorisations,
    grid_shapes,
    offset_ends,
    offset_window,
    shape_turns,
)
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.pattern import parse_pattern
from tests.effort import examples
from tests.rankmap.helpers import named, slots


@settings(deadline=None)
@given(st.integers(1, 4000), st.integers(1, 4))
def test_a_grid_is_a_product(n, ndims):
    found = dims(n, ndims)
    assert len(found) == ndims
    assert math.prod(found) == n
    assert list(found) == sorted(found, reverse=True)
    assert len(set(grid_shapes(n, ndims))) == len(list(grid_shapes(n, ndims)))


@examples(60)
@given(st.integers(1, 300))
def test_the_compact_grid_has_the_least_surface(n):
    every = [
        (a, b, n // a // b)
        for a in range(1, n + 1)
        if n % a == 0
        for b in range(1, n + 1)
        if n // a % b == 0
    ]
    least = min(sum(n // e for e in grid) for grid in every)
    assert sum(n // e for e in balanced_factors(n, 3)) == least
    assert set(grid_shapes(n, 3)) == {tuple(sorted(grid, reverse=True)) for grid in every}


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 64), st.integers(1, 4))
def test_a_node_balanced_grid_is_tiled_by_whole_nodes(nodes, ppn, ndims):
    found = dims(nodes * ppn, ndims, ppn=ppn, prefer="node-balanced")
    assert math.prod(found) == nodes * ppn


@pytest.mark.parametrize(
    ("n", "ppn", "grid"), [(9216, 24, (24, 24, 16)), (4096, 32, (16, 16, 16)), (56, 7, (7, 4, 2))]
)
def test_grids_on_nodes(n, ppn, grid):
    assert dims(n, 3, ppn=ppn) == grid


def test_a_machines_cores_are_its_ranks_a_node():
    machine = parse_spec("tree:4x16")
    cores = dataclasses.replace(machine, cores=np.full(64, 24))
    assert dims(1536, 3, cores) == dims(1536, 3, ppn=24)
    assert dims(1536, 3, machine) == dims(1536, 3)  # cores unknown
    with pytest.raises(UsageError, match="boxes of a node's ranks tile no grid"):
        dims(100, 2, cores, prefer="node-balanced")


@pytest.mark.parametrize(
    "wrong", [{"n": 0, "ndims": 2}, {"n": 8, "ndims": 5}, {"n": 8, "ndims": 2, "prefer": "best"}]
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(UsageError):
        dims(**wrong)
    with pytest.raises(UsageError, match="every node needs at least 1 rank"):
        dims(8, 2, ppn=[])


def test_stencil_auto_chooses_by_the_ranks_a_node():
    made = arrange(slots(named(*range(384)), 24), "stencil:auto", "boxes")
    assert made.origin.pattern == "stencil:24x24x16"


@pytest.mark.parametrize(
    ("spec", "grid"),
    [
        ("stencil:auto", "stencil:4x3x2"),
        ("stencil:auto,ndims=2,periodic", "stencil:6x4,periodic"),
        ("stencil:auto,weights=1:2", "stencil:6x4,weights=1:2"),
        ("stencil:auto,ndims=1", "stencil:24"),
        ("stencil:auto,points=27", "stencil:4x3x2,points=27"),
    ],
)
def test_stencil_auto_keeps_its_options(spec, grid):
    wanted = parse_pattern(spec)
    assert wanted.fit(24).spec == grid
    assert parse_pattern(wanted.spec) == wanted
    with pytest.raises(UsageError, match="no rank count yet"):
        next(wanted.edges())


@pytest.mark.parametrize(
    "spec", ["stencil:auto,ndims=5", "stencil:auto,ndims=2,ndims=3", "stencil:auto,ndims="]
)
def test_stencil_auto_refuses_nonsense(spec):
    with pytest.raises(UsageError, match="ndims"):
        parse_pattern(spec)


def test_shape_turns():
    assert shape_turns((4, 2, 2)) == [(4, 2, 2), (2, 4, 2), (2, 2, 4)]


def test_divisors():
    assert divisors(12) == (1, 2, 3, 4, 6, 12)


def test_factorisations():
    assert list(factorisations(4, (8, 6))) == [(2, 2), (4, 1)]


def test_offset_window():
    assert offset_window((4, 4), (1, 0)) == (
        (slice(0, 3, None), slice(0, 4, None)),
        (slice(1, 4, None), slice(0, 4, None)),
    )


def test_offset_ends():
    assert [ends.tolist() for ends in offset_ends(np.arange(4), (False,), (1,))] == [
        [0, 1, 2],
        [1, 2, 3],
    ]
    assert [ends.tolist() for ends in offset_ends(np.arange(4), (True,), (1,))] == [
        [0, 1, 2, 3],
        [1, 2, 3, 0],
    ]
