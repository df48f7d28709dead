"""Several jobs from one command, on this environment's own MPI."""

import json
import subprocess
import sys

import pytest

from tests.rankmap.mpis import ENV, ROOT, installed

pytestmark = pytest.mark.mpi


@pytest.mark.skipif(not (installed("mpich") or installed("openmpi")), reason="no MPI here")
def test_jobs_are_launches_and_their_minimum_is_told(tmp_path):
    import os

    words = ["isx", "-n", "2", "--keys", "100", "--repeat", "2", "--jobs", "2", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "nidmap", "bench", *words, "-o", str(tmp_path / "s.csv")],
        env={**os.environ, **ENV},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["jobs"]) == 2
    assert found["minimum"][0]["slowest"] == min(found["minimum"][0]["jobs"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s.0.csv", "s.1.csv"]
