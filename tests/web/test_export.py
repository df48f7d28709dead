# SPDX-License-Identifier: Apache-2.0
"""Pictures and the page in one file: whole, well formed, with what was marked in them."""

import base64
import hashlib
import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import quickjs
import resvg_py

import nidmap
from nidmap.placement.commands import run as nidmap_run
from nidmap.placement.errors import NidmapError
from nidmap.web import requests
from nidmap.web.layout import layout
from nidmap.web.layout.boxes import CELL
from nidmap.web.page import ENTRY, bundle_modules, export, page_modules, page_shell
from nidmap.web.requests import Export
from nidmap.web.snapshot import of_dump
from tests.web.machines import in_states

FIRST = "#3280fc"  # of the theme's hues, see test_colours.py

EXPORT = ("web", "export", "-m", "torus:4x4x4")
SVG = "{http://www.w3.org/2000/svg}"


def run(*argv, text=None):
    return subprocess.run(
        [sys.executable, "-m", "nidmap", "web", "export", *argv],
        input=text, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


def picture(machine, *marks, form="svg", **look):
    """Return what is saved of a machine with rows marked."""
    named = [requests.Mark(",".join(f"#{row}" for row in rows), name) for name, rows in marks]
    raw, _ = export(machine, of_dump(machine), Export(form, marks=named, **look))
    return raw if form == "png" else ElementTree.fromstring(raw)


def words(tree):
    return [text.text for text in tree.iter(f"{SVG}text")]


def squares(tree, colour):
    """Return the corners of the map's squares with such a border."""
    inside = tree.find(f"{SVG}svg")
    paths = [path.get("d") for path in inside.iter(f"{SVG}path") if path.get("stroke") == colour]
    corners = re.findall(r"M([\d.]+) ([\d.]+)h", "".join(paths))
    return np.array(corners, dtype=float).reshape(-1, 2)


@pytest.mark.parametrize("name", ["shaheen2", "tara", "torus:4x4x4", "frontier"])
def test_a_mark_stands_where_its_nodes_are(name):
    machine = nidmap.load_machine(name)
    rows = np.flatnonzero(machine.compute)[5:60]
    tree = picture(machine, ("mine", rows))
    view = layout(machine)[0]
    wanted = np.column_stack((view.x[rows], view.y[rows]))
    marked = squares(tree, FIRST)
    shift = marked.min(axis=0) - wanted.min(axis=0)
    assert {tuple(corner) for corner in (marked - shift).round().astype(int).tolist()} == {
        tuple(corner) for corner in wanted.tolist()
    }
    assert {"mine", "55 nodes"} <= set(words(tree))


def test_states_differ_in_shape_and_colour(small):
    machine = in_states(small, down=[3], allocated=[4, 5], drained=[6], reserved=[7])
    found = words(picture(machine))
    first = found.index("free (up)")
    legend = dict(zip(found[first::2], found[first + 1 :: 2], strict=True))
    assert legend == {
        "free (up)": "123", "in use (allocated)": "2", "down": "1", "not usable (drained)": "1",
        "not usable (reserved)": "1",
    }  # fmt: skip


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("colour", ["state", "job", "group"])
def test_png(small, theme, colour):
    image = pytest.importorskip("PIL.Image")
    raw = picture(small, form="png", theme=theme, colour=colour, width=500)
    made = image.open(io.BytesIO(raw))
    assert (made.format, made.width) == ("PNG", 500)
    assert len(made.convert("RGB").getcolors(100_000)) > 3


def test_png_shows_the_mark_where_the_svg_does(small):
    image = pytest.importorskip("PIL.Image")
    rows = np.arange(0, 64)
    tree, raw = (picture(small, ("", rows), form=form, width=4000) for form in ("svg", "png"))
    made = image.open(io.BytesIO(raw)).convert("RGB")
    scale = made.width / int(tree.get("width"))
    view, inside = layout(small)[0], tree.find(f"{SVG}svg")
    corner = squares(tree, FIRST).min(axis=0)
    left = corner[0] - view.x[rows].min() + float(inside.get("x"))
    top = corner[1] - view.y[rows].min() + float(inside.get("y"))
    for row in (0, 17, 63, 100):
        place = (view.x[row] + left + 0.2) * scale, (view.y[row] + top + CELL / 2) * scale
        near = _near(made.getpixel(tuple(map(int, place))), tuple(bytes.fromhex(FIRST[1:])))
        assert near == (row < 64)


def _near(found, wanted):
    return all(abs(a - b) < 24 for a, b in zip(found, wanted, strict=True))


def test_a_tall_machine_is_drawn_on_a_sheet_of_common_shape():
    tall = nidmap.load_machine("torus:2x5000")
    tree = picture(tall)
    assert len(squares(tree, "#6087a3")) == len(tall)
    assert 0.5 < int(tree.get("height")) / int(tree.get("width")) < 1.5


#: Draws a node once as the page's pixels and once as a picture's paths.
BOTH = """
import { Paper } from "./draw/paper.js";
import { KEY, Looks } from "./draw/sprites.js";
import { themeNamed } from "./draw/theme.js";
const MARKS = [{ colour: "#00654d", hatch: 0 }];
globalThis.both = (shape, hatch, mark, side) => {
  const look = { colour: "#cf075c", hatch };
  const looks = new Looks({ ...themeNamed("light"), inner: "#ffffff" }, [look], MARKS, false);
  const paper = new Paper(side, side);
  paper.node(looks, (shape << KEY.shape) | (mark << KEY.mark), side, 0, 0);
  const pixels = [...looks.sprite((shape << KEY.shape) | (mark << KEY.mark), side)];
  return JSON.stringify([paper.svg("", ""), pixels]);
};
"""


@pytest.mark.parametrize(
    ("shape", "hatch", "mark"),
    [*((shape, 0, 0) for shape in range(7)), (2, 1, 0), (2, 2, 0), (2, 3, 0), (2, 0, 1), (1, 0, 1)],
)
def test_a_node_looks_the_same_in_a_picture_and_on_the_page(shape, hatch, mark):
    image = pytest.importorskip("PIL.Image")
    side = 24
    context = quickjs.Context()
    context.eval(bundle_modules(page_modules() | {"both.js": BOTH}, "both.js"))
    svg, pixels = json.loads(context.get("both")(shape, hatch, mark, side))
    page = np.array(pixels, np.uint32).view(np.uint8).reshape(side, side, 4)
    drawn = image.open(io.BytesIO(bytes(resvg_py.svg_to_bytes(svg_string=svg)))).convert("RGBA")
    both = [
        np.where(made[..., 3:] == 0, 255, made[..., :3]).astype(int)
        for made in (page, np.asarray(drawn))
    ]
    far = np.abs(both[0] - both[1]).max(axis=2) > 96
    assert far.mean() < 0.05  # edges between two pixels
    assert (both[0] < 250).any()


# --- the command ---------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["svg", "png", "html"])
def test_export_by_suffix(tmp_path, capsys, form):
    path = tmp_path / f"x.{form}"
    code = nidmap_run([*EXPORT, "--nodes", "0-15", "--from", "dump", "-o", str(path)])
    said = capsys.readouterr()
    assert (code, said.out) == (0, "")
    assert said.err.startswith("16 nodes on 16 routers; busiest: ")
    head = {"svg": b"<svg", "png": b"\x89PNG", "html": b"<!doctype html>"}[form]
    assert path.read_bytes()[:20].lower().startswith(head.lower())


@pytest.mark.parametrize("colour", ["rank", "hops"])
def test_a_page_holds_the_figures_of_its_colours(tmp_path, colour):
    path = tmp_path / "x.html"
    wanted = ("--nodes", "3-5", "--ppn", "2", "--colour", colour)
    assert nidmap_run([*EXPORT, *wanted, "--from", "dump", "-o", str(path)]) == 0
    data = json.loads(re.search(r'id="nidmap-data">(.*?)</script>', path.read_text()).group(1))
    assert data["way"] == colour
    if colour == "rank":
        assert data["ranks"]["node_rows"] == [3, 3, 4, 4, 5, 5]
    else:
        assert (data["hops"]["from"], data["hops"]["hops"][3:6]) == (3, [0, 2, 3])


def test_export_from_a_pipe(tmp_path):
    path = tmp_path / "x.svg"
    done = run("-m", "torus:4x4x4", "--nodes", "-", "-o", str(path), text="nid[00003-00005]\n")
    assert done.stderr.startswith("3 nodes on 3 routers")


@pytest.mark.parametrize(
    ("argv", "code", "word"),
    [
        (["-o", "x.pdf"], 2, "must end in"),
        (["--nodes", "nid99999", "-o", "x.svg"], 3, "nid99999"),
        (["--view", "nope", "-o", "x.svg"], 2, "nope"),
        (["--colour", "hops", "-o", "x.html"], 2, "--nodes"),
        (["--colour", "rank", "-o", "x.svg"], 2, "--nodes"),
        (["-o", "/no/such/dir/x.svg"], 5, "cannot write"),
    ],
)
def test_export_refuses(capsys, argv, code, word):
    assert nidmap_run([*EXPORT, *argv]) == code
    said = capsys.readouterr().err
    assert word in said
    assert said.count("\n") <= 2


# --- the page in one file ------------------------------------------------------------------


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "x.html"
    done = run("-m", "dragonfly:groups=4,chassis=2,blades=4,nodes=4", "--nodes", "3,9-12", "-o",
               str(path))  # fmt: skip
    assert done.returncode == 0, done.stderr
    return path.read_text()


def test_the_policy_is_that_of_the_files_own_script_and_style(exported):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', exported).group(1)
    (script,) = re.findall(r"<script>(.*?)</script>", exported, re.S)
    (style,) = re.findall(r"<style>(.*?)</style>", exported, re.S)
    for name, text in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert "connect-src" not in policy
    assert policy.startswith("default-src 'none'")


def test_the_file_asks_for_nothing(exported):
    assert not re.search(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=", exported)
    assert 'type="module"' not in exported
    assert not re.search(r"\son\w+=", re.sub(r"<script.*?</script>", "", exported, flags=re.S))


def test_the_data_are_the_apis(exported, site):
    text = re.search(r'id="nidmap-data">(.*?)</script>', exported, re.S).group(1)
    data = json.loads(text)
    assert data["schema"] == "nidmap.export/1"
    assert data["marks"][0]["rows"] == [3, 9, 10, 11, 12]
    assert data["layout"] == site.ask("/api/v1/layout").json
    machine = site.ask("/api/v1/machine").json
    assert data["machine"]["nodes"] == machine["nodes"]
    assert data["describe"]["sentence"].startswith("5 nodes in 1 group")


def test_the_page_itself_holds_no_script():
    text = page_shell("<b>")
    assert "&lt;b&gt;" in text
    assert "<b>" not in text
    assert re.findall(r"<script[^>]*>(.*?)</script>", text, re.S) == [""]
    assert "<style" not in text
    assert " style=" not in text


def test_all_of_the_pages_modules_can_be_bundled():
    made = bundle_modules(page_modules())
    assert made.count("const _main_js = ") == 1
    used = re.findall(r"const _(\w+)_js = \(\(\) =>", made)
    assert set(used) <= {re.sub(r"\W", "_", name[:-3]) for name in page_modules()}
    assert len(used) == len(set(used))


@pytest.mark.parametrize(
    ("texts", "word"),
    [
        ({ENTRY: 'import { a } from "./gone.js";'}, "gone.js, which is not there"),
        (
            {ENTRY: 'import { a } from "./a.js";', "a.js": 'import { b } from "./main.js";'},
            "circle",
        ),
        ({ENTRY: "export default 1;"}, "cannot be bundled"),
        ({ENTRY: 'import x from "./x.js";'}, "cannot be bundled"),
        ({ENTRY: 'import { a } from "https://cdn.example/x.js";'}, "cannot be bundled"),
        ({}, "main.js, which is not there"),
    ],
)
def test_modules_that_cannot_be_bundled(texts, word):
    with pytest.raises(NidmapError, match=word):
        bundle_modules(texts)
