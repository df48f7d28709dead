# SPDX-License-Identifier: Apache-2.0
"""Exchanges between a mini-Cray's ranks: their names in predictions, and how ranks run them.

`exchanges` names them; run as ``python -m benchmarks.exchanges JOB.json`` by every rank, one
a node, this measures placements of all of them in turn, block by block.
"""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import dataclass, field

import numpy as np

#: MPICH takes pairwise exchange for all-to-alls of such messages (`nidmap.rankmap.predict.job`).
LONG = 50_000


@dataclass
class Exchange:
    """What ranks send each other.

    Attributes
    ----------
    name : str
    pattern : str
        As ``--pattern`` takes it; ``matrix`` where `steps` are written to a file for it.
    size : float
        ``--bytes``.
    algorithm : str
        What is known of how it is done.
    steps : list of list of (from, to, bytes)
        What a rank posts at once, step by step; empty where MPI_Alltoall does it.
    grid : tuple of int
        Ranks of rows and columns that MPI_Alltoall runs along.
    call : str
        Another collective that does it, as mpi4py names it.
    """

    name: str
    pattern: str
    size: float
    algorithm: str = ""
    steps: list = field(default_factory=list)
    grid: tuple = ()
    call: str = ""


def exchanges(ranks, seed=0):
    """Return the exchanges of this many ranks.

    All-to-alls, FFTs, stencils, a ring, lists of sends, and three collectives.
    """
    rng = np.random.default_rng([seed, ranks])
    short = max(d for d in range(1, math.isqrt(ranks) + 1) if ranks % d == 0)
    grid = (short, ranks // short)
    words = "x".join(map(str, grid))
    # As libraries post them: the next rank's first, so that not all begin with rank 0.
    everyone = [(a, (a + k) % ranks, LONG) for k in range(1, ranks) for a in range(ranks)]
    ring = [(a, (a + 1) % ranks, 8 * LONG) for a in range(ranks)]
    halo = halo_steps(grid, 4 * LONG)
    place = np.arange(ranks).reshape(grid)
    turned = zip(place.ravel().tolist(), place.T.ravel().tolist(), strict=True)
    shuffled = enumerate(rng.permutation(ranks).tolist())
    few = [(a, int(b), int(rng.integers(1, 5)) * LONG) for a in range(ranks)
           for b in rng.choice(np.delete(np.arange(ranks), a), 4, replace=False)]  # fmt: skip
    return [
        Exchange("all-to-all, the library's", "alltoall", LONG, "pairwise", grid=(ranks,)),
        Exchange("FFT, slab, at once", f"fft:{ranks}", LONG, "at-once", [everyone]),
        Exchange("FFT, grid", f"fft:{words}", 2 * LONG, "pairwise", grid=grid),
        Exchange(
            "stencil, at once",
            f"stencil:{words}",
            4 * LONG,
            "",
            [[send for step in halo for send in step]],
        ),
        Exchange("stencil, staged", f"stencil:{words},staged", 4 * LONG, "", halo),
        Exchange("ring", "ring", 8 * LONG, "", [ring]),
        Exchange("permutation", "matrix", 1, "", [[(a, b, 8 * LONG) for a, b in shuffled]]),
        Exchange("transposition", "matrix", 1, "", [[(a, b, 8 * LONG) for a, b in turned]]),
        Exchange("sparse matrix", "matrix", 1, "", [few]),
        Exchange("allgather", "allgather", LONG, "library", call="Allgather"),
        Exchange("bcast", "bcast", 8 * LONG, "library", call="Bcast"),
        Exchange("allreduce", "allreduce", 8 * LONG, "library", call="Allreduce"),
    ]


def halo_steps(grid, size):
    """Return a stencil's messages, one direction along one dimension after another."""
    place, steps = np.arange(math.prod(grid)).reshape(grid), []
    for axis in range(len(grid)):
        lines = np.moveaxis(place, axis, 0)
        near, far = lines[:-1].ravel().tolist(), lines[1:].ravel().tolist()
        steps += [[(a, b, size) for a, b in zip(near, far, strict=True)],
                  [(b, a, size) for a, b in zip(near, far, strict=True)]]  # fmt: skip
    return steps


class Run:
    """One exchange on the ranks of one placement: set up once, run repeatedly."""

    def __init__(self, comm, exchange):
        self.comm, self.exchange = comm, exchange
        self.rank = rank = comm.Get_rank()
        size = int(exchange.size)
        self.lines, self.buffers = [], []
        if exchange.call:
            blocks = {"Allgather": (1, comm.size), "Allreduce": (1, 1), "Bcast": (1,)}
            self.buffers = [np.zeros(n * size // 8) for n in blocks[exchange.call]]
        for axis in reversed(range(len(exchange.grid))):
            at = np.array(np.unravel_index(rank, exchange.grid))
            key = at[axis]
            at[axis] = 0
            color = int(np.ravel_multi_index(at, exchange.grid))
            line = comm.Split(color, int(key))
            self.lines.append((line, *(np.zeros(size * line.size, "u1") for _ in range(2))))
        self.steps = [
            ([(b, np.zeros(n, "u1")) for a, b, n in step if a == rank != b],
             [(a, np.zeros(n, "u1")) for a, b, n in step if b == rank != a])
            for step in exchange.steps
        ]  # fmt: skip

    def __call__(self):
        """Run it once."""
        from mpi4py import MPI

        if self.buffers:
            getattr(self.comm, self.exchange.call)(*self.buffers)
        for line, out, into in self.lines:
            line.Alltoall(out, into)
        for sends, receives in self.steps:
            posted = [self.comm.Irecv(room, source) for source, room in receives]
            posted += [self.comm.Isend(room, target) for target, room in sends]
            MPI.Request.Waitall(posted)


def seconds(comm, run):
    """Return the time from the first rank's start to the last one's end (on rank 0, else None)."""
    comm.Barrier()
    comm.Barrier()  # one alone leaves ranks further apart
    span = np.array([time.monotonic(), 0.0])  # one clock: all nodes are namespaces of this host
    run()
    span[1] = time.monotonic()
    every = comm.gather(span)
    return None if every is None else max(s[1] for s in every) - min(s[0] for s in every)


def main():
    """Measure what the job's file describes: placements as lists of nodes, one for each rank."""
    import os

    from mpi4py import MPI

    with open(sys.argv[1], encoding="utf-8") as stream:
        job = json.load(stream)
    world = MPI.COMM_WORLD
    rank_on = {host: rank for rank, host in enumerate(world.allgather(os.uname().nodename))}
    runs = []
    for exchange, _, nodes in job["arms"]:
        members = [rank_on[node] for node in nodes]
        comm = world.Create(world.group.Incl(members))
        one = exchanges(len(nodes), job["seed"])[exchange]
        runs.append(None if comm == MPI.COMM_NULL else (comm, Run(comm, one)))
    found = [[] for _ in runs]
    for block in range(job["blocks"] + 1):  # the first one opens the connections
        for k in np.random.default_rng([job["seed"], block]).permutation(len(runs)):
            took = seconds(*runs[k]) if runs[k] else None
            wait_asleep(world)
            if took is not None and block:
                found[k].append(took)
    every = world.gather(found)
    if every is not None:
        merged = [[t for took in one for t in took] for one in zip(*every, strict=True)]
        with open(job["output"], "w", encoding="utf-8") as stream:
            json.dump(merged, stream)


def wait_asleep(comm):
    """Wait for all ranks asleep, leaving the cores to those that still work."""
    request = comm.Ibarrier()
    while not request.Test():
        time.sleep(0.002)


if __name__ == "__main__":
    main()
