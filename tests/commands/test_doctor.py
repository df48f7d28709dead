# SPDX-License-Identifier: Apache-2.0
"""``nidmap doctor`` says what is here, and what is not, without a traceback."""

import json
import sys

import numpy as np
import pytest

from nidmap.placement import __version__


def findings(done):
    """Return state and text by topic and name."""
    report = json.loads(done.out)
    assert report["schema"] == "nidmap-doctor-1"
    assert report["version"] == __version__
    return {(f["topic"], f["name"]): (f["state"], f["text"]) for f in report["findings"]}


@pytest.fixture
def bare(tmp_path):
    """Return an environment in which no program is found."""
    return {"PATH": str(tmp_path), "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}


def test_what_is_installed_is_named_with_its_version(inside, bare):
    found = findings(inside("doctor", "--json", env=bare))
    assert found["nidmap", "numpy"] == ("ok", np.__version__)
    assert sys.executable in found["nidmap", "Python"][1]


def test_what_is_not_here_is_missing_and_no_failure(inside, bare):
    done = inside("doctor", "--json", env=bare)
    assert done.code == 0
    found = findings(done)
    assert found["scheduler", "Slurm"] == ("missing", "not found")
    assert found["machine", "default"][0] == "missing"
    assert found["job", "this shell"] == ("ok", "not inside a job")


@pytest.mark.parametrize(
    ("env", "words", "expected"),
    [
        ({}, ("-m", "torus:4x4"), "torus:4x4 (16 nodes, torus) named by -m"),
        ({"NIDMAP_MACHINE": "tara"}, (), "by $NIDMAP_MACHINE"),
    ],
)
def test_the_machine_is_the_one_that_commands_take(inside, bare, env, words, expected):
    found = findings(inside("doctor", "--json", *words, env={**bare, **env}))
    state, text = found["machine", "-m" if words else "default"]
    assert state == "ok"
    assert text.endswith(expected)


def test_a_machine_that_cannot_be_read_is_a_failure_in_one_line(inside, bare, tmp_path):
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("hello\n")
    done = inside("doctor", "-m", str(wrong), "--json", env=bare)
    assert done.code == 1
    state, text = findings(done)["machine", "-m"]
    assert (state, f"{wrong}:1" in text) == ("failed", True)


def test_a_scheduler_that_fails_is_a_failure(inside, bare, tmp_path):
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(
        "#!/bin/sh\necho 'slurm_load_ctl_conf error: Unable to contact' >&2\nexit 1\n"
    )
    scontrol.chmod(0o755)
    done = inside("doctor", "--json", env=bare)
    assert done.code == 1
    assert findings(done)["scheduler", "Slurm"][0] == "failed"


def test_a_job_is_named_with_its_nodes(inside, bare):
    env = {**bare, "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]"}
    assert findings(inside("doctor", "--json", env=env))["job", "7"] == ("ok", "2 nodes: n[1-2]")


def test_tokens_are_not_shown(inside, bare):
    done = inside("doctor", env={**bare, "NIDMAP_TOKEN": "s3cret"})
    assert "s3cret" not in done.out
    assert "NIDMAP_TOKEN" in done.out
