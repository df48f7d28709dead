# SPDX-License-Identifier: Apache-2.0
"""rtr --interconnect of Aries and Gemini: links from both ends, and what contradicts."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import ParseError
from nidmap.placement.readers import read_text

LINE = re.compile(
    r"(c\S+?[ag]\d)l(\d\d)(?:\((\d+):(\d+):(\d+)\)|\[\((\d+),(\d+),(\d+)\)\])? (\S+) -> (\S+)"
)
OPPOSITE = {"X+": "X-", "X-": "X+", "Y+": "Y-", "Y-": "Y+", "Z+": "Z-", "Z-": "Z+"}


def aries_routers(positions, cabinets):
    """Return name and printed coordinates of all routers of some cabinets."""
    found = {}
    for col, row in cabinets:
        for cage in range(3):
            for slot in (0, 7, 15):
                group = row * (positions // 2) + col // 2
                found[f"c{col}-{row}c{cage}s{slot}a0"] = (group, cage + 3 * (col % 2), slot)
    return found


def aries_lines(routers, seed, links=60):
    """Return the list of routers joined at random, 48 lines each."""
    draw = random.Random(seed)
    free = {name: list(range(40)) for name in routers}
    sees = {}
    names = list(routers)
    for _ in range(links):
        a, b = draw.sample(names, 2)
        if not free[a] or not free[b]:
            continue
        s, t = (free[x].pop(draw.randrange(len(free[x]))) for x in (a, b))
        colour = draw.choice(["green", "black", "blue"])
        sees[a, s], sees[b, t] = (colour, b, t), (colour, a, s)
    lines = []
    for name in names:
        for tile in range(48):
            here = end(name, tile, routers[name])
            if (name, tile) in sees:
                colour, other, at = sees[name, tile]
                lines.append(f"{here} {colour} -> {end(other, at, routers[other])}")
            else:
                lines.append(f"{here} " + ("ptile -> processor" if tile > 39 else "blue -> unused"))
    return lines


def end(name, tile, xyz):
    return f"{name}l{tile:02o}({xyz[0]}:{xyz[1]}:{xyz[2]})"


def gemini_lines(extents, per=2, *, coords=True, medium=True):
    """Return the list of a whole torus, `per` tiles a direction."""
    boxes = [
        (x, y, z) for x in range(extents[0]) for y in range(extents[1]) for z in range(extents[2])
    ]
    name = {box: f"c{box[0]}-0c{box[2] // 8}s{box[2] % 8}g{box[1]}" for box in boxes}

    def shown(box, tile):
        x, y, z = box
        return f"{name[box]}l{tile:02o}" + (f"[({x},{y},{z})]" if coords else "")

    kind = " LinkType: %s" if medium else ""
    lines = []
    for box in boxes:
        for axis, letter in enumerate("XYZ"):
            for sign, way in ((1, "+"), (-1, "-")):
                if extents[axis] == 1:
                    continue
                other = list(box)
                other[axis] = (box[axis] + sign) % extents[axis]
                for k in range(per):
                    tile = (2 * axis + (sign < 0)) * per + k
                    back = (2 * axis + (sign > 0)) * per + k
                    what = kind % ("cable11x", "mezzanine", "backplane")[axis] if medium else ""
                    here, there = shown(box, tile), shown(tuple(other), back)
                    lines.append(f"{here} {letter}{way} -> {there}{what}")
    return lines


def refusal(text):
    with pytest.raises(ParseError) as caught:
        read_text(text, "d")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def slow(lines):
    """Read links one line after the other."""
    found = []
    for number, line in enumerate(lines, 1):
        a = LINE.match(line)
        b = LINE.match(a[10] + " x -> y")
        if b:
            xyz = [tuple(int(v) for v in m.groups()[2:8] if v is not None) for m in (a, b)]
            found.append((number, a[1], int(a[2], 8), a[9].lower(), b[1], int(b[2], 8), *xyz))
    return found


def check_links(dump, lines):
    links = dump.links
    assert list(
        zip(
            links.line.tolist(),
            links.a.tolist(),
            links.a_port.tolist(),
            links.kind.tolist(),
            links.b.tolist(),
            links.b_port.tolist(),
            map(tuple, links.coords_a.tolist()),
            map(tuple, links.coords_b.tolist()),
            strict=True,
        )
    ) == slow(lines)


@given(
    seed=st.integers(0, 2**32),
    positions=st.sampled_from([2, 8, 12]),
    cabinets=st.lists(
        st.tuples(st.integers(0, 11), st.integers(0, 3)), min_size=1, max_size=4, unique=True
    ),
)
def test_aries_links_are_those_of_a_line_by_line_reading(seed, positions, cabinets):
    cabinets = [(col % positions, row) for col, row in cabinets]
    routers = aries_routers(positions, dict.fromkeys(cabinets))
    lines = aries_lines(routers, seed)
    found = read_text("\n".join(lines) + "\n", "x")
    assert (found.format, found.fabric) == ("rtr-aries", "aries")
    check_links(found, lines)
    assert sorted(found.routers.tolist()) == sorted(routers)
    assert found.counts.rows == found.counts.total == len(lines)
    assert found.findings == ()
    if any(row for _, row in cabinets):
        assert found.parameters == {"positions": positions}
    else:
        assert found.parameters == {}


def test_blanks_and_comments_in_a_link_list_are_counted():
    lines = aries_lines(aries_routers(8, [(0, 0)]), 1)
    counts = read_text("# Edison\n\n" + "\n".join(lines) + "\n\n", "x").counts
    assert (counts.rows, counts.comments, counts.blank) == (9 * 48, 1, 2)


@pytest.fixture
def lines():
    return aries_lines(aries_routers(8, [(0, 0), (1, 0), (2, 1), (7, 3)]), 7, links=300)


def linked(lines, at=5):
    """Return the number of a line that has a link, and that of its other end."""
    i = [k for k, line in enumerate(lines) if "unused" not in line and "processor" not in line][at]
    there = lines[i].split()[3]
    return i, next(k for k, line in enumerate(lines) if line.startswith(there + " "))


def faults(lines):
    return [(f.line, f.kind, f.text) for f in read_text("\n".join(lines), "x").findings]


def test_a_link_whose_other_end_sees_nothing_has_one_end(lines):
    i, j = linked(lines)
    here, there = (lines[k].split("(")[0] for k in (i, j))
    lines[j] = lines[j].split(" -> ")[0] + " -> unused"
    assert faults(lines) == [
        (i + 1, "one-ended-link", f"{here} sees {there}, which sees no router (line {j + 1})")
    ]


def test_a_link_whose_other_end_sees_another_has_one_end(lines):
    i, j = linked(lines)
    other, _ = linked(lines, at=8)
    lines[j] = lines[j].split(" -> ")[0] + " -> " + lines[other].split()[0]
    found = faults(lines)
    assert {line for line, kind, _ in found if kind == "one-ended-link"} == {i + 1, j + 1}
    here = lines[i].split("(")[0]
    assert any(text.startswith(f"{here} sees ") for _, _, text in found)


def test_a_link_to_a_router_that_is_not_listed_has_one_end(lines):
    _, j = linked(lines)
    router = lines[j].split("l")[0]
    rest = [line for line in lines if not line.startswith(router + "l")]
    found = faults(rest)
    assert {kind for _, kind, _ in found} == {"one-ended-link"}
    assert all("which is not listed" in text for _, _, text in found)
    assert router in read_text("\n".join(rest), "x").routers


def test_a_list_cut_at_a_line_lacks_tiles(lines):
    found = faults(lines[:-5])
    last = [entry for entry in found if entry[1] == "missing-tiles"]
    assert last == [
        (
            len(lines) - 5,
            "missing-tiles",
            "c7-3c2s15a0 is listed with 43 of 48 tiles, l53 is missing",
        )
    ]


def test_a_tile_listed_twice_is_a_fault(lines):
    found = faults([*lines, lines[3]])
    assert (len(lines) + 1, "duplicate-tile", "tile c0-0c0s0a0l03 again, first on line 4") in found


def test_coordinates_that_contradict_a_name_or_each_other_are_faults(lines):
    name = "c7-3c2s15a0"
    assert faults(lines) == []
    got = faults([x.replace("(15:5:15)", "(15:4:15)") for x in lines])
    first = next(i for i, line in enumerate(lines, 1) if "(15:5:15)" in line)
    assert got == [(first, "coordinates", f"{name} is at (15:4:15), an XC's name says (15:5:15)")]
    once = [x.replace("(15:5:15)", "(15:4:15)") if k == len(lines) - 1 else x
            for k, x in enumerate(lines)]  # fmt: skip
    [(line, kind, text)] = faults(once)
    assert (line, kind) == (len(lines), "coordinates")
    assert text == f"{name} is at (15, 4, 15) here and at (15, 5, 15) above"


GOOD = "c0-0c0s0a0l00(0:0:0) green -> c0-0c0s6a0l10(0:0:6)"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("c0-0c0s0a0l01(0:0:0) green -> ", "3 of 4 fields"),
        ("c0-0c0s0a0l01(0:0:0) green", "2 of 4 fields"),
        ("c0-0c0s0a0l01(0:0:0) green -> c0-0c0s6a0l10(0:0:6", "is not a tile"),
        ("c0-0c0s0a0l01(0:0) green -> c0-0c0s6a0l10(0:0:6)", "is not a tile"),
        ("c0-0c0s0a0l01(0:0:0) pink -> c0-0c0s6a0l10(0:0:6)", "'pink' is not a colour"),
        ("c0-0c0s0a0l01(0:0:0) green <- c0-0c0s6a0l10(0:0:6)", "'<-' is not a '->'"),
        ("c0-0c0s0a0l01(0:0:0) ptile -> c0-0c0s6a0l10(0:0:6)", "a ptile leads to a processor"),
        ("c0-0c0s0a0l01(0:0:0) blue -> unuse", "'unuse' is not a tile, unused or processor"),
        ("c0-0c0s0a0l01(0:0:0) blue -> elsewhere", "'elsewhere' is not a tile"),
        ("c0-0c0s0a0l58(0:0:0) green -> c0-0c0s6a0l10(0:0:6)", "'c0-0c0s0a0l58"),
        (
            "c0-0c0s0a0l01(0:0:0) green -> c0-0c0s6a0l60(0:0:6)",
            "'c0-0c0s6a0l60(0:0:6)' is not a tile, unused",
        ),
        ("c0-0c0s0a1l01(0:0:0) green -> c0-0c0s6a0l10(0:0:6)", "'c0-0c0s0a1l01"),
        ("c0-0c3s0a0l01(0:0:0) green -> c0-0c0s6a0l10(0:0:6)", "'c0-0c3s0a0l01"),
        ("c0-0c0s0a0l01(70000:0:0) green -> c0-0c0s6a0l10(0:0:6)", "is not a tile; such as"),
        ("c0-0c0s0a0l01(0:0:0) green -> c99999999999-0c0s6a0l10(0:0:6)", "is not a tile"),
        ("c0-0c0s0g0l00[(0,0,0)] Z+ -> c0-0c0s1g0l32[(0,0,1)]", "looks like rtr-gemini"),
    ],
)
def test_bad_lines_of_an_aries_list(line, says):
    message = refusal(f"{GOOD}\n{line}\n{GOOD}\n")
    assert message.startswith("d:2: ")
    assert says in message


@pytest.mark.parametrize("extents", [(4, 2, 8), (3, 1, 8), (2, 2, 16)])
def test_gemini_links_are_those_of_a_line_by_line_reading(extents):
    lines = gemini_lines(extents)
    found = read_text("\n".join(lines) + "\n", "x")
    assert (found.format, found.fabric, found.findings) == ("rtr-gemini", "gemini", ())
    check_links(found, lines)
    assert found.parameters == {"extents": extents}
    assert len(found.routers) == extents[0] * extents[1] * extents[2]
    speeds = set(found.links.bandwidth.tolist())
    assert {1.875, 1.171875} <= speeds <= {1.875, 1.171875, 2.34375}  # backplane, cable, mezzanine
    assert found.counts.rows == len(lines)


def test_gemini_lists_may_lack_coordinates_and_link_types():
    found = read_text("\n".join(gemini_lines((2, 2, 8), coords=False, medium=False)), "x")
    assert (found.format, found.findings, found.parameters) == ("rtr-gemini", (), {})
    assert found.links.coords_a is None
    assert found.links.bandwidth is None
    lines = gemini_lines((3, 2, 8))
    lines[7] = lines[7].split(" LinkType")[0]
    lines.append("c0-0c0s0g0l23 ptile -> processor")
    lines.append("c0-0c0s0g0l24[(0,0,0)] host -> unused")
    found = read_text("\n".join(lines), "x")
    assert [(f.line, f.kind) for f in found.findings] == [(8, "link-kind")]
    assert found.counts.rows == len(lines)
    assert len(found.links) == len(lines) - 2


def test_a_gemini_link_with_one_end_is_a_fault():
    lines = gemini_lines((4, 2, 8))
    [fault] = read_text("\n".join(lines[1:]), "x").findings
    assert (fault.kind, fault.fault) == ("one-ended-link", True)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("c0-0c0s0g0l01[(0,0,0)] W+ -> c0-0c0s1g0l32[(0,0,1)]", "'W+' is not a direction"),
        ("c0-0c0s0g0l01[(0,0,0)] Z+ -> c0-0c0s1g0l32[(0,0,1)", "is not a tile"),
        ("c0-0c0s0g0l01[(0,0,0)] Z+ -> c0-0c0s1g0l32[(0,0,1)] LinkType: string", "'string' is not"),
        ("c0-0c0s0g0l01[(0,0,0)] Z+ -> c0-0c0s1g0l32[(0,0,1)] LinkType:", "5 of 6 fields"),
        ("c0-0c0s0g0l01[(0,0,0)] Z+ -> c0-0c0s1g0l32[(0,0,1)] Speed: 5", "'Speed:' is not a 'Link"),
        ("c0-0c0s0g0l01[(0,0,0)] host -> c0-0c0s1g0l32[(0,0,1)]", "a host tile leads to"),
        ("c0-0c0s0g2l01[(0,0,0)] Z+ -> c0-0c0s1g0l32[(0,0,1)]", "'c0-0c0s0g2l01"),
        ("c0-0c0s0g0l01[(0,0,0)] Z+", "2 of 4 fields"),
        (GOOD, "looks like rtr-aries"),
    ],
)
def test_bad_lines_of_a_gemini_list(line, says):
    good = "c0-0c0s0g0l00[(0,0,0)] Z+ -> c0-0c0s1g0l32[(0,0,1)] LinkType: backplane"
    message = refusal(f"{good}\n{line}\n{good}\n")
    assert message.startswith("d:2: ")
    assert says in message
