# SPDX-License-Identifier: Apache-2.0
"""ISx weak scaling against the C original if installed, else a C program of its stages.

ISx (github.com/ParRes/ISx) is on no package registry. ``$NIDMAP_ISX`` names
its ``MPI`` binaries' folder (``bin/isx.weak``, built with the mpicc of the
environment that runs this); without it its column is absent.

What always runs, given an mpicc beside this Python and a C compiler, is the
C program below, written for this benchmark: the same stages in the plainest C
(buckets by division, Alltoall of the counts, Alltoallv of the keys, and, as
in ISx, a histogram of the keys in place of a sort), generation not timed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from statistics import median

from benchmarks.timing import table

RANKS = 4
SIZES = (1 << 22, 1 << 25)
ROUNDS = 5

#: Stages in plain C; prints the slowest rank's seconds of the second iteration.
PLAIN = r"""
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int64_t n = atoll(argv[1]);
    const uint64_t width = ((1ull << 28) + size - 1) / size;
    double worst = 0;
    for (int iteration = 0; iteration < 2; iteration++) {
        int *keys = malloc(n * sizeof(int));
        uint64_t state = rank + 1;
        for (int64_t i = 0; i < n; i++) {
            state = state * 6364136223846793005ull + 1442695040888963407ull;
            keys[i] = (int)(state >> 36);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        double began = MPI_Wtime();
        int *send = calloc(size, sizeof(int)), *at = calloc(size + 1, sizeof(int));
        int *start = calloc(size + 1, sizeof(int));
        int *come = calloc(size, sizeof(int)), *from = calloc(size + 1, sizeof(int));
        for (int64_t i = 0; i < n; i++) send[(uint64_t)keys[i] / width]++;
        for (int q = 0; q < size; q++) start[q + 1] = at[q + 1] = at[q] + send[q];
        int *bucketed = malloc(n * sizeof(int));
        for (int64_t i = 0; i < n; i++) bucketed[at[(uint64_t)keys[i] / width]++] = keys[i];
        MPI_Alltoall(send, 1, MPI_INT, come, 1, MPI_INT, MPI_COMM_WORLD);
        for (int q = 0; q < size; q++) from[q + 1] = from[q] + come[q];
        int *mine = malloc((size_t)from[size] * sizeof(int));
        MPI_Alltoallv(bucketed, send, start, MPI_INT, mine, come, from, MPI_INT, MPI_COMM_WORLD);
        int *counts = calloc(width, sizeof(int));
        for (int i = 0; i < from[size]; i++) counts[(uint64_t)mine[i] - rank * width]++;
        double spent = MPI_Wtime() - began;
        MPI_Reduce(&spent, &worst, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        volatile int seen = counts[0];
        (void)seen;
        free(keys); free(send); free(at); free(start); free(come); free(from);
        free(bucketed); free(mine); free(counts);
    }
    if (rank == 0) printf("%.6f\n", worst);
    MPI_Finalize();
    return 0;
}
"""


def main() -> None:
    """Print the ratio to each C program, with interleaved jobs, and the table of stages."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        plain = build_c_program(folder)
        original = os.environ.get("NIDMAP_ISX", "")
        for keys in SIZES:
            ours: list[float] = []
            theirs: dict[str, list[float]] = {"plain C": [], "ISx": []}
            for _ in range(ROUNDS):
                ours.append(nidmap(keys))
                if plain:
                    theirs["plain C"].append(float(launch_ranks(plain, str(keys))))
                if original:
                    theirs["ISx"].append(isx(original, keys, folder))
            cells = [f"2^{keys.bit_length() - 1} keys a rank", f"{1e3 * median(ours):.1f} ms"]
            for name in ("plain C", "ISx"):
                other = theirs[name]
                if other:
                    share = median(u / o for u, o in zip(ours, other, strict=True))
                    cells += [f"{1e3 * median(other):.1f} ms", f"{share:.2f}"]
                else:
                    cells += ["absent", "-"]
            rows.append(cells)
    header = [f"weak, {RANKS} ranks", "nidmap", "plain C stages", "ratio", "ISx original", "ratio"]
    table("ISx without generation, the slowest rank (nidmap sorts, C counts)", header, rows)


def launch_ranks(*words: str) -> str:
    """Run a program on ranks in this environment and return what it prints."""
    home = os.path.dirname(sys.executable)
    command = [f"{home}/mpiexec", "-n", str(RANKS), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def build_c_program(folder: str) -> str:
    """Compile the C program and return its path; '' if it cannot be compiled."""
    source, program = f"{folder}/plain.c", f"{folder}/plain"
    with open(source, "w", encoding="ascii") as stream:
        stream.write(PLAIN)
    compiler = f"{os.path.dirname(sys.executable)}/mpicc"
    try:
        done = subprocess.run([compiler, "-O3", "-o", program, source], capture_output=True)
    except OSError:
        return ""
    return program if done.returncode == 0 else ""


def nidmap(keys: int) -> float:
    """Return the seconds of one of our jobs: its second iteration, as in the C program."""
    words = ["-m", "nidmap", "bench", "isx", "--keys", str(keys), "--repeat", "1", "--json"]
    document = json.loads(launch_ranks(sys.executable, *words))
    return float(document["cases"][0]["seconds"]["total"]["best"])


def isx(home: str, keys: int, folder: str) -> float:
    """Return the seconds of one job of the original, without generating keys."""
    log = f"{folder}/isx.log"
    said = launch_ranks(f"{home}/isx.weak", str(keys), log)
    total = float(re.findall(r"Average total time.*?([\d.]+) seconds", said)[0])
    with open(log, encoding="ascii") as stream:
        lines = [line.rstrip("\n").split("\t") for line in stream]
    names = next(line for line in lines if any("(sec)" in word for word in line))
    column = next(k for k, name in enumerate(names) if "INPUT" in name.upper())
    made = [float(line[column]) for line in lines[-RANKS:]]
    return total - sum(made) / len(made)


if __name__ == "__main__":
    main()
