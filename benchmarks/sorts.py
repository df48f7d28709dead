# SPDX-License-Identifier: Apache-2.0
"""MP-sort against PyPI's mpsort (the paper's own code), 4 ranks, same data, interleaved.

The peer is run where it is found: in this environment, or in the one that
``$NIDMAP_PEERS`` names (a venv with numpy, mpi4py, mpich and mpsort; building
mpsort needs Cython and that MPI's mpicc). It is not a dependency. Without it
the peer's column is absent.

    python -m venv peers && peers/bin/pip install numpy mpi4py mpich cython setuptools wheel
    MPICC=peers/bin/mpicc CC=peers/bin/mpicc peers/bin/pip install --no-build-isolation mpsort
    NIDMAP_PEERS=peers python -m benchmarks sorts
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from statistics import median
from typing import Any

from benchmarks.timing import ms, table

RANKS = 4

#: What is sorted: kind of data, items a rank, bytes of payload, rounds.
CASES = (
    ("random", 1_000_000, 0, 7),
    ("random", 10_000_000, 0, 3),
    ("random", 1_000_000, 16, 7),
    ("random", 10_000_000, 16, 3),
    ("random", 1_000_000, 24, 5),
    ("equal", 1_000_000, 0, 5),
    ("two", 1_000_000, 0, 5),
    ("sorted", 1_000_000, 0, 5),
    ("one", 1_000_000, 0, 5),
)


def main() -> None:
    """Print the ratios of every case."""
    home = os.environ.get("NIDMAP_PEERS", os.path.dirname(os.path.dirname(sys.executable)))
    rows = []
    for kind, items, payload, rounds in CASES:
        found = measure_case(home, kind, items, payload, rounds)
        ours = found["nidmap"]
        cells = [f"{kind}, {items:.0e} a rank, payload {payload}", ms(ours)]
        for name in ("nidmap as the paper", "nidmap mergesort", "mpsort"):
            other = found.get(name)
            cells += (
                [ms(other), f"{median(o / u for o, u in zip(other, ours, strict=True)):.1f}"]
                if other
                else ["absent", "-"]
            )
        rows.append(cells)
    header = [f"{RANKS} ranks", "nidmap", "bisection + sort", "x", "merge sort", "x", "mpsort", "x"]
    table("Sorting, the slowest rank's time; x: how many times nidmap's", header, rows)


def measure_case(
    home: str, kind: str, items: int, payload: int, rounds: int
) -> dict[str, list[float]]:
    """Run one case on ranks; return the seconds of each contender by round."""
    words = [f"{home}/bin/mpiexec", "-n", str(RANKS), f"{home}/bin/python", "-m", "mpi4py"]
    words += [__file__, kind, str(items), str(payload), str(rounds)]
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    done = subprocess.run(
        words, env={**os.environ, "PYTHONPATH": root}, stdout=subprocess.PIPE, check=True
    )
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def rank(kind: str, items: int, payload: int, rounds: int) -> None:
    """Act as one rank: in every round sort the same data with each contender."""
    from mpi4py import MPI

    from nidmap.workloads.sort.data import make_items
    from nidmap.workloads.sort.partition import SortPlan, sort_items
    from nidmap.workloads.sort.ranks import Ranks

    comm = MPI.COMM_WORLD
    data = make_items(kind, comm.rank, comm.size, items, payload=payload)
    key = "key" if payload else None
    ranks, paper = Ranks(comm), SortPlan("bisection", "alltoallv", "sort")
    contenders: dict[str, Callable[[], Any]] = {
        "nidmap": lambda: sort_items(ranks, data),
        "nidmap as the paper": lambda: sort_items(ranks, data, paper),
        "nidmap mergesort": lambda: sort_items(ranks, data, SortPlan(algorithm="mergesort")),
    }
    if find_spec("mpsort"):
        contenders["mpsort"] = peer(comm, data, key)
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, call in contenders.items():
            comm.Barrier()
            began = time.perf_counter()
            result = call()
            comm.Barrier()
            if turn:  # the first is a warm-up
                seconds[name].append(comm.allreduce(time.perf_counter() - began, op=MPI.MAX))
            keys = result["key"] if payload else result
            assert len(result) == len(data), name
            assert (keys[1:] >= keys[:-1]).all(), name
            del result
    if comm.rank == 0:
        print(json.dumps(seconds))


def peer(comm: Any, data: Any, key: str | None) -> Callable[[], Any]:
    """Return a call of PyPI's mpsort on a copy of the data, as it may modify its source."""
    import mpsort as theirs
    import numpy as np

    out = np.empty_like(data)

    def call() -> Any:
        theirs.sort(data, orderby=key, out=out, comm=comm)
        return out

    return call


if __name__ == "__main__":
    rank(sys.argv[1], *(int(word) for word in sys.argv[2:5]))
