# SPDX-License-Identifier: Apache-2.0
"""A whole process of nidmap, as a user runs it, and the same command in this process."""

import io
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from nidmap.placement import commands, live
from nidmap.placement.slurm import command
from tests.waiting import HANGS


@pytest.fixture
def nidmap():
    """Run the command line in a process of its own: `nidmap("plan", …).code/.out/.err`."""

    def run(*argv, stdin=None, env=None, stdout=subprocess.PIPE, cwd=None, timeout=600):
        done = subprocess.run(
            [sys.executable, "-m", "nidmap", *argv],
            input=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env={**os.environ, "NIDMAP_MACHINE": "", **(env or {})},
            cwd=cwd,
            timeout=timeout,
            check=False,
        )
        done.code = done.returncode
        done.out = (done.stdout or b"").decode()
        done.err = done.stderr.decode()
        return done

    return run


@pytest.fixture
def inside(monkeypatch, capfd):
    """Run the command line as `nidmap` does, in this process: where that is not the point."""

    def run(*argv, stdin=b"", env=None):
        with monkeypatch.context() as patch:
            for name, value in {"NIDMAP_MACHINE": "", **(env or {})}.items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            patch.setattr(command, "TIMEOUT", HANGS)  # the machine may be busy
            patch.setattr(live, "PATIENCE", HANGS)
            capfd.readouterr()
            code = commands.run(list(argv))
        out, err = capfd.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return run


@pytest.fixture
def refused():
    """Assert that a run was refused in one line with this exit code."""

    def check(done, code, *words):
        assert done.code == code, done.err
        assert "Traceback" not in done.err
        assert done.out == ""
        lines = [line for line in done.err.splitlines() if line.startswith("nidmap: ")]
        assert len(lines) == 1, done.err
        for word in words:
            assert word in lines[0], done.err

    return check
