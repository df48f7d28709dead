# SPDX-License-Identifier: Apache-2.0
"""A stand-in for srun whose program says times that were drawn beforehand."""

import os

import numpy as np
import pytest

from nidmap.placement.commands import run

#: Each launch takes the next time of its arm; whatever stands in ``act`` is done first.
SRUN = """#!/bin/sh
cd {folder}
arm=default
[ -z "$NIDMAP_LAUNCH$MPICH_RANK_REORDER_FILE" ] || arm=ordered
[ ! -e act ] || . ./act
n=$(($(cat count.$arm) + 1))
echo $n > count.$arm
echo "Loop time of nothing yet"
echo "Loop time of $(sed -n ${{n}}p times.$arm) on 16 procs"
echo "$arm $OPENBLAS_NUM_THREADS $(cat)" >> launches
echo "words besides" >&2
"""

JOB = {
    "SLURM_JOB_NODELIST": "nid[00012-00015]",
    "SLURM_TASKS_PER_NODE": "4(x4)",
    "SLURM_NTASKS": "16",
    "SLURM_JOB_ID": "4711",
    "SLURM_CPU_BIND": "cores",
}


class FakeSlurm:
    """A job on four nodes, and what its launches will say."""

    def __init__(self, folder):
        self.folder = folder
        self.draw(gain=1.0)

    def draw(self, gain, noise=0.01, seed=0, count=80):
        """Draw the times of all launches: ordered ones are `gain` times as fast."""
        rng = np.random.default_rng(seed)
        for arm, factor in (("default", 1.0), ("ordered", gain)):
            times = np.exp(noise * rng.normal(size=count)) / factor
            lines = "".join(f"{t:.9f}\n" for t in times)
            (self.folder / f"times.{arm}").write_text(lines)
            (self.folder / f"count.{arm}").write_text("0\n")

    def act(self, script):
        """Have every launch do something first: lines of sh, which knows ``$arm``."""
        (self.folder / "act").write_text(script)

    def launches(self):
        """Return the arm of each launch that came to its end."""
        path = self.folder / "launches"
        return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Stand in the working directory of a job whose srun is the stand-in."""
    folder, work = tmp_path / "slurm", tmp_path / "work"
    folder.mkdir()
    work.mkdir()
    (folder / "srun").write_text(SRUN.format(folder=folder))
    (folder / "srun").chmod(0o755)
    monkeypatch.chdir(work)
    for name in [name for name in os.environ if name.startswith(("SLURM_", "PMI", "NIDMAP_"))]:
        monkeypatch.delenv(name)
    for name, value in {**JOB, "PATH": f"{folder}:{os.environ['PATH']}"}.items():
        monkeypatch.setenv(name, value)
    return FakeSlurm(folder)


@pytest.fixture
def ab(capfd):
    """Return a function that calls ``nidmap ab`` of 16 ranks: words -> (code, stdout, stderr)."""

    def call(*words, order=("--pattern", "stencil:4x4", "--strategy", "morton")):
        capfd.readouterr()
        code = run(["ab", *order, *words, "--", "srun", "-n", "16", "./app"])
        return code, *capfd.readouterr()

    return call
