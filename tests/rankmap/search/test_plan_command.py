# SPDX-License-Identifier: Apache-2.0
"""``nidmap plan --strategy auto``: what it prints, writes, refuses and imports."""

import contextlib
import json
import os
import pty
import re
import shlex
import subprocess
import sys

import pytest

from nidmap.placement.commands import run as nidmap

TORUS = "torus:9x6,bw=1,injection=3"
FREE = "--exclude 0,4,8,12,16,20,24,28,32,36 --deadline 60"


@pytest.fixture
def tool(capsysbinary, monkeypatch, tmp_path):
    """Run the command line in an empty directory; return code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NIDMAP_MACHINE", raising=False)

    def call(line):
        code = nidmap(shlex.split(line))
        said = capsysbinary.readouterr()
        return code, said.out.decode(), said.err.decode()

    return call


def test_the_json_has_the_figures_and_the_defaults_beside_them(tool):
    words = f"-N 8 --ppn 4 --pattern stencil:4x8 {FREE}"
    code, out, err = tool(f"plan -m {TORUS} {words} --json")
    found = json.loads(out)
    assert code == 0
    assert found["strategy"] == "auto"
    assert found["ratio"] == found["time_s"] / found["default_time_s"]
    assert found["bound_s"] <= found["time_s"] <= found["default_time_s"]
    assert {"class", "link", "load", "bandwidth", "seconds"} == set(found["bottleneck"])
    assert found["pattern"] == "stencil:4x8"
    assert found["ppn"] == 4
    assert found["search"]["finished"]
    assert min(found["search"]["judged"], found["search"]["candidates"]) > 20
    assert found["why"] in err
    head = "(?:no clear gain: )?"
    assert re.match(
        rf"{head}[\d.]+( to [\d.]+)? x as fast as Slurm's own choice \(topology", found["why"]
    )
    gain = found["gain"]
    assert gain["low"] <= gain["likely"] <= gain["high"]
    assert gain["likely"] == pytest.approx(1 / found["ratio"])  # a torus' routers adapt to nothing
    assert found["default"]["words"] in found["why"]
    _, default, _ = tool(f"plan -m {TORUS} -N 8 --strategy slurm-none {FREE.partition(' --d')[0]}")
    _, out, _ = tool(
        f"predict -m {TORUS} --nodes {default.strip()} --ppn 4 --pattern stencil:4x8 --json"
    )
    assert json.loads(out)["time_s"] == pytest.approx(found["default_time_s"], rel=1e-12)


@pytest.mark.parametrize("name", ["MPICH_RANK_ORDER", "ranks.slots", "ranks.json"])
def test_nodes_and_order_written_together_predict_as_promised(tool, tmp_path, name):
    words = f"-N 8 --ppn 4 --pattern stencil:4x8 {FREE} --order-out {name}"
    code, out, _ = tool(f"plan -m {TORUS} {words} --json")
    assert code == 0
    plan = json.loads(out)
    job = f"-m {TORUS} --nodes {plan['nodelist']} --ppn 4 --pattern stencil:4x8 --json"
    form = {"MPICH_RANK_ORDER": "mpich"}.get(name, name.partition(".")[2])
    code, out, err = tool(f"predict {job} --order {name} --format {form}")
    assert code == 0, err
    assert json.loads(out)["time_s"] == pytest.approx(plan["time_s"], rel=1e-12)
    assert (tmp_path / name).read_text()


def test_the_list_alone_stands_for_the_nodes_in_slurms_order(tool):
    words = f"-m {TORUS} -N 8 --ppn 4 --pattern stencil:4x8 {FREE}"
    _, out, err = tool(f"plan {words} --json")
    plan = json.loads(out)
    nodes = ",".join(sorted(plan["nodes"]))
    _, out, _ = tool(f"predict -m {TORUS} --nodes {nodes} --ppn 4 --pattern stencil:4x8 --json")
    assert json.loads(out)["time_s"] == pytest.approx(plan["order"]["sorted_time_s"], rel=1e-12)
    assert ("--order-out FILE writes it" in err) == plan["order"]["needed"]


def test_an_order_that_matters_by_j_alone_is_asked_for(tool):
    code, _, err = tool("plan -m tree:5x6x3,latency=0 -N 19 --ppn 3 --pattern permutation")
    assert code == 0, err
    assert "needs its rank order (without it: a higher J)" in err


def test_without_a_pattern_it_says_what_it_assumes(tool):
    code, out, err = tool(f"plan -m {TORUS} -N 8 --strategy auto")
    assert code == 0
    assert out.startswith("nid[")
    assert "no pattern given: assuming an all-to-all of 1 rank per node" in err
    _, _, err = tool(f"plan -m {TORUS} -N 8 --pattern alltoall")
    assert err.startswith("auto on ")
    assert "assumed (--pattern" not in err


def test_a_header_says_why_and_where_the_order_is(tool):
    words = (
        f"-N 8 --ppn 4 --pattern stencil:4x8 {FREE} --format sbatch --order-out MPICH_RANK_ORDER"
    )
    code, out, _ = tool(f"plan -m {TORUS} {words}")
    assert code == 0
    assert "Slurm's own choice" in out
    assert "the rank order in MPICH_RANK_ORDER" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--strategy compact --bytes 1e6", "--bytes needs a pattern; give --pattern"),
        ("--order-out f", "--order-out needs a strategy that searches; use --strategy auto"),
        (
            "--strategy spread --pattern ring --deadline 3",
            "--deadline needs a strategy that searches",
        ),
        ("--strategy spread --pattern fft:3x3", "has 9 ranks, but there are 8 slots"),
        ("--pattern ring --order-out -", "cannot both go to standard output"),
        ("--pattern fft:3x3", "pattern fft:3x3 has 9 ranks, but there are 8 slots"),
        ("--pattern ring --deadline -1", "deadline -1 s: it must be 0 or more"),
        ("--pattern ring --order-out f.odd", "f.odd: .odd is not supported"),
    ],
)
def test_contradictions_are_refused_in_one_line(tool, tmp_path, words, said):
    code, out, err = tool(f"plan -m {TORUS} -N 8 {words}")
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_other_jobs_come_from_a_file(tool, tmp_path):
    (tmp_path / "jobs").write_text("0-8 load=4\n")
    words = "--exclude 0-8 --pattern alltoall --background jobs --json"
    code, out, _ = tool(f"plan -m {TORUS} -N 6 {words}")
    assert code == 0
    assert json.loads(out)["background"] == [{"job": "line 1", "nodes": 9, "load_gbs": 4.0}]


def modules(*argv):
    words = [sys.executable, "-X", "importtime", "-m", "nidmap", *argv]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=600)
    return set(re.findall(r"^import time:.*\|\s*([\w.]+)$", done.stderr, re.MULTILINE))


def test_other_strategies_import_nothing_of_the_ranks_room():
    assert not {
        m for m in modules("plan", "-m", TORUS, "-N", "8") if m.startswith("nidmap.rankmap")
    }
    heavy = {"numba", "pandas", "scipy", "networkx", "matplotlib"}
    assert modules("plan", "-m", TORUS, "-N", "8", "--pattern", "stencil:2x4") & heavy == set()


def test_a_terminal_sees_a_bar_and_stdout_only_the_list():
    ours, theirs = pty.openpty()
    script = (
        "import nidmap.placement.ui as p; p.AFTER = 0.0; import nidmap, sys;"
        f" sys.argv = ['nidmap', 'plan', '-m', '{TORUS}', '-N', '8', '--pattern', 'stencil:2x4',"
        " '--exclude', '0,5,10']; nidmap.main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    ) as process:
        os.close(theirs)
        seen = b""  # read first: a terminal that nobody reads stops the one who writes
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:
                break
            if not part:
                break
            seen += part
        out = process.stdout.read().decode()
    os.close(ours)
    assert process.returncode == 0
    assert re.fullmatch(r"nid\[[0-9,-]+\]\n", out)
    assert b"%" in seen
    assert b"\x1b[K" in seen  # the bar is taken away


def test_a_terminal_shows_the_sentence_first_and_a_pipe_gets_every_node(tmp_path):
    line = [sys.executable, "-m", "nidmap", "plan", "-m", "shaheen2", "-N", "216"]
    line += ["--strategy", "blades", "--per-blade", "1"]
    whole = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    master, terminal = os.openpty()
    subprocess.run(line, stdout=terminal, stderr=terminal, check=True)
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # the terminal's end
        while part := os.read(master, 1 << 16):
            shown += part
    os.close(master)
    sentence, _, names = shown.decode().partition("nid[")
    assert sentence.startswith("blades on shaheen2")
    assert "left out; use -o FILE for all" in names
    assert len(names) < 500 < len(whole)
    assert "…" not in whole
