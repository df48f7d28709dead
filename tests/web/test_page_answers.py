# SPDX-License-Identifier: Apache-2.0
"""The page in a browser: what is typed is taken as it is meant, and what is shown is of that."""

import numpy as np
import quickjs

import nidmap
from nidmap.placement.lookup import rows_of
from nidmap.web.nodes import resolve
from nidmap.web.page import bundle_modules, page_modules
from tests.web.serving import running, squeue, until

pytest_plugins = ("tests.web.browser",)

NAMES = """
import { Machine } from "./core/machine.js";
globalThis.namesOf = (text, row) => new Machine(JSON.parse(text)).namesOf(row).join();
"""

PLANS = "#t=plans&plan=24;1;row-major;free;compact;alltoall"


def test_bytes_may_have_units_and_what_is_no_number_is_said_next_to_its_field(opened, site):
    page = opened(site).go("#m=A:0:0-7")
    page.sentence("as fast as")
    for text, bytes_ in (("4k", 4e3), ("4KiB", 4096), ("1e6", 1e6), ("2 MB", 2e6)):
        with page.page.expect_request("**/describe") as asked:
            page.page.fill("#bytes", text)
            page.page.press("#bytes", "Enter")
        assert asked.value.post_data_json["bytes"] == bytes_
    page.page.fill("#bytes", "4 q")
    page.page.press("#bytes", "Enter")
    page.until("() => document.getElementById('bytes-said').textContent.startsWith('bytes: ')")
    assert page.page.get_attribute("#bytes", "aria-invalid") == "true"
    page.page.fill("#bytes", "")
    page.page.press("#bytes", "Enter")
    page.page.fill("#pattern", "altoall")
    page.page.press("#pattern", "Enter")
    page.until("() => document.getElementById('pattern-said').textContent.includes('altoall')")
    assert page.page.get_attribute("#pattern", "aria-invalid") == "true"
    page.page.fill("#ppn", "5000")
    page.page.press("#ppn", "Enter")
    page.until("() => document.getElementById('ppn-said').textContent.includes('1 to 4,096')")
    below = page.page.evaluate(
        "() => ['ppn', 'pattern'].map(id => document.getElementById(`${id}-said`)"
        ".getBoundingClientRect().top - document.getElementById(id).getBoundingClientRect().bottom)"
    )
    assert all(0 <= gap < 12 for gap in below), "next to its field"
    assert "as fast" not in page.text("#sentence"), "the sentence of the pattern before"


def test_the_sentence_is_never_another_marks(opened, site):
    page = opened(site).go("#m=A:0:0-7")
    page.sentence("8 nodes in 1 group")
    page.page.route("**/describe", lambda request: None)
    page.paste("#40-44")
    page.until("() => document.getElementById('sentence').textContent.startsWith('5 nodes')")
    assert page.text("#sentence").endswith("Predicting …")
    page.leave()


def test_a_double_click_zooms_and_marks_nothing(opened, site):
    page = opened(site).go("#f=nid00070")
    x, y = page.where("nid00070")
    box = page.page.locator("#map").bounding_box()
    page.page.mouse.dblclick(box["x"] + x, box["y"] + y)
    page.settle()
    assert page.marks() == {}


def test_a_jobs_number_is_found_before_a_node_of_that_nid(opened, small, tmp_path):
    path = tmp_path / "squeue.json"
    path.write_text(squeue((7, "nid[00010-00019]", "wrf", "ada")))
    with running(small, (str(path),)) as site:
        until(lambda: site.service.live.snapshot.jobs)
        page = opened(site).go()
        page.page.fill("#search", "7")
        page.page.wait_for_selector("#search-hits li")
        page.page.keyboard.press("Enter")
        assert page.marks() == {"job 7": 10}
        page.leave()


def test_a_list_of_jobs_becomes_a_mark_per_job(opened, site, small):
    text = "JOBID NAME ST NODES NODELIST(REASON)\n" + "".join(
        f"{number} wrf R 2 nid[{10 * number:05}-{10 * number + 1:05}]\n" for number in range(1, 11)
    )
    jobs = resolve(small, text).jobs
    assert [job.id for job in jobs] == [str(number) for number in range(1, 11)]
    assert jobs[2].rows == rows_of(small, "nid[00030-00031]").tolist()
    assert resolve(small, "nid[00001-00004]").jobs == []
    page = opened(site).go()
    page.paste(text)
    page.until("() => document.querySelectorAll('#marks li').length === 8")
    assert page.marks()["job 3"] == 2
    assert "8 of 10 jobs marked" in page.text("#paste-said")


def test_a_failed_plan_leaves_the_cards_and_the_focus(opened, site):
    page = opened(site).go(PLANS)
    page.page.wait_for_selector(".plan")
    page.page.evaluate("() => document.getElementById('plan-count').removeAttribute('max')")
    page.page.fill("#plan-count", "4000")
    page.page.focus("#plan-go")
    page.page.keyboard.press("Enter")
    page.until("() => document.getElementById('plan-said').textContent.includes('free')")
    page.until("() => document.activeElement.id === 'plan-go'")
    assert page.page.locator(".plan").count() == 2


def test_a_tie_is_not_the_fastest(opened, site):
    page = opened(site).go("#t=plans&plan=1;1;row-major;free;compact,random;alltoall")
    page.page.wait_for_selector(".plan")
    assert page.page.locator(".tag", has_text="fastest").count() == 0


def test_auto_is_chosen_and_a_fourth_strategy_takes_the_firsts_place(opened, site):
    page = opened(site).go("#t=plans")
    boxes = "[...document.querySelectorAll('#plan-strategies input')]"
    chosen = f"() => {boxes}.filter(b => b.checked).map(b => b.value)"
    assert "auto" in page.page.evaluate(chosen)
    assert page.page.evaluate(f"() => {boxes}.every(b => !b.disabled)")
    page.page.check("#plan-strategies input[value=random]")
    now = page.page.evaluate(chosen)
    assert len(now) == 3
    assert "random" in now


def test_nodes_and_switches_are_called_by_their_names(opened):
    tara = nidmap.load_machine("tara")
    with running(tara) as site:
        page = opened(site).go("#f=n39")
        row = int(np.flatnonzero(tara.names == "n39")[0])
        switch = site.ask("/api/v1/nodes?nodes=n39").json["nodes"][0]["routers"][0]
        page.until("w => document.getElementById('node').textContent.includes(w)", switch)
        assert "leaf 2" not in page.text("#node")
        drawing = quickjs.Context()
        drawing.eval(bundle_modules(page_modules() | {"names.js": NAMES}, "names.js"))
        names = drawing.get("namesOf")(site.ask("/api/v1/machine").body.decode(), row)
        assert names == "n39"
        matrix = site.post("describe", nodes="n[1-80]", pattern="ring").json["prediction"]["matrix"]
        names = set(site.ask("/api/v1/machine").json["routers"]["name"])
        assert set(matrix["labels"]) <= names
        page.leave()


def test_a_browser_without_the_token_is_told_what_to_open(small):
    token = "t" * 24
    with running(small, token=token) as site:
        reply = site.ask("/", headers={"Authorization": None})
        assert (reply.status, reply.headers["content-type"]) == (401, "text/html; charset=utf-8")
        assert b"nidmap web serve" in reply.body
        api = site.ask("/api/v1/state", headers={"Authorization": None})
        assert api.headers["content-type"] == "application/problem+json"
