# SPDX-License-Identifier: Apache-2.0
"""Ten things that people do on the page: presses, fields and seconds, at three latencies.

Usage: python -m benchmarks.page_journeys [MACHINE] [--repeats N]   (default: shaheen2, 3)

Each begins with an empty browser cache at the address that ``nidmap web serve`` prints, and ends
when the answer is on the screen. A press is a click or a key that does something; a field is one
that is filled, by typing or pasting. Seconds are those of the page, its server and the network, as
Chromium delays every answer by the latency; nobody's thinking is in them. The first table has what
is loaded before the first picture.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import nidmap
from benchmarks.timing import table
from nidmap.placement.network import channels
from nidmap.placement.nodelist import NodeList
from tests.waiting import wait_until
from tests.web.browser import PATIENCE, launched
from tests.web.serving import running
from tests.web.views import OWNER, drawn_jobs

#: Milliseconds that every answer is late.
LATENCIES = (0, 50, 150)

FIGURES = (
    "() => document.querySelectorAll('.time-bars').length === 1 &&"
    " [...document.querySelectorAll('.figure strong')].every(f => f.textContent !== '…')"
)


class Hand:
    """A person at the page, whose presses are counted."""

    def __init__(self, page: Any, job: NodeList, names: list[str]) -> None:
        self.page = page
        self.job = job  # one of the owner's, with its nodes
        self.names = names  # of all nodes
        self.presses = self.fields = 0

    def click(self, selector: str) -> None:
        """Click."""
        self.page.click(selector)
        self.presses += 1

    def key(self, key: str) -> None:
        """Press a key."""
        self.page.keyboard.press(key)
        self.presses += 1

    def fill(self, selector: str, text: str) -> None:
        """Fill a field."""
        self.page.fill(selector, text)
        self.fields += 1

    def see(self, selector: str) -> None:
        """Wait until something is on the screen."""
        self.page.wait_for_selector(selector)

    def figures(self) -> None:
        """Wait for the figures of a mark."""
        self.page.wait_for_function(FIGURES)

    def paste(self, text: str) -> None:
        """Mark nodes by a text."""
        self.fill("#paste-text", text)
        self.click("#paste button[type=submit]")
        self.figures()


def own_job(hand: Hand) -> None:
    """Mark one's own job at the top of the page."""
    hand.click("button[aria-label^='Show job']")
    hand.figures()


def better(hand: Hand) -> None:
    """Look for better nodes for it."""
    own_job(hand)
    hand.click("text=Find a better placement")
    hand.see(".plan .time")


def node_list(hand: Hand) -> None:
    """Copy the best plan's nodes."""
    better(hand)
    hand.click(".plan button:has-text('Copy nodes')")
    copied = hand.page.evaluate("() => navigator.clipboard.readText()")
    assert len(NodeList.parse(copied)) == len(hand.job)


def compare_three(hand: Hand) -> None:
    """Compare three strategies."""
    hand.click("#tab-plans")
    hand.fill("#plan-count", "64")
    hand.click("#plan-strategies input[value=spread]")  # takes the place of auto
    hand.click("#plan-go")
    hand.see(".plan >> nth=3")


def traffic_of_plan(hand: Hand) -> None:
    """Draw the traffic of the best plan."""
    better(hand)
    hand.click(".plan button:has-text('Take as mark')")
    hand.click("#tab-traffic")
    hand.see("#traffic-picture svg")


def find_node(hand: Hand) -> None:
    """Search a node by its name."""
    hand.key("/")
    hand.fill("#search", hand.names[len(hand.names) // 2])
    hand.key("Enter")
    hand.see("#node dd")


def paste_squeue(hand: Hand) -> None:
    """Mark what squeue prints."""
    head = "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)"
    job = f"1000 workq lammps {OWNER} R 1:00 {len(hand.job)} {hand.job.fold()}"
    hand.paste(f"{head}\n{job}\n")


def save_slide(hand: Hand) -> None:
    """Save the map as a slide."""
    own_job(hand)
    hand.click("#save-open")
    hand.click("#save input[value=png]")
    with hand.page.expect_download() as caught:
        hand.click("#save-body button.main")
    assert caught.value.path().stat().st_size > 10_000


def counters(hand: Hand) -> None:
    """Draw the links' counters next to the prediction."""
    own_job(hand)
    hand.click("#tab-traffic")
    hand.see("#traffic-picture svg")
    hand.click("#traffic-counters")
    hand.see("#traffic-picture svg >> nth=1")


def other_pattern(hand: Hand) -> None:
    """Predict another pattern."""
    own_job(hand)
    before = hand.page.inner_text("#figures")
    for field, text in (("pattern", "ring"), ("ppn", "16"), ("bytes", "4Ki")):
        hand.fill(f"#{field}", text)
    hand.key("Enter")
    hand.page.wait_for_function(
        "(old) => { const now = document.getElementById('figures').innerText;"
        " return now !== old && now.includes('ring of 4.1 kB, 16 ranks'); }",
        arg=before,
    )


#: What is asked -> who answers it.
JOURNEYS: dict[str, Callable[[Hand], None]] = {
    "Where is my job, how spread is it, what does that cost?": own_job,
    "What would be better for it?": better,
    "Give me the nodes of the better placement.": node_list,
    "Which of compact, blades and spread is best for 64 nodes?": compare_three,
    "What does the traffic of the better placement look like?": traffic_of_plan,
    "Where is this node, and who has it?": find_node,
    "Here is what squeue printed of my job: how is it placed?": paste_squeue,
    "Give me a slide of where my job is.": save_slide,
    "What did the links carry, beside what is predicted for my job?": counters,
    "And with a ring of 4 KiB, 16 ranks a node?": other_pattern,
}


@contextmanager
def served(spec: str) -> Iterator[tuple[Any, Any, NodeList]]:
    """Serve a busy machine with counters; yield machine, server and a job of the owner."""
    machine = nidmap.load_machine(spec)
    listed, rows = drawn_jobs(machine)
    job = NodeList(machine.names[rows].tolist())
    names = channels(machine, "").names().tolist()
    carried = np.random.default_rng(1).integers(1, 10**9, len(names)).tolist()
    with tempfile.TemporaryDirectory() as folder:
        jobs, links = Path(folder) / "squeue.json", Path(folder) / "links.csv"
        jobs.write_text(listed)
        links.write_text(
            "link,bytes\n" + "".join(f"{n},{b}\n" for n, b in zip(names, carried, strict=True))
        )
        with running(
            machine, (str(jobs),), users=True, owner=OWNER, link_loads=(str(links),)
        ) as site:
            wait_until(lambda: site.ask("/api/v1/state").json["jobs"])
            yield machine, site, job


@contextmanager
def opened(browser: Any, site: Any, latency: int) -> Iterator[tuple[Any, list[str]]]:
    """Yield a new window at the page, with the addresses that it has requested."""
    with closing(browser.new_context(viewport={"width": 1440, "height": 900})) as window:
        window.grant_permissions(["clipboard-read", "clipboard-write"])
        window.set_default_timeout(PATIENCE)
        page = window.new_page()
        requested: list[str] = []
        page.on("request", lambda request: requested.append(request.url))
        devtools = window.new_cdp_session(page)
        devtools.send("Network.enable")
        devtools.send(
            "Network.emulateNetworkConditions",
            {
                "offline": False,
                "latency": latency,
                "downloadThroughput": -1,
                "uploadThroughput": -1,
            },
        )
        page.goto(site.url)
        page.wait_for_selector("#map[data-settled=true]")
        yield page, requested


def first_pictures(browser: Any, site: Any, repeats: int) -> list[list[str]]:
    """Return a row a latency: requests, and ms to the first picture."""
    rows = []
    for latency in LATENCIES:
        first, count = [], 0
        for _ in range(repeats):
            with opened(browser, site, latency) as (page, requested):
                first.append(
                    page.evaluate(
                        "() => performance.getEntriesByName('nidmap-picture')[0].startTime"
                    )
                )
                count = sum(url.startswith(site.url) for url in requested)
        rows.append([str(latency), str(count), f"{statistics.median(first):.0f}"])
    return rows


def seconds_of(
    browser: Any, site: Any, latency: int, journey: Callable[[Hand], None], job: NodeList,
    names: list[str],
) -> tuple[float, Hand]:  # fmt: skip
    """Return how long a journey takes from the empty window, and who made it."""
    begun = time.perf_counter()
    with opened(browser, site, latency) as (page, _):
        hand = Hand(page, job, names)
        journey(hand)
        return time.perf_counter() - begun, hand


def journeys(
    browser: Any, site: Any, job: NodeList, names: list[str], repeats: int
) -> list[list[str]]:
    """Return a row a journey: what is asked, presses, fields, seconds at each latency."""
    rows = []
    for question, journey in JOURNEYS.items():
        seconds = []
        for latency in LATENCIES:
            runs = [seconds_of(browser, site, latency, journey, job, names) for _ in range(repeats)]
            seconds.append(f"{statistics.median(each for each, _ in runs):.1f}")
        hand = runs[-1][1]
        rows.append([question, str(hand.presses), str(hand.fields), *seconds])
    return rows


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "machine", nargs="?", default="shaheen2", help="one with blades, for a plan by them"
    )
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with served(options.machine) as (machine, site, job), launched() as browser:
        names = machine.names.tolist()
        with opened(browser, site, 0) as (page, _):  # what searches use is compiled once
            better(Hand(page, job, names))
        load = os.getloadavg()[0]
        print(
            f"{options.machine}, {len(machine):,} nodes, a job of {len(job)}; Chromium"
            f" {browser.version}, load {load:.0f} on {os.cpu_count()} cores"
        )
        first = first_pictures(browser, site, options.repeats)
        table("First picture", ["ms of latency", "requests", "ms to the first picture"], first)
        late = [f"s at {latency} ms" for latency in LATENCIES]
        rows = journeys(browser, site, job, names, options.repeats)
        table("Journeys", ["what is asked", "presses", "fields", *late], rows)


if __name__ == "__main__":
    main()
