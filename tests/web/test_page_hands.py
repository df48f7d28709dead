# SPDX-License-Identifier: Apache-2.0
"""The page by hand: search and arrows, Back, marks in short."""

import pytest

pytest_plugins = ("tests.web.browser",)


@pytest.fixture
def page(opened, busy):
    """The page of Shaheen II, which each test opens."""
    return opened(busy)


def found(page, words):
    """Search for words and return the first hit."""
    page.page.focus("#map")
    page.page.keyboard.press("/")
    page.page.fill("#search", words)
    return page.page.locator("#search-hits li").first.inner_text().split("\n")


def focused(page):
    return page.page.evaluate("() => document.activeElement.id")


def test_the_map_is_reached_by_tab_before_all_that_is_around_it(page):
    page.go()
    stops = []
    for _ in range(3):
        page.page.keyboard.press("Tab")
        stops.append(focused(page))
    assert stops == ["skip", "search", "map"]


def test_behind_a_search_the_arrows_move(page):
    page.go()
    found(page, "nid00270")
    page.page.keyboard.press("Enter")
    assert focused(page) == "map"
    page.until("() => document.getElementById('node').textContent.includes('nid00270')")
    page.page.keyboard.press("ArrowLeft")
    page.until("() => !document.getElementById('node').textContent.includes('nid00270')")


def test_every_label_is_found(page):
    page.go("#by=state&m=wide:0:136-140")
    for words, hit in (
        ("job 984711", ["job", "job 984711"]),
        ("g9", ["group", "group g9"]),
        ("group 9", ["group", "group g9"]),
        ("cabinet c3-1", ["cabinet", "cabinet c3-1"]),
        ("c3", ["cabinets", "c3"]),
        ("-2", ["cabinets", "-2"]),
        ("service (up)", ["legend", "service (up)"]),
        ("c0-0c0s0n3", ["place", "c0-0c0s0n3"]),
        ("mark wide", ["mark", "wide"]),
    ):
        assert found(page, words)[:2] == hit
        page.page.keyboard.press("Escape")


def test_back_undoes_a_change_of_view_and_no_mark(page):
    page.go("#m=A:0:136-140")
    page.page.select_option("#colour", "state")
    page.until("() => location.hash.includes('by=state')")
    page.page.click("#tab-table")
    page.until("() => location.hash.includes('t=table')")
    page.page.click("#mark-new")
    page.page.go_back()
    page.until("() => document.getElementById('tab-map').ariaSelected === 'true'")
    assert page.page.input_value("#colour") == "state"
    page.page.go_back()
    page.until("() => document.getElementById('colour').value === 'job'")
    assert page.marks() == {"A": 5, "B": 0}
    page.page.go_forward()
    page.until("() => document.getElementById('colour').value === 'state'")


def test_an_empty_mark_is_filled_and_eight_are_said_once(page):
    page.go()
    page.page.click("#mark-new")
    page.paste("136-140")
    assert page.marks() == {"A": 5}
    for nid in range(400, 418, 2):
        page.page.fill("#paste-text", str(nid))
        page.page.click("#paste button[type=submit]")
        page.until(
            "n => document.querySelectorAll('#marks li').length === Math.min(n, 8)",
            (nid - 400) // 2 + 2,
        )
    page.until("() => document.getElementById('paste-said').textContent.includes('8 marks')")
    assert (
        page.text("#paste-said") == "1 node not marked: there are 8 marks already; remove one first"
    )
    assert page.page.locator(".notice").count() == 0


def test_the_legend_stays_in_sight_beside_eight_marks_and_faults(page):
    page.go("#" + "&".join(f"m=M{i}:{i}:{136 + i}" for i in range(8)))
    page.page.fill("#paste-text", "\n".join(f"nowhere{i}" for i in range(30)))
    page.page.click("#paste button[type=submit]")
    page.page.wait_for_selector(".bad-list li")
    page.page.locator("#copy").scroll_into_view_if_needed()
    box = page.page.locator("#legend label").last.bounding_box()
    assert 0 < box["y"] < 800 - box["height"]
    hits = page.page.locator("#copy button").evaluate_all(
        "buttons => buttons.map(b => { const r = b.getBoundingClientRect();"
        " return b.contains(document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2)); })"
    )  # a legend over one of them would be hit instead
    assert hits
    assert all(hits)


def test_the_map_zooms_to_the_mark(page):
    page.go("#m=A:0:136-140")
    page.page.click("#zoom-mark")
    page.settle()
    page.page.wait_for_selector("#minimap:not([hidden])")
    page.page.focus("#map")
    page.page.keyboard.press("0")
    page.page.wait_for_selector("#minimap", state="hidden")


def test_the_jobs_are_ranked_and_a_click_marks_one_after_the_other(page, busy):
    page.go("#t=jobs")
    page.page.wait_for_selector("#jobs-body .slow-bar")
    shown = page.page.locator("#jobs-body tr td:first-child").all_inner_texts()
    jobs = {
        job["id"]: job["slowdown"]
        for job in busy.ask("/api/v1/slowdowns?pattern=alltoall&ppn=1").json["jobs"]
    }
    assert [jobs[name] for name in shown] == sorted(jobs.values(), reverse=True)
    assert len(shown) == 3
    for line in (1, 2):
        page.page.click("#tab-jobs")
        button = page.page.locator(f"#jobs-body tr:nth-child({line}) button")
        name = button.inner_text()
        button.click()
        page.until("() => document.getElementById('tab-map').ariaSelected === 'true'")
        assert list(page.marks()) == [f"job {name}"]


def test_jobs_have_borders_and_numbers_where_colours_mean_jobs(page):
    page.go("#by=state")
    inked = (
        "() => { const c = document.querySelector('.glow'); if (!c.width) return 0;"
        " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        " let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; }"
    )
    assert page.page.evaluate(inked) == 0
    page.page.select_option("#colour", "job")
    page.until(f"() => ({inked})() > 200")
    page.page.select_option("#colour", "state")
    page.until(f"() => ({inked})() === 0")
