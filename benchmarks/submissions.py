# SPDX-License-Identifier: Apache-2.0
"""What one line in the job script adds to submissions, under a real Slurm with faults.

``python -m benchmarks.submissions --jobs 1000`` submits so many held jobs, each with a fault
drawn by lot (or none), and counts those that were lost or changed wrongly.
"""

import random
import sys
import time
from pathlib import Path

import click
import numpy as np

import nidmap as front_door  # tells the command line which commands there are
from nidmap.placement.commands import run as nidmap
from tests.placement.slurm.test_job_filter import FAULTS, MACHINE, NODES
from tests.real_slurm import real_slurm

ROOT = Path(__file__).parents[1]


@click.command()
@click.option("--jobs", type=int, default=100)
@click.option("--seconds", type=float, default=1.5, help="What the filter waits.")
@click.option("--seed", type=int, default=0)
def main(jobs, seconds, seed):
    """Print jobs lost and wrongly changed, and the seconds added, by fault."""
    lot = random.Random(seed)
    faults = {name: command for name, (command, _) in FAULTS.items()}
    faults |= {"hangs": "sh -c 'sleep 3600'", "none": f"{sys.executable} -m nidmap"}
    took, lost, wrong = {name: [] for name in ["unfiltered", *faults]}, 0, 0
    with real_slurm(NODES, real=1, extra="CliFilterPlugins=lua\n") as slurm:
        slurm.env["PYTHONPATH"] = str(ROOT)
        slurm.drain(["nid00000", "nid00002", "nid00005"])  # Slurm's own choice is in two groups
        given = ["--dir", str(slurm.folder), "-m", MACHINE, "--seconds", str(seconds), "--yes"]
        for k in range(jobs):
            name = "unfiltered" if k % 10 == 0 else lot.choice(list(faults))
            wanted = ["--command", faults.get(name, "true")]
            if nidmap(["slurm", "install", *given, *wanted]):
                raise click.ClickException(f"{front_door.__name__} slurm install failed")
            comment = [] if name == "unfiltered" else ["--comment=nidmap:strategy=compact"]
            began = time.monotonic()
            done = slurm.run(["sbatch", "-H", "-N2", *comment, "--wrap=true"], check=False)
            took[name].append(time.monotonic() - began)
            lost += bool(done.returncode)
            if done.returncode:
                continue
            job = done.stdout.split()[-1]
            shown = slurm.run(["scontrol", "show", "job", job]).stdout
            slurm.run(["scancel", job])
            plain = "ExcNodeList=(null)" in shown
            planned = "ExcNodeList=nid[00000-00007,00012-00015]" in shown
            wrong += not (plain or (name == "none" and planned))
    print(f"{jobs} submissions: {lost} lost, {wrong} changed wrongly")
    bare = float(np.median(took["unfiltered"]))
    added = [t - bare for name, times in took.items() if name != "unfiltered" for t in times]
    print(f"added: p50 {np.quantile(added, 0.5):.2f} s, p99 {np.quantile(added, 0.99):.2f} s")
    for name, times in took.items():
        if times:
            low, high = np.quantile(times, [0.5, 0.99])
            print(f"{name:14} {len(times):4} times: p50 {low:.2f} s, p99 {high:.2f} s")


if __name__ == "__main__":
    main()
