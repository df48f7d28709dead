# SPDX-License-Identifier: Apache-2.0
"""The experiment's arms and figures, without a mini-Cray: what it compares and how it counts."""

import itertools
import json

import numpy as np
import pytest

import nidmap
from benchmarks.experiment.cases import CASES
from benchmarks.experiment.command import _measure_cases, experiment
from benchmarks.experiment.counted import wire_loads
from benchmarks.experiment.paired import arguments, maker, message_of
from benchmarks.experiment.plots import PLOTS, draw
from benchmarks.experiment.running import arms_for, block_times
from benchmarks.experiment.summary import arms_table, rank_correlation, summary, text
from nidmap.placement.errors import UsageError
from nidmap.placement.options import with_figures
from nidmap.placement.plan import plan
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.predict import Job, Predictor
from nidmap.workloads.minicray.net import wire_factor
from nidmap.workloads.results import csv_text


@pytest.fixture(scope="module", params=CASES.values(), ids=list(CASES))
def case(request):
    return request.param


#: Jobs of one and of several ranks a node, and all others that a case compares with.
PLANNED = ("all-to-all", "stencil", "default is best", "Morton in holes")


@pytest.fixture(scope="module", params=PLANNED)
def arms(request):
    """Return the arms of a case where a simulated Slurm chooses on random free nodes."""
    case = CASES[request.param]
    machine = nidmap.load_machine(case.machine)
    rng = np.random.default_rng(seed := 3)
    free = np.ones(len(machine), dtype=bool)
    free[rng.choice(len(machine), case.held, replace=False)] = False
    slurm = plan(machine, case.nodes, strategy="slurm-tree", candidates=free).rows
    names = machine.names
    found = arms_for(case, machine, names[slurm].tolist(), names[free].tolist(), seed)
    return case, machine, free, found


def test_arms_take_free_nodes_and_every_slot_once(arms):
    case, _, free, found = arms
    names = [arm.name for arm in found]
    assert names[0] == "slurm"
    assert names[-1] == "slurm again"
    assert "nidmap" in names
    for arm in found:
        assert free[arm.rows].all()
        assert len(set(arm.rows.tolist())) == case.nodes
        assert sorted(arm.slots.tolist()) == list(range(case.nodes * case.ppn))
    assert found[0].same_as(found[-1], case.ppn)


def test_nidmaps_choice_is_never_predicted_slower_than_slurms(arms):
    case, machine, _, found = arms
    model = Predictor(
        with_figures(machine, routing="single", latency=0),
        Job(case.pattern, case.ppn, case.size, algorithm=""),
    )
    time = {arm.name: model.time(model.place(arm.rows, arm.slots)) for arm in found}
    assert time["nidmap"] <= time["slurm"] * (1 + 1e-9)
    assert time.get("order", 0) <= time["slurm"] * (1 + 1e-9)


def test_what_is_predicted_is_what_the_programs_send(case):
    make = maker(case.workload)
    options = arguments(make, case.options)
    said = {"stencil": "stencil:{dims}", "fft": "fft:{grid}"}.get(case.workload, case.workload)
    assert said.format(**options) == case.pattern
    if case.workload != "sort":
        assert message_of(make, case.pattern, options) == case.size
    else:
        from nidmap.workloads.sort.data import item_type

        assert options["items"] * item_type(options["payload"]).itemsize == case.size


def test_a_block_has_a_time_where_both_visits_are_there():
    def row(block, visit, seconds, phase="Exchange", warmup=0):
        return {"block": block, "visit": visit, "arm": "slurm", "phase": phase,
                "warmup": warmup, "max": seconds}  # fmt: skip

    rows = [row(1, 0, 1.0), row(1, 0, 9.0), row(1, 0, 2.0), row(1, 3, 8.0), row(2, 0, 1.0),
            row(1, 3, 5.0, "total"), row(0, 0, 1.0, warmup=1)]  # fmt: skip
    (kept,) = block_times(rows, "Exchange")
    assert (kept["block"], kept["arm"], kept["max"]) == (1, "slurm", pytest.approx(4.0))


def made_up(ratios, predicted):
    """Return runs of one case, a seed for each ratio."""
    return [
        {
            "case": "all-to-all", "seed": seed, "kept": False, "free": 14, "idle_cores": 1.0,
            "arms": [
                one("slurm", 1.0, 1.0), one("nidmap", ratio, guess),
                one("slurm again", 1.0, 1.0, "A/A"),
            ],
        }
        for seed, (ratio, guess) in enumerate(zip(ratios, predicted, strict=True))
    ]  # fmt: skip


def one(name, ratio, guess, control=""):
    return {
        "arm": name, "control": control, "nodes": ["a", "b"], "ratio": ratio, "low": ratio * 0.9,
        "high": ratio * 1.1, "shown": not ratio * 0.9 <= 1 <= ratio * 1.1, "whole_run": ratio,
        "predicted": guess, "predicted_s": 1.0, "measured_s": 1.1, "link_error": 0.01,
        "link_worst": 0.02, "links": [{"link": "x", "predicted": 100.0, "counted": 103.0}],
    }  # fmt: skip


def test_the_summary_counts_gains_losers_and_errors():
    found = summary(made_up([2.0, 1.5, 0.5, 1.0], [2.2, 1.5, 0.4, 1.0]), ["all-to-all"])
    (gain,) = found["gains"]
    assert (gain["median"], gain["least"], gain["most"]) == (1.25, 0.5, 2.0)
    assert (gain["faster"], gain["slower"], gain["losers"]) == (2, 1, [2])
    said = found["predictions"]
    assert (said["cases"], said["beyond"]) == (4, 3)
    assert said["correlation"] == {"all-to-all": pytest.approx(1.0)}
    assert said["median_error"] == pytest.approx(0.05)
    assert said["median_error_of_always_1"] == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert found["links"]["all-to-all"]["worst"] == pytest.approx(0.03)
    assert found["controls"]["shown"] == 0
    assert "all-to-all" in text(found)
    json.dumps(found)


def test_rank_correlation_is_spearmans():
    def ranks(values):  # equal values share the mean of their places
        other = values[:, None]
        return ((values < other).sum(axis=1) + (values <= other).sum(axis=1) + 1) / 2

    rng = np.random.default_rng(2)
    for _ in range(20):
        a, b = rng.integers(0, 6, (2, 12)).astype(float)
        assert rank_correlation(a, b) == pytest.approx(np.corrcoef(ranks(a), ranks(b))[0, 1])


@pytest.mark.parametrize("name", PLOTS)
def test_every_picture_is_drawn_and_drawn_alike(name):
    pytest.importorskip("matplotlib")
    runs = made_up([2.0, 1.5, 0.5], [2.2, 1.5, 0.4])
    first = draw(name, runs)
    assert first.startswith(b"<?xml")
    assert first == draw(name, runs)


def test_tables_hold_one_row_an_arm():
    lines = csv_text(arms_table(made_up([2.0, 1.5], [2.0, 1.5]))).splitlines()
    assert len(lines) == 7
    assert lines[0].startswith("case,seed,arm")
    assert "a b" in lines[1]


def test_what_is_measured_already_is_not_measured_again(tmp_path):
    runs = made_up([2.0, 1.5], [2.0, 1.5])
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    assert _measure_cases(["all-to-all"], 2, 6, True, tmp_path) == runs


def test_headers_follow_from_the_segments():
    from nidmap.placement.network import Demand

    machine = nidmap.load_machine("minicray:dragonfly")
    pairs = np.array(list(itertools.permutations(range(6), 2)))
    demand = Demand.of(machine, Traffic.of(pairs[:, 0], pairs[:, 1], 1e6))
    for mtu in (1500, 9000):
        found = wire_loads(machine, demand, "single", mtu)
        # Every pair sends both ways: a node's own link has data and as many answers.
        assert np.allclose(found.injection[:6], 5e6 * wire_factor(mtu))
        data, answers = 1e6 / (mtu - 52) * (mtu + 14), 1e6 / (mtu - 52) * 66
        one_way = Demand.of(machine, Traffic.of(np.array([0]), np.array([23]), 1e6))
        alone = wire_loads(machine, one_way, "single", mtu)
        assert sorted({round(x) for x in alone.load.tolist() if x}) == [round(answers), round(data)]


def test_unknown_cases_are_refused():
    from click.testing import CliRunner

    done = CliRunner().invoke(experiment, ["--case", "nonsense"])
    assert isinstance(done.exception, UsageError)
    assert "choose from all-to-all" in str(done.exception)
