# SPDX-License-Identifier: Apache-2.0
"""cnames, xnames and NIDs: against the rules written out one node at a time."""

import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nidmap.placement.errors import ParseError
from nidmap.placement.names import (
    format_cnames,
    name_numbers,
    nid_names,
    parse_cname,
    parse_cnames,
    parse_xname,
    split_number,
    write_names,
)
from nidmap.placement.names.hostlist import TextPiece, compile_pattern, count, expand, with_lines
from nidmap.placement.names.numbering import GeminiNumbering, Xc
from tests.places import places_of

xc_parts = st.tuples(
    st.integers(0, 40), st.integers(0, 9), st.integers(0, 2), st.integers(0, 15), st.integers(0, 3)
)
looks_like_a_cname = st.from_regex(
    r"[cC]?\d{1,3}-?\d{1,2}c\d{1,2}s\d{1,2}[nga]\d{1,2}.?", fullmatch=True
)


def xc_by_hand(positions, col, row, cage, slot, node):
    """Return NID and (group, chassis, blade, node) by the rules for XC."""
    nid = 192 * (row * positions + col) + 64 * cage + 4 * slot + node
    return nid, (row * (positions // 2) + col // 2, cage + 3 * (col % 2), slot, node)


def gemini_by_hand(columns, rows, col, row, cage, slot, node):
    """Return NID and (x, y, z, node) by the rules for XE and XK."""
    x = 0 if col == 0 else (col + 1) // 2 if col % 2 else columns - col // 2
    k = row // 2 if row % 2 == 0 else rows - 1 - row // 2
    y = 2 * k + node // 2
    z = ((slot, 15 - slot, 16 + slot) if k % 2 == 0 else (16 + slot, 15 - slot, slot))[cage]
    b = (columns - x) % columns
    q = 24 * y + (z if y % 2 == 0 else 23 - z)
    if b % 2:
        q = 48 * rows - 1 - q
    return 96 * rows * b + 2 * q + node % 2, (x, y, z, node % 2)


def every_place(columns, rows, slots):
    shape = (columns, rows, 3, slots, 4)
    return np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)


@pytest.mark.parametrize("positions", [2, 8, 10, 12])
def test_xc_is_the_rule(positions):
    parts = every_place(positions, 3, 16)
    hand = [xc_by_hand(positions, *place) for place in parts.tolist()]
    xc = Xc(positions)
    assert xc.nid(parts).tolist() == [nid for nid, _ in hand]
    assert xc.coords(parts).tolist() == [list(place) for _, place in hand]
    assert (xc.parts_of_coords(xc.coords(parts)) == parts).all()
    assert sorted(xc.nid(parts)) == list(range(len(parts)))


@pytest.mark.parametrize(
    ("columns", "rows"), [(1, 1), (2, 1), (1, 2), (3, 5), (4, 4), (25, 8), (24, 12)]
)
def test_gemini_is_the_rule(columns, rows):
    parts = every_place(columns, rows, 8)
    gemini = GeminiNumbering(columns, rows)
    hand = [gemini_by_hand(columns, rows, *place) for place in parts.tolist()]
    assert gemini.nid(parts).tolist() == [nid for nid, _ in hand]
    assert gemini.coords(parts).tolist() == [list(place) for _, place in hand]
    assert (gemini.parts_of_coords(gemini.coords(parts)) == parts).all()
    assert sorted(gemini.nid(parts)) == list(range(96 * columns * rows))


def test_gemini_neighbours_hang_together():
    """On a torus each Gemini's coordinates are its own, and every coordinate has one."""
    coords = GeminiNumbering(25, 8).coords(every_place(25, 8, 8))
    routers, nodes = np.unique(coords[:, :3], axis=0, return_counts=True)
    assert len(routers) == 25 * 16 * 24
    assert set(nodes) == {2}


@pytest.mark.parametrize(
    ("nid", "cname", "coords"),
    [
        (2, "c0-0c0s1n0", (0, 0, 1, 0)),
        (480, "c0-5c2s0n0", (0, 10, 0, 0)),
        (1502, "c2-0c2s0n0", (24, 0, 16, 0)),
        (9278, "c24-0c2s0n2", (13, 1, 16, 0)),
        (19199, "c1-1c2s0n3", (1, 15, 0, 1)),
    ],
)
def test_titan_as_it_was(nid, cname, coords):
    """Nodes of Titan as its own map had them."""
    titan = GeminiNumbering(25, 8)
    assert titan.nid([parse_cname(cname)[:5]]).tolist() == [nid]
    assert tuple(titan.coords([parse_cname(cname)[:5]])[0]) == coords


def test_the_seeds_example():
    assert Xc(12).nid([[11, 2, 0, 15, 3]]).tolist() == [6783]
    assert Xc(12).coords([[11, 2, 0, 15, 3]]).tolist() == [[17, 3, 15, 3]]


@given(st.integers(1, 20).map(lambda half: 2 * half), st.data())
def test_xc_fit_finds_the_positions(positions, data):
    places = data.draw(
        st.lists(xc_parts.filter(lambda p: p[0] < positions), min_size=1, max_size=40)
    )
    nids = [xc_by_hand(positions, *place)[0] for place in places]
    fitted = Xc.fit(places, nids)
    assert fitted is not None
    assert fitted.nid(places).tolist() == nids
    if any(row > 0 for _, row, *_ in places):
        assert fitted.positions == positions
    else:  # any P would do: the smallest even one that holds the columns
        assert fitted.positions == max(col for col, *_ in places) // 2 * 2 + 2


@given(st.lists(xc_parts, min_size=3, max_size=40, unique=True), st.integers(1, 10**6), st.data())
def test_xc_vote_names_the_odd_one_out(places, off, data):
    assume(sum(row > 0 for _, row, *_ in places) >= 3)
    nids = [xc_by_hand(42, *place)[0] for place in places]
    bad = data.draw(st.sampled_from([k for k, place in enumerate(places) if place[1] > 0]))
    nids[bad] += off
    assert Xc.fit(places, nids) is None
    found, agrees = Xc.vote(places, nids)
    assert found.positions == 42
    assert agrees.tolist() == [k != bad for k in range(len(places))]


@given(st.integers(1, 30), st.integers(1, 14), st.data())
def test_gemini_fit_agrees_with_every_node(columns, rows, data):
    some = data.draw(st.lists(st.integers(0, 96 * columns * rows - 1), min_size=1, max_size=40))
    parts = places_of(GeminiNumbering(columns, rows), some)
    fitted = GeminiNumbering.fit(parts, some)
    assert fitted is not None
    assert fitted.nid(parts).tolist() == some
    assert fitted.rows <= rows


@pytest.mark.parametrize(("columns", "rows"), [(25, 8), (24, 12), (7, 3)])
def test_gemini_fit_with_holes(columns, rows):
    """Two cabinets absent, a blade gone, service nodes left out: the shape is still found."""
    whole = GeminiNumbering(columns, rows)
    parts = places_of(whole, np.arange(96 * columns * rows))
    there = ~((parts[:, 0] == 1) & (parts[:, 1] < 2)) & (parts[:, 3] != 5)
    parts = parts[there]
    assert GeminiNumbering.fit(parts, whole.nid(parts)) == whole


def test_gemini_vote_names_the_odd_ones_out():
    titan = GeminiNumbering(25, 8)
    nids = np.arange(0, 19200, 7)
    parts = places_of(titan, nids)
    nids[[5, 700]] += 1
    found, agrees = GeminiNumbering.vote(parts, nids)
    assert found == titan
    assert np.flatnonzero(~agrees).tolist() == [5, 700]
    assert GeminiNumbering.fit(parts, nids) is None


@pytest.mark.parametrize("rule", [Xc, GeminiNumbering])
def test_fit_finds_nothing_in_nothing(rule):
    assert rule.fit(np.zeros((0, 5), dtype=int), []) is None
    assert rule.fit([[-1] * 5], [7]) is None
    assert rule.fit([[0, 0, 0, 0, 1]], [-1]) is None
    assert rule.fit([[0, 0, 0, 0, 1], [0, 0, 0, 0, 0]], [77777, 3]) is None


def test_each_rule_refuses_the_others_dump():
    titan, daint = GeminiNumbering(25, 8), Xc(10)
    nids = np.arange(2000)
    assert Xc.fit(places_of(titan, nids), nids) is None
    assert GeminiNumbering.fit(places_of(daint, nids), nids) is None


def test_rows_that_say_nothing_do_not_disturb_a_fit():
    xc = Xc(10)
    nids = np.array([0, 5000, -1, 77])
    parts = places_of(xc, [0, 5000, 12, 77])
    parts[3] = -1
    assert Xc.fit(parts, nids) == xc


@pytest.mark.parametrize("name", ["c0-0c3s0n0", "c0-0c0s16n0", "c0-0c0s0n4"])
def test_an_impossible_name_is_refused(name):
    with pytest.raises(ParseError, match="is impossible") as caught:
        parse_cname(name)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("rule", "part"),
    [
        (Xc(12), [12, 0, 0, 0, 0]),
        (GeminiNumbering(25, 8), [0, 8, 0, 0, 0]),
        (GeminiNumbering(25, 8), [0, 0, 0, 8, 0]),
        (GeminiNumbering(25, 8), [25, 0, 0, 0, 0]),
    ],
)
def test_a_place_outside_the_machine_has_no_nid(rule, part):
    assert rule.nid([part]).tolist() == [-1]


def test_what_is_impossible_is_marked_in_arrays():
    titan, xc = GeminiNumbering(25, 8), Xc(12)
    outside = [[25, 0, 0, 0, 0], [0, 8, 0, 0, 0], [0, 0, 3, 0, 0], [0, 0, 0, 8, 0], [0, 0, 0, 0, 4]]
    assert titan.nid(outside).tolist() == [-1] * 5
    assert titan.coords(outside).max() == -1
    beyond = [
        [12, 0, 0, 0, 0],
        [0, -1, 0, 0, 0],
        [0, 0, 3, 0, 0],
        [0, 0, 0, 16, 0],
        [0, 0, 0, 0, 4],
    ]
    assert xc.nid(beyond).tolist() == [-1] * 5
    assert xc.coords(beyond).max() == -1
    assert xc.parts_of_coords([[0, 6, 0, 0], [-1, 0, 0, 0], [0, -1, 0, 0]]).max() == -1
    assert (
        titan.parts_of_coords([[25, 0, 0, 0], [0, 16, 0, 0], [0, 0, 24, 0], [0, 0, 0, 2]]).max()
        == -1
    )


@pytest.mark.parametrize(
    "make", [lambda: Xc(0), lambda: GeminiNumbering(0, 3), lambda: GeminiNumbering(3, -1)]
)
def test_a_machine_room_without_cabinets_is_refused(make):
    with pytest.raises(ValueError, match="at least 1"):
        make()


@pytest.mark.parametrize(
    "text",
    ["c0-0", "c11-2", "c0-0c1", "c0-0c1s15", "c0-0c1s15n3", "c0-0c1s7g1",
     "c9999-9999c2s15n3"],
)  # fmt: skip
def test_every_form_of_cname_is_read(text):
    assert parse_cname(text.upper()) == parse_cname(text)


def test_a_cname_knows_its_parts():
    assert parse_cname("c3-1c2s4n1") == (3, 1, 2, 4, 1, -1)
    assert parse_cname("c3-1c2s4g1") == (3, 1, 2, 4, -1, 1)
    assert parse_cname("c3-1c2s4") == (3, 1, 2, 4, -1, -1)


@pytest.mark.parametrize(
    "text",
    ["", "c", "c0", "c0-", "c0-0c", "c0-0n1", "c0-0c0s0n0x", " c0-0", "c0-0\n", "c0-0c0s0l00",
     "nid00012", "c0-0c0s0a0n1", "c0-0c0s0n0l00", "c00-0c0s0n0", "c0-0c0s01n0", "c0-0c0s0a0l60",
     "c0-0c0s0a0l5", "c0-0c0s0a1", "c0-0c0s0g2", "c12345-0", "c０-0"],
)  # fmt: skip
def test_what_is_no_cname_is_refused(text):
    with pytest.raises(ParseError):
        parse_cname(text)


@given(st.lists(st.one_of(looks_like_a_cname, st.text(max_size=24)), max_size=20))
def test_many_cnames_read_as_one_by_one(texts):
    texts = [text.rstrip("\0") for text in texts]  # numpy strings cannot end in NUL
    parts = parse_cnames(np.array(texts, dtype=np.str_))
    for text, row in zip(texts, parts.tolist(), strict=True):
        try:
            name = parse_cname(text)
        except ParseError:
            assert row == [-1] * 5, text
        else:
            whole = name[4] >= 0 and "a" not in text.lower()
            assert row == (list(name[:5]) if whole else [-1] * 5), text


@given(st.lists(xc_parts, max_size=20))
def test_cnames_written_are_read_again(places):
    texts = format_cnames(np.array(places, dtype=np.int64).reshape(-1, 5))
    assert texts.tolist() == [f"c{c}-{r}c{h}s{s}n{n}" for c, r, h, s, n in places]
    assert parse_cnames(texts).tolist() == [list(place) for place in places]


def test_an_impossible_place_is_written_as_nothing():
    assert format_cnames([[0, 0, 0, -1, 0], [1, 2, 0, 3, 1]]).tolist() == ["", "c1-2c0s3n1"]


@given(st.lists(st.integers(0, 2**62)), st.integers(1, 9), st.sampled_from(["nid", "n", "", "r1n"]))
def test_nid_names_are_what_printf_says(numbers, width, prefix):
    names = nid_names(np.array(numbers, dtype=np.int64), width, prefix)
    assert names.tolist() == [f"{prefix}{number:0{width}d}" for number in numbers]


@given(st.lists(st.text(alphabet="abnx019.-é", max_size=30)))
def test_name_numbers_part_at_the_last_non_digit(texts):
    prefixes, numbers, widths = name_numbers(np.array(texts, dtype=np.str_))
    for text, prefix, number, width in zip(
        texts, prefixes.tolist(), numbers.tolist(), widths.tolist(), strict=True
    ):
        digits = re.search(r"[0-9]{0,18}\Z", text).group()
        assert (prefix, width) == (text[: len(text) - len(digits)], len(digits))
        assert number == (int(digits) if digits else -1)


def test_negative_numbers_have_no_name():
    assert nid_names([-1, 3]).tolist() == ["", "nid00003"]
    assert nid_names([]).tolist() == []


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("x1000c0s3b1n0", "x1000c0s3b1n0"),
        ("X3000C0S019B001N00", "x3000c0s19b1n0"),
        ("x1000c7s3b1n0h3", "x1000c7s3b1n0h3"),
        ("x1000c0r15", "x1000c0r15"),
        ("x1000c0r15b0", "x1000c0r15b0"),
        ("x1000c0r15a0l31", "x1000c0r15a0l31"),
        ("x1000c0r15j03p1", "x1000c0r15j3p1"),
        ("x9999", "x9999"),
        ("x0c0", "x0c0"),
    ],
)
def test_xnames_read_and_write_without_zeros(text, plain):
    assert parse_xname(text).name == plain


@pytest.mark.parametrize(
    "text", ["x1000c8s0b0n0", "x10000c0", "x1000c0s0b0n0h4", "x1000n0", "c0-0", "", "x"]
)
def test_what_is_no_xname_is_refused(text):
    with pytest.raises(ParseError):
        parse_xname(text)


def test_an_xname_knows_its_parts():
    assert parse_xname("x1001c3s5b1n2")[1:] == ((1001, 3, 5, 1, 2), True)
    assert not parse_xname("x1001c3s5b1n2h0").is_node
    assert parse_xname("x1001c3r7j20p1") == ("x1001c3r7j20p1", (1001, 3, -1, -1, -1), False)


def test_write_names():
    assert write_names(np.array([[1, 20], [300, 4], [0, -1]]), ("c", "-", "a0")).tolist() == [
        "c1-20a0",
        "c300-4a0",
        "",
    ]


def test_split_number():
    assert split_number("r1n07") == ("r1n", "07")
    assert split_number("login") == ("login", "")


def test_compile_pattern():
    assert compile_pattern(r"[a-z]++\d*+").fullmatch("nid00012").group() == "nid00012"


def test_with_lines():
    assert [
        (match[0], line) for match, line in with_lines(re.finditer("b", "a\nb\nab"), "a\nb\nab")
    ] == [("b", 2), ("b", 3)]


def test_expand():
    assert expand([TextPiece("r[1-2]n[01-02],login nid00045*2")], "") == [
        "r1n01",
        "r1n02",
        "r2n01",
        "r2n02",
        "login",
        "nid00045",
        "nid00045",
    ]


def test_count():
    assert count([TextPiece("r[1-2]n[01-03],login nid[0-499]*3")], "") == 1507


def test_xc_candidates():
    assert Xc.fit([[0, 0, 0, 1, 1], [0, 2, 2, 8, 0]], [5, 4000]) == Xc(positions=10)
    assert Xc.fit([[3, 0, 0, 0, 0]], [576]) == Xc(positions=4)


def test_gemini_numbering_candidates():
    places = [[0, 0, 0, 1, 0], [2, 0, 2, 0, 0], [24, 0, 2, 0, 2]]
    assert GeminiNumbering.fit(places, [2, 1502, 9278]) == GeminiNumbering(columns=25, rows=8)
    _, agrees = GeminiNumbering.vote(places, [3, 1502, 9278])
    assert agrees.tolist() == [False, True, True]
