"""Start-up of ``nidmap bench`` on 4 ranks against a bare mpi4py program."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.timing import Contender, interleave, ms, ratio, table
from workloads.launched import mpiexec_words, rank_environment

RANKS = 4
PROGRAM = ("alltoall", "--bytes", "8", "--kind", "alltoall", "--repeat", "1", "--warmup", "0")


def main() -> None:
    """Print the ratio of whole launches to one that only starts MPI."""
    ranks = [*mpiexec_words(RANKS), sys.executable]
    bare = "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"
    times = interleave(
        {
            "mpiexec -n 4 python -c 'from mpi4py import MPI …'": launch(*ranks, "-c", bare),
            "mpiexec -n 4 nidmap bench alltoall": launch(*ranks, "-m", "nidmap", "bench", *PROGRAM),
            "nidmap bench alltoall -n 4": launch(
                sys.executable, "-m", "nidmap", "bench", *PROGRAM, "-n", str(RANKS)
            ),
        },
        rounds=15,
    )
    reference = next(iter(times.values()))
    rows = [[name, ms(t), f"{ratio(t, reference):.2f}"] for name, t in times.items()]
    table("Start-up on 4 ranks, whole launch", ["command", "median", "ratio"], rows)


def launch(*argv: str) -> Contender:
    """Return a contender that runs a whole launch."""
    env = {**os.environ, **rank_environment(RANKS)}
    for name in ("NIDMAP_BENCH_RANKS", "PYTHONDONTWRITEBYTECODE"):
        env.pop(name, None)

    def run() -> None:
        subprocess.run(argv, env=env, check=True, capture_output=True, timeout=60)

    return run
