# SPDX-License-Identifier: Apache-2.0
"""The page in a browser: no texts, fields or pictures overlap, in any tab at any size."""

import pytest

pytest_plugins = ("tests.web.browser",)

SIZES = {1440: 900, 1280: 800, 820: 1180, 390: 844}

#: Texts, fields and small pictures that lie over each other. What a frame scrolls is compared
#: whole within it, and by what is seen of it with all that is outside.
OVERLAPS = """() => {
  const LEFT_OUT = ".unseen, .skip, .notices, kbd, th, option, script, .map, dialog, noscript,"
    + " [hidden], details:not([open]) > :not(summary)";
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
    if (field.closest(".map, dialog") || !field.getClientRects().length) continue;
    add(field, field.getBoundingClientRect(), field.id || field.className || field.tagName, field);
  }
  const found = [];
  boxes.forEach((a, i) => boxes.slice(0, i).forEach((b) => {
    const [p, q] = a.frame === b.frame ? [a.whole, b.whole] : [a.seen, b.seen];
    if (a.of !== b.of && !none(cut(p, q))) found.push(`${a.what} | ${b.what}`);
  }));
  return found;
}"""

TABS = {
    "map": "#m=A:0:0-40",
    "plans": "#t=plans&m=A:0:0-40&plan=80;1;row-major;free;compact,spread;alltoall",
    "traffic": "#t=traffic&m=A:0:0-40,70-90",
    "beside": "#t=traffic&m=A:0:0-40,70-90",
    "jobs": "#t=jobs",
    "table": "#t=table&m=A:0:0-40",
}
SHOWN = {
    "map": "#traffic .heat canvas",
    "plans": ".plan .heat canvas",
    "traffic": "#traffic-picture svg",
    "beside": "#traffic-picture svg",
    "jobs": "#jobs-body td",
    "table": "#table td",
}


@pytest.mark.parametrize("tab", TABS)
def test_nothing_lies_over_anything_else(opened, crowded, tab):
    page = opened(crowded).go(TABS[tab])
    page.page.wait_for_selector(SHOWN[tab], state="attached")
    found = {}
    if tab == "beside":
        page.page.keyboard.press("v")
    for width, height in SIZES.items():
        for theme in ("light", "dark"):
            page.page.emulate_media(color_scheme=theme)
            page.page.set_viewport_size({"width": width, "height": height})
            page.settle()
            found[width, theme] = page.page.evaluate(OVERLAPS)
    page.page.emulate_media(color_scheme="null")  # None would leave it dark for the next test
    page.page.set_viewport_size({"width": 1280, "height": 800})
    assert {size: overlaps for size, overlaps in found.items() if overlaps} == {}


@pytest.fixture(scope="module")
def crowded(small, tmp_path_factory):
    """A server whose page has something in each tab."""
    from tests.web.serving import running, squeue, until

    path = tmp_path_factory.mktemp("crowded") / "squeue.json"
    path.write_text(
        squeue(
            *(
                (number, f"nid[{8 * number:05}-{8 * number + 7:05}]", "wrf", "ada")
                for number in range(5)
            )
        )
    )
    with running(small, (str(path),), users=True) as site:
        until(lambda: site.ask("/api/v1/state").json["jobs"])
        yield site
