# SPDX-License-Identifier: Apache-2.0
"""The transposition between two stages of an FFT.

The paper's two ways ("MPI_Vectors vs Local rearrangement", section IV-D):

``alltoall``
    the blocks for each rank are put side by side, chunk by chunk while they
    are in the cache, and sent by MPI_Alltoall, or MPI_Alltoallv where they
    differ in size;
``vector``
    each block is an MPI_Type_vector in the array itself: MPI_Alltoall of
    resized vectors where all are alike, else MPI_Alltoallw of subarrays.

The source array is written chunk by chunk (`place`, `put`), all blocks are
exchanged (`exchange`), and the target array is read chunk by chunk (`take`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from nidmap.placement.support.array_types import Array
from nidmap.workloads.fft.plan import Swap, index_along
from nidmap.workloads.trials import Phases
from nidmap.workloads.world import Comm

if TYPE_CHECKING:
    from mpi4py import MPI

Index = tuple[slice, ...]


class Scratch:
    """Memory for the chunk being processed."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._memory: Array = np.empty(0, dtype)

    def get(self, shape: Sequence[int]) -> Array:
        """Return the memory in a given shape; its contents are lost if it has to grow."""
        size = math.prod(shape)
        if size > self._memory.size:
            self._memory = np.empty(size, self._memory.dtype)
        return self._memory[:size].reshape(shape)


class Transposition(ABC):
    """One transposition of arrays of one shape.

    `comm`: the row or column of the process grid. `scratch`: what chunks that cannot be worked on
    in their place are worked on in. `phases`: where the time goes: ``rearrange`` for copies,
    ``exchange`` for MPI.
    """

    def __init__(self, comm: Comm, swap: Swap, scratch: Scratch, phases: Phases) -> None:
        self.comm, self.swap, self.scratch, self.phases = comm, swap, scratch, phases

    def place(self, send: Array, chunk: Index) -> Array:
        """Return where to write a chunk of the source array before `put`.

        `send` (n,): the memory of the source array.
        """
        return array_in(send, self.swap.source_shape)[chunk]

    def put(self, send: Array, chunk: Index, values: Array) -> None:  # noqa: B027
        """Take a chunk that was written into `place`; no-op if it is already where it belongs."""

    @abstractmethod
    def exchange(self, send: Array, receive: Array) -> None:
        """Move all blocks of the source array into the memory of the target array."""

    def take(self, receive: Array, chunk: Index) -> Array:
        """Return a chunk of the target array."""
        return array_in(receive, self.swap.target_shape)[chunk]

    def close(self) -> None:  # noqa: B027  # not all keep something
        """Free MPI's resources for it. Collective."""


class Packed(Transposition):
    """``alltoall``: blocks packed contiguously, as blocks along axis 0 are anyway."""

    def place(self, send: Array, chunk: Index) -> Array:
        """Return a scratch array, or the source array itself if nothing needs rearranging."""
        if self.swap.scatter == 0:
            return super().place(send, chunk)
        return self.scratch.get(part_extents(self.swap.source_shape, chunk))

    def put(self, send: Array, chunk: Index, values: Array) -> None:
        """Copy the chunk's parts into each rank's block."""
        swap = self.swap
        if swap.scatter != 0:
            with self.phases("rearrange"):
                blocks = side_by_side(send, swap.sent_shapes())
                for block, part in zip(blocks, swap.scattered, strict=True):
                    block[chunk] = values[index_along(swap.scatter, part)]

    def exchange(self, send: Array, receive: Array) -> None:
        """Exchange with MPI_Alltoall, or MPI_Alltoallv."""
        send_counts, receive_counts = (
            [math.prod(shape) for shape in shapes]
            for shapes in (self.swap.sent_shapes(), self.swap.received_shapes())
        )
        with self.phases("exchange"):
            if self.swap.even:
                self.comm.Alltoall(send[: sum(send_counts)], receive[: sum(receive_counts)])
            else:
                self.comm.Alltoallv([send, send_counts], [receive, receive_counts])

    def take(self, receive: Array, chunk: Index) -> Array:
        """Return a chunk, assembled if its parts are in several blocks."""
        swap = self.swap
        if swap.gather == 0:
            return super().take(receive, chunk)
        values = self.scratch.get(part_extents(swap.target_shape, chunk))
        with self.phases("rearrange"):
            blocks = side_by_side(receive, swap.received_shapes())
            for block, part in zip(blocks, swap.gathered, strict=True):
                values[index_along(swap.gather, part)] = block[chunk]
        return values


class Vectors(Transposition):
    """``vector``: datatypes describe the blocks within the arrays themselves.

    MPI_Alltoall of MPI_Type_vector where all blocks are alike. An MPI_Alltoallv has one datatype
    for all ranks, and blocks that differ in both of their extents cannot be counted in one
    datatype on both sides: else it is MPI_Alltoallw of subarrays.
    """

    def __init__(self, comm: Comm, swap: Swap, scratch: Scratch, phases: Phases) -> None:
        super().__init__(comm, swap, scratch, phases)
        self._types: list[MPI.Datatype] = []
        describe = self._vector if swap.even else self._subarrays
        self._sides = (
            describe(swap.source_shape, swap.scatter, swap.scattered),
            describe(swap.target_shape, swap.gather, swap.gathered),
        )

    def exchange(self, send: Array, receive: Array) -> None:
        """Exchange using datatypes that describe the blocks' positions."""
        call = self.comm.Alltoall if self.swap.even else self.comm.Alltoallw
        sides = zip((send, receive), self._sides, strict=True)
        with self.phases("exchange"):
            call(*([memory, *side] for memory, side in sides))

    def _keep(self, made: MPI.Datatype) -> MPI.Datatype:
        """Commit a new datatype and return it; it is freed by `close`."""
        self._types.append(made.Commit())
        return made

    def _vector(self, shape: Sequence[int], axis: int, parts: Sequence[slice]) -> list[Any]:
        """Return count and datatype of a block; the ranks' blocks are consecutive."""
        from mpi4py import MPI

        inner, outer = math.prod(shape[axis + 1 :]), math.prod(shape[:axis])
        block = (parts[0].stop - parts[0].start) * inner
        vector = MPI.C_DOUBLE_COMPLEX.Create_vector(outer, block, shape[axis] * inner)
        size = max(block, 1) * MPI.C_DOUBLE_COMPLEX.Get_size()
        return [1, self._keep(self._keep(vector).Create_resized(0, size))]

    def _subarrays(self, shape: Sequence[int], axis: int, parts: Sequence[slice]) -> list[Any]:
        """Return counts, displacements and datatypes of all blocks; empty blocks count 0."""
        from mpi4py import MPI

        counts, types = [], []
        for part in parts:
            index = index_along(axis, part)
            extents = part_extents(shape, index)
            counts.append(int(math.prod(extents) > 0))
            kind = MPI.C_DOUBLE_COMPLEX
            if counts[-1]:
                starts = [stretch.start or 0 for stretch in index]
                kind = self._keep(kind.Create_subarray(list(shape), extents, starts))
            types.append(kind)
        return [counts, [0] * len(parts), types]

    def close(self) -> None:
        """Free the datatypes."""
        for made in self._types:
            made.Free()


#: The ways to transpose.
METHODS: dict[str, type[Transposition]] = {"alltoall": Packed, "vector": Vectors}


def array_in(memory: Array, shape: Sequence[int]) -> Array:
    """Return the beginning of a buffer as an array."""
    return memory[: math.prod(shape)].reshape(shape)


def part_extents(shape: Sequence[int], index: Index) -> list[int]:
    """Return the extents of a part of an array of that shape."""
    return [len(range(size)[part]) for size, part in zip(shape, index, strict=True)]


def side_by_side(memory: Array, shapes: Sequence[Sequence[int]]) -> list[Array]:
    """Return consecutive arrays of these shapes within a buffer."""
    starts = accumulate(map(math.prod, shapes), initial=0)
    return [array_in(memory[start:], shape) for start, shape in zip(starts, shapes, strict=False)]
