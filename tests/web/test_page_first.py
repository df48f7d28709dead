# SPDX-License-Identifier: Apache-2.0
"""The page in a browser: what the first view says of the machine, its jobs and a mark."""

import os
import pwd
import re

import numpy as np
import pytest

import nidmap
from nidmap.placement.planners import spans
from nidmap.placement.support.quantities import time_text
from nidmap.web.commands import _whose_first
from tests.web.serving import running, squeue, until

pytest_plugins = ("tests.web.browser",)


def figures(page):
    """Return the figures at the top, by their names: the value, then what it holds for."""
    page.page.wait_for_selector("#figures:not([hidden])")
    blocks = page.page.locator("#figures .figure").all_inner_texts()
    return {text.split("\n")[0]: text.split("\n")[1:] for text in blocks}


def test_the_largest_and_the_most_spread_job_are_named(opened, busy, shaheen2):
    page = opened(busy).go()
    assert page.page.input_value("#colour") == "job"
    found = figures(page)
    jobs = {job.id: job.rows for job in busy.service.live.snapshot.jobs}
    largest = max(jobs, key=lambda job: len(jobs[job]))
    assert found["Largest job"][0].split()[0] == largest
    groups = {job: len(np.unique(shaheen2.coords[rows, 0])) for job, rows in jobs.items()}
    assert groups[found["Most spread job"][0].split()[0]] == max(groups.values())
    free = busy.ask("/api/v1/state").json["free"]
    assert found["Free"][0] == f"{free:,} of {int(shaheen2.compute.sum()):,}"
    page.page.locator("#figures button").first.click()
    assert page.marks() == {f"job {largest}": len(jobs[largest])}


def test_a_marks_three_figures_have_their_conditions(opened, site, small):
    page = opened(site).go("#m=A:0:0-7,40-47,100-103&p=ring&n=2")
    page.sentence("as fast as")
    said = site.post("describe", nodes="#0-7,#40-47,#100-103", pattern="ring", ppn=2).json
    found = figures(page)
    spread, time, speed = found["Spread of 20 nodes"], found["Time"], found["Speed"]
    rows = np.r_[0:8, 40:48, 100:104]
    assert spread[0] == f"{spans(small, rows)['group']} groups"
    assert "the fewest possible: 1" in spread[1], "a group has 32 nodes"
    between = said["prediction"]["between"]
    low, high = (time_text(between[end]) for end in ("low", "high"))
    assert time[0] == (low if low == high else f"{low} to {high}")
    assert "ring of 1 MB, 2 ranks per node" in time[1]
    assert speed[0].endswith("as fast")
    assert "Slurm's own choice" in speed[1]
    page.page.evaluate("() => document.querySelector('#plan-strategies input[value=auto]').click()")
    page.page.get_by_role("button", name="Find a better placement").click()
    page.page.wait_for_selector(".plan")
    assert page.page.input_value("#plan-count") == "20"
    assert page.page.input_value("#pattern") == "ring"


def test_a_better_placement_is_said_next_to_what_the_job_has(opened, site):
    page = opened(site).go("#m=A:0:0-15,40-47,96-103&p=ring&n=2")
    page.sentence("as fast as")
    time = figures(page)["Time"]
    page.page.get_by_role("button", name="Find a better placement").click()
    page.page.wait_for_selector(".plan .time")
    likely = re.match(r"likely ([^;]+)", time[1])[1]
    said = page.text("#sentence")
    assert f"A on its nodes: likely {likely}" in said
    page.page.click("#plan-go")  # this is no longer about the job
    page.until("() => !document.getElementById('sentence').textContent.includes('on its nodes')")


@pytest.mark.parametrize("user", ["", "somebody-else"])
def test_ones_own_name_is_the_systems_not_the_environments(monkeypatch, user):
    for variable in ("USER", "LOGNAME"):
        monkeypatch.setenv(variable, user)
    own = pwd.getpwuid(os.getuid()).pw_name
    assert _whose_first(None, everyone=False) == own
    assert _whose_first(None, everyone=True) == ""
    assert _whose_first("ada", everyone=True) == "ada"


def test_the_groups_of_a_small_machine_have_their_names(opened):
    with running(nidmap.load_machine("dragonfly:groups=3,chassis=1,blades=2,nodes=4")) as site:
        page = opened(site).go()
        labels = page.page.locator(".labels .box-label:visible").all_inner_texts()
        assert {"g0", "g1", "g2"} <= set(labels)
        page.leave()


def test_on_a_phone_the_map_is_above_the_fold(opened, busy):
    page = opened(busy, viewport={"width": 390, "height": 844}).go()
    figures(page)
    box = page.page.locator("#map").bounding_box()
    assert box["y"] + box["height"] < 844
    cards = [card.bounding_box() for card in page.page.locator("#figures .figure").all()]
    assert {round(card["y"]) for card in cards} == {round(cards[0]["y"])}, "one at a time"
    assert sum(card["x"] < 390 * 0.8 for card in cards) == 1
    labels = page.page.locator(".labels .box-label:not(.fixed):visible").all_inner_texts()
    assert set(labels) >= {f"g{group}" for group in range(18)}, "groups have their names"


def test_ones_own_jobs_come_first(opened, small, tmp_path):
    path = tmp_path / "squeue.json"
    path.write_text(
        squeue(
            (7, "nid[00000-00039]", "wrf", "ada"),
            (8, "nid[00040-00045]", "sort", "bob"),
            (9, "nid[00050-00053]", "fft", "bob"),
        )
    )
    with running(small, (str(path),), owner="bob") as site:
        until(lambda: site.service.live.snapshot.jobs)
        said = site.ask("/api/v1/state").json["jobs"]
        assert [(job["id"], job.get("mine")) for job in said] == [
            ("7", None), ("8", True), ("9", True),
        ]  # fmt: skip
        assert all("user" not in job for job in said), "users are not shown"
        saved = site.post("export", format="html", colour="job").body
        assert b'"mine"' not in saved, "somebody else may open the file"
        page = opened(site).go()
        found = figures(page)
        assert next(iter(found)) == "Your jobs"
        assert found["Your jobs"][0] == "2 on 10 nodes"
        words = page.page.locator("#legend .words").all_inner_texts()
        assert words[:3] == ["8 sort (yours)", "9 fft (yours)", "7 wrf"]
        page.page.get_by_role("button", name="Show job 9").click()
        assert page.marks() == {"job 9": 4}
        page.page.click("#tab-jobs")
        page.until("() => document.querySelectorAll('#jobs-body tr').length === 3")
        rows = page.page.locator("#jobs-body tr td:first-child button").all_inner_texts()
        assert set(rows[:2]) == {"8", "9"}
        page.leave()


def test_a_job_is_predicted_with_its_own_ranks_per_node(opened, small, tmp_path):
    path = tmp_path / "squeue.json"
    path.write_text(squeue((7, "nid[00000-00030]", "wrf", "ada"), ppn=16))
    with running(small, (str(path),)) as site:
        until(lambda: site.service.live.snapshot.jobs)
        ways = {
            "#": lambda page: page.get_by_role("button", name="Show job 7").first.click(),
            "#t=jobs": lambda page: page.get_by_role("button", name="Mark job 7").click(),
            "#f=nid00003": lambda page: page.get_by_role("button", name="Mark job").click(),
        }
        for state, mark in ways.items():
            page = opened(site).go(state)
            with page.page.expect_request(lambda request: _ranks_of(request) == 16):
                mark(page.page)
            assert page.page.input_value("#ppn") == "16"
            assert page.marks() == {"job 7": 31} or state == "#t=jobs"
            page.leave()


def _ranks_of(request):
    body = request.post_data_json if request.url.endswith("/describe") else None
    return (body or {}).get("ppn")
