# SPDX-License-Identifier: Apache-2.0
"""What is written in a dump's own format reads back to an equal machine."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.names import format_cnames
from nidmap.placement.names.numbering import GeminiNumbering, Xc
from nidmap.placement.readers import read_text
from nidmap.placement.readers.rtr_gemini import MEDIA
from tests.effort import examples
from tests.places import places_of
from tests.same_machine import same_machine
from tests.writers import write

TYPES = np.array(["compute", "service"])
STATES = np.array(["up", "down", "admindown", "suspect"])
MODES = np.array(["interactive", "batch", "other"])
XT = "   NID    (HEX)    NODENAME     TYPE    STATUS        MODE   OS CORES\n"


def xtprocadmin(rule, nids, seed):
    """Return a dump of some nodes of an XC or XE."""
    draw = np.random.default_rng(seed)
    names = format_cnames(places_of(rule, nids))
    words = [draw.choice(x, len(nids)) for x in (TYPES, STATES, MODES)]
    rows = zip(nids.tolist(), names.tolist(), *(w.tolist() for w in words), strict=True)
    return "".join(f"{n} 0x{n:x} {name} {r} {s} {m}\n" for n, name, r, s, m in rows)


def some(rule, total, seed, share):
    """Return NIDs with holes, the first and last blade always there."""
    draw = np.random.default_rng(seed)
    keep = draw.random(total) < share
    keep[[0, 1, 2, 3, total - 1]] = True
    nids = np.flatnonzero(keep)
    return nids[(places_of(rule, nids)[:, 0] >= 0)]


def xc_links(positions, cabinets, seed):
    """Return an Aries list of some routers of the cabinets, joined at random."""
    draw = np.random.default_rng(seed)
    rule = Xc(positions)
    nids = first_nids(cabinets)
    place, at = places_of(rule, nids), rule.coords(places_of(rule, nids))
    names = [f"c{c}-{r}c{h}s{s}a0" for c, r, h, s, _ in place.tolist()]
    shown = [f"({g}:{c}:{b})" for g, c, b, _ in at.tolist()]
    free = [list(range(40)) for _ in names]
    sees = {}
    for _ in range(4 * len(names)):
        a, b = draw.choice(len(names), 2, replace=False).tolist()
        ga, gb = at[a].tolist(), at[b].tolist()
        colour = "blue" if ga[0] != gb[0] else "green" if ga[1] == gb[1] else "black"
        if free[a] and free[b]:
            s, t = free[a].pop(), free[b].pop(0)
            sees[a, s], sees[b, t] = f"{colour} -> {b} {t}", f"{colour} -> {a} {s}"
    lines = []
    for i, name in enumerate(names):
        for tile in range(48):
            what = sees.get((i, tile), "ptile -> processor" if tile > 39 else "blue -> unused")
            colour, _, rest = what.partition(" -> ")
            if " " in rest:
                j, t = map(int, rest.split())
                rest = f"{names[j]}l{t:02o}{shown[j]}"
            lines.append(f"{name}l{tile:02o}{shown[i]} {colour} -> {rest}\n")
    return "".join(lines)


def first_nids(cabinets):
    """Return the first node of every seventh blade of each cabinet."""
    return np.concatenate([np.arange(c * 192, (c + 1) * 192, 4)[::7] for c in cabinets])


def gemini_links(columns, rows, per, seed=None):
    """Return the list of a whole XE with so many tiles along x, y and z."""
    rule = GeminiNumbering(columns, rows)
    extents = (columns, 2 * rows, 24)
    box = np.stack(np.meshgrid(*map(np.arange, extents), indexing="ij"), -1).reshape(-1, 3)
    parts = rule.parts_of_coords(np.column_stack([box, np.zeros(len(box), dtype=int)]))
    name = {
        tuple(at): f"c{c}-{r}c{h}s{s}g{n // 2}"
        for at, (c, r, h, s, n) in zip(box.tolist(), parts.tolist(), strict=True)
    }
    draw = np.random.default_rng(seed)
    lines = []
    for at, here in name.items():
        used = 0
        for axis in range(3):
            for sign in (1, -1):
                other = list(at)
                other[axis] = (at[axis] + sign) % extents[axis]
                there = name[tuple(other)]
                for k in range(per[axis]):
                    tile = used + k
                    back = used + k + sign * per[axis]
                    a = "%sl%02o[(%d,%d,%d)]" % (here, tile, *at)  # noqa: UP031 - octal and tuple
                    b = "%sl%02o[(%d,%d,%d)]" % (there, back, *other)  # noqa: UP031 - the same
                    lines.append(f"{a} {'XYZ'[axis]}{'+-'[sign < 0]} -> {b}\n")
                used += per[axis]
    draw.shuffle(lines)
    return "".join(lines)


def read_back(machine, *formats):
    return assemble([read_text(write(machine, name), name) for name in formats])


@given(
    positions=st.sampled_from([2, 4, 8]),
    rows=st.integers(1, 2),
    share=st.floats(0.02, 0.2),
    seed=st.integers(0, 999),
)
def test_an_xc_reads_back_from_its_node_lists(positions, rows, share, seed):
    rule = Xc(positions)
    nids = some(rule, positions * rows * 192, seed, share)
    machine = assemble([read_text(xtprocadmin(rule, nids, seed), "d")])
    for name in ("xtprocadmin", "xtdb2proc"):
        text = write(machine, name)
        dump = read_text(text, name)
        assert dump.format == name
        assert dump.findings == ()
        assert dump.counts.rows == len(machine)
        assert same_machine(read_back(machine, name), machine)


@examples(40)
@given(columns=st.integers(2, 4), rows=st.integers(1, 2), seed=st.integers(0, 999))
def test_an_xe_reads_back_from_its_node_lists(columns, rows, seed):
    rule = GeminiNumbering(columns, rows)
    nids = some(rule, columns * rows * 96, seed, 0.3)
    machine = assemble([read_text(xtprocadmin(rule, nids, seed), "d")])
    assert machine.topology.fabric == "gemini"
    for name in ("xtprocadmin", "xtdb2proc"):
        assert same_machine(read_back(machine, name), machine)
    for name in ("meshcoords", "torus-coordinates", "system-map"):
        up = replace(machine, state=np.full(len(machine), "up"), mode=np.full(len(machine), ""))
        if name == "system-map":
            up = replace(up, role=np.full(len(machine), "compute"))
        assert read_text(write(up, name), name).format == name
        assert same_machine(read_back(up, name), up)


def test_an_xc_reads_back_from_meshcoords_with_its_cores():
    text = "NID NODENAME TYPE CORES X Y Z\n" + "".join(
        f"{n} {name} compute {68 if n % 2 else 64} {g} {c} {b}\n"
        for n, name, (g, c, b, _) in zip(
            range(2304, 2900),
            format_cnames(places_of(Xc(12), np.arange(2304, 2900))).tolist(),
            Xc(12).coords(places_of(Xc(12), np.arange(2304, 2900))).tolist(),
            strict=True,
        )
    )
    machine = assemble([read_text(text, "d")])
    assert same_machine(read_back(machine, "meshcoords"), machine)
    assert read_back(machine, "xtprocadmin").cores.tolist() == machine.cores.tolist()


def test_an_xt_header_with_cores_reads_back():
    rows = "".join(
        f"{n} 0x{n:x} {name} compute up batch CNL {8 + n % 2}\n"
        for n, name in enumerate(format_cnames(places_of(Xc(2), np.arange(384))).tolist())
    )
    machine = assemble([read_text(XT + rows, "d")])
    assert machine.cores.max() == 9
    assert same_machine(read_back(machine, "xtprocadmin"), machine)


def test_a_mode_that_is_not_known_is_a_dash_and_comes_back():
    machine = assemble([read_text(xtprocadmin(Xc(2), np.arange(384), 1), "d")])
    mode = machine.mode.copy()
    mode[::3] = ""
    machine = replace(machine, mode=mode)
    for name in ("xtprocadmin", "xtdb2proc"):
        assert same_machine(read_back(machine, name), machine)


@examples(40)
@given(seed=st.integers(0, 9999), positions=st.sampled_from([2, 4]))
def test_aries_links_read_back_alone_and_with_the_nodes(seed, positions):
    cabinets = [0, 1, positions, positions + 1]
    listed = read_text(xc_links(positions, cabinets, seed), "links")
    assert listed.findings == ()
    alone = assemble([listed])
    assert same_machine(read_back(alone, "rtr-aries"), alone)
    rule = Xc(positions)
    nids = (first_nids(cabinets)[:, None] + np.arange(4)).ravel()
    machine = assemble([read_text(xtprocadmin(rule, nids, seed), "d"), listed])
    assert int(machine.links.count.sum()) == len(listed.links) // 2
    assert same_machine(read_back(machine, "xtprocadmin", "rtr-aries"), machine)
    again = read_text(write(machine, "rtr-aries"), "again")
    assert again.findings == ()
    assert again.counts.rows == 48 * len(again.routers)
    assert write(machine, "rtr-aries") == write(
        read_back(machine, "rtr-aries", "xtprocadmin"), "rtr-aries"
    )


@pytest.mark.parametrize(("columns", "rows"), [(2, 1), (3, 1), (4, 2), (2, 2)])
@pytest.mark.parametrize("per", [(4, 2, 4), (1, 1, 1)])
def test_gemini_links_read_back_alone_and_with_the_nodes(columns, rows, per):
    listed = read_text(gemini_links(columns, rows, per), "links")
    assert listed.findings == ()
    rule = GeminiNumbering(columns, rows)
    nids = np.arange(columns * rows * 96)
    machine = assemble([read_text(xtprocadmin(rule, nids, 1), "d"), listed])
    again = read_text(write(machine, "rtr-gemini"), "again")
    assert again.findings == ()
    assert int(machine.links.count.sum()) == len(listed.links) // 2 == len(again.links) // 2
    assert same_machine(read_back(machine, "xtprocadmin", "rtr-gemini"), machine)


def test_gemini_link_types_are_those_of_the_hardware():
    listed = read_text(gemini_links(3, 2, (8, 4, 8)), "links")
    machine = assemble(
        [read_text(xtprocadmin(GeminiNumbering(3, 2), np.arange(576), 1), "d"), listed]
    )
    links = read_text(write(machine, "rtr-gemini"), "again").links
    axis, gbs = np.char.strip(links.kind, "+-"), links.bandwidth
    assert set(gbs[axis == "x"]) == {MEDIA["cable"]}
    assert set(gbs[axis == "y"]) == {MEDIA["mezzanine"], MEDIA["cable"]}
    assert set(gbs[axis == "z"]) == {MEDIA["backplane"], MEDIA["cable"]}
    inside = np.char.rpartition(links.a, "g")[:, 0] == np.char.rpartition(links.b, "g")[:, 0]
    assert set(gbs[inside]) == {MEDIA["mezzanine"]}


def test_one_way_round_an_axis_of_two_stays_one_way():
    lines = gemini_links(2, 1, (4, 2, 4)).splitlines(keepends=True)
    # only the mezzanine side of y: y+ from y = 0 and y- from y = 1
    kept = [x for x in lines if " Y" not in x or (",0," in x.split()[0]) == (" Y+ " in x)]
    listed = read_text("".join(kept), "links")
    assert listed.findings == ()
    machine = assemble(
        [read_text(xtprocadmin(GeminiNumbering(2, 1), np.arange(192), 1), "d"), listed]
    )
    assert same_machine(read_back(machine, "xtprocadmin", "rtr-gemini"), machine)
