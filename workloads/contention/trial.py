"""One all-to-all of the contention paper on a communicator.

Input without any local sorting (eqs. 3.6 and 3.7): the blocks are in order,
and what arrives is the sorted array at once. Equation 3.7 runs j over the m
numbers of a vector (it prints p). How many vectors go to which process is
counted in the data (eqs. 3.3 and 3.5); an Alltoall of one count a process,
row A of Table 4.5, tells each what it will get.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from placement.errors import NidmapError
from placement.support.array_types import Array
from placement.support.quantities import exact_size
from workloads.contention.problem import COUNTS, PRINTED_N, sizes
from workloads.memory import fits
from workloads.phases import seconds_of
from workloads.places import place
from workloads.world import MPI, Comm, same, together

__all__ = ["Buffers", "Contention", "send_counts", "sorted_ints", "trial", "unsorted_ints"]

#: Vectors filled at a time: no temporary array as large as the data.
_BLOCK = 1 << 16


def unsorted_ints(n: int, ranks: int, rank: int) -> NDArray[np.int32]:
    """Return the unsorted integers of one process, eq. 3.6: int32 (n/p,).

    Examples
    --------
    The paper's example, n = 48 on 4 processes: the first row of its matrix.

    >>> unsorted_ints(48, 4, 0).tolist()
    [1, 2, 3, 13, 14, 15, 25, 26, 27, 37, 38, 39]
    """
    local, block = n // ranks, n // ranks**2
    i = np.arange(local)
    return (1 + block * rank + local * (i // block) + i % block).astype(np.int32)


def sorted_ints(n: int, ranks: int, rank: int) -> NDArray[np.int32]:
    """Return what the process must hold at the end: the numbers 1 to n in order."""
    local = n // ranks
    return np.arange(1 + local * rank, 1 + local * (rank + 1), dtype=np.int32)


def send_counts(numbers: Array, ranks: int, local: int) -> NDArray[np.int32]:
    """Return how many vectors go to each process, counted as eqs. 3.3 and 3.5 do.

    Parameters
    ----------
    numbers : int32 or float64 (l,)
        Each vector's first number; vectors 1 to `local` belong to process 0.
    ranks, local : int
        p and l_n.

    Returns
    -------
    int32 (p,)

    Examples
    --------
    >>> send_counts(unsorted_ints(48, 4, 1), 4, 12)
    array([3, 3, 3, 3], dtype=int32)
    """
    owner = ((numbers - 1) // local).astype(np.intp)
    return np.bincount(owner, minlength=ranks).astype(np.int32)


class Buffers:
    """The two arrays of a process, lent to one case after another.

    Parameters
    ----------
    most : int
        Bytes of the larger case's array.
    """

    def __init__(self, most: int) -> None:
        self.unsorted = np.empty(most, np.uint8)
        self.sorted = np.empty(most, np.uint8)
        self.filled: object = None


class Contention:
    """Blocks of vectors from every process to every process. Collective.

    Memory: twice the local array, ``2 * n / p * m * 8`` bytes for doubles.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    n, m : int
        Vectors over all processes, numbers in each (the ints do not need m).
    kind : str
        One of `workloads.contention.problem.KINDS`.
    buffers : Buffers or None
        None: arrays of its own.
    seed : int
        Nothing here is drawn; for the sake of `workloads.phases.Trial`.

    Raises
    ------
    UsageError, NidmapError
        On all ranks alike: sizes that do not divide, or do not fit the memory.

    Attributes
    ----------
    comm : mpi4py.MPI.Intracomm
    sizes : Sizes
    """

    def __init__(
        self,
        comm: Comm,
        *,
        n: int = PRINTED_N,
        m: int = 1,
        kind: str = "alltoallv-double",
        buffers: Buffers | None = None,
        seed: int = 0,
    ) -> None:
        same(comm, n=n, m=m, kind=kind)
        self.comm, self.rank, nodes = comm, comm.Get_rank(), place(comm).nodes
        with together(comm):
            self.sizes = size = sizes(n, m, comm.Get_size(), nodes, kind)
        if buffers is None:
            what = f"an all-to-all of {exact_size(size.local_bytes)} a rank"
            fits(comm, size.rank_need, what, 1.0)
        with together(comm):
            self.buffers = buffers or Buffers(size.local_bytes)
        self._done = False
        numbers = unsorted_ints(size.n, size.ranks, self.rank)
        self._send = send_counts(numbers, size.ranks, size.n // size.ranks)
        self._receive = np.empty_like(self._send)
        comm.Alltoall(self._send, self._receive)

    def _array(self, which: str) -> Array:
        """Return one of the arrays as vectors (l_n, m)."""
        raw = getattr(self.buffers, which)[: self.sizes.local_bytes]
        double = self.sizes.kind.endswith("double")
        vectors: Array = raw.view(np.float64 if double else np.int32)
        return vectors.reshape(-1, self.sizes.m if double else 1)

    def _fill(self) -> None:
        """Write the unsorted array, and nothing that could pass for a result into the other."""
        if self.buffers.filled is not self:
            unsorted = self._array("unsorted")
            if self.sizes.kind == COUNTS:
                unsorted[:, 0] = self._send
            else:
                ints = unsorted_ints(self.sizes.n, self.sizes.ranks, self.rank)
                for part, vectors in _blocks(unsorted, ints):
                    part[...] = vectors
            self.buffers.filled = self
        self._array("sorted")[:, :1] = 0

    def run(self) -> dict[str, float]:
        """Exchange once and return this rank's seconds; the input is made before."""
        self._fill()
        out, into = self._array("unsorted"), self._array("sorted")
        one = MPI.DOUBLE if self.sizes.kind.endswith("double") else MPI.INT32_T
        vector = one.Create_contiguous(out.shape[1]).Commit()  # one item each: counts stay small
        if self.sizes.kind == COUNTS:
            call = partial(self.comm.Alltoall, [out, 1, vector], [into, 1, vector])
        else:
            there, back = (
                [array, counts, np.cumsum(counts) - counts, vector]
                for array, counts in ((out, self._send), (into, self._receive))
            )
            call = partial(self.comm.Alltoallv, there, back)
        self.comm.Barrier()
        spent = seconds_of(call)
        vector.Free()
        self._done = True
        return {"total": spent, "communication": spent}

    def verify(self) -> None:
        """Raise on all ranks where a result is not the sorted array; not timed.

        Of `COUNTS` it is the number of vectors in a block, from every process.
        """
        n, ranks = self.sizes.n, self.sizes.ranks
        with together(self.comm):
            found = self._array("sorted")
            if self.sizes.kind == COUNTS:
                right = bool((found == n // ranks**2).all())
            else:
                blocks = _blocks(found, sorted_ints(n, ranks, self.rank))
                right = all(np.array_equal(part, wanted) for part, wanted in blocks)
            if self._done and not right:
                error = NidmapError("the all-to-all did not bring the sorted array")
                error.exit_code = 1
                raise error


trial = Contention


def _blocks(array: Array, ints: NDArray[np.int32]) -> Iterator[tuple[Array, Array]]:
    """Yield an array block by block, each with the vectors that eq. 3.7 makes of these integers.

    Doubles are v + 0.0001 j for the j-th number of a vector, ints v itself.
    """
    width = array.shape[1]
    rows = max(_BLOCK // width, 1)
    for start in range(0, len(ints), rows):
        part = slice(start, start + rows)
        wanted: Array = ints[part, None]
        if array.dtype != np.int32:
            wanted = wanted + np.arange(width) * 0.0001
        yield array[part], wanted
