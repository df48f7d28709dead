# SPDX-License-Identifier: Apache-2.0
"""The page's speed in a browser without a GPU: first picture, recolouring, frames.

Usage: python benchmarks/page.py [MACHINE]   (default: bluewaters, 27,648 nodes)

The server and Chromium run on this host. Frames are timed with the browser's
frame limit off: what is stated is what a frame costs, not the screen's 16.7 ms.
"""

from __future__ import annotations

import statistics
import sys

import nidmap
from tests.web.browser import chromium
from tests.web.serving import running

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-frame-rate-limit", "--disable-gpu-vsync"]
WAYS = ("job", "level:x", "state", "level:y", "state", "job", "level:z", "state")

RECOLOUR = """async (way) => {
  const select = document.getElementById("colour");
  if (![...select.options].some((option) => option.value === way)) return null;
  const start = performance.now();
  select.value = way;
  select.dispatchEvent(new Event("change"));
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - start;
}"""

FRAMES = """async ([steps, kind]) => {
  const map = document.getElementById("map");
  const box = map.getBoundingClientRect();
  map.setPointerCapture = () => {};
  const [x, y] = [box.left + 500, box.top + 300];
  const point = (i) => [x + 200 * Math.sin(i / 9), y + 150 * Math.cos(i / 7)];
  const fire = (type, [clientX, clientY]) => map.dispatchEvent(new PointerEvent(type, {
    bubbles: true, clientX, clientY, pointerId: 1, button: 0, buttons: 1, pointerType: "mouse" }));
  const turn = (deltaY) => map.dispatchEvent(new WheelEvent("wheel", {
    bubbles: true, cancelable: true, deltaY, clientX: x, clientY: y }));
  const frames = [];
  if (kind === "pan") fire("pointerdown", point(0));
  let last = performance.now();
  for (let i = 0; i < steps; i++) {
    if (kind === "pan") fire("pointermove", point(i));
    else turn(i < steps / 2 ? -40 : 40);
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    frames.push(now - last);
    last = now;
  }
  if (kind === "pan") fire("pointerup", point(steps));
  return frames.slice(3);
}"""


def main(spec: str = "bluewaters") -> None:
    """Print a few lines of figures."""
    from playwright.sync_api import sync_playwright

    machine = nidmap.load_machine(spec)
    with running(machine) as site, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=FLAGS)
        first = [open_page(browser, site.url)[1] for _ in range(5)]
        page, _ = open_page(browser, site.url)
        print(f"{spec}: {len(machine)} nodes, 1440 x 900, Chromium {browser.version}")
        print(f"first picture after the request: {spread(first)}")
        recoloured = [page.evaluate(RECOLOUR, way) for way in WAYS]
        print(f"recolour: {spread([each for each in recoloured if each is not None])}")
        for zoom in range(3):
            for kind in ("pan", "zoom"):
                frames = page.evaluate(FRAMES, [90, kind])
                print(f"{kind} frame, {zoom} steps nearer: {spread(frames)}")
            page.click("#zoom-in")
            page.wait_for_timeout(600)
        browser.close()


def open_page(browser, url):
    """Open the page in a fresh context; return it and the ms to its first picture."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.goto(url)
    page.wait_for_selector("#map[data-settled=true]")
    mark = "performance.getEntriesByName('nidmap-picture')[0].startTime"
    return page, page.evaluate(mark)


def spread(values: list[float]) -> str:
    """Return median and worst in ms."""
    return f"median {statistics.median(values):.1f} ms, worst {max(values):.1f} ms"


if __name__ == "__main__":
    main(*sys.argv[1:])
