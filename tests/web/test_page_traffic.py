# SPDX-License-Identifier: Apache-2.0
"""The pictures of the traffic: groups in a circle, cables of a tree, a torus that turns."""

import re

import numpy as np
import pytest

import nidmap
from nidmap.placement.topologies import router_coords
from nidmap.web import figures, requests
from nidmap.web.snapshot import of_dump
from tests.web.serving import running

pytest_plugins = ("tests.web.browser",)


@pytest.fixture
def page(opened, site):
    """The page, which each test opens at a server of its own kind of network."""
    return opened(site)


def drawn(page, state):
    """Open the traffic of a mark and return the picture's words."""
    page.go(state)
    page.page.wait_for_selector("#traffic-picture svg")
    return words(page)


def words(page):
    return page.page.locator("#traffic-picture svg text").all_text_contents()


def test_groups_stand_around_and_the_busiest_link_is_named(page):
    said = drawn(page, "#t=traffic&m=A:0:0-39,70-79")
    assert said.count("Mark A: 50 nodes, alltoall") == 1
    assert {"g0: 32 nodes", "g1: 8 nodes", "g2: 10 nodes", "g3"} <= set(said)
    assert any(line.startswith("busiest: ") for line in said)
    page.page.select_option("#traffic-group", "1")
    page.until("() => document.getElementById('traffic-picture').textContent.includes('inside g1')")
    (line,) = (text for text in words(page) if text.startswith("busiest inside g1: "))
    assert set(re.findall(r"g(\d+)", line)) == {"1"}, "both ends are in the group"


def test_every_pair_of_groups_is_drawn(page, small):
    said = figures.describe(
        small, of_dump(small).offer(small), requests.Describe("#0-39,#70-79", links=1, groups=True)
    )
    groups = said.prediction.groups
    loads = nidmap.predict(small, np.r_[0:40, 70:80], nidmap.Job("alltoall", ppn=1)).loads
    unit, seconds, channels = router_coords(small)[:, 0], loads.seconds(), loads.channels
    busiest = {}
    for i in np.flatnonzero(loads.load).tolist():
        pair = tuple(sorted((int(unit[channels.source[i]]), int(unit[channels.target[i]]))))
        busiest[pair] = max(busiest.get(pair, 0), float(seconds[i]))
    found = zip(groups["a"], groups["b"], groups["seconds"], strict=True)
    assert {(a, b): time for a, b, time in found} == busiest
    drawn(page, "#t=traffic&m=A:0:0-39,70-79")
    chords = page.page.locator("#traffic-picture path[d*='Q'][stroke]").count()
    assert chords == sum(a != b for a, b in busiest)


def test_until_the_traffic_is_known_its_place_says_that_it_is_calculated(page, site):
    waiting = []
    page.page.route("**/api/v1/describe", lambda request: waiting.append(request))
    page.leave()
    page.page.goto(f"{site.url}/#t=traffic&m=A:0:0-9,70-79")
    page.page.get_by_text("Calculating the traffic …").wait_for()
    page.page.route("**/api/v1/describe", lambda request: request.continue_())
    for request in waiting:
        request.continue_()
    page.page.wait_for_selector("#traffic-picture svg")
    assert any(line.startswith("Mark A: 20 nodes") for line in words(page))


def test_one_key_swaps_the_mark_and_the_default(page):
    drawn(page, "#t=traffic&m=A:0:0-9,70-79")
    most = words(page)[-1]
    page.page.keyboard.press("x")
    said = words(page)
    assert any("own choice" in line and "20 nodes" in line for line in said)
    assert said[-1] == most
    page.page.keyboard.press("x")
    assert any(line.startswith("Mark A: 20 nodes") for line in words(page))


def test_both_stand_side_by_side_on_one_scale(page):
    drawn(page, "#t=traffic&m=A:0:0-9,70-79")
    page.page.keyboard.press("v")
    pictures = page.page.locator("#traffic-picture svg")
    assert pictures.count() == 2
    left, right = (pictures.nth(i).bounding_box() for i in (0, 1))
    assert (left["y"], left["width"]) == (right["y"], right["width"])
    assert left["x"] + left["width"] <= right["x"] + 1
    titles = [text for text in words(page) if "20 nodes, alltoall" in text]
    assert titles[0].startswith("Mark A")
    assert "own choice" in titles[1]
    with page.page.expect_download() as caught:
        page.page.click("#traffic-svg")
    raw = caught.value.path().read_text()
    assert 'width="1920"' in raw
    assert all(title in raw for title in titles)
    page.page.uncheck("#traffic-both")
    assert pictures.count() == 1


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_what_is_shown_is_saved_at_the_size_of_a_slide(page, kind):
    drawn(page, "#t=traffic&m=A:0:0-39")
    with page.page.expect_download() as caught:
        page.page.click(f"#traffic-{kind}")
    raw = caught.value.path().read_bytes()
    if kind == "png":
        sides = (int.from_bytes(raw[16:20], "big"), int.from_bytes(raw[20:24], "big"))
        assert (raw[:4], sides) == (b"\x89PNG", (1920, 1080))
    else:
        assert b'width="1920"' in raw
        assert b"Mark A: 40 nodes" in raw


def test_leaves_stand_below_their_spines_and_a_torus_turns(page):
    with running(nidmap.load_machine("fattree:leaf=4,leaves=4,spines=2")) as tree:
        page.url = tree.url
        drawn(page, "#t=traffic&m=A:0:0-5")
        heights = page.page.evaluate(
            "() => Object.fromEntries([...document.querySelectorAll('#traffic-picture text')]"
            ".map(t => [t.textContent, Number(t.getAttribute('y'))]))"
        )
        assert heights["leaf0"] == heights["leaf3"] > heights["spine0"] == heights["spine1"]
        page.leave()
    with running(nidmap.load_machine("torus:3x3x3")) as torus:
        page.url = torus.url
        drawn(page, "#t=traffic&m=A:0:0-5")
        before = page.page.inner_html("#traffic-picture")
        page.page.focus("#traffic-picture")
        page.page.keyboard.press("ArrowLeft")
        assert page.page.inner_html("#traffic-picture") != before
        page.leave()


def test_without_a_mark_it_says_what_to_do(page):
    page.go("#t=traffic")
    assert page.text("#traffic-picture") == "Mark a job's nodes to see its traffic."


def test_no_line_runs_through_the_busiest_links_name(page):
    drawn(page, "#t=traffic&m=A:0:0-39,70-79")
    ground, name = page.page.locator("#traffic-picture svg").evaluate(
        "svg => { const text = [...svg.querySelectorAll('text')].find((t) =>"
        " t.previousElementSibling?.tagName === 'rect' && t.getAttribute('text-anchor'));"
        " return [text.previousElementSibling, text].map((e) => {"
        " const { x, y, width, height } = e.getBBox(); return [x, y, x + width, y + height]; }); }"
    )
    assert ground[0] <= name[0]
    assert ground[2] >= name[2]
    assert ground[1] <= (name[1] + name[3]) / 2 <= ground[3]
