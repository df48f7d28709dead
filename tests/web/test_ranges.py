# SPDX-License-Identifier: Apache-2.0
"""No figure without its range and conditions: page, API, command and export say the same."""

import json
from dataclasses import replace
from html import unescape
from typing import NamedTuple

import numpy as np
import pytest

import nidmap
from nidmap.placement.commands import run
from nidmap.placement.lookup import nodes_of
from nidmap.placement.support.quantities import time_text
from nidmap.web import figures, page, requests
from nidmap.web.snapshot import of_dump
from tests.web.serving import running

pytest_plugins = ("tests.web.browser",)

MACHINES = ("shaheen2", "lumi", "leonardo", "frontier", "tara", "bluewaters", "theta",
            "torus:4x4x4,bw=1", "tree:4x4")  # fmt: skip


@pytest.mark.parametrize("spec", MACHINES)
def test_ranges_are_those_of_the_command(spec, capsys):
    words = ["predict", "-m", spec, "--nodes", "#0-5", "--ppn", "2", "--pattern", "ring"]
    assert run([*words, "--json"]) == 0
    command = json.loads(capsys.readouterr().out)["between"]
    machine = nidmap.load_machine(spec)
    now = of_dump(machine)
    asked = requests.Describe("#0-5", 2, "ring")
    said = figures.describe(machine, now.offer(machine), asked)
    assert said.prediction.between == command
    ends = f"({time_text(command['low'])} to {time_text(command['high'])})"
    if said.timeless:
        assert "no bandwidths" in said.timeless
    elif time_text(command["low"]) != time_text(command["high"]):
        assert ends in said.sentence
    assert {"low", "likely", "high"} <= said.default.between.keys()


class DrawnJob(NamedTuple):
    """A job by chance."""

    nodes: str  # as a list
    count: int
    ppn: int
    pattern: str
    bytes: str  # '' for what is usual

    @property
    def words(self):
        """What `nidmap predict` is asked."""
        sized = ["--bytes", self.bytes] if self.bytes else []
        job = ["--ppn", str(self.ppn), "--pattern", self.pattern, *sized]
        return ["predict", "--nodes", self.nodes, *job, "--json"]

    @property
    def asked(self):
        """What the API is asked."""
        sized = {"bytes": float(self.bytes)} if self.bytes else {}
        return {"nodes": self.nodes, "ppn": self.ppn, "pattern": self.pattern, **sized}

    @property
    def address(self):
        """What the page's address says of it."""
        return f"#n={self.ppn}&p={self.pattern}" + (f"&b={self.bytes}" if self.bytes else "")


def drawn_rows(machine, shape, count, lots):
    """Return so many rows by chance, all next to each other, in a few runs, or anywhere."""
    rows = np.flatnonzero(machine.compute)
    if shape == "anywhere":
        return lots.choice(rows, count, replace=False)
    runs = 1 if shape == "one run" else min(4, count)
    begins = np.sort(lots.choice(len(rows) // count - 1, runs, replace=False)) * count
    sizes = np.full(runs, count // runs) + (np.arange(runs) < count % runs)
    return np.concatenate([rows[at : at + size] for at, size in zip(begins, sizes, strict=True)])


def drawn_jobs(machine):
    """Return a job of each shape, the same every time, others on other machines."""
    lots = np.random.default_rng(len(machine))
    jobs = []
    for shape in ("one run", "four runs", "anywhere"):
        count, ppn = int(lots.choice([2, 3, 5, 8, 12, 16])), int(lots.choice([1, 2, 4, 7, 24]))
        ranks = count * ppn
        patterns = ("alltoall", "ring", f"stencil:{count}x{ppn}", f"fft:{count}x{ppn}", "allreduce",
                    f"permutation:seed={ranks}", "bcast")  # fmt: skip
        listed = nodes_of(machine, drawn_rows(machine, shape, count, lots)).fold()
        size = str(lots.choice(["", "8", "4096", "65536", "3e6"]))
        jobs.append(DrawnJob(listed, count, ppn, str(lots.choice(patterns)), size))
    return jobs


@pytest.mark.parametrize("name", ["shaheen2", "edison", "bluewaters", "titan", "frontier", "lumi",
                                  "leonardo", "jupiter", "tara"])  # fmt: skip
def test_page_answers_command_and_export_say_the_same(opened, capsys, name):
    machine = nidmap.load_machine(name)
    with running(machine, seconds=600.0) as site:
        view = opened(site)
        for job in drawn_jobs(machine):
            assert run([*job.words, "-m", name]) == 0
            command = json.loads(capsys.readouterr().out)
            answer = site.post("describe", **job.asked).json
            assert answer["prediction"]["time_s"] == command["time_s"]
            assert answer["prediction"]["between"] == command["between"]
            assert answer["prediction"]["limited_by_text"] == command["limited_by_text"]
            picture = site.post("export", format="svg", **job.asked).body.decode()
            assert answer["sentence"] in unescape(picture)
            assert_page_says(view.go(job.address), job, answer, command["between"])
        view.leave()


def assert_page_says(view, job, answer, between):
    """Hold the page's sentence against the answer, and its figures against the range."""
    view.paste(job.nodes)
    assert view.sentence(f"{job.count} nodes") == answer["sentence"]
    blocks = view.page.locator("#figures .figure").all_inner_texts()
    if answer["timeless"]:
        assert any("not known" in block for block in blocks)
        return
    low, high = (time_text(between[end]) for end in ("low", "high"))
    span = low if low == high else f"{low} to {high}"
    assert any(block.startswith(f"Time\n{span}\n") for block in blocks), (job, blocks)


def test_an_export_has_the_sentence_of_the_page(small):
    now = of_dump(small)
    said = figures.describe(small, now.offer(small), requests.Describe("#0-5", 2, "ring"))
    _, sentence = page.export(small, now, requests.Export("svg", "#0-5", ppn=2, pattern="ring"))
    assert said.sentence == sentence


def test_plans_have_the_ranges_of_predictions(small):
    asked = requests.Compare(12, strategies=["compact"], orders=["row-major"])
    answer = figures.compare(small, of_dump(small).offer(small), asked)
    for row in answer["rows"]:
        nodes = ",".join(f"#{node}" for node in row["node_rows"])
        said = figures.describe(small, of_dump(small).offer(small), requests.Describe(nodes))
        assert row["between"] == said.prediction.between
    assert any("free is not known" in note for note in answer["notes"])


def test_without_bandwidths_the_page_shows_no_time(opened):
    with running(nidmap.load_machine("tree:4x4")) as site:
        view = opened(site).go("#t=plans&plan=6;1;row-major;free;compact;alltoall")
        view.page.wait_for_selector(".plan")
        assert view.page.locator(".plan .time").all_inner_texts() == ["no time"] * 2
        assert "not known" in view.text("#plan-warnings")
        view.go("#m=A:0:@0-5")
        assert "no time: tree:4x4 states no bandwidths" in view.sentence("6 nodes")
        view.page.wait_for_selector("#traffic .tops")
        assert "0 s" not in view.text("#traffic")
        view.leave()


def test_every_time_in_large_type_is_a_range(opened, site):
    view = opened(site).go("#t=plans&plan=24;8;row-major;free;compact;alltoall")
    view.page.wait_for_selector(".plan")
    assert all(" to " in text for text in view.page.locator(".plan .time").all_inner_texts())


def test_states_that_nothing_tells_are_not_free(opened, site, small):
    view = opened(site).go()
    assert "which of them are free is not known" in view.sentence("128 compute nodes")
    assert "128 free" not in view.text("#sentence")
    assert of_dump(small).document(small).assumed
    stated = np.where(np.arange(len(small)) < 5, "down", "up")
    told = of_dump(replace(small, state=stated, _cache={}))
    assert not told.assumed
