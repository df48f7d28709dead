# SPDX-License-Identifier: Apache-2.0
"""The page beside a real Slurm: jobs come and go in it by themselves."""

import asyncio
import time
from dataclasses import replace

from nidmap.placement.specs import parse_spec
from nidmap.web import service
from nidmap.web.service import LiveSnapshot
from nidmap.web.snapshot import of_dump
from tests.real_slurm import needs_slurm, real_slurm
from tests.web.serving import run_async, running

pytest_plugins = ("tests.web.browser",)

MACHINE = parse_spec("dragonfly:groups=2,chassis=1,blades=2,nodes=4")

ROWS = "() => [...document.querySelectorAll('#jobs-body tr')].map(r => r.cells[0].textContent)"


def come_and_go(page, slurm, names):
    """Start a job and cancel it, and wait until the page has shown each."""
    job = slurm.occupy(names, job_name="wrf")
    page.until(f"job => ({ROWS})().includes(job)", str(job))
    slurm.run(["scancel", str(job)])
    page.until(f"job => !({ROWS})().includes(job)", str(job))


@needs_slurm
def test_a_job_appears_and_vanishes(opened, monkeypatch):
    names = MACHINE.names.tolist()
    with real_slurm(names, real=2) as slurm:
        for key, value in slurm.env.items():
            monkeypatch.setenv(key, value)
        with running(MACHINE, ("slurm",)) as site:
            page = opened(site).go("#t=jobs")
            page.until("() => document.getElementById('live').dataset.level === 'live'")
            assert page.page.evaluate(ROWS) == []
            come_and_go(page, slurm, names[:2])
            slurm.wait_idle(names[:2])
            job = slurm.occupy(names[:2], job_name="sort")
            page.page.click("#tab-map")
            page.until(
                "job => document.getElementById('figures').textContent.includes(job)", str(job)
            )
            page.leave()


class Clock:
    """Counts the questions to a source."""

    def __init__(self):
        self.times = []

    async def __call__(self):
        self.times.append(time.monotonic())
        return of_dump(MACHINE, taken=float(len(self.times)))


def test_a_source_is_asked_seldom_while_nobody_looks(monkeypatch):
    monkeypatch.setattr(service, "LEAST", 0.01)
    monkeypatch.setattr(service, "_WATCHED", 0.05)
    asked = Clock()

    async def watched():
        live = LiveSnapshot(MACHINE, ("slurm",), asked, every=0.01)
        live.start()
        await asyncio.sleep(0.5)
        unwatched = len(asked.times)
        live.watch()
        for _ in range(200):
            await asyncio.sleep(0.01)
            if len(asked.times) > unwatched:
                break
        live.stop()
        return unwatched, len(asked.times)

    before, after = run_async(watched())
    assert 0 < before < 40
    assert after > before


def test_a_slow_source_is_busy_a_quarter_of_the_time_at_most(monkeypatch):
    monkeypatch.setattr(service, "LEAST", 0.01)
    begun, ended = [], []

    async def slow():
        begun.append(time.monotonic())
        await asyncio.sleep(0.1)
        ended.append(time.monotonic())
        return replace(of_dump(MACHINE), took=0.1)

    async def ask():
        live = LiveSnapshot(MACHINE, ("slurm",), slow, every=0.01)
        live.start()
        while len(begun) < 4:
            await asyncio.sleep(0.01)
        live.stop()

    run_async(ask())
    for end, following in zip(ended, begun[1:], strict=False):
        assert following - end >= 3 * 0.1
