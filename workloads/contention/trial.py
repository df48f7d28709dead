# SPDX-License-Identifier: Apache-2.0
"""The contention paper's all-to-all on a communicator: its sizes, memory and verification.

A global array of n vectors, m numbers each, lies on p processes: l_n = n/p
vectors on each, blocks of l_n/p = n/p^2 in the all-to-all.

Input without any local sorting (eqs. 3.6 and 3.7): the blocks are in order,
and what arrives is the sorted array at once. Equation 3.7 runs j over the m
numbers of a vector (it prints p). How many vectors go to which process is
counted in the data (eqs. 3.3 and 3.5); an Alltoall of one count a process,
row A of Table 4.5, tells each what it will get.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from nidmap.placement.errors import NidmapError, UsageError, printable
from nidmap.placement.support.quantities import exact_size
from nidmap.workloads.trials import require_fit, seconds_of
from nidmap.workloads.world import Comm, raise_together, rank_place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nidmap.placement.support.array_types import Array

#: n = 2^v (8 * 18 * 3 * 2)^2 with v = 1, as section 3.2 prints it.
PRINTED_N = 2 * (8 * 18 * 3 * 2) ** 2

#: Row A of Table 4.5: one int to every process, which says how many vectors it will get.
COUNTS = "alltoall-int"

#: The three calls of Table 4.5.
KINDS = (COUNTS, "alltoallv-int", "alltoallv-double")

#: Part of a node's memory from which on MPI's own buffers may not fit (Table 4.4).
WARN = 0.75


@dataclass(frozen=True, slots=True)
class Length:
    """A vector's length: a fixed number of doubles, or a number per node (``512N``)."""

    factor: int
    by_node: bool  # False: constant global memory; True: constant local memory (4.1, 4.2)

    def at(self, nodes: int) -> int:
        """Return m for this number of nodes."""
        return self.factor * nodes if self.by_node else self.factor

    def __str__(self) -> str:
        return f"{self.factor}N" if self.by_node else str(self.factor)


def parse_length(text: str) -> Length:
    """Parse a length such as ``512`` or ``512N``."""
    match = re.fullmatch(r"(\d{1,9})(N?)", text, re.ASCII)
    if match is None or not int(match[1]):
        raise UsageError(
            f"{printable(text)!r} is not a vector length", "use 512, or 512N for N nodes"
        )
    return Length(int(match[1]), bool(match[2]))


@dataclass(frozen=True, slots=True)
class CaseSizes:
    """The sizes of one case."""

    n: int
    m: int
    ranks: int
    nodes: int
    kind: str
    local: int  # l_n = n/p: vectors on a process; of `COUNTS` p numbers
    block: int  # n/p^2: vectors in a block of the all-to-all; of `COUNTS` one number

    @property
    def item(self) -> int:
        """Bytes of one vector's representation: an int, or m doubles."""
        return 8 * self.m if self.kind.endswith("double") else 4

    @property
    def local_bytes(self) -> int:
        """Bytes of one array on a process."""
        return self.local * self.item

    @property
    def block_bytes(self) -> int:
        """Bytes of a block."""
        return self.block * self.item

    @property
    def rank_need(self) -> int:
        """Bytes that a process needs: the unsorted and the sorted array."""
        return 2 * self.local_bytes

    @property
    def node_need(self) -> int:
        """Bytes that a node needs, without MPI's own buffers."""
        return self.rank_need * (self.ranks // self.nodes)


def case_sizes(n: int, m: int, ranks: int, nodes: int, kind: str = "alltoallv-double") -> CaseSizes:
    """Return the sizes of a case.

    `n`: vectors over all processes; p^2 must divide it. `m`: numbers in a vector. `ranks`,
    `nodes`: p and N. `kind`: one of `KINDS`.
    """
    if n < 1 or m < 1 or ranks < 1:
        raise UsageError("n, m and the number of ranks must be at least 1")
    square = ranks * ranks
    if n % square:
        nearest = max(round(n / square), 1) * square
        raise UsageError(
            f"{ranks}^2 does not divide n = {n}: blocks would differ", f"the nearest is {nearest}"
        )
    local, block = (ranks, 1) if kind == COUNTS else (n // ranks, n // square)
    return CaseSizes(n, m, ranks, nodes, kind, local, block)


#: Vectors filled at a time: no temporary array as large as the data.
_BLOCK = 1 << 16


def unsorted_ints(n: int, ranks: int, rank: int) -> NDArray[np.int32]:
    """Return the unsorted integers of one process, eq. 3.6: int32 (n/p,)."""
    local, block = n // ranks, n // ranks**2
    i = np.arange(local)
    return (1 + block * rank + local * (i // block) + i % block).astype(np.int32)


def sorted_ints(n: int, ranks: int, rank: int) -> NDArray[np.int32]:
    """Return a process's expected contents at the end: the numbers 1 to n in order."""
    local = n // ranks
    return np.arange(1 + local * rank, 1 + local * (rank + 1), dtype=np.int32)


def send_counts(numbers: Array, ranks: int, local: int) -> NDArray[np.int32]:
    """Return how many vectors go to each process, counted as in eqs. 3.3 and 3.5.

    `numbers` (l,): each vector's first number; vectors 1 to `local` belong to process 0. `ranks`,
    `local`: p and l_n. Returns (p,).
    """
    owner = ((numbers - 1) // local).astype(np.intp)
    return np.bincount(owner, minlength=ranks).astype(np.int32)


def new_arrays(sizes: CaseSizes) -> tuple[Array, Array]:
    """Allocate the unsorted and the sorted array of a process."""
    return np.empty(sizes.local_bytes, np.uint8), np.empty(sizes.local_bytes, np.uint8)


class Contention:
    """Blocks of vectors from every process to every process. Collective.

    Memory: twice the local array, ``2 * n / p * m * 8`` bytes for doubles.

    `n`, `m`: vectors over all processes, numbers in each (the ints do not need m). `kind`: one of
    `KINDS`. `arrays`: as `new_arrays` makes them, lent to one case after another; None means
    arrays of its own.
    """

    def __init__(
        self,
        comm: Comm,
        *,
        n: int = PRINTED_N,
        m: int = 1,
        kind: str = "alltoallv-double",
        arrays: tuple[Array, Array] | None = None,
    ) -> None:
        self.comm, self.rank, nodes = comm, comm.Get_rank(), rank_place(comm).nodes
        self.sizes = size = case_sizes(n, m, comm.Get_size(), nodes, kind)
        if arrays is None:
            what = f"an all-to-all of {exact_size(size.local_bytes)} per rank"
            require_fit(comm, size.rank_need, what, 1.0)
        with raise_together(comm):
            unsorted, arrived = arrays or new_arrays(size)
        self._unsorted, self._sorted = self._vectors(unsorted), self._vectors(arrived)
        self._done = False
        self._numbers = unsorted_ints(size.n, size.ranks, self.rank)
        self._send = send_counts(self._numbers, size.ranks, size.n // size.ranks)
        self._receive = np.empty_like(self._send)
        comm.Alltoall(self._send, self._receive)

    def _vectors(self, memory: Array) -> Array:
        """Return an array as vectors (l_n, m)."""
        double = self.sizes.kind.endswith("double")
        vectors: Array = memory.view(np.float64 if double else np.int32)
        return vectors.reshape(-1, self.sizes.m if double else 1)

    def _fill(self) -> None:
        """Write the unsorted array, and invalid values into the other one."""
        if self.sizes.kind == COUNTS:
            self._unsorted[:, 0] = self._send
        else:
            for part, vectors in _split_blocks(self._unsorted, self._numbers):
                part[...] = vectors
        self._sorted[:, :1] = 0

    def run(self) -> dict[str, float]:
        """Exchange once and return this rank's seconds; the input is prepared before."""
        from mpi4py import MPI

        self._fill()
        out, into = self._unsorted, self._sorted
        datatype = MPI.DOUBLE if self.sizes.kind.endswith("double") else MPI.INT32_T
        vector = datatype.Create_contiguous(
            out.shape[1]
        ).Commit()  # one item each: counts stay small
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
        """Raise on all ranks if a result is not the sorted array; not timed.

        Of `COUNTS` it is the number of vectors in a block, from every process.
        """
        n, ranks = self.sizes.n, self.sizes.ranks
        with raise_together(self.comm):
            if self.sizes.kind == COUNTS:
                right = bool((self._sorted == n // ranks**2).all())
            else:
                blocks = _split_blocks(self._sorted, sorted_ints(n, ranks, self.rank))
                right = all(np.array_equal(part, wanted) for part, wanted in blocks)
            if self._done and not right:
                error = NidmapError("the all-to-all did not deliver the sorted array")
                error.exit_code = 1
                raise error


def _split_blocks(array: Array, ints: NDArray[np.int32]) -> Iterator[tuple[Array, Array]]:
    """Yield an array block by block, with the vectors that eq. 3.7 assigns to the integers.

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
