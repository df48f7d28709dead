# SPDX-License-Identifier: Apache-2.0
"""Ranks of one launch share the work of ``nidmap replay`` and ``nidmap jobs``: real MPI."""

import subprocess
import sys

import pytest

from nidmap.workloads.launched import mpiexec_words

pytestmark = pytest.mark.mpi

FABRIC = "fattree:leaf=8,leaves=8,spines=2,bw=1"
REPLAY = ["replay", "lublin:days=1,load=0.9", "-m", FABRIC, "--policies", "slurm,auto"]
TABLE = "JobID|User|Start|End|NodeList\n" + "".join(
    f"{k}|ada|{k}|{k + 50}|nid[{k % 40:05d}-{k % 40 + k % 9:05d}]\n" for k in range(1, 400)
)


def answers(words, folder):
    """Return what one process prints, and what three ranks do."""
    tool = [sys.executable, "-m", "nidmap", *words]
    return [
        subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=500)
        for command in (tool, [*mpiexec_words(3), *tool])
    ]


@pytest.mark.parametrize("words", [REPLAY, ["jobs", "jobs.txt", "-m", FABRIC, "--last", "0"]])
def test_ranks_say_the_same_once(words, tmp_path):
    (tmp_path / "jobs.txt").write_text(TABLE)
    alone, ranks = answers(words, tmp_path)
    assert (alone.returncode, ranks.returncode) == (0, 0)
    assert alone.stdout
    assert ranks.stdout == alone.stdout


def test_an_error_is_said_once(tmp_path):
    alone, ranks = answers(["replay", "nowhere.swf", "-m", FABRIC], tmp_path)
    assert alone.returncode == ranks.returncode == 3
    assert ranks.stderr.count("nowhere.swf: cannot be read") == 1


def test_standard_input_is_not_for_several_ranks(tmp_path):
    _, ranks = answers(["replay", "-", "-m", FABRIC], tmp_path)
    assert ranks.returncode == 2
    assert "several ranks cannot read standard input" in ranks.stderr
