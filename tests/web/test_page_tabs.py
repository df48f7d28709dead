# SPDX-License-Identifier: Apache-2.0
"""The page in a browser: what is seen on the map, by its pixels, when another tab leads to it."""

import pytest

pytest_plugins = ("tests.web.browser",)

#: Pixels of the map in the colour of the first mark, and those that are not its ground.
COUNT = """hue => {
  const canvas = document.getElementById('picture');
  const [w, h] = [canvas.width, canvas.height];
  const all = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, w, h).data.buffer);
  const [r, g, b] = [1, 3, 5].map(at => Number.parseInt(hue.slice(at, at + 2), 16));
  const wanted = ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  let [marked, drawn] = [0, 0];
  for (const pixel of all) { if (pixel === wanted) marked++; if (pixel !== all[0]) drawn++; }
  return [marked, drawn, w * h];
}"""

FIRST_HUE = "#3280fc"


def seen_of_mark(page):
    """Wait for the map, and return which share of it the mark and all that is drawn have."""
    page.until("() => !document.getElementById('panel-map').hidden")
    page.until("() => document.getElementById('picture').width > 300")
    page.page.wait_for_timeout(300)
    page.settle()
    marked, drawn, whole = page.page.evaluate(COUNT, FIRST_HUE)
    return marked / whole, drawn / whole


def search(page, words):
    page.page.fill("#search", words)
    page.page.wait_for_selector("#search-hits li")
    page.page.keyboard.press("Enter")


@pytest.mark.parametrize("tab", ["map", "table", "plans", "jobs", "traffic"])
def test_what_is_searched_for_in_any_tab_is_seen_on_the_map(opened, busy, tab):
    page = opened(busy).go(f"#t={tab}&by=state")
    search(page, "nid00140")
    assert seen_of_mark(page)[1] > 0.3
    assert page.where("nid00140")
    page.page.click(f"#tab-{tab}")
    search(page, "job 984711")
    marked, drawn = seen_of_mark(page)
    assert drawn > 0.3
    assert marked > 0.02, "56 nodes as large as they may be"


def test_a_job_of_the_table_is_seen_on_the_map(opened, busy):
    page = opened(busy).go("#t=jobs&by=state")
    page.page.locator("#jobs-body button").first.click()
    marked, drawn = seen_of_mark(page)
    assert marked > 0.02
    assert drawn > 0.3


def test_a_map_that_was_hidden_shows_what_it_showed(opened, busy):
    page = opened(busy).go()
    search(page, "job 984711")
    page.sentence("56 nodes")  # what is said of the mark may take the map a line
    before = seen_of_mark(page)
    page.page.click("#tab-table")
    page.page.set_viewport_size({"width": 1280, "height": 800})
    page.page.click("#tab-map")
    assert seen_of_mark(page) == before


def test_zooming_keys_work_while_a_tab_has_the_focus(opened, busy):
    page = opened(busy).go()
    search(page, "job 984711")
    page.sentence("56 nodes")  # what is said of the mark may take the map a line
    near = seen_of_mark(page)
    page.page.click("#zoom-fit")
    page.settle()
    page.page.focus("#tab-map")
    page.page.keyboard.press("z")
    assert seen_of_mark(page) == near


def test_the_jobs_fit_the_window_and_are_sorted_by_any_column(opened, busy):
    page = opened(busy).go("#t=jobs&by=state")
    page.page.wait_for_selector("#jobs-body td.slow")
    box = page.page.locator("#jobs-head th").last.bounding_box()
    assert box["x"] + box["width"] <= 1280
    heads = page.page.locator("#jobs-head th").all_inner_texts()
    for down in (False, True):
        page.page.locator("#jobs-head button").nth(heads.index("nodes")).click()
        column = f"#jobs-body td:nth-child({heads.index('nodes') + 1})"
        counts = [int(text) for text in page.page.locator(column).all_inner_texts()]
        assert counts == sorted(counts, reverse=down)


def test_plans_begin_with_the_mark_and_its_job(opened, busy):
    page = opened(busy).go("#p=ring&n=4")
    search(page, "job 984711")
    page.page.click("#tab-plans")
    page.until("() => document.getElementById('plan-count').value === '56'")
    assert page.page.input_value("#pattern") == "ring"
    assert page.page.input_value("#ppn") == "4"


def test_the_page_and_its_picture_count_alike(opened, shaheen2):
    import re

    import numpy as np

    from tests.web.machines import in_states
    from tests.web.serving import running

    rows = np.flatnonzero(shaheen2.compute)
    machine = in_states(
        shaheen2, **{"down*": rows[:40], "drained": rows[40:50], "maint": rows[50:60],
                     "idle*": rows[60:65], "mixed": rows[65:90]},
    )  # fmt: skip
    machine.planned[rows[90:100]] = True
    with running(machine) as site:
        page = opened(site).go()
        legend = dict(
            zip(
                page.page.locator("#legend .words").all_inner_texts(),
                page.page.locator("#legend .num").all_inner_texts(),
                strict=True,
            )
        )
        picture = site.post("export", format="svg").body.decode()
        page.leave()

    entry = r">([^<]+)</text>\s*<text[^>]*text-anchor=\"end\"[^>]*>([0-9,]+)<"
    drawn = dict(re.findall(entry, picture))

    def count(words, entries):
        return sum(int(n.replace(",", "")) for w, n in entries.items() if w.startswith(words))

    nodes = {"down": 40, "free": len(rows) - 100, "in use": 25, "not usable": 35}
    assert {words: count(words, drawn) for words in nodes} == nodes
    assert {words: count(words, legend) for words in nodes} == nodes


def test_a_partition_is_chosen_on_the_page(opened, small):
    from dataclasses import replace

    import numpy as np

    from nidmap.placement.lookup import rows_of
    from tests.web.serving import running

    machine = replace(small, gpus=np.repeat([0, 8], [48, 80]), _cache={})

    def gpus(text):
        return set(machine.gpus[rows_of(machine, text)].tolist())

    with running(machine) as site:
        page = opened(site).go("#t=plans&k=gpus%3D0&plan=16;1;row-major;free;spread;alltoall")
        page.page.wait_for_selector(".plan")
        assert page.page.input_value("#partition") == "gpus=0"
        wanted = {"count": 16, "strategies": ["spread"]}
        for kind, expected in (("gpus=0", {0}), ("", {8}), ("gpus=8", {8})):
            rows = site.post("compare", kind=kind, **wanted).json["rows"]
            assert [gpus(row["nodelist"]) for row in rows] == [expected] * 2
        for nodes, expected in (("#100-115", {8}), ("#10-25", {0})):
            said = site.post("describe", nodes=nodes).json
            assert gpus(said["default"]["nodelist"]) == expected
        page.leave()


def test_slurms_partitions_are_offered_and_planned_in(opened, small, tmp_path):
    from nidmap.placement.lookup import rows_of
    from tests.web.serving import running, until

    path = tmp_path / "sinfo"
    rows = ("nid[00000-00063] batch* up idle", "nid[00064-00127] batch* up alloc",
            "nid[00032-00063] short up idle")  # fmt: skip
    path.write_text("NODELIST PARTITION AVAIL STATE\n" + "".join(f"{row}\n" for row in rows))
    with running(small, (str(path),), every=1.0) as site:
        until(lambda: site.service.live.snapshot.partitions)
        page = opened(site).go("#t=plans&k=short&plan=8;1;row-major;free;spread;alltoall")
        page.page.wait_for_selector(".plan")
        assert page.page.input_value("#partition") == "short"
        assert page.text("#partition").split("\n") == [
            "batch (64 of 128 nodes free)", "short (32 of 32 nodes free)",
        ]  # fmt: skip
        for name in ("", "short"):
            page.page.select_option("#partition", name)
            with page.page.expect_request("**/compare") as asked:
                page.page.click("#plan-go")
            page.until("() => !document.getElementById('plan-go').disabled")
            assert asked.value.post_data_json["partition"] == name
        page.page.click("#tab-map")
        page.paste("#0-7")
        with page.page.expect_request("**/describe") as asked:
            page.page.select_option("#partition", "")
        page.sentence("as fast as")
        with page.page.expect_response("**/describe") as told:
            page.page.select_option("#partition", "short")
        assert told.value.request.post_data_json["partition"] == "short"
        chosen = rows_of(small, told.value.json()["default"]["nodelist"])
        assert set(chosen.tolist()) <= {*range(8), *range(32, 64)}, "its own nodes or short's"
        path.write_text("NODELIST STATE\nnid[00000-00127] idle\n")
        page.page.wait_for_selector("#partition-field", state="hidden")
        page.leave()


def test_out_of_order_nodes_of_a_mark_are_said(opened, small):
    from tests.web.machines import in_states
    from tests.web.serving import running

    with running(in_states(small, down=[1, 2])) as site:
        page = opened(site).go()
        page.paste("#0-7")
        page.sentence("; 2 of them are down")
        page.leave()


def test_the_jobs_are_those_that_run_now_held_against_the_form(opened, small, tmp_path):
    from tests.web.serving import running, squeue, until

    path = tmp_path / "squeue.json"
    path.write_text(squeue((1, "nid[00000-00030]", "wrf", "ada"), ppn=16))
    with running(small, (str(path),), every=1.0) as site:
        until(lambda: site.service.live.snapshot.jobs)
        page = opened(site).go("#t=jobs&p=ring")
        row = "document.getElementById('jobs-body').textContent"
        page.until(f"() => /1wrf31.*16ring/.test({row})")
        page.page.fill("#pattern", "sort")
        page.page.click("#job-go")
        page.until(f"() => /1wrf31.*16sort/.test({row})")
        page.page.focus("#jobs-body button")
        first, second = (
            (1, "nid[00000-00030]", "wrf", "ada"),
            (2, "nid[00032-00035]", "cp2k", "ada"),
        )
        path.write_text(squeue(first, second, ppn=16))
        page.until(f"() => {row}.includes('cp2k')")
        assert page.page.evaluate("() => document.activeElement.textContent") == "1"
        path.write_text(squeue(second))
        page.until(f"() => {row}.includes('cp2k') && !{row}.includes('wrf')")
        page.leave()
