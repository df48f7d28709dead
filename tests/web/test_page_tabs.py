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


@pytest.mark.parametrize("start", ["", "#t=table", "#t=plans", "#t=jobs", "#t=traffic"])
@pytest.mark.parametrize("words", ["job 984711", "nid00140"])
def test_what_is_searched_for_in_any_tab_is_seen_on_the_map(opened, busy, start, words):
    page = opened(busy).go(start)
    search(page, words)
    marked, drawn = seen_of_mark(page)
    assert drawn > 0.3
    assert words.startswith("nid") or marked > 0.02, "56 nodes as large as they may be"
    if words.startswith("nid"):
        assert page.where("nid00140")


def test_a_job_of_the_table_is_seen_on_the_map(opened, busy):
    page = opened(busy).go("#t=jobs")
    page.page.locator("#jobs-body button").first.click()
    marked, drawn = seen_of_mark(page)
    assert marked > 0.02
    assert drawn > 0.3


def test_a_map_that_was_hidden_shows_what_it_showed(opened, busy):
    page = opened(busy).go()
    search(page, "job 984711")
    before = seen_of_mark(page)
    page.page.click("#tab-table")
    page.page.set_viewport_size({"width": 1280, "height": 800})
    page.page.click("#tab-map")
    assert seen_of_mark(page) == before
