# SPDX-License-Identifier: Apache-2.0
"""``nidmap replay`` as a user meets it."""

import json
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from nidmap.placement.commands import run
from nidmap.workloads.replay.study import Case, kept_outcome
from tests.waiting import HANGS, wait_until
from tests.workloads.replay.test_traces import swf

MACHINE = "fattree:leaf=4,leaves=4,spines=1,bw=1"
FEW = ("--policies", "slurm,tree", "--shares", "0.2,0.5", "--seeds", "2")


@pytest.fixture
def tool(tmp_path, monkeypatch, capfd):
    """Run the command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NIDMAP_MACHINE", raising=False)

    def call(*words):
        capfd.readouterr()
        code = run(["replay", *words])
        return (code, *capfd.readouterr())

    return call


def test_who_loses_comes_first_and_the_figures_are_ranges(tool):
    words = ("lublin:days=1,load=0.9", "-m", MACHINE, "--policies", "slurm,fixed,auto")
    code, out, _ = tool(*words, "--shares", "0.1,0.5", "--seeds", "2")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].endswith("(16 nodes up), 12 replays")
    assert lines[1].startswith("who loses most: the ")
    assert " under fixed finish " in lines[1]
    assert " to " in lines[1]
    assert any(line.startswith("auto: ") and "node-hours" in line for line in lines)
    assert any("conservative backfill at every event, bf_max_job_test 500" in x for x in lines)


def test_json_says_what_the_text_says(tool):
    words = ("lublin:days=1", "-m", MACHINE, *FEW)
    _, text, _ = tool(*words)
    code, out, _ = tool(*words, "--json")
    document = json.loads(out)
    assert (code, document["schema"]) == (0, "nidmap.replay/1")
    assert [p["policy"] for p in document["policies"]] == ["slurm", "tree"]
    assert document["policies"][1]["verdict"] in text
    hours = [r["all"]["node_hours"] for r in document["replays"] if r["policy"] == "tree"]
    spans = document["policies"][1]["node_hours"]
    assert (spans["low"], spans["high"]) == (min(hours), max(hours))
    assert len(hours) == 4


def test_a_trace_and_what_is_kept_of_it(tool, tmp_path):
    jobs = [(k, 7 * k, 0, 20 + k % 9, 16 * (1 + k % 5), 90) for k in range(1, 60)]
    (tmp_path / "trace.swf").write_text(swf(*jobs))
    words = ("trace.swf", "-m", MACHINE, *FEW, "-o", "kept")
    assert tool(*words)[0] == 0
    report = json.loads((tmp_path / "kept" / "report.json").read_text())
    assert report["jobs"] == 59
    page = (tmp_path / "kept" / "page.html").read_text()
    assert page.count("<svg") == 4 + 2
    assert report["sentence"] in page
    assert "http://" not in re.sub(
        r'xmlns(:xlink)?="[^"]*"|<metadata>.*?</metadata>', "", page, flags=re.S
    )
    outcome = kept_outcome("kept", Case("tree", 0.5, 1))
    assert np.diff(outcome.first).tolist() == [1 + k % 5 for k in range(1, 60)]
    (tmp_path / "kept" / "tree-share0.5-seed1.npz").unlink()
    stamps = {p: p.stat().st_mtime_ns for p in (tmp_path / "kept").glob("*.npz")}
    assert len(stamps) == 7
    assert tool(*words, "--resume")[0] == 0
    assert {p: p.stat().st_mtime_ns for p in stamps} == stamps  # taken up, not done again
    assert json.loads((tmp_path / "kept" / "report.json").read_text()) == report
    assert tool(*words, "--resume", "--ppn", "2")[0] == 0
    assert all(p.stat().st_mtime_ns > stamp for p, stamp in stamps.items())  # another question


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_trace_of_a_job_or_two_has_a_page_too(tool, tmp_path, jobs):
    (tmp_path / "trace.swf").write_text(swf(*((k, k, 0, 20, 16, 90) for k in range(1, jobs + 1))))
    code, out, _ = tool("trace.swf", "-m", MACHINE, *FEW, "-o", "kept")
    assert code == 0, out
    page = (tmp_path / "kept" / "page.html").read_text()
    assert page.count("<svg") == 4 + 2


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("lublin", "--policies", "slurm,best"), 2, "unknown policy 'best'; choose from slurm"),
        (("lublin", "--shares", "1.5"), 2, "--shares 1.5: use numbers from 0 to 1"),
        (("lublin", "--scale", "big"), 2, "--scale big: it is a number above 0 or fit"),
        (("lublin", "--policies", ","), 2, "--policies is empty; choose from slurm, none"),
        (("lublin:day=3",), 2, "unknown option 'day'"),
        (("lublin:seed=a",), 2, "seed: 'a' is not a whole number above 0"),
        (("lublin", "--resume"), 2, "--resume needs -o DIR"),
        (("nowhere.swf",), 3, "nowhere.swf: cannot be read"),
        (("lublin", "--down", "#0-15"), 2, "no node of"),
    ],
)
def test_what_is_wrong_is_one_line(tool, words, code, message):
    found, out, err = tool(*words, "-m", MACHINE)
    assert (found, out) == (code, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_kept_replay_that_is_none(tool, tmp_path):
    words = ("lublin:days=0.5", "-m", MACHINE, "--policies", "slurm", "--shares", "0.2")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "slurm-share0.2-seed0.npz").write_bytes(b"PK")
    code, _, err = tool(*words, "-o", "kept", "--resume")
    assert code == 3
    assert "is not a kept replay" in err


def test_quick_times_are_held_against_the_predictor(tool):
    """On a tree all bytes of two leaves cross one link: both ways to count say the same."""
    words = ("lublin:days=0.5,load=0.9", "-m", "fattree:leaf=4,leaves=4,spines=1,bw=1,latency=0")
    code, out, _ = tool(*words, "--policies", "slurm", "--shares", "0.5", "--check", "12")
    assert code == 0
    line = next(line for line in out.splitlines() if "quick times of" in line)
    assert "12 jobs" in line
    assert float(line.partition("median error ")[2].split(" %")[0]) < 5


def test_an_interrupt_keeps_what_is_done_and_resume_goes_on(tmp_path):
    """Ctrl-C after the first replay is kept; the rest is done later, with the same figures."""
    words = ["lublin:days=3,load=0.9", "-m", "fattree:leaf=8,leaves=8,spines=2,bw=1", "-o", "kept"]
    program = [sys.executable, "-m", "nidmap", "replay", *words]
    running = subprocess.Popen(
        program, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    kept = tmp_path / "kept"
    wait_until(lambda: list(kept.glob("*.npz")) if kept.exists() else [])
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (130, b"")
    assert err.decode().strip().endswith("nidmap: interrupted")
    assert 1 <= len(list(kept.glob("*.npz"))) < 15
    assert not list(kept.glob(".*"))
    done = subprocess.run([*program, "--resume"], cwd=tmp_path, capture_output=True, check=True)
    again = subprocess.run([*program[:-1], "whole"], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == again.stdout


def test_workers_end_with_a_command_that_is_killed(tmp_path):
    """As batch systems and ``timeout`` do: SIGTERM goes to the command alone."""
    words = ["lublin:days=3,load=0.9", "-m", "fattree:leaf=8,leaves=8,spines=2,bw=1", "-o", "kept"]
    program = [sys.executable, "-m", "nidmap", "replay", *words]
    running = subprocess.Popen(program, cwd=tmp_path, stdout=subprocess.PIPE)
    wait_until(lambda: list(tmp_path.glob("kept/*.npz")))
    running.terminate()
    out, _ = running.communicate(timeout=HANGS)  # which workers keep open as long as they live
    assert (running.returncode, out) == (-signal.SIGTERM, b"")
