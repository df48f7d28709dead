# SPDX-License-Identifier: Apache-2.0
"""`compact`: fewest groups, chassis, blades against all choices; on a torus, hops against them."""

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.planners import Request
from nidmap.placement.planners.compact import compact, fewest_units
from nidmap.placement.specs import parse_spec

SMALL = [
    "dragonfly:groups=3,chassis=2,blades=2,nodes=1",
    "dragonfly:groups=2,chassis=2,blades=3,nodes=1",
    "dragonfly:groups=2,chassis=1,blades=2,nodes=3",
    "slingshot:groups=3,switches=2,nodes=2",
    "fattree:leaf=3,leaves=4,spines=2",
    "tree:2x3x2",
    "tree:12",
]


def touched(machine, rows):
    """Units touched, from the outermost level in."""
    coords = machine.coords[list(rows)]
    return tuple(len(np.unique(coords[:, :k], axis=0)) for k in range(1, coords.shape[1]))


def mean_hops(machine, rows):
    """The mean number of hops between two different nodes of a torus."""
    places, extents = machine.coords[rows, :-1].astype(int), np.array(machine.topology.extents[:-1])
    apart = np.abs(places[:, None] - places)
    return np.minimum(apart, extents - apart).sum() / (len(rows) * (len(rows) - 1))


def draw_request(data, machine):
    rows = sorted(data.draw(st.sets(st.integers(0, len(machine) - 1), min_size=1)))
    count = data.draw(st.integers(1, len(rows)))
    include = sorted(data.draw(st.sets(st.sampled_from(rows), max_size=min(count, 2))))
    free = np.zeros(len(machine), dtype=bool)
    free[rows] = True
    choices = [c for c in combinations(rows, count) if set(include) <= set(c)]
    return Request(count, free, np.array(include, dtype=int)), choices


@pytest.mark.parametrize("spec", SMALL)
@given(data=st.data())
@settings(deadline=None)
def test_no_choice_touches_fewer(spec, data):
    machine = parse_spec(spec)
    request, choices = draw_request(data, machine)
    found = compact(machine, request)
    assert touched(machine, found) == min(touched(machine, choice) for choice in choices)


@dataclass
class Blades:
    """Blades with so many free nodes, in chassis and groups by their numbers."""

    group: np.ndarray
    chassis: np.ndarray
    size: np.ndarray
    must: np.ndarray

    @property
    def nest(self):
        first = np.unique(self.chassis, return_index=True)[1]
        return [self.group[first], self.chassis], self.size, self.must


@st.composite
def blades(draw, most=9):
    """Up to 4 groups of up to 4 chassis of up to 4 blades."""
    group, chassis, size = [], [], []
    for g in range(draw(st.integers(1, 4))):
        for _ in range(draw(st.integers(1, 4))):
            held = draw(st.lists(st.integers(1, most), min_size=1, max_size=4))
            chassis += [max(chassis, default=-1) + 1] * len(held)
            group += [g] * len(held)
            size += held
    must = draw(st.sets(st.integers(0, len(size) - 1), max_size=2))
    forced = np.zeros(len(size), dtype=bool)
    forced[list(must)] = True
    return Blades(np.array(group), np.array(chassis), np.array(size), forced)


def fewest_by_tables(b, need):
    """Fewest groups, chassis, blades by going through all numbers of each, group by group.

    most[k, c, n] is what k groups, c chassis and n blades can hold at most.
    """
    most = {(0, 0, 0): 0}
    for g in np.unique(b.group):
        inside = {(0, 0): 0}
        for c in np.unique(b.chassis[b.group == g]):
            here = b.chassis == c
            fixed, loose = b.size[here & b.must], np.sort(b.size[here & ~b.must])[::-1]
            ways = {} if len(fixed) else {(0, 0): 0}
            for extra in range(len(loose) + 1):
                number = len(fixed) + extra
                if number:
                    ways[1, number] = int(fixed.sum() + loose[:extra].sum())
            inside = joined_tables(inside, ways)
        grouped = {(int(c > 0), c, n): held for (c, n), held in inside.items()}
        most = joined_tables(most, grouped)
    return min(key for key, held in most.items() if held >= need)


def joined_tables(left, right):
    out = {}
    for (key, held), (other, more) in product(left.items(), right.items()):
        total = tuple(a + b for a, b in zip(key, other, strict=True))
        out[total] = max(out.get(total, 0), held + more)
    return out


def counts(b, units):
    return len(np.unique(b.group[units])), len(np.unique(b.chassis[units])), len(units)


@given(blades(), st.data())
@settings(deadline=None)
def test_units_hold_the_job_in_hardly_more_than_the_fewest(b, data):
    need = data.draw(st.integers(max(1, int(b.must.sum())), int(b.size.sum())))
    units = fewest_units(*b.nest, need)
    assert b.size[units].sum() >= need
    assert np.isin(np.flatnonzero(b.must), units).all()
    (groups, chassis, blade), best = counts(b, units), fewest_by_tables(b, need)
    assert groups == best[0]
    assert chassis <= best[1] + 1
    assert chassis > best[1] or blade <= best[2] + 2


def test_units_are_the_fewest_in_nests_at_random():
    lot = np.random.default_rng(3)
    for turn in range(100):
        group, chassis, size = [], [], []
        for g in range(lot.integers(1, 5)):
            for _ in range(lot.integers(1, 5)):
                held = lot.integers(1, 10 if turn % 2 else 5, lot.integers(1, 5)).tolist()
                chassis += [max(chassis, default=-1) + 1] * len(held)
                group += [g] * len(held)
                size += held
        b = Blades(*map(np.array, (group, chassis, size)), np.zeros(len(size), dtype=bool))
        need = int(lot.integers(1, b.size.sum() + 1))
        assert counts(b, fewest_units(*b.nest, need)) == fewest_by_tables(b, need)


def test_a_job_that_fits_one_group_is_not_split_to_save_blades():
    machine = parse_spec("dragonfly:groups=2,chassis=2,blades=4,nodes=4")
    free = machine.free.copy()
    free[machine.coords[:, 3] > 0] = False  # one node a blade in both groups
    free[machine.coords[:, 1] == 1] = True  # and full blades in chassis 1
    free[(machine.coords[:, 0] == 1) & (machine.coords[:, 2] > 1)] = False
    rows = compact(machine, Request(count=18, free=free))
    assert touched(machine, rows) == (1, 2, 6)


def test_below_three_levels_the_units_are_still_few():
    machine = parse_spec("tree:2x3x2x2x2")
    free = machine.free.copy()
    free[::5] = False
    rows = compact(machine, Request(count=9, free=free))
    assert touched(machine, rows)[:3] == (1, 1, 2)


@pytest.mark.parametrize("spec", ["torus:4x3", "torus:12", "torus:3x2x2", "torus:3x2,nodes=2"])
@given(data=st.data())
@settings(deadline=None)
def test_on_a_torus_hops_are_at_most_twice_the_fewest(spec, data):
    machine = parse_spec(spec)
    request, choices = draw_request(data, machine)
    found = compact(machine, request)
    if request.count > 1 and not len(request.include):
        best = min(mean_hops(machine, np.array(choice)) for choice in choices)
        factor = 2 - 2 / request.count
        assert mean_hops(machine, found) <= factor * best + 1e-9


def test_an_empty_torus_gives_a_ball_across_its_edge():
    machine = parse_spec("torus:16x16x16")
    free = machine.free.copy()
    free[(machine.coords[:, :3] > 3).all(axis=1) & (machine.coords[:, :3] < 12).all(axis=1)] = False
    rows = compact(machine, Request(count=343, free=free))
    apart = mean_hops(machine, rows)
    box = np.flatnonzero((machine.coords[:, :3] < 7).all(axis=1))
    assert apart < mean_hops(machine, box)


def test_on_a_torus_nodes_come_along_the_curve_so_that_neighbours_in_the_list_are_near():
    machine = parse_spec("torus:8x8x8")
    rows = compact(machine, Request(count=512, free=machine.free))
    step = np.abs(np.diff(machine.coords[rows, :3], axis=0)).sum(axis=1)
    assert sorted(rows.tolist()) == list(range(512))
    assert (step == 1).all()  # a Hilbert curve of a cube whose side is a power of two
    assert (np.abs(np.diff(machine.coords[:, :3], axis=0)).sum(axis=1) > 1).any()  # NID order's not
