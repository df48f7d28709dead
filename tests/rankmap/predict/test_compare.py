# SPDX-License-Identifier: Apache-2.0
"""``nidmap compare``: the table, its files and its pictures."""

import csv
import io
import json
import re
import shlex
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from nidmap.placement.commands import run as nidmap
from nidmap.placement.node_request import NodeRequest
from nidmap.placement.plan import plan
from nidmap.placement.planners import Baseline
from nidmap.placement.specs import parse_spec
from nidmap.rankmap.compare import Comparison, compare, compare_strategies
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.gain import Gain

DRAGONFLY = "dragonfly:groups=4,chassis=2,blades=4,nodes=4,injection=10,global=8"


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


LINE = f"compare -m {DRAGONFLY} -N 12 --ppn 2 --pattern fft:4x6 --bytes 1e6 "


def test_rows_are_sorted_and_stand_beside_the_default(tool):
    code, out, err = tool(LINE + "--strategies compact,spread --orders morton,row-major --json")
    found = json.loads(out)
    rows = found["rows"]
    assert code == 0
    assert found["sentence"] in err
    assert [row["time_s"] for row in rows] == sorted(row["time_s"] for row in rows)
    assert {(row["strategy"], row["order"]) for row in rows} == {
        (s, o) for s in ("slurm-none", "compact", "spread") for o in ("morton", "row-major")
    }
    (default,) = [row for row in rows if row["default"]]
    assert (default["strategy"], default["order"], default["ratio"]) == (
        "slurm-none",
        "row-major",
        1.0,
    )
    for row in rows:
        assert row["ratio"] == pytest.approx(row["time_s"] / default["time_s"])
        assert row["time_s"] >= row["bound_s"]
        assert set(row["touches"]) == {"group", "chassis", "blade"}
        assert set(row["by_class"]) == {"injection", "ejection", "green", "black", "blue"}


def test_a_row_is_what_plan_and_predict_say():
    machine = parse_spec(DRAGONFLY)
    asked = Predictor(machine, Job("alltoall", 2, 1e6, algorithm=""))
    found = compare_strategies(asked, NodeRequest(12), ["spread"])
    again = compare(
        machine, 12, Job("alltoall", ppn=2, bytes=1e6, algorithm=""), strategies=["spread"]
    )
    assert again.document() == found.document()
    for entry in found.entries:
        chosen = plan(machine, 12, strategy=entry.strategy)
        assert np.array_equal(chosen.rows, entry.plan.rows)
        assert entry.found.time_s == asked.time(asked.place(chosen.rows))


def test_auto_is_compared_with_its_own_order_and_never_beaten(tool):
    words = (
        "-m torus:4x4x4,bw=4,injection=inf -N 8 "
        "--pattern stencil:2x2x2 --strategies auto,hilbert,compact"
    )
    code, out, _ = tool(f"compare {words} --orders row-major,auto --json")
    rows = json.loads(out)["rows"]
    assert code == 0
    assert [row["strategy"] for row in rows].count("auto") == 1
    mine = next(row for row in rows if row["strategy"] == "auto")
    assert mine["time_s"] <= min(row["time_s"] for row in rows) * (1 + 1e-9)
    assert mine["time_s"] < 0.4 * next(row for row in rows if row["default"])["time_s"]


@pytest.mark.parametrize(
    ("machine", "how"),
    [
        ("torus:4x4,bw=1", "chosen by predicted time"),
    ],
)
def test_order_auto_is_that_of_the_command_order(tool, machine, how):
    words = f"compare -m {machine},latency=0 -N 6 --pattern stencil:2x3 --strategies compact"
    _, out, _ = tool(f"{words} --orders row-major,auto --json")
    found = json.loads(out)
    rows = {row["order"]: row for row in found["rows"] if row["strategy"] == "compact"}
    assert rows["auto"]["time_s"] <= rows["row-major"]["time_s"]
    assert f"order auto: {how}" in found["notes"]
    nodes = f"-m {machine},latency=0 --nodes {rows['auto']['nodelist']}"
    if "time" in how:
        mine = json.loads(tool(f"order {nodes} --ppn 1 --pattern stencil:2x3 --json")[1])[
            "optimised"
        ]
        assert rows["auto"]["time_s"] == pytest.approx(mine["time_s"])


def test_without_names_all_that_apply_are_tried(tool):
    code, out, _ = tool("compare -m torus:4x4x4 -N 8 --pattern alltoall")
    assert code == 0
    assert re.search(r"^auto +row-major ", out, re.MULTILINE)
    assert re.search(r"^hilbert +row-major ", out, re.MULTILINE)
    assert re.search(r"^box \S+ +row-major ", out, re.MULTILINE)
    assert "blades" not in out  # needs a dragonfly
    assert re.search(r"note: \d+ candidates, \d+ choices of nodes", out)
    assert "1 MB per message assumed" in out


def test_the_default_is_named_when_nothing_beats_it(tool):
    out = tool("compare -m torus:4x4 -N 16 --pattern alltoall")[1]
    assert out.startswith(
        "nothing beats Slurm's own choice (topology/none) for alltoall on 16 nodes x 1"
    )


def test_a_row_that_is_likely_faster_than_a_default_that_is_kept_is_named():
    def row(strategy, seconds, low, default):
        gain = Gain(low, 1 / seconds, 2.0)
        plan = SimpleNamespace(facts={"touches": {"group": 1 if default else groups}})
        return SimpleNamespace(
            strategy=strategy, order="row-major", gain=gain, default=default, plan=plan,
            found=SimpleNamespace(time_s=seconds, between=None),
        )  # fmt: skip

    asked = {"pattern": "alltoall", "words": "8 nodes x 1"}
    cases = ((0.9, 2, "no clear gain over"), (0.999, 2, "nothing beats"))
    for seconds, groups, words in (*cases, (0.9, 1, "no clear gain over")):
        entries = row("auto", 1.0, 1.0, True), row("spread", seconds, 0.8, False)
        said = Comparison(entries, asked, (), Baseline("slurm-none", "Slurm's own")).sentence
        assert said.startswith(f"{words} Slurm's own for alltoall on 8 nodes x 1: 1 s")
        likely = "spread with order row-major is likely 1.11 times as fast, 0.8 to 2 times"
        assert (likely in said) == (seconds == 0.9)
        assert ("but that gain is not certain" in said) == (seconds == 0.9)
        assert ("touches more of the machine" in said) == (seconds == 0.9 and groups == 2)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [(1.02, 1.48, "1.02 to 1.48 times as fast"), (1.2, 1.2, "1.2 times as fast"),
     (1.0, 1.001, "as fast")],
)  # fmt: skip
def test_a_gain_is_said_in_words_and_times_as_likely(low, high, words):
    def row(strategy, seconds, gain, default):
        between = SimpleNamespace(low=0.9 * seconds, high=2 * seconds)
        return SimpleNamespace(
            strategy=strategy, order="row-major", gain=gain, default=default,
            plan=SimpleNamespace(facts={"touches": {}}),
            found=SimpleNamespace(time_s=seconds, between=between),
        )  # fmt: skip

    def sentence(*rows):
        asked = {"pattern": "ring", "words": "8 nodes x 1"}
        return Comparison(rows, asked, (), Baseline("slurm-none", "Slurm's own")).sentence

    one = Gain(1.0, 1.0, 1.0)
    best, default = row("spread", 0.5, Gain(low, low, high), False), row("none", 1.0, one, True)
    said = sentence(best, default)
    assert (
        f"is predicted {words} as Slurm's own for ring on 8 nodes x 1: likely 0.5 s against 1 s"
        in said
    )
    assert sentence(default).endswith("on 8 nodes x 1: 1 s (900 ms to 2 s)")


def test_nodes_may_be_restricted(tool):
    out = tool(LINE + "--strategies compact --from 0-31 --exclude 0 --json")[1]
    for row in json.loads(out)["rows"]:
        assert row["touches"]["group"] == 1
        assert "00000" not in row["nodelist"]


def test_a_csv_has_figures_in_full(tool, tmp_path):
    code, out, err = tool(LINE + "--strategies compact -o a.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text())))
    assert (code, out) == (0, "")
    assert err.count("\n") == 1
    assert {row["strategy"] for row in rows} == {"compact", "slurm-none"}
    assert float(rows[0]["time_s"]) <= float(rows[1]["time_s"])
    assert float(rows[0]["injection_s"]) > 0


@pytest.mark.parametrize("form", ["svg", "png"])
def test_pictures(tool, tmp_path, form):
    pytest.importorskip("matplotlib")
    code, out, _ = tool(LINE + f"--strategies compact,spread -o a.{form}")
    raw = (tmp_path / f"a.{form}").read_bytes()
    assert (code, out) == (0, "")
    if form == "png":
        assert raw.startswith(b"\x89PNG")
        return
    text = raw.decode()
    assert "spread" in text
    assert "blue" in text
    links = re.findall(r"""(?:src|href)=["']([^"'#][^"']*)""", text)
    assert [link for link in links if not link.startswith(("data:", "#"))] == []
    tool(LINE + f"--strategies compact,spread -o b.{form}")
    assert (tmp_path / f"b.{form}").read_bytes() == raw


@pytest.mark.parametrize(
    "machine", ["tree:2x2x2", "slingshot:groups=80,switches=2,nodes=1,global=1"]
)
def test_pictures_of_nothing_and_of_many_groups(tool, tmp_path, machine):
    pytest.importorskip("matplotlib")
    for count in (1, 8):
        line = f"compare -m {machine},latency=0 -N {count} --pattern ring --strategies random"
        assert tool(f"{line} -o {count}.svg")[0] == 0
        assert (tmp_path / f"{count}.svg").exists()


def test_heat_is_the_traffic_between_groups():
    from nidmap.rankmap.compare.plots import block_heat

    machine = parse_spec(DRAGONFLY)
    (entry,) = compare_strategies(
        Predictor(machine, Job("alltoall", 2, 1e6, algorithm="")), NodeRequest(64), ["slurm-none"]
    ).entries
    table, level = block_heat(entry)
    group = machine.coords[entry.plan.rows, 0]
    ranks = 2.0 * np.bincount(group, minlength=4)
    wanted = np.outer(ranks, ranks) * 1e6
    off = ~np.eye(4, dtype=bool)
    assert level == "group"
    np.testing.assert_allclose(table[off], wanted[off])
    # what stays on one router is on no channel, and not in the picture
    on_router = (np.bincount(machine.router[entry.plan.rows, 0], minlength=32) * 2.0) ** 2
    same = wanted.diagonal() - 1e6 * on_router.reshape(4, 8).sum(axis=1)
    np.testing.assert_allclose(table.diagonal(), same)


def test_without_matplotlib_a_picture_is_refused(tool, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for form in ("svg", "png"):
        code, out, err = tool(LINE + f"--strategies compact -o a.{form}")
        assert (code, out) == (2, "")
        assert "needs matplotlib" in err
        assert "pip install 'nidmap[plot]'" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ("--strategies nope", 2, "unknown strategy 'nope'"),
        ("--strategies random --orders nope", 2, "nope"),
        ("--orders ,", 2, "names nothing to compare"),
        ("-N 0", 2, "at least 1"),
        ("-N 17", 1, "17 nodes wanted, 16 free"),
        ("--ppn x", 2, "--ppn"),
        ("--pattern stencil:3", 2, "3 ranks, but there are 4 slots"),
        ("--strategies blades", 2, "needs a dragonfly"),
        ("--from nope", 3, "nope"),
        ("-o /nowhere/x.csv", 5, "cannot write"),
    ],
)
def test_bad_input_is_one_line_and_the_right_code(tool, more, code, said):
    base = {"-N": "4", "--pattern": "alltoall"}
    given = shlex.split(more)
    rest = [word for key, value in base.items() if key not in given for word in (key, value)]
    found, out, err = tool(shlex.join(["compare", "-m", "torus:4x4", *rest, *given]))
    assert (found, out) == (code, "")
    assert err.startswith("nidmap: ")
    assert err.count("\n") == 1
    assert said in err
