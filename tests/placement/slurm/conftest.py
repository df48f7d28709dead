# SPDX-License-Identifier: Apache-2.0
"""Fakes of Slurm's commands, only for what a real Slurm does not do on demand."""

import stat

import pytest

from nidmap.placement.slurm import command


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Put shell scripts on PATH in front of everything: ``fake("exit 1", "squeue")``."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(command, "TIMEOUT", 600.0)  # the machine may be busy

    def write(body, name="sinfo"):
        path = folder / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    write("echo 'scontrol: error: not here' >&2; exit 1", "scontrol")
    return write
