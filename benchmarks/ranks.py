# SPDX-License-Identifier: Apache-2.0
"""Start-up time of every ``nidmap bench`` program on 4 ranks against a bare mpi4py program.

Each does as little as it can: what is timed is the whole launch, by the
user's own mpiexec and by ``-n 4``.
"""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.timing import Contender, interleave, ms, ratio, table
from nidmap.workloads.launched import mpiexec_words, rank_environment

RANKS = 4

#: The least that each program can be asked for.
PROGRAMS = {
    "alltoall": "--bytes 8",
    "stencil": "--bytes 8 --iterations 1",
    "sort": "--items 10",
    "isx": "--keys 64",
    "fft": "--shape 4",
    "contention": "--n 16 --m 1",
}


def main() -> None:
    """Print the ratio of complete launches to one that only starts MPI."""
    ranks = [*mpiexec_words(RANKS), sys.executable]
    bare = "bare mpi4py"
    program = "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"
    contenders = {bare: launch(*ranks, "-c", program)}
    for name, words in PROGRAMS.items():
        least = (*words.split(), "--repeat", "1")
        bench = ("-m", "nidmap", "bench", name, *least)
        contenders[f"{name}, mpiexec"] = launch(*ranks, *bench)
        contenders[f"{name}, -n"] = launch(sys.executable, *bench, "-n", str(RANKS))
    times = interleave(contenders, rounds=11)
    rows = [["bare mpi4py", ms(times[bare]), "", ""]]
    for name in PROGRAMS:
        seconds = [times[f"{name}, {way}"] for way in ("mpiexec", "-n")]
        rows.append([name, ms(seconds[0]), *(f"{ratio(t, times[bare]):.2f}" for t in seconds)])
    head = ["program", "median", "mpiexec nidmap bench", "nidmap bench -n"]
    table(f"Start-up on {RANKS} ranks, whole launch", head, rows)


def launch(*argv: str) -> Contender:
    """Return a contender that runs a complete launch in a user's environment."""
    env = {**os.environ, **rank_environment(RANKS)}
    for name in ("NIDMAP_BENCH_RANKS", "PYTHONDONTWRITEBYTECODE"):
        env.pop(name, None)

    def run() -> None:
        subprocess.run(argv, env=env, check=True, capture_output=True, timeout=60)

    return run
