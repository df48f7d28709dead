# SPDX-License-Identifier: Apache-2.0
"""Links by rule against loops over the published definitions."""

from collections import Counter
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.errors import UsageError
from nidmap.placement.readers import read_text
from nidmap.placement.specs import parse_spec
from nidmap.placement.topologies import (
    all_pairs,
    box_coords,
    bundle_links,
    links,
    number_coords,
    router_coords,
    router_count,
    router_names,
    wiring_text,
)
from nidmap.placement.topologies.dragonfly import DragonflyShape, attachments, wire_groups
from nidmap.placement.topologies.fattree import TreeShape
from tests.placement.machine_shapes import aries_links, torus_links, xc_cells, xtprocadmin


def listed(machine):
    """Return Counter of (router coordinates, router coordinates, class), lower one first."""
    found = links(machine)
    at = [tuple(row) for row in router_coords(machine).tolist()]
    out = Counter()
    assert (found.a < found.b).all()
    for a, b, kind, count in zip(found.a, found.b, found.kind, found.count, strict=True):
        one, other = sorted((at[a], at[b]))
        assert (one, other, found.kinds[kind]) not in out
        out[one, other, found.kinds[kind]] = int(count)
    return out


def inside(routers):
    """Return green and black links of (group, chassis, blade) routers."""
    out = Counter()
    for a, b in combinations(sorted(routers), 2):
        if a[:2] == b[:2]:
            out[a, b, "green"] += 1
        elif (a[0], a[2]) == (b[0], b[2]):
            out[a, b, "black"] += 3
    return out


def consecutive(routers, chassis, blades, count):
    """Return blue links: the issue's own words."""
    groups = sorted({r[0] for r in routers})
    size = chassis * blades
    out = Counter()
    for g, h in combinations(range(len(groups)), 2):
        for k in range(count):
            s = h if h < g else h - 1
            back = g if g < h else g - 1
            leave, enter = (s * count + k) % size, (back * count + k) % size
            a = (groups[g], *divmod(leave, blades))
            b = (groups[h], *divmod(enter, blades))
            if a in routers and b in routers:
                out[a, b, "blue"] += 1
    return out


def aligned(routers, times):
    out = Counter()
    for a, b in combinations(sorted(routers), 2):
        if a[0] != b[0] and a[1:] == b[1:]:
            out[a, b, "blue"] += times
    return out


sizes = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 4))


@given(sizes, st.integers(1, 9))
def test_consecutive(size, count):
    groups, chassis, blades = size
    machine = parse_spec(
        f"dragonfly:groups={groups},chassis={chassis},blades={blades},nodes=1,global={count}"
    )
    routers = set(product(range(groups), range(chassis), range(blades)))
    assert listed(machine) == inside(routers) + consecutive(routers, chassis, blades, count)


@given(sizes, st.integers(1, 2))
def test_aligned(size, times):
    groups, chassis, blades = size
    count = times * chassis * blades
    machine = parse_spec(
        f"dragonfly:groups={groups},chassis={chassis},blades={blades},nodes=1,"
        f"wiring=aligned,global={count}"
    )
    routers = set(product(range(groups), range(chassis), range(blades)))
    assert listed(machine) == inside(routers) + aligned(routers, times)


def xc_machine(cells, wiring, count):
    machine = assemble([read_text(xtprocadmin(cells), "dump")])
    parameters = {**machine.topology.parameters, "global": count}
    topology = replace(machine.topology, wiring=wiring, parameters=parameters)
    return replace(machine, topology=topology, _cache={})


holes = st.sets(
    st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 15)), min_size=1, max_size=40
)


@given(holes, st.sampled_from([(0, 0), (2, 0), (0, 1)]), st.sampled_from([2, 4]))
def test_same_chassis_joins_only_what_exists(gone, absent, k):
    cells = xc_cells(4, 2, absent={absent}, keep=lambda cell: cell[2][:3] not in gone)
    cells = [cell for cell in cells if cell[2][3] == 1]
    routers = {cell[2][:3] for cell in cells}
    machine = xc_machine(cells, "same-chassis", 12 * k)
    assert listed(machine) == aries_links(routers, k)
    assert router_count(machine) == len(routers)


@given(holes, st.integers(1, 30))
def test_consecutive_counts_the_groups_that_are_present(gone, count):
    absent = {(0, 0), (1, 0)}  # the whole of group 0
    cells = xc_cells(4, 2, absent=absent, keep=lambda cell: cell[2][:3] not in gone)
    cells = [cell for cell in cells if cell[2][3] == 0]
    routers = {cell[2][:3] for cell in cells}
    machine = xc_machine(cells, "consecutive", count)
    assert listed(machine) == inside(routers) + consecutive(routers, 6, 16, count)


def test_bandwidths_of_a_dragonfly():
    spec = (
        "dragonfly:groups=3,chassis=2,blades=4,nodes=1,wiring=aligned,global=16,"
        "green=5,black=15,blue=4"
    )
    found = links(parse_spec(spec))
    of = {kind: found.bandwidth[found.kind == i] for i, kind in enumerate(found.kinds)}
    assert set(of["green"]) == {5.0}
    assert set(of["black"]) == {15.0}
    assert set(of["blue"]) == {8.0}  # two links of 4 GB/s a router pair


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_torus(extents):
    machine = parse_spec(f"torus:{'x'.join(map(str, extents))},bw=2.5")
    assert listed(machine) == torus_links(extents)
    found = links(machine)
    assert np.array_equal(found.bandwidth, 2.5 * found.count)


def xgft(down, up):
    """Return Counter of switch pairs of XGFT(h; down; up), a switch being (level, t, s).

    t are the subtree digits above the level, outermost first, s the twin
    digits, highest level first.
    """
    out = Counter()
    height = len(down)
    for level in range(1, height):
        digits = [range(m) for m in reversed(down[level:])]
        twins = [range(w) for w in reversed(up[:level])]
        for t in product(*digits):
            for s in product(*twins):
                for p in range(up[level]):
                    out[(level, t, s), (level + 1, t[:-1], (p, *s))] += 1
    return out


def flat_index(values, sizes):
    number = 0
    for value, size in zip(values, sizes, strict=True):
        number = number * size + value
    return number


few = st.integers(1, 3)


@given(st.integers(2, 4).flatmap(lambda h: st.tuples(*[st.tuples(few, few)] * h)))
def test_fat_tree(levels):
    down, up = zip(*levels, strict=True)
    machine = parse_spec(f"fattree:down={'x'.join(map(str, down))},up={'x'.join(map(str, up))}")
    shape = TreeShape(down, up, (1,) * len(down))

    def index(switch):
        level, t, s = switch
        tree = flat_index(t, list(reversed(down[level:])))
        twin = flat_index(s, list(reversed(up[:level])))
        return shape.first(level) + tree * shape.twins(level) + twin

    expected = Counter()
    for (low, high), count in xgft(down, up).items():
        expected[index(low), index(high), f"up{low[0]}"] += count
    found = links(machine)
    got = {
        (a, b, found.kinds[kind]): count
        for a, b, kind, count in zip(
            found.a.tolist(),
            found.b.tolist(),
            found.kind.tolist(),
            found.count.tolist(),
            strict=True,
        )
    }
    assert got == expected
    assert router_count(machine) == shape.total == len(set(router_names(machine).tolist()))


def test_two_levels_of_a_fat_tree():
    machine = parse_spec("fattree:leaf=2,leaves=3,spines=2,links=3,bw=4")
    found = links(machine)
    assert sorted(zip(found.a.tolist(), found.b.tolist(), strict=True)) == [
        (leaf, 3 + spine) for leaf in range(3) for spine in range(2)
    ]
    assert found.count.tolist() == [3] * 6
    assert found.bandwidth.tolist() == [12.0] * 6
    assert router_coords(machine).tolist() == [[0], [1], [2], [-1], [-1]]


def test_a_tree_has_one_link_up_from_every_switch():
    machine = parse_spec("tree:2x3x2,bw=1:2:4")
    found = links(machine)
    assert router_count(machine) == 6 + 2 + 1
    assert found.kinds == ("up1", "up2")
    assert found.kind.tolist() == [0] * 6 + [1] * 2
    assert found.b.tolist() == [6, 6, 6, 7, 7, 7, 8, 8]
    assert found.bandwidth.tolist() == [2.0] * 6 + [4.0] * 2


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 6))
def test_slingshot(groups, switches, count):
    spec = f"slingshot:groups={groups},switches={switches},nodes=1,global={count},bw=25"
    machine = parse_spec(spec)
    expected = Counter()
    for g in range(groups):
        for a, b in combinations(range(switches), 2):
            expected[(g, a), (g, b), "local"] += 1
    routers = set(product(range(groups), range(1), range(switches)))
    for (a, b, _), n in consecutive(routers, 1, switches, count).items():
        expected[(a[0], a[2]), (b[0], b[2]), "global"] += n
    assert listed(machine) == expected
    found = links(machine)
    assert np.array_equal(found.bandwidth, 25.0 * found.count)


def test_groups_of_two_sizes_with_links_by_pair():
    machine = parse_spec("slingshot:groups=3,switches=4,nodes=1,global=1")
    table = ((0, 5, 2), (5, 0, 1), (2, 1, 0))
    parameters = {**machine.topology.parameters, "switches": (4, 4, 2), "global_table": table}
    keep = (machine.coords[:, 0] < 2) | (machine.coords[:, 1] < 2)
    box = router_coords(machine)[keep]
    machine = replace(
        machine,
        topology=replace(machine.topology, parameters=parameters),
        router_coords=box,
        _cache={},
    )
    expected = Counter()
    size = (4, 4, 2)
    used = [0, 0, 0]  # each group's links go to its switches one after the other
    ends = {}
    for g in range(3):
        for h in range(3):
            for k in range(table[g][h]):
                ends[g, h, k] = used[g] % size[g]
                used[g] += 1
    for g, h in combinations(range(3), 2):
        for k in range(table[g][h]):
            expected[(g, ends[g, h, k]), (h, ends[h, g, k]), "global"] += 1
    got = {key: n for key, n in listed(machine).items() if key[2] == "global"}
    assert got == expected
    assert wiring_text(machine) == "consecutive, 1 to 5 links per group pair"


@given(st.integers(1, 12), st.integers(1, 8))
def test_nics_go_to_different_switches_the_first_to_its_own(switches, nics):
    own = np.arange(switches, dtype=np.int32)
    found = attachments(own, switches, nics)
    assert found[:, 0].tolist() == own.tolist()
    assert ((found >= 0) & (found < switches)).all()
    if switches % nics == 0:
        assert all(len(set(row)) == nics for row in found.tolist())
        assert (np.bincount(found.ravel()) == nics).all()


def test_names_of_routers():
    assert router_names(parse_spec("dragonfly:groups=1,chassis=1,blades=2,nodes=1")).tolist() == [
        "g0c0b0",
        "g0c0b1",
    ]
    cells = xc_cells(2, 1, keep=lambda cell: cell[2][2] == 5)
    machine = assemble([read_text(xtprocadmin(cells), "dump")])
    assert router_names(machine).tolist()[:2] == ["c0-0c0s5a0", "c0-0c1s5a0"]
    assert router_names(machine)[-1] == "c1-0c2s5a0"


def test_an_unknown_rule_names_those_there_are():
    machine = parse_spec("dragonfly:groups=2,chassis=1,blades=2,nodes=1")
    machine = replace(machine, topology=replace(machine.topology, wiring="odd"), _cache={})
    with pytest.raises(UsageError, match="aligned, consecutive, same-chassis"):
        links(machine)


def test_too_many_links_are_refused_before_they_are_made():
    machine = parse_spec("dragonfly:groups=1,chassis=1,blades=100000,nodes=1")
    with pytest.raises(UsageError, match="links"):
        links(machine)


def test_the_answer_is_remembered():
    machine = parse_spec("torus:4x4")
    assert links(machine) is links(machine)


def test_same_chassis_deals_what_is_no_multiple_of_the_chassis():
    """32 links over 6 chassis: 16 pairs of links, three blades in four chassis, two in two."""
    found = wire_groups("same-chassis", DragonflyShape(groups=18, chassis=6, blades=16, links=32))
    assert found.count == 2
    expected = [
        (g, h, c * 16 + (2 * (h - 1) + j) % 16, c * 16 + (2 * g + j) % 16)
        for g in range(18)
        for h in range(g + 1, 18)
        for c in range(6)
        for j in range(3 if c < 4 else 2)
    ]
    columns = (found.g, found.h, found.a, found.b)
    assert list(zip(*(c.tolist() for c in columns), strict=True)) == expected


def test_number_coords():
    assert number_coords(np.array([[1, 0], [0, 1]]), (2, 3)).tolist() == [3, 1]
    assert number_coords(np.array([[1, 0], [0, 1]]), (2, 3), first_fastest=True).tolist() == [1, 2]


def test_box_coords():
    assert box_coords((2, 2), first_fastest=True).tolist() == [[0, 0], [1, 0], [0, 1], [1, 1]]


def test_all_pairs():
    assert [x.tolist() for x in all_pairs(3)] == [[0, 0, 1], [1, 2, 2]]


def test_bundle_links():
    links = bundle_links(
        np.array([1, 0]),
        np.array([0, 1]),
        np.zeros(2, np.int8),
        ("up1",),
        np.array([1, 2]),
        np.array([2.5, 25.0]),
    )
    assert links.a.tolist() == [0]
    assert links.b.tolist() == [1]
    assert links.count.tolist() == [3]
    assert links.bandwidth.tolist() == [27.5]
    assert links.cable.tolist() == [2.5, 12.5, 12.5]
