# SPDX-License-Identifier: Apache-2.0
"""The page in a browser: no texts, fields or pictures overlap, in any tab at any size."""

import pytest

from tests.web.views import SIZES, THEMES, busy_site, show, turn_to

pytest_plugins = ("tests.web.browser",)

#: Texts, fields and small pictures that lie over each other. What a frame scrolls is compared
#: whole within it, and by what is seen of it with all that is outside.
OVERLAPS = """() => {
  const LEFT_OUT = ".unseen, .skip, .notices, kbd, th, option, script, .minimap, .tip, dialog,"
    + " noscript, [hidden], details:not([open]) > :not(summary)";
  const boxes = [];
  const none = (r) => r.right - r.left < 2 || r.bottom - r.top < 2;
  const cut = (a, b) => ({ left: Math.max(a.left, b.left), right: Math.min(a.right, b.right),
    top: Math.max(a.top, b.top), bottom: Math.min(a.bottom, b.bottom) });
  const add = (element, rect, what, of) => {
    let [whole, seen, frame] = [rect, rect, null];
    for (let at = element; at && at !== document.body; at = at.parentElement) {
      const { overflowX, overflowY, visibility, opacity } = getComputedStyle(at);
      if (visibility === "hidden" || opacity === "0") return;
      const kind = `${overflowX} ${overflowY}`;
      if ((of === element && at === element) || kind === "visible visible") continue;
      const inner = at.getBoundingClientRect();
      seen = cut(seen, inner);
      if (!/auto|scroll/.test(kind) && !frame) whole = cut(whole, inner);
      if (/auto|scroll/.test(kind)) frame ??= at;
    }
    if (!none(whole)) boxes.push({ whole, seen, frame, what, of });
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const { parentElement: host, textContent: text } = walk.currentNode;
    if (!text.trim() || host.closest(LEFT_OUT)) continue;
    const range = document.createRange();
    range.selectNodeContents(walk.currentNode);
    for (const rect of range.getClientRects()) {
      const { left, right, top, bottom } = rect;
      const slim = { left: left + 1, right: right - 1, top: top + 3, bottom: bottom - 3 };
      add(host, slim, text.trim().slice(0, 60), walk.currentNode);
    }
  }
  const fields = "input, select, textarea, .heat canvas, .small-map";
  for (const field of document.querySelectorAll(fields)) {
    if (field.closest(".minimap, dialog") || !field.getClientRects().length) continue;
    add(field, field.getBoundingClientRect(), field.id || field.className || field.tagName, field);
  }
  const found = [];
  boxes.forEach((a, i) => boxes.slice(0, i).forEach((b) => {
    const [p, q] = a.frame === b.frame ? [a.whole, b.whole] : [a.seen, b.seen];
    if (a.of !== b.of && !none(cut(p, q))) found.push(`${a.what} | ${b.what}`);
  }));
  return found;
}"""

#: Words of a picture that end outside it, and the lowest letters in CSS pixels.
PICTURES = """() => {
  const found = [];
  for (const text of document.querySelectorAll("#traffic-picture svg text")) {
    const ground = text.ownerSVGElement.querySelector("rect");
    const [box, frame] = [text, ground].map((each) => each.getBoundingClientRect());
    const size = Number(text.getAttribute("font-size")) * text.getScreenCTM().a;
    const ends = box.left < frame.left || box.right > frame.right
      || box.top < frame.top || box.bottom > frame.bottom;
    if (ends) found.push(`cut: ${text.textContent}`);
    if (size < 9.9) found.push(`${size.toFixed(1)} px: ${text.textContent}`);
  }
  return found;
}"""

#: Dragonflies in cabinets, with many groups, with unequal ones, with groups that are trees; a small
#: fat tree, a deep tree, a torus.
MACHINES = ("shaheen2", "frontier", "theta", "leonardo", "tara", "tree:8x8x8,bw=10",
            "torus:8x8x8,bw=10")  # fmt: skip


NEXT_FRAME = """() => new Promise((done) => requestAnimationFrame(() =>
  requestAnimationFrame(done)))"""


def overlaps_at_all_sizes(view, name):
    """Return what lies over something else, by view, width and colours."""
    page, found = view.page, {}
    for width, height in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            page.evaluate(NEXT_FRAME)  # what follows a new size is drawn then
            view.settle()
            found[name, width, theme] = page.evaluate(OVERLAPS) + page.evaluate(PICTURES)
    return found


@pytest.mark.parametrize("spec", MACHINES)
def test_nothing_lies_over_anything_else(opened, spec):
    with busy_site(spec) as (site, rows):
        view = opened(site)
        try:
            found = {}
            view.go()
            show(view.page, site.url, "jobs-on-map", rows)
            found |= overlaps_at_all_sizes(view, "jobs-on-map")
            show(view.page, site.url, "plans", rows)
            for name in ("plans", "traffic", "beside", "jobs", "table", "map"):
                turn_to(view.page, name)
                found |= overlaps_at_all_sizes(view, name)
        finally:
            view.page.emulate_media(
                color_scheme="null"
            )  # None would leave it dark for the next test
            view.page.set_viewport_size({"width": 1280, "height": 800})
            view.leave()
    assert {at: overlaps for at, overlaps in found.items() if overlaps} == {}


@pytest.mark.parametrize(
    "selector", ["#marks-head", ".figure strong", "#traffic-picture svg text", "#map .box-label"]
)
def test_a_text_that_lies_over_another_one_is_found(opened, site, selector):
    view = opened(site)
    show(view.page, site.url, "map", range(40))
    turn_to(view.page, "traffic" if "traffic" in selector else "map")
    assert view.page.evaluate(OVERLAPS) == []
    text = view.page.locator(selector).first
    said = text.text_content().split(":")[0]
    text.evaluate(
        "(each) => { const over = each.cloneNode(true); each.after(over);"
        " const [a, b] = [each, over].map((one) => one.getBoundingClientRect());"
        " over.style.position = 'relative';"
        " over.style.translate = `${a.left - b.left + 4}px ${a.top - b.top}px`; }"
    )
    found = view.page.evaluate(OVERLAPS)
    assert any(said in each for each in found)


def test_small_letters_and_words_that_a_picture_cuts_are_found(opened, site):
    view = opened(site)
    show(view.page, site.url, "traffic", range(40))
    assert view.page.evaluate(PICTURES) == []
    last = view.page.locator("#traffic-picture svg text").last
    last.evaluate("each => each.setAttribute('x', -20)")
    assert view.page.evaluate(PICTURES) == [f"cut: {last.text_content()}"]
    last.evaluate("each => { each.setAttribute('x', 282); each.setAttribute('font-size', 9); }")
    assert [found for found in view.page.evaluate(PICTURES) if " px: " in found]
