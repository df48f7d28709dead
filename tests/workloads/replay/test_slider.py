# SPDX-License-Identifier: Apache-2.0
"""The page's slider in a browser: what it shows at a time, against the replays themselves."""

import re
from pathlib import Path

import numpy as np
import pytest

import nidmap
from nidmap.placement.commands import run
from nidmap.placement.planners import nested_units
from nidmap.workloads.replay.report import Report
from nidmap.workloads.replay.scheduler import Rules
from nidmap.workloads.replay.slider import slider_html
from nidmap.workloads.replay.study import Case, Study, kept_outcome, run_study
from nidmap.workloads.replay.synthetic import parse_synthetic
from nidmap.workloads.replay.trace import fit_trace

pytest.importorskip("quart")
pytest.importorskip("uvicorn")

pytest_plugins = ("tests.web.browser",)

MACHINE = "fattree:leaf=4,leaves=4,spines=1,bw=1"
TRACE = "lublin:days=1,load=0.9,seed=1"
CASES = Case("slurm", 0.2, 0), Case("none", 0.2, 0)

#: Of every picture: its words, and its bars' places, widths and titles.
SHOWN = """() => [...document.querySelectorAll('#slider figure')].map((figure) => [
  figure.querySelector('figcaption').textContent,
  [...figure.querySelectorAll('rect')].map((bar) => [
    Number(bar.getAttribute('x')), Number(bar.getAttribute('width')), bar.textContent]),
])"""


def study_in(folder=""):
    machine = nidmap.load_machine(MACHINE)
    trace = fit_trace(parse_synthetic(TRACE, 15), 15)
    up = machine.compute.copy()
    up[5] = False
    return Study(machine, (trace,), CASES, Rules(), up, folder=folder)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A study that the command has kept, with its page; node 5 is down."""
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("slider")
    words = [TRACE, "-m", MACHINE, "--policies", "slurm,none", "--shares", "0.2"]
    assert run(["replay", *words, "--down", "#5", "-o", str(folder)]) == 0
    return folder


@pytest.fixture
def page(browser, kept):
    found = browser.new_page()
    faults, asked = [], []
    found.on("pageerror", lambda error: faults.append(str(error)))
    found.on("request", lambda request: asked.append(request.url))
    found.goto((kept / "page.html").as_uri())
    yield found
    found.close()
    assert faults == []
    assert asked == [(kept / "page.html").as_uri()]


def time_shown(page):
    numbers = re.findall(r"\d+", page.locator("#slider output").inner_text())
    return sum(int(n) * s for n, s in zip(numbers, (86400, 3600, 60, 1), strict=True))


def move(page, to):
    page.evaluate(
        "to => { const r = document.querySelector('#slider input');"
        " r.value = to; r.dispatchEvent(new Event('input')); }",
        str(to),
    )


def test_a_moment_shows_who_sits_where(page, kept):
    study = study_in()
    trace, unit = study.traces[0], nested_units(study.machine, np.arange(16))[0]
    most = int(page.locator("#slider input").get_attribute("max"))
    several = 0
    for to in np.linspace(0, most, 23).astype(int).tolist():
        move(page, to)
        now, pictures = time_shown(page), page.evaluate(SHOWN)
        assert len(pictures) == len(CASES)
        for case, (words, bars) in zip(CASES, pictures, strict=True):
            outcome = kept_outcome(str(kept), case)
            running = np.flatnonzero((outcome.start <= now) & (now < outcome.end))
            waiting = ((trace.submit <= now) & (outcome.start > now)).sum()
            assert words == f"{case.policy}: {len(running)} running, {waiting} waiting"
            sizes, free = np.bincount(unit[study.up]), np.bincount(unit[study.up])
            due = []
            for job in running.tolist():
                for u, n in zip(*np.unique(unit[outcome.of(job)], return_counts=True), strict=True):
                    free[u] -= n
                    due.append(f"leaf switch {u}: job {trace.ids[job]}, {n} of {sizes[u]} nodes")
            due += [f"leaf switch {u}: free, {n} of {sizes[u]} nodes"
                    for u, n in enumerate(free.tolist()) if n]  # fmt: skip
            assert sorted(title for *_, title in bars) == sorted(due)
            ends = dict.fromkeys(range(4), 0)  # the bars of a row lie side by side
            for left, width, title in bars:
                row = int(title.split()[2].rstrip(":"))
                assert left == ends[row]
                ends[row] += width
            assert list(ends.values()) == sizes.tolist() == [4, 3, 4, 4]
            several += len(running) > 1
    assert several > 10


def test_keys_move_it_and_the_button_plays_it(page):
    slider, button = page.locator("#slider input"), page.locator("#slider button")
    slider.focus()
    page.keyboard.press("ArrowRight")
    step = time_shown(page)
    assert step > 0
    page.keyboard.press("ArrowRight")
    assert time_shown(page) == 2 * step
    page.keyboard.press("End")
    assert time_shown(page) == step * int(slider.get_attribute("max"))
    page.keyboard.press("Home")
    assert time_shown(page) == 0
    button.focus()
    page.keyboard.press("Enter")
    assert button.inner_text() == "Pause"
    page.wait_for_function("() => Number(document.querySelector('#slider input').value) > 3")
    page.keyboard.press("Enter")
    assert button.inner_text() == "Play"
    rests = time_shown(page)
    assert rests == step * int(slider.input_value())
    assert slider.get_attribute("aria-valuetext") == page.locator("#slider output").inner_text()


def test_a_long_trace_is_played_in_part_and_that_is_said(browser, tmp_path):
    study = study_in(str(tmp_path))
    Report(study, run_study(study, resumed=False))
    outcome, trace = kept_outcome(str(tmp_path), CASES[0]), study.traces[0]
    html = slider_html(study, trace, {"<slurm>": outcome}, most=40)
    assert f"the first 40 of {len(trace)} jobs" in html
    path = tmp_path / "page.html"
    Path(path).write_text(html, encoding="utf-8")
    found = browser.new_page()
    found.goto(path.as_uri())
    move(found, 10**6)
    assert trace.submit[39] <= time_shown(found) < trace.submit[40]
    running = ((outcome.start <= time_shown(found)) & (time_shown(found) < outcome.end)).sum()
    assert found.locator("figcaption").inner_text().startswith(f"<slurm>: {running} running")
    titles = {title.split("job ")[1].split(",")[0] for *_, title in found.evaluate(SHOWN)[0][1]
              if "job " in title}  # fmt: skip
    assert len(titles) == running
    found.close()
