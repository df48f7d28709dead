# SPDX-License-Identifier: Apache-2.0
"""``plan --pattern P --strategy S``: what the nodes of a plain strategy cost."""

import json
import shlex

import numpy as np
import pytest

from nidmap.placement.commands import run as nidmap
from nidmap.placement.plan import plan
from nidmap.placement.planners import PREDICTING, names
from nidmap.placement.specs import parse_spec
from nidmap.rankmap.compare import compare
from nidmap.rankmap.predict import Job, predict

DRAGONFLY = "dragonfly:groups=4,chassis=2,blades=4,nodes=4,green=5,black=15,blue=5,injection=10"


@pytest.fixture
def tool(capsysbinary, monkeypatch):
    """Run the command line; return code, stdout, stderr."""
    monkeypatch.delenv("NIDMAP_MACHINE", raising=False)

    def call(line):
        code = nidmap(shlex.split(line))
        said = capsysbinary.readouterr()
        return code, said.out.decode(), said.err.decode()

    return call


@pytest.mark.parametrize("strategy", ["spread", "compact", "random", "nid-order", "blades"])
def test_it_costs_what_compare_and_predict_say(tool, strategy):
    """The likely time, its range and the gain are those of `compare` and of `predict`."""
    words = f"plan -m {DRAGONFLY} -N 12 --ppn 2 --pattern stencil:4x6 --bytes 2e6"
    code, out, err = tool(f"{words} --strategy {strategy} --json")
    found, machine = json.loads(out), parse_spec(DRAGONFLY)
    assert code == 0
    job = Job("stencil:4x6", ppn=2, bytes=2e6)
    rows = compare(machine, 12, job, strategies=[strategy]).entries
    row = next(row for row in rows if row.strategy == strategy)
    assert found["time_s"] == row.found.time_s
    assert found["between"] == row.found.between.document()
    assert found["ratio"] == pytest.approx(row.ratio, rel=1e-12)
    assert found["gain"] == row.gain.document()
    assert found["time_s"] == pytest.approx(predict(machine, found["nodes"], job).time_s, rel=1e-12)
    default = next(row for row in rows if row.default)
    assert found["default_time_s"] == default.found.time_s
    assert found["why"] in err
    assert f"for {found['default']['words']}" in found["why"]


def test_the_nodes_are_those_without_a_pattern():
    """A pattern says what a strategy costs, and changes none of its nodes."""
    machine = parse_spec(DRAGONFLY)
    job = Job("alltoall", ppn=1)
    for strategy in names():
        if strategy in PREDICTING or strategy.startswith("slurm-"):
            continue
        chosen = plan(machine, 8, strategy=strategy, job=job)
        assert np.array_equal(chosen.rows, plan(machine, 8, strategy=strategy).rows)
        assert chosen.facts["predicted"]["time_s"] > 0
        assert chosen.order is None


def test_without_bandwidths_it_costs_j(tool):
    """J of both placements by hand: a ring of 4 on 2 leaves, distances 1 and 2."""
    code, out, _ = tool("plan -m tree:2x2,dist=1:3 -N 4 --pattern ring --strategy spread --json")
    found = json.loads(out)
    assert code == 0
    assert found["chosen"] == {
        "by": "strategy",
        "why": "tree:2x2,dist=1:3 states no bandwidths",
        "cost": 8,
        "default_cost": 8,
    }
    assert found["why"].startswith("J = 8, 8 for Slurm's own choice")


def test_it_says_that_slurm_sorts_the_list(tool):
    """A strategy whose order of nodes matters is slower where the launcher sorts them."""
    line = f"plan -m {DRAGONFLY} -N 12 --ppn 1 --pattern ring --strategy random --seed 3 --json"
    found = json.loads(tool(line)[1])
    machine = parse_spec(DRAGONFLY)
    given = predict(machine, found["nodes"], Job("ring")).time_s
    by_name = predict(machine, sorted(found["nodes"]), Job("ring")).time_s
    said = [text for text in found["warnings"] if "sorts these nodes" in text]
    assert bool(said) == (by_name / given >= 1.005)


def test_pattern_that_does_not_fit_is_one_line(tool):
    code, out, err = tool(f"plan -m {DRAGONFLY} -N 4 --pattern fft:3x3 --strategy spread")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
