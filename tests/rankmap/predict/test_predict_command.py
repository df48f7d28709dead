# SPDX-License-Identifier: Apache-2.0
"""``nidmap predict`` as a user meets it."""

import json
import shlex

import pytest

from nidmap.placement.commands import run as nidmap


@pytest.fixture
def tool(capsys, monkeypatch, tmp_path):
    """Run the command line in an empty directory; return code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NIDMAP_MACHINE", raising=False)

    def call(line):
        code = nidmap(shlex.split(line))
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


PLANE = "predict -m torus:8x8x8,bw=4.68 --nodes 0-63 --pattern alltoall --bytes 1000000"


def test_the_json_of_the_issue(tool):
    code, out, err = tool(PLANE.replace("4.68", "4.68,latency=0") + " --json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["time_s"] == pytest.approx(80e6 / 4.68e9)
    assert found["time_s"] >= found["bound_s"]
    worst = found["bottleneck"]
    assert (worst["class"], worst["load"], worst["bandwidth"]) == ("x", 80e6, 4.68)
    assert found["by_class"] == {
        "injection": pytest.approx(63e6 / 10.4e9),
        "ejection": pytest.approx(63e6 / 10.4e9),
        "x": found["time_s"],
        "y": pytest.approx(found["time_s"]),
        "z": 0.0,
    }
    assert found["terms"]["latency"]["seconds"] == found["terms"]["messages"]["seconds"] == 0
    assert found["routing"] == "dimension-order"
    assert found["wiring"] == "rings along x, y, z"


def test_nodes_by_index_nid_and_name_are_the_same(tool):
    listed = [
        tool(f"predict -m torus:4x4,bw=1 --nodes '{nodes}' --pattern ring --bytes 1e6 --json")[1]
        for nodes in ("5,0,9", "#5,#0,#9", "nid[00005,00000,00009]")
    ]
    assert listed[0] == listed[1] == listed[2]


def test_a_range_is_said_beside_the_likely_time(tool):
    line = "predict -m shaheen2 --nodes 100-115 --pattern alltoall --bytes 50kB"
    said = tool(line)[1].splitlines()
    assert "us over the unknowns of the machine; largest uncertainty: " in said[1]
    assert "routing: adaptive" in "".join(said)


def test_the_order_of_the_nodes_is_that_of_the_ranks(tool):
    line = "predict -m torus:8,bw=1,latency=0 --pattern stencil:8 --bytes 1e6 --json --nodes "
    straight = json.loads(tool(line + "0-7")[1])["time_s"]
    jumping = json.loads(tool(line + "0,4,1,5,2,6,3,7")[1])["time_s"]
    assert jumping > straight


def test_a_person_reads_a_sentence_first(tool):
    code, out, _ = tool(PLANE)
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("17.1 ms for alltoall of 1 MB on 64 nodes x 1: limited by an x link")
    assert any(line.startswith("bandwidth ") for line in lines)
    assert "wiring: rings along x, y, z; routing: dimension-order" in lines
    assert any("assumed, as on Gemini" in line for line in lines)


def test_an_order_from_a_file_and_from_a_strategy(tool, tmp_path):
    base = "-m torus:4x4,bw=1 --ppn 4 --pattern fft:8x8 "
    assert tool(f"order {base} --strategy morton -o a.slots")[0] == 0
    by_file = json.loads(tool(f"predict {base} --order a.slots --json")[1])
    by_name = json.loads(tool(f"predict {base} --strategy morton --json")[1])
    default = json.loads(tool(f"predict {base} --json")[1])
    assert by_file["time_s"] == by_name["time_s"] != default["time_s"]
    assert (default["order"], by_name["order"]) == ("row-major", "morton")


def test_background_from_a_file(tool, tmp_path):
    (tmp_path / "jobs").write_text("# two jobs\n7,2\n#4-6 load=0.5 # indices\n\n")
    line = "predict -m torus:8,bw=4,latency=0{} --nodes 0-1 --pattern alltoall --bytes 1e9 --json"
    code, out, err = tool(line.format(",background-load=2") + " --background jobs")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert found["background"] == [
        {"job": "line 2", "nodes": 2, "load_gbs": 2.0},
        {"job": "line 3", "nodes": 3, "load_gbs": 0.5},
    ]
    assert found["time_s"] == pytest.approx(2 * json.loads(tool(line.format(""))[1])["time_s"])
    notes = " ".join(json.loads(tool(line.format("") + " --background jobs")[1])["notes"])
    assert "each of 2 other jobs is assumed to send 0.5 to 1 GB/s per node" in notes


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ("--algorithm quick", 2, "unknown algorithm 'quick'"),
        ("--bytes -1", 2, "bytes -1"),
        ("--bytes nan", 2, "'nan' is not a size"),
        ("--bytes x", 2, "--bytes"),
        ("--nodes 99", 3, "99"),
        ("--nodes 1,1", 3, "twice"),
        ("--nodes nope", 3, "nope"),
        ("--ppn 0", 2, "--ppn"),
        ("--pattern stencil:3x3", 2, "9 ranks, but there are 4 slots"),
        ("--pattern nope", 2, "unknown pattern 'nope'"),
        ("--pattern matrix:gone.csv", 3, "gone.csv"),
        ("--order gone.slots", 3, "gone.slots"),
        ("--order broken.slots", 3, "broken.slots"),
        ("--order broken.slots --strategy morton", 2, "give either --order or --strategy"),
        ("--format slots", 2, "--format needs --order"),
        ("--strategy nope", 2, "nope"),
        ("--background gone", 3, "gone"),
        ("--background empty", 3, "lists no jobs"),
        ("--background bad", 3, "bad:2: "),
        ("--background load", 3, "load:1: load=x is not a number"),
    ],
)
def test_bad_input_is_one_line_and_the_right_code(tool, tmp_path, more, code, said):
    (tmp_path / "broken.slots").write_text("0\n1\n1\n2\n")
    (tmp_path / "empty").write_text("# nothing\n")
    (tmp_path / "bad").write_text("0-1\nnid99999\n")
    (tmp_path / "load").write_text("0-1 load=x\n")
    (tmp_path / "fine").write_text("0-1\n")
    base = {"--nodes": "0-3", "--pattern": "alltoall"}
    given = shlex.split(more)
    rest = [word for key, value in base.items() if key not in given for word in (key, value)]
    found, out, err = tool(shlex.join(["predict", "-m", "torus:4x4", *rest, *given]))
    assert (found, out) == (code, "")
    assert err.count("\n") == 1
    assert err.startswith("nidmap: ")
    assert said in err


def test_no_pattern_is_a_usage_error(tool):
    code, out, err = tool("predict -m torus:4x4 --nodes 0-3")
    assert (code, out) == (2, "")
    assert "no pattern given" in err


def test_jobs_that_slurm_runs_are_found_among_the_nodes(monkeypatch):
    from nidmap.placement.nodelist import NodeList
    from nidmap.placement.records import JobRecord
    from nidmap.placement.specs import parse_spec
    from nidmap.rankmap.predict.background import from_slurm

    jobs = (
        JobRecord("7", NodeList.parse("nid[00003,00001]")),
        JobRecord("8", NodeList.parse("nid00005,elsewhere1")),
        JobRecord("9", NodeList.parse("elsewhere[1-3]")),
    )
    monkeypatch.setattr("nidmap.rankmap.predict.background.running_jobs", lambda: jobs)
    found, notes = from_slurm(parse_spec("torus:4x4"), 2.0)
    assert [(job.name, job.rows.tolist(), job.load) for job in found] == [
        ("job 7", [1, 3], 2.0),
        ("job 8", [5], 2.0),
    ]
    assert notes == ["4 nodes of running jobs are not in torus:4x4"]


def test_without_slurm_its_jobs_cannot_be_had(tool, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    code, out, err = tool(PLANE + " --background slurm")
    assert (code, out) == (4, "")
    assert err.count("\n") == 1


def test_what_predict_imports_is_lean():
    import re
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "nidmap", *PLANE.split()],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    found = set(re.findall(r"^import time:.*\|\s*([\w.]+)$", done.stderr, re.MULTILINE))
    heavy = {"pandas", "networkx", "numba", "scipy", "matplotlib", "ClusterShell"}
    assert "nidmap.rankmap.predict" in found
    assert found & heavy == set()


def test_nodes_of_other_jobs_that_the_machine_lacks_are_a_note_of_the_prediction(monkeypatch):
    import numpy as np

    from nidmap.placement.specs import parse_spec
    from nidmap.rankmap.predict import Job, Predictor

    lost = ["3 nodes of running jobs are not in torus:4x4"]
    monkeypatch.setattr("nidmap.rankmap.predict.job.from_slurm", lambda machine, load: ([], lost))
    predictor = Predictor(parse_spec("torus:4x4"), Job("alltoall", background="slurm"))
    found = predictor.predict(predictor.on(2).place(np.arange(4)))
    assert [note for note in found.notes if "running jobs" in note] == lost
