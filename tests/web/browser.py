# SPDX-License-Identifier: Apache-2.0
"""Chromium for the tests of the page; they are skipped, with the reason, where there is none."""

import contextlib
import os
import shutil

import pytest

from tests.web.serving import HOSTILE, running, squeue, until

#: The shell, a browser without windows, takes half the processor time of a whole one.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome",
         "google-chrome-stable")  # fmt: skip

#: Milliseconds in which the page does anything, also beside other programs.
PATIENCE = 60_000

#: What the page may say on the console without a test failing: questions that tests abort.
QUIET = ("the server responded with a status of 409", "the server responded with a status of 400",
         "was preloaded using link preload but not used")  # fmt: skip


def chromium():
    """Return the path of a Chromium, or None."""
    named = os.environ.get("NIDMAP_CHROMIUM")
    return named or next((found for found in map(shutil.which, NAMES) if found), None)


@contextlib.contextmanager
def launched():
    """Start a browser until the block ends; skip the tests where none can be started."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = chromium()
    if path is None:
        pytest.skip(f"no Chromium: none of {', '.join(NAMES)} is on the PATH")
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Opened:
    """A page of the tests: opened at a server, with what went wrong in it."""

    def __init__(self, page, url):
        self.page = page
        self.context = page.context
        self.url = url
        self.faults = []
        self.outside = []
        self.heard = {
            "pageerror": lambda error: self.faults.append(str(error)),
            "console": self._said,
            "request": self._asked,
        }
        for event, what in self.heard.items():
            page.on(event, what)

    def _said(self, message):
        if message.type == "error" and not any(quiet in message.text for quiet in QUIET):
            self.faults.append(message.text)

    def _asked(self, request):
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.outside.append(request.url)

    def go(self, state=""):
        """Open the page, in a state that a link gives, and wait for its picture."""
        self.leave()
        self.page.goto(f"{self.url}/{state}")
        self.settle()
        return self

    def leave(self):
        """Leave the server, and keep the tab's process: to start one takes as long as a load."""
        if self.page.url != "about:blank":
            self.page.evaluate("() => location.replace('about:blank')")
            self.page.wait_for_url("about:blank")

    def finish(self):
        """Leave the tab as the next test may find it."""
        for event, what in self.heard.items():
            self.page.remove_listener(event, what)
        self.page.unroute_all()
        self.page.mouse.move(0, 0)
        self.leave()

    def settle(self):
        """Wait until the picture rests."""
        self.page.wait_for_selector("#map[data-settled=true]", state="attached")

    def text(self, selector):
        return self.page.locator(selector).inner_text()

    def until(self, expression, argument=None):
        """Wait until a JavaScript expression is true."""
        self.page.wait_for_function(expression, arg=argument)

    def sentence(self, words):
        """Wait until the sentence has these words, and what it says is no longer awaited."""
        self.until(
            "w => { const said = document.getElementById('sentence').textContent;"
            " return said.includes(w) && !said.endsWith('…'); }",
            words,
        )
        return self.text("#sentence")

    def paste(self, text):
        """Put text into the paste box and mark."""
        self.page.fill("#paste-text", text)
        self.page.click("#paste button[type=submit]")
        self.until("() => document.getElementById('paste-said').textContent.includes('node')")

    def marks(self):
        """Return name and count of every mark."""
        names = self.page.locator("#marks .name").all_inner_texts()
        counts = self.page.locator("#marks .num").all_inner_texts()
        return dict(zip(names, (int(c.split()[0].replace(",", "")) for c in counts), strict=True))

    def colour_at(self, x, y):
        """Return the map's colour at a CSS point of it, as (r, g, b)."""
        return tuple(
            self.page.evaluate(
                "([x, y]) => { const c = document.getElementById('picture');"
                " const r = c.width / c.getBoundingClientRect().width;"
                " const all = c.getContext('2d').getImageData(x * r, y * r, 1, 1).data;"
                " return [...all].slice(0, 3); }",
                [x, y],
            )
        )

    def where(self, name):
        """Return the CSS point, in the map, of the middle of a node: its focus ring's."""
        box = self.page.evaluate(
            "() => { const m = document.getElementById('map').getBoundingClientRect();"
            " const r = document.querySelector('.map > .ring:not(.hover)').getBoundingClientRect();"
            " return [r.x - m.x + r.width / 2, r.y - m.y + r.height / 2]; }"
        )
        assert name in self.text("#node")
        return box


@pytest.fixture(scope="session")
def browser():
    """One browser for all tests of the page."""
    with launched() as found:
        yield found


def new_context(browser, **options):
    """Return a window of the browser, with nothing of any other's."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}} | options)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.set_default_timeout(PATIENCE)
    return context


@pytest.fixture(scope="session")
def usual(browser):
    """The window of all tests that ask for no other: the page keeps nothing in it."""
    with contextlib.closing(new_context(browser)) as context:
        yield context


@pytest.fixture
def opened(browser, usual):
    """Open pages of a server, `opened(site)`; what went wrong in them fails the test.

    The first is the tab that the test before has left, where it has left one.
    """
    kept = usual.pages[0] if usual.pages else usual.new_page()
    pages = []

    def at(site, **options):
        window = new_context(browser, **options) if options else usual
        first = window is usual and all(page.page is not kept for page in pages)
        pages.append(Opened(kept if first else window.new_page(), site.url))
        return pages[-1]

    yield at
    faults = [fault for page in pages for fault in page.faults]
    outside = [url for page in pages for url in page.outside]
    for page in pages:
        if page.context is not usual:
            page.context.close()
        elif page.page is not kept:
            page.page.close()
        elif not kept.is_closed():
            page.finish()
    assert faults == []
    assert outside == []


@pytest.fixture(scope="session")
def busy(shaheen2, tmp_path_factory):
    """A server of Shaheen II with three jobs, one of a hostile name, users shown."""
    path = tmp_path_factory.mktemp("page") / "squeue.json"
    jobs = (
        (984711, "nid[00136-00191]", "fft", "ada"),
        (984712, "nid[00264-00300]", HOSTILE, "bob"),
        (984713, "nid[01000-01100]", "sort", "ada"),
    )
    path.write_text(squeue(*jobs))
    with running(shaheen2, (str(path),), users=True) as site:
        until(lambda: site.ask("/api/v1/state").json["jobs"])
        yield site
