# SPDX-License-Identifier: Apache-2.0
"""The tests' own Slurm: two at once, nothing left behind, whatever happens to the test."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.real_slurm import needs_slurm, real_slurm
from tests.waiting import wait_until


def alive(pids):
    """Return those that still run; a zombie has ended."""
    found = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        found += [pid] if state != "Z" else []
    return found


def daemons(slurm):
    return [d.pid for d in (slurm.controller, *slurm.slurmds.values()) if d]


@needs_slurm
def test_a_failing_test_leaves_nothing():
    names = ["n0", "n1", "n2"]
    with suppress(ZeroDivisionError), real_slurm(names, real=2) as slurm:
        pids = daemons(slurm)
        job = [
            "srun",
            "-N2",
            "-w",
            "n[0-1]",
            "sh",
            "-c",
            f"echo $$ >> {slurm.folder}/pids; sleep 9999",
        ]
        with subprocess.Popen(job, env=slurm.env, stderr=subprocess.DEVNULL) as running:
            wait_until(lambda: (slurm.folder / "pids").exists() and len(task_pids(slurm)) > 1)
            pids += [*task_pids(slurm), running.pid]
            assert len(alive(pids)) >= 5
            running.kill()
        raise ZeroDivisionError
    assert not alive(pids)
    assert not slurm.folder.exists()


def task_pids(slurm):
    return [int(word) for word in (slurm.folder / "pids").read_text().split()]


@needs_slurm
def test_two_clusters_do_not_see_each_other():
    with real_slurm(["a0", "a1"], real=1) as one, real_slurm(["b0", "b1"], real=1) as two:
        assert one.run(["sinfo", "-h", "-o", "%N"]).stdout == "a[0-1]\n"
        assert two.run(["sinfo", "-h", "-o", "%N"]).stdout == "b[0-1]\n"
        one.stop()
        assert two.run(["srun", "-N1", "printenv", "SLURMD_NODENAME"]).stdout == "b0\n"


@needs_slurm
def test_a_killed_test_takes_its_daemons_along():
    script = (
        "import sys, time; from tests.real_slurm import real_slurm\n"
        "with real_slurm(['n0', 'n1'], real=1) as slurm:\n"
        "    pids = [slurm.controller.pid] + [d.pid for d in slurm.slurmds.values()]\n"
        "    print(slurm.folder, *pids, flush=True)\n"
        "    time.sleep(9999)\n"
    )
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=root
    ) as owner:
        folder, *pids = owner.stdout.readline().decode().split()
        os.kill(owner.pid, signal.SIGKILL)
    wait_until(lambda: not alive(int(pid) for pid in pids))
    subprocess.run(["rm", "-rf", folder], check=True)
