# SPDX-License-Identifier: Apache-2.0
"""A mini-Cray's set rates, found by ``nidmap calibrate``: widely, once in three."""

import json
import os
import sys

import pytest

from tests.workloads.minicray.conftest import nidmap

pytestmark = [pytest.mark.minicray, pytest.mark.mpi]

SPEC = "torus:2x2,x=2,y=4,injection=5"
SCALE = 5000

#: How far a figure may lie from what was set: a busy computer's links lose tokens.
NEAR = 0.5


def calibrated(name, path):
    """Return the figures that one calibration finds, as JSON has them."""
    words = [
        sys.executable,
        "-m",
        "nidmap",
        "calibrate",
        "--rounds",
        "6",
        "--seconds",
        "0.05",
        "--json",
        "-o",
        str(path),
    ]
    # This environment's own mpiexec, wherever the system has another.
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    run = ("minicray", "run", "--name", name, "-N", "4", "--", *words)
    done = nidmap(*run, env={**os.environ, "PATH": path})
    return json.loads(done.stdout)["figures"]


def test_set_rates_are_found(minicray, tmp_path):
    pytest.importorskip("mpi4py")
    name = minicray("-m", SPEC, "--scale", str(SCALE), "--topology=off")
    stated = {"x": 2, "y": 4}  # a node's own link is too fast to bind here
    found = {}
    for _ in range(3):
        figures = calibrated(name, tmp_path / "calibrated.toml")
        found = {
            key: figures[f"bandwidth.{key}"]["value"] * SCALE / value
            for key, value in stated.items()
            if f"bandwidth.{key}" in figures
        }
        if found.keys() == stated.keys() and all(abs(x - 1) < NEAR for x in found.values()):
            break
    assert found.keys() == stated.keys()
    assert found == pytest.approx(dict.fromkeys(stated, 1), abs=NEAR)
    shown = nidmap("machine", "show", "-m", SPEC, "-m", str(tmp_path / "calibrated.toml"))
    assert "bandwidth.x" in shown.stdout
