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

import nidmap
from placement.commands import run as nidmap_run
from placement.errors import NidmapError, UsageError
from tests.web.machines import in_states
from web.export import png, svg
from web.layout import CELL, layout
from web.page import ENTRY, STATIC, bundle, shell
from web.requests import Export
from web.scene import KINDS, THEMES, Mark, draw_scene, kinds
from web.snapshot import of_dump

FIRST = THEMES["light"].hues[0]

EXPORT = ("web", "export", "-m", "torus:4x4x4")
SVG = "{http://www.w3.org/2000/svg}"


def run(*argv, text=None):
    return subprocess.run(
        [sys.executable, "-m", "nidmap", "web", "export", *argv],
        input=text, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


def scene_of(machine, *marks, **look):
    return draw_scene(machine, of_dump(machine), marks, Export(**look))


def squares(text):
    """Return the corners of an SVG's node squares by fill."""
    found = {}
    for path in ElementTree.fromstring(text).iter(f"{SVG}path"):
        for x, y in re.findall(rf"M(\d+) (\d+)h{CELL}v{CELL}h-{CELL}z", path.get("d")):
            found.setdefault(path.get("fill"), set()).add((int(x), int(y)))
    return found


@pytest.mark.parametrize("name", ["shaheen2", "tara", "torus:4x4x4", "frontier"])
def test_a_mark_stands_where_its_nodes_are(name):
    machine = nidmap.load_machine(name)
    rows = np.flatnonzero(machine.compute)[5:60]
    text = svg(scene_of(machine, Mark("mine", rows))).decode()
    view = layout(machine)[0]
    right = (max(view.width, 420) - view.width) // 2  # a small machine stands in the middle
    wanted = set(zip((view.x[rows] + right).tolist(), view.y[rows].tolist(), strict=True))
    marked = squares(text)[FIRST]
    down = {y for _, y in marked}
    shift = min(down) - min(y for _, y in wanted)
    legend = max(y for _, y in marked)
    assert {(x, y - shift) for x, y in marked if y != legend} | set() >= wanted - {
        (x, y) for x, y in wanted if y + shift == legend
    }
    assert len(marked) == len(rows) + 1  # and the legend's
    assert "55 marked: mine" in text


def test_states_differ_in_shape_and_colour(small):
    machine = in_states(small, down=[3], allocated=[4, 5], drained=[6], reserved=[7])
    codes = kinds(machine, of_dump(machine))
    words = [list(KINDS)[code] for code in codes[:9]]
    assert words == ["free"] * 3 + ["down", "busy", "busy", "held", "held", "free"]
    text = svg(scene_of(machine)).decode()
    for line in ("123 free", "2 allocated", "1 down", "2 not usable"):
        assert line in text


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("colour", ["state", "job", "group"])
def test_png(small, theme, colour):
    image = pytest.importorskip("PIL.Image")
    raw = png(scene_of(small, theme=theme, colour=colour), 500)
    made = image.open(io.BytesIO(raw))
    assert (made.format, made.width) == ("PNG", 500)
    assert len(made.convert("RGB").getcolors(100_000)) > 3


def test_png_shows_the_mark_where_the_svg_does(small):
    image = pytest.importorskip("PIL.Image")
    rows = np.arange(0, 64)
    drawn = scene_of(small, Mark("", rows))
    made = image.open(io.BytesIO(png(drawn, 8000))).convert("RGB")
    scale = made.width / drawn.width
    view = layout(small)[0]
    marks = next(p for p in drawn.parts if getattr(p, "fill", "") == FIRST)
    top, left = int(marks.y.min() - view.y[rows].min()), int(marks.x.min() - view.x[rows].min())
    for row in (0, 17, 63):
        place = (view.x[row] + left + CELL / 2) * scale, (view.y[row] + top + CELL / 2) * scale
        assert _near(made.getpixel(tuple(map(int, place))), tuple(bytes.fromhex(FIRST[1:])))
    place = (view.x[100] + left + CELL / 2) * scale, (view.y[100] + top + CELL / 2) * scale
    assert not _near(made.getpixel(tuple(map(int, place))), tuple(bytes.fromhex(FIRST[1:])))


def _near(found, wanted):
    return all(abs(a - b) < 24 for a, b in zip(found, wanted, strict=True))


def test_too_large_a_picture_is_refused():
    machine = nidmap.load_machine("dragonfly:groups=1,chassis=1,blades=2000,nodes=1")
    raw = svg(scene_of(machine))
    assert raw.startswith(b"<svg")
    tall = nidmap.load_machine("torus:2x5000")
    with pytest.raises(UsageError, match="too large"):
        png(scene_of(tall), 8000)


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
        (["--nodes", "3", "--colour", "rank", "-o", "x.svg"], 2, ".html"),
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
    text = shell("<b>")
    assert "&lt;b&gt;" in text
    assert "<b>" not in text
    assert re.findall(r"<script[^>]*>(.*?)</script>", text, re.S) == [""]
    assert "<style" not in text
    assert " style=" not in text


def test_all_of_the_pages_modules_can_be_bundled():
    modules = {path.name: path.read_text() for path in STATIC.glob("*.js")}
    made = bundle(modules)
    assert made.count("const _main_js = ") == 1
    used = re.findall(r"const _(\w+)_js = \(\(\) =>", made)
    assert set(used) <= {name[:-3].replace("-", "_") for name in modules}
    assert len(used) == len(set(used))


@pytest.mark.parametrize(
    ("modules", "word"),
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
def test_modules_that_cannot_be_bundled(modules, word):
    with pytest.raises(NidmapError, match=word):
        bundle(modules)
