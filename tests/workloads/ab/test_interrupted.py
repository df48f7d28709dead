# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM end the launch that runs, and keep what was measured before it."""

import os
import signal
import subprocess
import sys

import pytest

from tests.rankmap.mpis import ROOT
from tests.waiting import HANGS, wait_until
from tests.workloads.samples import load

#: The fifth launch starts something that would never end, and says so; it may mind SIGTERM or not.
WAITS = """
if [ "$(cat launches 2>/dev/null | wc -l)" = 4 ]; then
  {first}
  sleep 100000 &
  echo $! > child
  mv child waiting
  while :; do wait; done
fi
"""


def gone(process):
    """Tell whether a process runs no more (a zombie does not)."""
    try:
        with open(f"/proc/{process}/stat") as stream:
            return stream.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def start(*words):
    command = [
        sys.executable,
        "-m",
        "nidmap",
        "ab",
        "--pattern",
        "stencil:4x4",
        "--strategy",
        "morton",
    ]
    return subprocess.Popen(
        [*command, *words, "-o", "ab.csv", "--", "srun", "-n", "16", "./app"],
        env={**os.environ, "PYTHONPATH": ROOT},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_launch_and_keeps_the_samples(slurm, number):
    slurm.act(WAITS.format(first=""))
    with start() as process:
        wait_until((slurm.folder / "waiting").exists, "the launch")
        process.send_signal(number)
        out, err = process.communicate(timeout=HANGS)
    child = int((slurm.folder / "waiting").read_text())
    wait_until(lambda: gone(child), "the end of what the launch has started")
    assert process.returncode == 130
    assert "ended early (interrupted); 4 finished samples are kept" in err
    assert "not enough" in out
    header, frame = load("ab.csv")
    assert (header["ended"], len(frame)) == ("interrupted", 4)
    assert sorted(name for name in os.listdir(".") if "nidmap-4711" in name) == []


def test_a_second_signal_kills_a_launch_that_minds_none(slurm):
    slurm.act(WAITS.format(first="trap 'echo asked > asked' TERM INT"))
    with start() as process:
        wait_until((slurm.folder / "waiting").exists, "the launch")
        process.send_signal(signal.SIGINT)
        wait_until((slurm.folder / "asked").exists, "the first signal")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=HANGS)
    assert process.returncode == 130
    assert "4 finished samples are kept" in err
    assert load("ab.csv")[0]["ended"] == "interrupted"
