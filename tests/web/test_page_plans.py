# SPDX-License-Identifier: Apache-2.0
"""The page in a browser: plans side by side, ranks, hops, loads, live changes."""

import json
import re

import pytest

import nidmap
from tests.web.machines import in_states
from tests.web.serving import running, squeue, until

pytest_plugins = ("tests.web.browser",)


def compared(page, count, pattern="alltoall"):
    page.page.click("#tab-plans")
    page.page.fill("#plan-count", str(count))
    page.page.fill("#pattern", pattern)
    page.page.uncheck("#plan-strategies input[value=auto]")
    page.page.click("#plan-go")
    page.until("() => !document.getElementById('plan-go').disabled")


def test_plans_stand_side_by_side_with_the_figures_of_compare(opened, site):
    page = opened(site).go()
    compared(page, 24)
    page.page.wait_for_selector(".plan")
    chosen = page.page.locator("#plan-strategies input:checked").evaluate_all(
        "boxes => boxes.map(box => box.value)"
    )
    answer = site.post(
        "compare", count=24, ppn=1, pattern="alltoall", strategies=chosen, orders=["row-major"]
    ).json
    heads = page.page.locator(".plan h2").all_inner_texts()
    assert 2 <= len(heads) <= 4
    assert [head.split()[0] for head in heads] == [row["strategy"] for row in answer["rows"]][:4]
    assert page.text("#sentence").lower() == answer["sentence"].lower()
    for plan, row in zip(page.page.locator(".plan").all(), answer["rows"], strict=False):
        touches = ", ".join(str(number) for number in row["touches"].values())
        said = plan.locator("dd").first.inner_text()
        assert re.sub(r"[^\d,]+", "", said).split(",") == touches.split(", ")
    assert page.page.locator(".plan canvas.picture").count() == len(heads)


def test_pointing_at_a_node_in_one_plan_points_in_all(opened, site):
    page = opened(site).go()
    compared(page, 24)
    page.page.locator(".plan .small-map").first.hover()
    box = page.page.locator(".plan .small-map").first.bounding_box()
    for step in range(12):
        page.page.mouse.move(box["x"] + 20 + 10 * step, box["y"] + box["height"] / 3)
        rings = page.page.locator(".plan .ring.hover:not([hidden])").count()
        assert rings in (0, page.page.locator(".plan").count())
        if rings:
            return
    pytest.fail("no node was under the pointer")


def test_pointing_at_two_groups_in_one_plan_points_in_all(opened, site):
    page = opened(site).go("#t=plans&plan=80;1;row-major;free;compact,hilbert;alltoall")
    page.page.wait_for_selector(".plan .heat-square canvas")
    square = page.page.locator(".plan .heat-square canvas").first
    square.scroll_into_view_if_needed()
    box = square.bounding_box()
    page.page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 4)
    words = page.page.locator(".plan .heat > p").all_inner_texts()
    assert len(words) >= 2
    assert all(re.match(r"g\d+ to g\d+: ", word) for word in words), words
    assert len({word.split(":")[0] for word in words}) == 1
    assert page.page.locator(".plan .heat-frame:not([hidden])").count() == len(words)


def test_a_plan_is_taken_as_a_mark_and_as_a_rank_file(opened, site):
    page = opened(site).go()
    compared(page, 24)
    name = page.page.locator(".plan h2").first.inner_text().split()[0]
    page.page.locator(".plan").first.get_by_text("Rank file").click()
    page.until("() => document.querySelector('#file textarea').value !== ''")
    page.page.locator("#file select").nth(1).select_option("slots")
    page.until(
        "() => document.querySelector('#file textarea').value.match(/^\\d+$/gm)?.length >= 24"
    )
    lines = [
        line for line in page.page.input_value("#file textarea").split("\n") if line[:1].isdigit()
    ]
    assert sorted(map(int, lines)) == list(range(24))
    page.page.keyboard.press("Escape")
    page.page.locator(".plan").first.get_by_text("Take as mark").click()
    assert page.marks() == {name: 24}
    assert page.page.get_attribute("#tab-map", "aria-selected") == "true"
    assert page.sentence("24 nodes")


def test_a_plan_that_cannot_be_met_is_refused_in_words(opened, site):
    page = opened(site).go()
    page.page.evaluate("() => document.getElementById('plan-count').removeAttribute('max')")
    compared(page, 4000)
    assert "free" in page.text("#plan-said")
    compared(page, 16, "no-such-pattern")
    assert "no-such-pattern" in page.text("#plan-said")
    compared(page, 16)
    assert page.page.locator(".plan").count() >= 2


def test_a_link_opens_the_plans(opened, site):
    page = opened(site).go("#t=plans&plan=16;2;row-major;free;compact,random;ring")
    page.page.wait_for_selector(".plan")
    assert page.page.input_value("#ppn") == "2"
    assert page.page.input_value("#pattern") == "ring"
    assert page.page.locator(".plan").count() == 3


def test_ranks_are_stepped_through_with_their_neighbours(opened, site):
    page = opened(site).go("#p=ring&n=2&by=rank")
    page.paste("#0-7")
    page.page.wait_for_selector("#rank")
    page.until("() => document.getElementById('stepper').textContent.includes('rank 0 of 16')")
    page.page.keyboard.press("Escape")
    page.page.click("#legend-head")
    for _ in range(3):
        page.page.keyboard.press("]")
    page.until("() => document.getElementById('stepper').textContent.includes('rank 3 of 16')")
    words = page.text("#stepper p")
    assert "nid00001" in words
    assert "talks to 2 ranks, 1 on other nodes" in words
    page.page.keyboard.press("[")
    page.until("() => document.getElementById('stepper').textContent.includes('rank 2 of 16')")
    assert "rank 0" in page.text("#legend")
    assert "rank 15" in page.text("#legend")


def test_hops_are_counted_from_the_focus_node(opened, site):
    page = opened(site).go("#by=hops&f=nid00005")
    page.until("() => document.getElementById('legend').textContent.includes('hop')")
    hops = site.ask("/api/v1/hops?from=nid00005").json["hops"]
    near = page.page.locator("#legend label", has_text="0 hops").locator(".num").inner_text()
    assert int(near) == hops.count(0)


def test_no_node_of_a_whole_machine_is_out_of_reach(opened, busy):
    page = opened(busy).go("#by=hops&f=nid00500")
    page.until("() => document.getElementById('legend').textContent.includes('0 hops')")
    hops = busy.ask("/api/v1/hops?from=nid00500").json["hops"]
    counts = dict(
        zip(
            page.page.locator("#legend .words").all_inner_texts(),
            page.page.locator("#legend .num").all_inner_texts(),
            strict=True,
        )
    )
    assert min(hops) >= 0
    assert "unreachable" not in counts
    for far in sorted({int(each + 0.5) for each in hops}):
        shown = counts["1 hop" if far == 1 else f"{far} hops"]
        assert int(shown.replace(",", "")) == sum(int(each + 0.5) == far for each in hops)


def test_link_load_of_the_mark_is_coloured_and_drawn(opened, site):
    page = opened(site).go("#by=load")
    page.paste("#0-3,#32-35,#64-67")
    page.page.wait_for_selector("#traffic .bars")
    page.until("() => document.getElementById('legend').textContent.includes('busiest link')")
    assert page.page.locator("#traffic .heat-square canvas").count() == 1
    assert page.page.locator("#traffic .tops li").count() >= 1
    page.page.uncheck("#links")


def test_a_torus_is_cut_along_each_axis(opened):
    import nidmap

    with running(nidmap.load_machine("torus:6x5x4,nodes=2")) as torus:
        page = opened(torus).go()
        for view, axis, slices in (("slices", "z", 4), ("slices-y", "y", 5), ("slices-x", "x", 6)):
            page.page.select_option("#view", view)
            page.settle()
            labels = page.page.locator(".box-label:not([hidden]):not(.fixed)").all_inner_texts()
            assert [label for label in labels if re.fullmatch(rf"{axis}\d", label)] == [
                f"{axis}{n}" for n in range(slices)
            ]
        page.until("() => location.hash.includes('v=slices-x')")
        page.leave()


def test_the_table_is_the_maps_twin(opened, site):
    page = opened(site).go()
    page.paste("#3,#10-12")
    page.page.click("#tab-table")
    assert page.text("#table-count") == "128 nodes"
    page.page.select_option("#table-show", "active")
    assert page.text("#table-count") == "4 nodes"
    names = page.page.locator("#table tbody td:nth-child(2)").all_inner_texts()
    assert names == ["nid00003", "nid00010", "nid00011", "nid00012"]
    page.page.locator("#table th button", has_text="name").click()
    page.page.locator("#table th button", has_text="name").click()
    assert page.page.locator("#table tbody td:nth-child(2)").all_inner_texts() == names[::-1]
    page.page.select_option("#table-show", "all")
    page.page.fill("#table-filter", "nid00100")
    page.page.click("#table tbody input")
    assert page.marks() == {"A": 5}


def test_what_slurm_says_now_is_shown(opened, small, tmp_path):
    path = tmp_path / "squeue.json"
    path.write_text(squeue((1, "nid[00000-00003]", "before", "ada")))
    with running(small, (str(path),), every=0.2) as site:
        until(lambda: site.ask("/api/v1/state").json["jobs"])
        page = opened(site).go("#by=job")
        page.until("() => document.getElementById('legend').textContent.includes('before')")
        assert "ada" not in page.page.content()
        path.write_text(squeue((2, "nid[00008-00019]", "after", "bob")))
        page.until("() => document.getElementById('legend').textContent.includes('after')")
        assert "before" not in page.text("#legend")
        assert "1 job" in page.sentence("12 in use")
        page.leave()


def test_data_that_has_grown_old_is_marked_with_its_age(opened, small, tmp_path):
    path = tmp_path / "squeue.json"
    path.write_text(squeue((1, "nid[00000-00003]", "job", "ada")))
    with running(small, (str(path),), every=0.2) as site:
        until(lambda: site.ask("/api/v1/state").json["jobs"])
        page = opened(site).go()
        path.write_text("{")
        page.until("() => document.getElementById('live').dataset.level === 'stale'")
        assert re.search(r"data of \d+ s ago", page.text("#live"))
        path.write_text(squeue((1, "nid[00000-00003]", "job", "ada")))
        page.until("() => document.getElementById('live').dataset.level !== 'stale'")
        page.leave()


def test_states_that_never_change_are_asked_for_once(opened, site):
    page = opened(site)
    asked = []
    page.page.on("request", lambda request: asked.append(request.url))
    page.go()
    assert page.text("#live") == "not live: states as described"
    assert len([url for url in asked if url.endswith("/state")]) == 1


def test_states_have_shapes_of_their_own(opened, small):
    machine = in_states(small, down=[5], drained=[6], idle=[7], allocated=[8])
    with running(machine) as site:
        page = opened(site).go("#f=nid00005")
        legend = page.text("#legend")
        for words in ("down", "not usable (drained)", "free (up, idle)", "in use (allocated)"):
            assert words in legend
        shapes = page.page.locator("#legend canvas").evaluate_all(
            "all => all.map(c => [...c.getContext('2d').getImageData(0, 0, 32, 32).data].join())"
        )
        assert len(set(shapes)) == len(shapes)
        page.leave()


def test_answers_are_asked_for_once(opened, site):
    page = opened(site)
    asked = []
    page.page.on("request", lambda request: asked.append(request.url.rsplit("/", 1)[1]))
    page.go()
    for name in ("machine", "layout?view=usual", "state"):
        assert asked.count(name) == 1, json.dumps(asked)


def test_a_plan_of_auto_keeps_its_order(opened, site):
    """Taken as a mark, its figure is that of its own order; changed, it is the default order's."""
    page = opened(site).go("#t=plans&plan=24;2;row-major;free;auto;stencil:8x6")
    page.page.wait_for_selector(".plan")
    body = {"count": 24, "ppn": 2, "pattern": "stencil:8x6", "strategies": ["auto"]}
    rows = site.post("compare", **body, orders=["row-major"]).json["rows"]
    (auto,) = (row for row in rows if row["strategy"] == "auto")
    card = page.page.locator(".plan", has_text="auto").first
    own = auto["own_order"]["slots"]
    assert ("its own: take the rank file too" in card.inner_text()) == (own is not None)
    card.get_by_role("button", name="Rank file").click()
    page.until("() => document.querySelector('#file textarea').value !== ''")
    if own is None:
        return
    page.page.locator("#file select").nth(1).select_option("slots")
    page.until(
        "() => document.querySelector('#file textarea').value.match(/^\\d+$/gm)?.length === 48"
    )
    text = page.page.locator("#file textarea").input_value()
    assert [int(line) for line in re.findall(r"^\d+$", text, re.M)] == own


SEARCH = "#t=plans&plan=1024;2;row-major;free;auto;stencil:16x16x8"


def test_a_search_shows_how_far_it_is_and_ends_with_the_best_so_far(opened, searched):
    page = opened(searched).go(SEARCH)
    page.until("() => document.getElementById('plan-now').textContent.includes('best so far')")
    assert 0 < page.page.locator("#plan-share").evaluate("bar => bar.value") <= 1
    page.page.wait_for_selector(".preview canvas")
    assert page.page.is_disabled("#plan-go")
    page.page.click("#plan-finish")
    page.page.wait_for_selector(".plan")
    assert page.page.locator(".plan h2", has_text="auto").count() == 1
    assert page.page.is_hidden("#plan-running")
    assert page.page.is_enabled("#plan-go")
    page.leave()


def test_a_search_is_cancelled_on_the_page_and_on_the_server(opened, searched):
    page = opened(searched).go(SEARCH)
    page.until("() => document.getElementById('plan-now').textContent.includes('best so far')")
    assert searched.service.long.inside == 1
    page.page.click("#plan-cancel")
    page.until("() => document.getElementById('plan-said').textContent === 'Cancelled.'")
    until(lambda: searched.service.long.inside == 0)
    assert page.page.is_enabled("#plan-go")
    page.leave()


@pytest.fixture(scope="module")
def searched():
    """A server whose searches take seconds."""
    with running(nidmap.load_machine("torus:16x16x8"), plans=1) as site:
        yield site


def test_a_busy_server_is_asked_again(opened, site):
    page = opened(site).go()
    refused = []

    def busy(route):
        if len(refused) < 2:
            refused.append(1)
            problem = '{"title": "Too Many Requests", "detail": "busy", "hint": ""}'
            route.fulfill(
                status=429, headers={"Retry-After": "1"}, body=problem,
                content_type="application/problem+json",
            )  # fmt: skip
        else:
            route.continue_()

    page.page.route("**/api/v1/compare", busy)
    compared(page, 24)
    page.page.wait_for_selector(".plan")
    assert len(refused) == 2
    assert all("429" in fault for fault in page.faults)
    page.faults.clear()


def test_plans_of_the_same_nodes_are_said_to_be(opened, site):
    page = opened(site).go("#t=plans&plan=128;1;row-major;free;compact,spread;alltoall")
    page.page.wait_for_selector(".plan")
    cards = page.page.locator(".plan").all_inner_texts()
    assert len(cards) == 3
    assert [card.count("the same nodes as") for card in cards] == [0, 1, 1]
