# SPDX-License-Identifier: Apache-2.0
"""A user's own site file: found by path and by $NIDMAP_SITES; every fault named in one line."""

# ruff: noqa: E501  # the table of faults reads best with one fault a line

import pathlib
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import SiteError
from nidmap.placement.sites import load_site, site_names
from nidmap.placement.sites.loading import parse_site
from tests.placement.site_texts import ALL, ARIES, FATTREE, GEMINI, SLINGSHOT

CONFIGS = pathlib.Path(__file__).parents[2] / "site-configs"


def fault(text, source="mine.toml"):
    """Return the one line that refuses `text`."""
    with pytest.raises(SiteError) as caught:
        parse_site(text, source)
    line = str(caught.value)
    assert caught.value.exit_code == 3
    assert "\n" not in line
    assert line.startswith(source)
    return line


def changed(text, old, new):
    assert text.count(old) >= 1, old
    return text.replace(old, new, 1)


def line_with(text, words):
    return next(i for i, line in enumerate(text.splitlines(), 1) if words in line)


@pytest.mark.parametrize("fabric", ALL)
def test_a_users_file_works_like_a_shipped_one(fabric, tmp_path):
    path = tmp_path / "any.toml"
    path.write_text(ALL[fabric])
    site = load_site(str(path))
    nodes = site.records().nodes
    assert (site.name, site.scheduler, site.topology().fabric) == ("mine", "slurm", fabric)
    assert int((nodes.role == "compute").sum()) == dict(site.figures())["nodes.compute"].value
    assert site.source == str(path)


def test_a_folder_of_sites_is_searched_first(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mine.toml").write_text(ARIES)
    (tmp_path / "edison.toml").write_text(GEMINI)
    (tmp_path / ".hidden.toml").write_text(GEMINI)
    monkeypatch.setenv("NIDMAP_SITES", f"{tmp_path / 'a'}:{tmp_path}:{tmp_path / 'gone'}")
    assert load_site("mine").topology().fabric == "aries"
    assert load_site("edison").topology().fabric == "gemini"
    assert {"mine", "edison", "tara"} <= set(site_names())
    assert ".hidden" not in site_names()


def test_names_in_partitions_and_slots_follow_the_file():
    site = parse_site(SLINGSHOT, "mine.toml")
    nodes, switches = site.records().nodes, site.records().parameters["attachments"]
    assert nodes.nid.tolist() == [*range(1000, 1040), *range(5000, 5048)]
    assert np.bincount(nodes.position[:, 0]).tolist() == [16, 24, 16, 16, 16]
    assert np.bincount(nodes.position[:16, 1]).tolist() == [12, 4]  # 24 places on 2 switches
    assert switches[40:48].tolist() == [
        [0, 1],
        [0, 1],
        [1, 0],
        [1, 0],
        [2, 3],
        [2, 3],
        [3, 2],
        [3, 2],
    ]
    assert site.topology().parameters["switches"] == (2, 2, 8, 8, 8)
    assert site.topology().extents == (5, 8, 12)


def test_rows_stand_in_nid_order_whatever_the_order_of_partitions():
    text = SLINGSHOT.replace("value = 5000", "value = 10")
    nodes = parse_site(text, "mine.toml").records().nodes
    assert nodes.nid.tolist() == [*range(10, 58), *range(1000, 1040)]
    assert nodes.position[:, 0].tolist() == [2] * 16 + [3] * 16 + [4] * 16 + [0] * 16 + [1] * 24
    assert nodes.gpus.tolist() == [4] * 48 + [0] * 40


def test_an_unknown_site_offers_names_that_are_near():
    with pytest.raises(SiteError, match="shaheen2"):
        load_site("shaheen")
    with pytest.raises(SiteError, match=r"choose from .*edison"):
        load_site("qqqqqqqq")
    with pytest.raises(SiteError):
        load_site("../site-configs/edison")
    with pytest.raises(SiteError):
        load_site("")


def test_a_figure_is_found_by_its_key():
    site = parse_site(ARIES, "mine.toml")
    found = dict(site.figures())["partition.one.cores"]
    assert (found.value, found.mark, found.source) == (32, "published", "the site")


WRONG = {
    # what: (text, change from, to, key named, words, marker of the line)
    "unknown key": (ARIES, "groups = {", "grops = {", "network.grops", "no such key", "grops"),
    "unknown field": (
        ARIES,
        'value = 24, mark = "assumed"',
        'value = 24, note = "x", mark = "assumed"',
        "network.links.note",
        "no such key",
        "links =",
    ),
    "unknown table": (ARIES, "[stated]", "[figures]", "figures", "no such key", "[figures]"),
    "wrong type": (
        ARIES,
        "groups = { value = 2",
        'groups = { value = "2"',
        "network.groups.value",
        "whole number",
        "groups =",
    ),
    "no figure": (
        ARIES,
        'cores = { value = 32, mark = "published", source = "the site" }',
        "cores = 32",
        "partition.one.cores",
        "expected a table { value = …, mark = …, source = … }",
        "cores = 32",
    ),
    "negative": (ARIES, "value = 764", "value = -764", "nodes.compute.value", ">= 1", "compute ="),
    "zero": (ARIES, "columns = { value = 4", "columns = { value = 0", "cabinets.columns.value", ">= 1", "columns ="),
    "huge": (ARIES, "rows = { value = 1", "rows = { value = 1000000000", "cabinets.rows.value", "<= 1024", "rows ="),
    "bad mark": (
        ARIES,
        'value = 1.5, mark = "assumed"',
        'value = 1.5, mark = "guessed"',
        "latency.mpi_us.mark",
        "measured, published or assumed",
        "mpi_us",
    ),
    "no mark": (
        ARIES,
        'hop_ns = { value = 100, mark = "assumed",',
        "hop_ns = { value = 100,",
        "latency.hop_ns.mark",
        "missing",
        "hop_ns",
    ),
    "no source": (
        ARIES,
        'blue = { value = 4.6875, mark = "published", source = "the vendor" }',
        'blue = { value = 4.6875, mark = "published" }',
        "bandwidth.blue.source",
        "missing",
        "blue =",
    ),
    "empty source": (
        ARIES,
        'mark = "published", source = "the vendor"',
        'mark = "published", source = ""',
        "bandwidth.blue.source",
        "length >= 1",
        "blue =",
    ),
    "nan": (ARIES, "value = 4.6875", "value = nan", "bandwidth.blue.value", "> 0", "blue ="),
    "infinite": (ARIES, "value = 4.6875", "value = inf", "bandwidth.blue.value", "<=", "blue ="),
    "free figure": (
        ARIES,
        'unit = "PFlop/s", mark',
        "unit = 3, mark",
        "stated.peak.unit",
        "expected text",
        "peak =",
    ),
    "unknown fabric": (ARIES, '"aries"', '"myrinet"', "network.fabric", "one of aries", "fabric"),
    "unknown wiring": (ARIES, '"consecutive"', '"random"', "network.wiring.value", "same-chassis", "wiring"),
    "unknown scheduler": (ARIES, '"slurm"', '"lsf"', "software.scheduler.value", "slurm, pbs, alps", "scheduler"),
    "link class of another fabric": (ARIES, "blue =", "global =", "bandwidth.global", "green, black, blue", "global ="),
    "too few nodes": (ARIES, "value = 764", "value = 768", "nodes.compute", "768 stated", "compute ="),
    "wrong groups": (ARIES, "groups = { value = 2", "groups = { value = 3", "network.groups", "3 said", "groups ="),
    "no cname": (ARIES, '"c0-0c0s0"', '"x0c0s0"', "cabinets.service_blades", "not a cname", "service_blades"),
    "outside": (ARIES, '"c0-0c0s0"', '"c9-0c0s0"', "cabinets.service_blades", "below 4", "service_blades"),
    "backwards": (ARIES, '"c0-0c0s0"', '"c[3-1]-0"', "cabinets.service_blades", "a range such as", "service_blades"),
    "partition count": (ARIES, "cores = {", 'count = { value = 9, mark = "assumed", source = "x" }\ncores = {', "partition.one.count", "9 said", "count ="),
    "places twice": (
        ARIES,
        "[bandwidth]",
        '[[partition]]\nname = "a"\nwhere = { value = ["c0-0"], mark = "assumed", source = "x" }\n'
        '[[partition]]\nname = "b"\nwhere = { value = ["c*-0c1"], mark = "assumed", source = "x" }\n[bandwidth]',
        "partition.b.where",
        "another partition",
        "c*-0c1",
    ),
    "all absent": (ARIES, "service_blades = { value = [\"c0-0c0s0\"]", 'absent = { value = ["c*-*"]', "network.groups", "is 0", "groups ="),
    "endless floor": (ARIES.replace("rows = { value = 1,", "rows = { value = 1024,"), "columns = { value = 4", "columns = { value = 1024", "cabinets.rows", "4096", "rows ="),
    "endless leaf": (FATTREE, "n[19-30]", "n[1-999999999]", "leaf.leaf2.nodes", "", "n[1-999999999]"),
    "endless partition": (SLINGSHOT, "group_nodes = { value = 16,", "group_nodes = { value = 999999,", "partition.gpu.group_nodes", "assumed to be a mistake", "999999"),
    "torus extents": (GEMINI, "[2, 4, 24]", "[2, 8, 24]", "network.extents", "(2, 4, 24)", "extents"),
    "two extents": (GEMINI, "[2, 4, 24]", "[2, 4]", "network.extents.value", "length 3", "extents"),
    "uneven links table": (SLINGSHOT, "[[4, 2], [2, 8]]", "[[4, 2], [3, 8]]", "network.links", "symmetric", "links ="),
    "ragged links table": (SLINGSHOT, "[[4, 2], [2, 8]]", "[[4, 2], [2]]", "network.links", "symmetric", "links ="),
    "too many nodes a group": (
        SLINGSHOT,
        "group_nodes = { value = 16,",
        "group_nodes = { value = 17,",
        "partition.gpu.group_nodes",
        "do not fit",
        "group_nodes = { value = 17",
    ),
    "group sizes": (SLINGSHOT, "[16, 24]", "[16, 24, 8]", "partition.cpu.group_nodes", "2 groups", "[16, 24, 8]"),
    "missing groups": (
        SLINGSHOT,
        'groups = { value = 3, mark = "published", source = "the site" }\n',
        "",
        "partition.gpu.groups",
        "missing",
        "[[partition]]\nname = \"gpu\"",
    ),
    "NIDs twice": (SLINGSHOT, "value = 5000", "value = 1030", "partition", "two nodes have the NID 1030", "[[partition]]"),
    "names twice": (SLINGSHOT, "{nid:06}", "{chassis}", "nodes.name", "have no chassis number", "name = { value"),
    "unknown name field": (SLINGSHOT, "{nid:06}", "{node:06}", "nodes.name", "not a field", "name = { value"),
    "name without number": (SLINGSHOT, "nid{nid:06}", "nid", "nodes.name", "has no {nid}", "name = { value"),
    "cabinets on slingshot": (
        SLINGSHOT,
        "[bandwidth]",
        "[cabinets]\ncolumns = { value = 1, mark = \"assumed\", source = \"x\" }\n"
        "rows = { value = 1, mark = \"assumed\", source = \"x\" }\n[bandwidth]",
        "cabinets",
        "means nothing",
        "[cabinets]",
    ),
    "where on slingshot": (
        SLINGSHOT,
        "nics = {",
        'where = { value = ["c0-0"], mark = "assumed", source = "x" }\nnics = {',
        "partition.gpu.where",
        "means nothing",
        "where =",
    ),
    "overfull leaf": (FATTREE, "n[19-30]", "n[19-40]", "leaf.leaf2.nodes", "22 nodes on a leaf of 18", "n[19-40]"),
    "node twice": (FATTREE, "n[19-30]", "n[18-29]", "leaf.leaf2.nodes", "'n18' is on leaf1 already", "n[18-29]"),
    "no node list": (FATTREE, "n[19-30]", "n[30-19", "leaf.leaf2.nodes", "", "n[30-19"),
    "service elsewhere": (FATTREE, 'value = "n1"', 'value = "n20"', "leaf.leaf1.service", "not among this leaf", "n20"),
    "odd uplinks": (FATTREE, "uplinks = { value = 4", "uplinks = { value = 5", "network.uplinks", "divide", "uplinks"),
    "leaf count": (FATTREE, "leaves = { value = 2", "leaves = { value = 3", "network.leaves", "3 said", "leaves ="),
    "bad name": (ARIES, 'name = "mine"', 'name = "../mine"', "name", "of the form", "name ="),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_a_fault_is_named_with_line_and_key(what):
    text, old, new, key, words, marker = WRONG[what]
    text = changed(text, old, new)
    line = fault(text)
    match = re.match(r"mine\.toml:(\d+): ([^ ]+): (.*)", line)
    assert match, line
    assert match[2] == key
    assert words in match[3]
    assert int(match[1]) == (line_with(text, marker.splitlines()[-1]) - marker.count("\n")), line


@pytest.mark.parametrize(
    ("table", "after", "key"),
    [("[nodes]", "[[partition]]", "nodes"), ("[cabinets]", "[nodes]", "cabinets")],
)
def test_a_missing_table_is_named(table, after, key):
    line = fault(ARIES[: ARIES.index(table)] + ARIES[ARIES.index(after) :])
    assert line.startswith(f"mine.toml: {key}: missing")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('name = "x"\ntitle = \n', 2),
        ('name = "x"\n\n[network\n', 3),
        ('name = "x"\nname = "y"\n', 2),
        ('a = "unclosed\n', 1),
        ("a = 1\n= 2\n", 2),
        ("\x00\x01\x02", 1),
        ("a = 99999-99-99", 1),
    ],
)
def test_what_is_no_toml_is_refused_at_its_line(text, where):
    assert fault(text).startswith(f"mine.toml:{where}: not TOML: ")


@pytest.mark.parametrize("depth", [50, 5000])
def test_deep_nesting_is_refused(depth):
    fault("a = " + "[" * depth + "]" * depth)


def test_what_is_no_text_is_refused(tmp_path):
    cases = {
        "junk": (bytes(range(256)) * 10, ":2: not text"),
        "late": (b"name = 'x'\n\n\xff\xfe", ":3: not text"),
        "empty": (b"", ": is empty"),
        "blank": (b" \n\t\n", ": is empty"),
        "large": (b"#" * 1_000_001, ": larger than"),
    }
    for name, (raw, words) in cases.items():
        path = tmp_path / f"{name}.toml"
        path.write_bytes(raw)
        with pytest.raises(SiteError, match=re.escape(f"{path}{words}")):
            load_site(str(path))


def test_what_cannot_be_read_is_refused(tmp_path):
    folder = tmp_path / "folder.toml"
    folder.mkdir()
    for path in (str(folder), str(tmp_path / "gone.toml"), "a\x00b.toml"):
        with pytest.raises(SiteError, match="cannot read the site file") as caught:
            load_site(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (ARIES, "[stated]", '[stated]\n"\\u001b[31mred" = 1\n'),
        (ARIES, '"c0-0c0s0"', '"c0-0\\u001b[31m"'),
        (ARIES, '"published", source = "the vendor"', '"\\u001b", source = "the vendor"'),
        (SLINGSHOT, "nid{nid:06}", "\\u0007{nid\\u0000}"),
        (
            SLINGSHOT,
            "nics = {",
            'cabinets = { value = ["\\u0000"], mark = "assumed", source = "x" }\nnics = {',
        ),
        (FATTREE, "n[19-30]", "n[19-\\u001b]"),
    ],
)
def test_foreign_text_cannot_reach_the_terminal(text, old, new):
    assert fault(changed(text, old, new)).isprintable()


def test_a_byte_order_mark_and_windows_lines_are_no_fault(tmp_path):
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbf" + ARIES.replace("\n", "\r\n").encode())
    assert load_site(str(path)).name == "mine"


# --- whatever is done to a file, the answer is a site or one line -----------

SHIPPED = sorted(path.read_text() for path in CONFIGS.glob("*.toml"))
TEXTS = st.sampled_from([*ALL.values(), *SHIPPED])


def settles(text):
    """A file is taken, and lays out, or is refused in one printable line."""
    site, refusal = taken(text)
    if site is None:
        assert refusal.isprintable()
        assert refusal.startswith("mine.toml:")
    else:
        assert len(site.records().nodes) >= dict(site.figures())["nodes.compute"].value


def taken(text):
    try:
        return parse_site(text, "mine.toml"), ""
    except SiteError as error:
        return None, str(error)


@given(TEXTS, st.data())
def test_cut_and_spliced_files_settle(text, data):
    at = st.integers(0, len(text))
    i, j, k = data.draw(at), data.draw(at), data.draw(at)
    settles(text[:i] + text[min(j, k) : max(j, k)])


@given(TEXTS, st.data())
def test_files_with_foreign_text_settle(text, data):
    i = data.draw(st.integers(0, len(text)))
    j = data.draw(st.integers(i, min(len(text), i + 8)))
    settles(text[:i] + data.draw(st.text(max_size=12)) + text[j:])


VALUES = st.one_of(
    st.integers(-(10**12), 10**12).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(
        ["true", "nan", "-inf", '""', "[]", "{}", "[[]]", "[1, 2]", "1979-05-27", '"c*-*"']
    ),
)


@given(TEXTS, VALUES, st.data())
def test_files_with_other_values_settle(text, value, data):
    found = list(re.finditer(r"value = ([^,\n]+),", text))
    match = data.draw(st.sampled_from(found))
    settles(text[: match.start(1)] + value + text[match.end(1) :])


@given(TEXTS, st.data())
def test_files_with_lines_lost_or_doubled_settle(text, data):
    lines = text.splitlines(keepends=True)
    i = data.draw(st.integers(0, len(lines) - 1))
    times = data.draw(st.sampled_from([0, 2]))
    settles("".join([*lines[:i], *[lines[i]] * times, *lines[i + 1 :]]))


def test_the_examples_of_this_test_are_sound():
    assert set(ALL) == {"aries", "gemini", "slingshot", "infiniband"}
    for text in ALL.values():
        assert parse_site(text, "x.toml").records().nodes is not None
