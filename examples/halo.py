# SPDX-License-Identifier: Apache-2.0
"""A program to try nidmap on: ranks on a 3-D grid exchange halos and say how long that took.

    mpiexec -n 12 python halo.py 3 2 2

It knows nothing of nidmap, and stands for a program of your own.
"""

import sys

import numpy as np
from mpi4py import MPI

BYTES, TIMES = 200_000, 3


def main(dims: list[int]) -> None:
    """Exchange halos with all neighbours on the grid of ranks, again and again."""
    grid = MPI.COMM_WORLD.Create_cart(dims, reorder=False)
    neighbours = [rank for axis in range(len(dims)) for rank in grid.Shift(axis, 1)]
    neighbours = [rank for rank in neighbours if rank != MPI.PROC_NULL]
    mine = np.zeros(BYTES, np.uint8)
    theirs = np.empty((len(neighbours), BYTES), np.uint8)
    grid.Barrier()
    start = MPI.Wtime()
    for _ in range(TIMES):
        posted = [grid.Irecv(buffer, rank) for buffer, rank in zip(theirs, neighbours, strict=True)]
        posted += [grid.Isend(mine, rank) for rank in neighbours]
        MPI.Request.Waitall(posted)
    grid.Barrier()
    if grid.rank == 0:
        print(f"halo took {MPI.Wtime() - start:.3f} s")


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]])
