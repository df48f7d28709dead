# SPDX-License-Identifier: Apache-2.0
"""Plans on topology/block: what is pinned starts, and what would wait is said to."""

import numpy as np
import pytest

import nidmap
from nidmap.placement.commands import run
from nidmap.placement.errors import PlanError
from nidmap.placement.options import with_figures
from nidmap.placement.planners import Baseline, Request, find
from nidmap.rankmap.predict import Job

CONF = "".join(f"BlockName=b{b} Nodes=n[{8 * b:02}-{8 * b + 7:02}]\n" for b in range(8))
CONF += "BlockSizes=8,16,32\n"


@pytest.fixture
def conf(tmp_path):
    path = tmp_path / "topology.conf"
    path.write_text(CONF)
    return str(path)


def starts(machine, rows, segment=None):
    """Tell by Slurm's simulated choice whether a job that is pinned to some nodes starts."""
    request = Request(len(rows), machine.free, rows, segment=segment, baseline=Baseline())
    try:
        return sorted(find("slurm-block")(machine, request)) == sorted(rows)
    except PlanError:
        return False


@pytest.mark.parametrize("count", [6, 12, 16, 20])
@pytest.mark.parametrize("pattern", ["ring", "alltoall"])
@pytest.mark.parametrize("seed", [0, 1])
def test_auto_pins_what_slurm_starts(conf, count, pattern, seed):
    machine = nidmap.load_machine(conf)
    free = np.random.default_rng(seed).random(len(machine)) < 0.85
    free[16:32] = True  # 16 nodes start in a whole block of 16 alone
    found = nidmap.plan(machine, count, job=Job(pattern, bytes=8e6), candidates=free, deadline=0.2)
    assert starts(machine, found.rows)
    assert not found.facts["waits"]
    gain = found.facts["predicted"]["gain"]
    assert gain is None or gain["likely"] >= 1


def test_without_room_in_one_block_the_answer_is_no(conf):
    machine = nidmap.load_machine(conf)
    free = np.arange(64) % 8 < 6
    with pytest.raises(PlanError, match="needs 16 nodes free in one block, and no block"):
        nidmap.plan(machine, 16, job=Job("ring"), candidates=free)
    assert nidmap.plan(machine, 12, job=Job("ring"), candidates=free, deadline=0.1).rows.size == 12
    assert nidmap.plan(machine, 16, job=Job("ring"), candidates=free, segment=4).rows.size == 16


def test_bytes_out_of_a_block_are_in_the_time_and_in_its_range(conf):
    machine = nidmap.load_machine(conf)
    two_of_each = machine.names[np.arange(64) % 8 < 2].tolist()
    found = nidmap.predict(with_figures(machine, latency=0), two_of_each, Job("ring", bytes=8e6))
    assert found.time_s == pytest.approx(8e6 / 200e9)
    assert found.between.low >= 8e6 / 200e9 * (1 - 1e-9)


@pytest.mark.parametrize("form", ["sbatch", "nodelist"])
def test_a_plan_over_blocks_says_that_slurm_lets_it_wait(conf, capsys, form):
    words = ["plan", "-m", conf, "-N", "16", "--strategy", "spread", "--format", form]
    assert run(words) == 0
    out, said = capsys.readouterr()
    sentence = "Slurm leaves this job pending: under topology/block its 16 nodes need one block"
    assert sentence in said
    assert (f"# {sentence}" in out) == (form == "sbatch")
    assert run([*words, "--segment", "2"]) == 0
    out, said = capsys.readouterr()
    assert sentence not in out + said
    assert ("#SBATCH --segment=2\n" in out) == (form == "sbatch")


def test_replicas_are_asked_for_as_segments(conf, capsys):
    words = [
        "plan",
        "-m",
        conf,
        "-N",
        "24",
        "--ppn",
        "4",
        "--segment",
        "auto",
        "--format",
        "sbatch",
    ]
    words += [
        "--pattern",
        "training:tp=4,pp=4,dp=6",
        "--exclude",
        ",".join(f"#{8 * b}" for b in range(8)),
    ]
    assert run([*words, "--deadline", "0.2"]) == 0
    out, said = capsys.readouterr()
    assert "#SBATCH --segment=4\n" in out
    assert "--nodelist" not in out
    assert "leaves this job pending" not in said
