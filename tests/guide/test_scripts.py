# SPDX-License-Identifier: Apache-2.0
"""The scripts of ``examples/`` run as people would copy them, under a real Slurm."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import nidmap
from tests.guide.blocks import ROOT
from tests.guide.test_pages import why_no_minicray

EXAMPLES = ROOT / "examples"

#: Says what the script gives to torchrun, which is not here.
TORCHRUN = '#!/bin/sh\necho "$(hostname) $*"\n'


def test_each_script_is_shown_in_the_guide():
    shown = "".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    scripts = [path.name for path in EXAMPLES.iterdir() if path.suffix in (".sbatch", ".toml")]
    scripts.append("plan.py")
    assert len(scripts) == 5
    assert [name for name in scripts if f"examples/{name}" not in shown] == []


def test_python_plans_orders_and_predicts():
    words = [sys.executable, EXAMPLES / "plan.py"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    machine = nidmap.load_machine("lumi")
    nodes = nidmap.plan(machine, 8, job=nidmap.Job("stencil:4x4x4", ppn=8, bytes=1e6)).nodes
    assert said[0] == f"nodes: {nodes.fold()}"
    low, high, likely = map(float, re.findall(r"\d+\.\d+", said[1]))
    assert low <= likely <= high
    assert "stencil:4x4x4 of 1 MB on 8 nodes x 8" in said[3]


@pytest.fixture(scope="module")
def submit(tmp_path_factory):
    """Submit a script on a mini-Cray and wait; return what it printed."""
    if why_no_minicray():
        pytest.skip(why_no_minicray())
    folder = tmp_path_factory.mktemp("scripts")
    for path in EXAMPLES.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    (folder / "torchrun").write_text(TORCHRUN)
    (folder / "torchrun").chmod(0o755)
    bin_folder = Path(sys.executable).parent
    env = {**os.environ, "PATH": f"{folder}:{bin_folder}:{os.environ['PATH']}:/usr/sbin:/sbin"}
    name = f"scripts-{os.getpid()}"

    def minicray(*words):
        words = ("nidmap", "minicray", *words)
        done = subprocess.run(words, capture_output=True, text=True, cwd=folder, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def submitted(script):
        out = folder / f"{script}.out"
        minicray("run", "--name", name, "--", "sbatch", "-W", "-o", str(out), script)
        return out.read_text()

    minicray("up", "--name", name, "-m", "minicray:dragonfly")
    yield submitted, folder
    minicray("down", "--name", name)


@pytest.mark.slow
@pytest.mark.minicray
def test_the_job_with_one_line_runs(submit):
    submitted, _ = submit
    assert re.fullmatch(r"halo took \d+\.\d+ s\n", submitted("job.sbatch"))


@pytest.mark.slow
@pytest.mark.minicray
def test_torchrun_gets_its_node_ranks_in_the_order_of_the_switches(submit):
    submitted, folder = submit
    lines = [line for line in submitted("torchrun.sbatch").splitlines() if "--nnodes" in line]
    (ranks,) = folder.glob("ranks.*")
    order = [line.split()[:2] for line in ranks.read_text().splitlines() if line[0] != "#"]
    said = {re.search(r"--node-rank=(\d+)", line)[1]: line.split()[0] for line in lines}
    assert said == dict(order)
    assert len(said) == 4
    assert all(f"--master-addr={order[0][1]} " in line for line in lines)


@pytest.mark.slow
@pytest.mark.minicray
def test_the_measurement_would_launch_default_and_plan(submit):
    submitted, folder = submit
    script = (folder / "ab.sbatch").read_text()
    (folder / "dry.sbatch").write_text(script.replace("nidmap ab ", "nidmap ab --dry-run "))
    said = submitted("dry.sbatch")
    assert said.count("--distribution=arbitrary") >= 8
    assert said.count("python halo.py 2 2 3") >= 16
