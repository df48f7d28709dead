# SPDX-License-Identifier: Apache-2.0
"""``nidmap slurm install`` shows what it would change and asks; nothing is written unasked."""

import os
import pty
import subprocess
import sys

import pytest

from nidmap.placement.commands import run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))


def words(folder, *more):
    return ["slurm", "install", "--dir", str(folder), "-m", "torus:4x4", *more]


def test_nobody_to_ask_is_an_error_and_writes_nothing(tmp_path, capfd):
    assert run(words(tmp_path)) == 2
    err = capfd.readouterr().err
    assert f"+++ {tmp_path}/cli_filter.lua" in err
    assert err.rstrip().endswith("give --yes to write it")
    assert list(tmp_path.iterdir()) == []


def test_a_sites_own_script_stays_until_somebody_agrees(tmp_path, capfd):
    mine = tmp_path / "cli_filter.lua"
    mine.write_text("-- the site's own\n")
    assert run(words(tmp_path)) == 2
    assert f"{mine} is renamed to {tmp_path}/cli_filter.site.lua" in capfd.readouterr().err
    assert mine.read_text() == "-- the site's own\n"
    assert run(words(tmp_path, "--yes")) == 0
    assert (tmp_path / "cli_filter.site.lua").read_text() == "-- the site's own\n"
    assert mine.read_text().startswith("-- nidmap")


def test_a_newer_script_is_shown_as_a_diff_of_the_older(tmp_path, capfd):
    assert run(words(tmp_path, "--yes")) == 0
    assert run(words(tmp_path, "--seconds", "3")) == 2
    err = capfd.readouterr().err
    changed = [line for line in err.splitlines() if "CENTISECONDS =" in line]
    assert [line[0] for line in changed] == ["-", "+"]
    assert 'SECONDS, CENTISECONDS = "3", 300' in changed[1]


@pytest.mark.parametrize(("answer", "code", "written"), [(b"y\n", 0, True), (b"n\n", 130, False)])
def test_the_answer_at_a_terminal_decides(tmp_path, answer, code, written):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "nidmap", *words(tmp_path)],
        stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT,
    )  # fmt: skip
    os.write(ours, answer)
    assert process.wait(600) == code
    os.close(ours)
    os.close(theirs)
    assert (tmp_path / "cli_filter.lua").exists() == written
