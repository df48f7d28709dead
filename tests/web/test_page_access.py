# SPDX-License-Identifier: Apache-2.0
"""The page in a browser: keys alone, axe, dark and forced colours, a phone, no outside requests."""

import itertools
import posixpath
import re
from pathlib import Path

import pytest

from nidmap import web
from nidmap.web.page import DRAWING, needed_modules, page_modules, served_files
from tests.web.serving import running

pytest_plugins = ("tests.web.browser",)

STATIC = Path(web.__file__).parent / "static"
TEMPLATE = Path(web.__file__).parent / "templates" / "page.html"

#: NIDs 9, 4 and 3 are other columns than the nodes'.
SQUEUE = """  JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
      9     workq      fft      ada  R       0:05      3 nid[00004-00006]
      4     workq     wait      bob PD       0:00      3 (Resources)
"""


def check(page, *rules, within="html"):
    """Run axe on a part of the page, with all its rules or with those named; return its finds."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not there")
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = axe.Axe().run(page.page, within, options).response["violations"]
    return [
        (each["id"], each["impact"], [node["target"] for node in each["nodes"]][:3])
        for each in found
    ]


@pytest.mark.parametrize(("scheme", "rules"), [("light", ()), ("dark", ("color-contrast",))])
def test_axe_finds_nothing_in_any_view(opened, site, scheme, rules):
    page = opened(site, color_scheme=scheme).go("#f=nid00003&by=rank")
    page.paste("#0-15 nosuchnode")
    page.page.wait_for_selector("#traffic .bars")
    page.page.click("#help-open")
    page.page.click("#curl summary")
    assert check(page, *rules) == []
    page.page.keyboard.press("Escape")
    page.page.click("#tab-table")
    assert check(page, *rules) == []
    page.page.click("#tab-plans")
    page.page.fill("#plan-count", "16")
    page.page.uncheck("#plan-strategies input[value=auto]")
    page.page.click("#plan-go")
    page.page.wait_for_selector(".plan")
    assert check(page, *rules) == []
    page.page.click("#tab-traffic")
    page.page.wait_for_selector("#traffic-picture svg")
    assert check(page, *rules) == []
    page.page.click("#tab-jobs")
    page.page.wait_for_selector("#jobs-said:not(:empty)", state="attached")
    assert check(page, *rules) == []
    for name in ("save", "help"):
        page.page.click(f"#{name}-open")
        assert check(page, *rules, within=f"#{name}") == []
        page.page.keyboard.press("Escape")


def test_axe_finds_nothing_on_a_phone(opened, busy):
    page = opened(busy, viewport={"width": 390, "height": 844}, has_touch=True).go("#by=job")
    page.page.fill("#search", "nid001")
    assert check(page) == []


def test_everything_by_keys(opened, site):
    page = opened(site).go()
    press = page.page.keyboard.press
    press("Tab")
    assert page.page.evaluate("() => document.activeElement.id") == "skip"
    press("Enter")
    assert page.page.evaluate("() => document.activeElement.id") == "map"
    press("Home")
    page.until("() => document.getElementById('node').textContent.includes('nid00000')")
    press(" ")
    assert page.marks() == {"A": 1}
    press("b")
    assert page.marks() == {"A": 4}
    press("g")
    assert page.marks() == {"A": 32}
    assert "32 in mark A" in page.page.locator("#announcer").text_content()
    press("Control+z")
    press("ArrowRight")
    said = page.page.locator("#announcer").text_content()
    assert re.match(r"nid\d{5}, up, group \d", said)
    press("Shift+ArrowDown")
    assert page.marks()["A"] >= 4
    press("n")
    press("End")
    press("Enter")
    assert page.marks()["B"] == 1
    press("1")
    assert page.page.locator("#marks li").first.get_attribute("data-active") == "true"
    press("t")
    assert page.page.get_attribute("#tab-table", "aria-selected") == "true"
    press("m")
    assert page.page.get_attribute("#tab-map", "aria-selected") == "true"
    press("?")
    assert page.page.locator("#help[open]").count() == 1
    press("Escape")
    assert page.page.locator("#help[open]").count() == 0


def test_marking_many_nodes_by_keys_is_never_one_question_too_many(opened, site):
    page = opened(site).go()
    statuses = []
    page.page.on("response", lambda response: statuses.append(response.status))
    page.page.focus("#map")
    page.page.keyboard.press("Home")
    for _ in range(25):
        page.page.keyboard.press("Enter")
        page.page.keyboard.press("ArrowRight")
    count = page.marks()["A"]
    page.sentence(f"{count} nodes in")
    assert count > 10
    assert set(statuses) <= {200, 304}


def test_the_traffic_by_keys(opened, site):
    page = opened(site).go("#m=A:0:0-9,70-79")
    page.sentence("20 nodes in")
    page.page.keyboard.press("w")
    page.page.wait_for_selector("#traffic-picture svg")
    page.page.keyboard.press("v")
    assert page.page.locator("#traffic-picture svg").count() == 2
    page.page.keyboard.press("x")
    assert page.page.locator("#traffic-picture svg").count() == 1
    page.page.keyboard.press("o")
    assert page.page.get_attribute("#tab-jobs", "aria-selected") == "true"
    page.page.keyboard.press("p")
    assert page.page.get_attribute("#tab-plans", "aria-selected") == "true"


def test_the_focus_cell_walks_over_the_whole_machine(opened, site):
    page = opened(site).go()
    page.page.focus("#map")
    page.page.keyboard.press("Home")
    seen = set()
    for key in ("ArrowRight",) * 40 + ("ArrowDown",) * 40:
        page.page.keyboard.press(key)
        seen.add(page.page.locator("#announcer").text_content().strip().split(",")[0])
    groups = page.page.locator("#announcer").text_content()
    assert len(seen) >= 12
    assert "group 0" not in groups


def test_keys_zoom_and_the_mini_map_shows_where(opened, busy):
    page = opened(busy).go()
    assert page.page.locator("#minimap").is_hidden()
    page.page.focus("#map")
    for _ in range(4):
        page.page.keyboard.press("+")
        page.settle()
    page.page.wait_for_selector("#minimap:not([hidden])")
    page.page.keyboard.press("0")
    page.page.wait_for_selector("#minimap", state="hidden")


def test_far_away_boxes_stand_for_nodes_and_near_by_names_are_written(opened, busy):
    page = opened(busy, viewport={"width": 420, "height": 700}).go()
    far = page.page.locator(".box-label:not([hidden])").count()
    page.page.focus("#map")
    page.page.keyboard.press("Home")
    for _ in range(14):
        page.page.keyboard.press("+")
    page.settle()
    near = page.page.locator(".box-label:not([hidden])").all_inner_texts()
    assert far > 0
    assert "g0" in near


#: Keeps what the map writes: the text, its canvas, its middle, its width, in pixels of the canvas.
KEEP_NAMES = """
const plain = CanvasRenderingContext2D.prototype.fillText;
const canvases = [];
window.written = [];
CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
  if (!canvases.includes(this.canvas)) canvases.push(this.canvas);
  const at = [canvases.indexOf(this.canvas), Math.round(x), Math.round(y)];
  window.written.push([text, ...at, this.measureText(text).width]);
  return plain.call(this, text, x, y, ...rest);
};
"""


def apart(written):
    """Return how many pixels are free between neighbours' names on each line."""
    lines = {}
    for _, canvas, x, y, width in written:
        lines.setdefault((canvas, y), {})[x] = width
    return [
        right - left - (line[left] + line[right]) / 2
        for line in lines.values()
        for left, right in itertools.pairwise(sorted(line))
    ]


def test_all_nodes_are_named_where_the_map_has_room(opened):
    import nidmap

    with running(nidmap.load_machine("torus:4x4")) as few:
        page = opened(few)
        page.context.add_init_script(KEEP_NAMES)
        page.go()
        written = page.page.evaluate("() => window.written")
        page.leave()
    assert {int(text.removeprefix("nid")) for text, *_ in written} == set(range(16))
    assert min(apart(written)) > 10


def test_names_of_nodes_are_never_squeezed(opened, busy):
    page = opened(busy)
    page.context.add_init_script(KEEP_NAMES)
    page.go("#by=state")
    page.page.focus("#map")
    page.page.keyboard.press("Home")
    for _ in range(40):
        page.page.keyboard.press("+")
        page.settle()
        if written := page.page.evaluate("() => window.written"):
            break
    assert min(apart(written)) > 0


def test_dark_and_light_by_system_and_by_choice(opened, site):
    page = opened(site, color_scheme="dark").go()
    ground = page.colour_at(4, 4)
    assert max(ground) < 60
    page.page.click("#theme")
    page.settle()
    page.until("() => document.documentElement.dataset.theme === 'light'")
    assert min(page.colour_at(4, 4)) > 200
    page.until("() => location.hash.includes('c=light')")


def test_forced_colours_are_the_systems(opened, site):
    page = opened(site, forced_colors="active").go()
    page.paste("#0-7")
    system = page.page.evaluate(
        "() => { const s = document.createElement('span'); document.body.append(s);"
        " s.style.color = 'Canvas'; const c = getComputedStyle(s).color; s.remove();"
        " return c.match(/\\d+/g).slice(0, 3).map(Number); }"
    )
    assert list(page.colour_at(4, 4)) == system


def test_forced_colours_leave_marks_apart(opened, site):
    marks = "&".join(
        f"m={name}:{hue}:{hue * 8}-{hue * 8 + 7}" for hue, name in enumerate("ABCDEFGH")
    )
    page = opened(site, forced_colors="active").go(f"#{marks}")
    looks = page.page.locator("#marks canvas").evaluate_all(
        "all => all.map(c => [...c.getContext('2d').getImageData(0, 0, 32, 32).data].join())"
    )
    assert len(looks) == len(set(looks)) == 8


def test_little_motion_where_it_is_asked_for(opened, site):
    page = opened(site, reduced_motion="reduce").go()
    page.page.focus("#map")
    page.page.keyboard.press("+")
    page.settle()
    first = page.colour_at(200, 200)
    page.page.wait_for_timeout(200)
    assert page.colour_at(200, 200) == first


def test_a_phone_shows_all_without_scrolling_sideways(opened, busy):
    page = opened(busy, viewport={"width": 360, "height": 740}, has_touch=True).go()
    page.paste("nid[00136-00150]")
    page.page.wait_for_selector("#traffic .bars")
    wide = page.page.evaluate("() => document.documentElement.scrollWidth")
    assert wide <= 360
    small = page.page.locator(".map-tools button").evaluate_all(
        "all => all.map(b => Math.min(b.offsetWidth, b.offsetHeight))"
    )
    assert min(small) >= 40


def test_a_page_is_seven_requests_and_its_files_are_kept(opened, busy):
    page = opened(busy)
    asked = []
    page.page.on("request", lambda request: asked.append(request.url.partition("/static/")[2]))
    page.go()
    kept = [name for name in asked if name]
    assert len(asked) <= 7
    assert kept == sorted(served_files(), key=kept.index)
    for name in kept:
        reply = busy.ask(f"/static/{name}")
        assert "immutable" in reply.headers["cache-control"]
    assert busy.ask("/static/main.js").status == 404


def test_folders_reach_inwards_and_the_drawing_needs_no_page():
    modules = page_modules()
    order = ["core", "draw", "ui", "net", "map", "views", ""]
    for name, text in modules.items():
        for file in re.findall(r'from "(\.[^"]+)"', text):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), file))
            inner, outer = (order.index(posixpath.dirname(each)) for each in (path, name))
            assert inner <= outer, f"{name} imports {path}"
    drawing = {posixpath.dirname(name) for name in needed_modules(modules, DRAWING)}
    assert drawing == {"core", "draw"}
    assert len(modules["main.js"].splitlines()) < 40


@pytest.mark.parametrize("path", sorted(STATIC.rglob("*.js")), ids=lambda path: path.name)
def test_modules_bundle_by_simple_rules_and_never_parse_data_as_markup(path):
    text = path.read_text()
    for line in re.findall(r"^(?:import|export)\b.*$", text, re.M):
        assert re.match(
            r'import \{ [\w, ]+ \} from "\.\.?/[a-z/]+\.js";$'
            r"|export (async )?(function|const|class) \w+",
            line,
        ), line
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|import\("
    )
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)  # types are imported in comments
    assert not re.search(forbidden, code)
    assert not re.search(r"https?://(?!www\.w3\.org/)", text)


def test_the_template_holds_no_inline_script_or_style():
    text = TEMPLATE.read_text()
    assert not re.search(r"<style|style=|\son[a-z]+=|<script", text)


def test_an_exported_file_works_from_disk(opened, small, site, tmp_path):
    nodes = "#0-7"
    reply = site.post("export", nodes=nodes, format="html")
    assert reply.status == 200
    path = tmp_path / "picture.html"
    path.write_bytes(reply.body)
    page = opened(site)
    page.url = path.as_uri()
    page.page.goto(path.as_uri())
    page.settle()
    assert list(page.marks().values()) == [8]
    assert page.sentence("8 nodes") == site.post("describe", nodes=nodes).json["sentence"]
    assert page.page.locator("#traffic .bars").count() == 1
    page.page.fill("#paste-text", "nid[00010-00012] nid00020-nowhere 5")
    page.page.click("#paste button[type=submit]")
    assert list(page.marks().values()) == [8, 4]
    assert page.page.locator(".bad-list mark").all_inner_texts() == ["nid00020-nowhere"]
    assert page.page.locator("#tab-plans").is_hidden()
    assert page.page.locator("#save-open").is_hidden()
    for text, number in (
        (SQUEUE, 3),
        ("JobId=9 JobName=x\n   ReqNodeList=(null)\n   NodeList=nid[00001-00002]\n", 2),
        ("#SBATCH -N 2 -w nid[00001-00002]", 2),
        ("NODELIST NODES PARTITION STATE\nnid00003 1 workq* idle\n", 1),
    ):
        page.page.fill("#paste-text", text)
        page.page.click("#paste button[type=submit]")
        assert list(page.marks().values())[-1] == number
        assert page.page.locator(".bad-list mark").count() == 0


def test_a_machine_without_cnames_or_jobs_or_many_nodes(opened, tmp_path):
    import nidmap

    for spec in ("torus:2x1x1,nodes=1", "fattree:leaf=2,leaves=2,spines=1"):
        with running(nidmap.load_machine(spec)) as site:
            page = opened(site).go()
            page.paste("#0")
            assert page.marks() == {"A": 1}
            page.page.select_option("#colour", "job")
            page.settle()
            page.leave()
