"""The transposition between two stages of an FFT: one piece of the array at a time.

The paper's two ways ("MPI_Vectors vs Local rearrangement", section IV-D):

``alltoall``
    the blocks for each rank are put side by side, chunk by chunk while they
    are in the cache, and sent by MPI_Alltoall, or MPI_Alltoallv where they
    differ in size or land in places of their own;
``vector``
    each block is an MPI_Type_vector in the array itself: MPI_Alltoall of
    resized vectors where all are alike, else MPI_Alltoallw of subarrays.

A piece goes ``target -> put`` chunk by chunk on the sending side, then
``finish`` brings all blocks into the target array.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from placement.support.array_types import Array
from workloads.fft.plan import Swap
from workloads.trials import Phases
from workloads.world import MPI, Comm

#: Elements of an array that an MPI without large counts can reach into.
_MOST = 2**31


class BufferPool:
    """Buffers that all exchanges of an FFT use, one exchange at a time.

    Parameters
    ----------
    dtype : numpy.dtype
        Of their elements.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self._sizes: dict[str, int] = {}
        self._made: dict[str, Array] = {}

    def reserve(self, name: str, count: int) -> None:
        """Make sure that a buffer will have so many elements."""
        self._sizes[name] = max(count, self._sizes.get(name, 0))

    def get(self, name: str, shape: Sequence[int]) -> Array:
        """Return the beginning of a buffer in a shape."""
        size = math.prod(shape)
        made = self._made.get(name)
        if made is None or made.size < size:
            self.reserve(name, size)
            made = self._made[name] = np.empty(self._sizes[name], self.dtype)
        return made[:size].reshape(shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers, those not yet made among them."""
        return sum(self._sizes.values()) * int(self.dtype.itemsize)


class Transpositions(ABC):
    """The transpositions of all pieces of an array in one direction.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        The row or column of the process grid.
    swaps : sequence of Swap
        One a piece.
    pool : BufferPool
        Where the buffers come from.
    phases : Phases
        Where the time goes: ``rearrange`` for copies, ``exchange`` for MPI.

    Attributes
    ----------
    natural : bool
        Whether `target` gives places of one array in the source's own order,
        in which a whole piece may stand before it is transformed.
    """

    natural = True

    def __init__(
        self,
        comm: Comm,
        swaps: Sequence[Swap],
        pool: BufferPool,
        phases: Phases,
    ) -> None:
        self.comm, self.swaps, self.pool, self.phases = comm, swaps, pool, phases
        self.prepare(max(math.prod(swap.source_shape(swap.rank)) for swap in swaps))

    def prepare(self, largest: int) -> None:  # noqa: B027  # not all need buffers
        """Reserve buffers; `largest`: the elements of this rank's largest source array."""

    @property
    def _kind(self) -> MPI.Datatype:
        """MPI's type of one element."""
        return MPI._typedict[self.pool.dtype.char]

    @abstractmethod
    def target(self, piece: int, chunk: tuple[slice, ...]) -> Array:
        """Return the array into which a chunk of the source array is to be written."""

    def put(self, piece: int, chunk: tuple[slice, ...], values: Array) -> None:  # noqa: B027
        """Take a chunk that was written into `target`; nothing where it is in its place."""

    @abstractmethod
    def finish(self, piece: int, target: Array) -> None:
        """Exchange a piece whose chunks are all there; the blocks stand in `target` then."""

    def close(self) -> None:  # noqa: B027  # most keep nothing
        """Free what MPI keeps for it. Collective."""


class Packed(Transpositions):
    """``alltoall``: blocks put side by side."""

    natural = False

    def prepare(self, largest: int) -> None:
        """Reserve the buffers of what is sent and, where it needs one, of what comes."""
        swaps, pool = self.swaps, self.pool
        rows = swaps[0].gather == 0  # blocks are whole stretches of the target array
        self._direct = rows and all(_reach_of(swap) < _MOST for swap in swaps)
        self._alike = [swap.even and (not rows or len(swaps) == 1) for swap in swaps]
        self._in_place = swaps[0].scatter == 0  # blocks are side by side already
        pool.reserve("send", largest)
        if not self._direct:
            pool.reserve(
                "receive", max(sum(_block_sizes(_received_shapes(swap))) for swap in swaps)
            )

    def target(self, piece: int, chunk: tuple[slice, ...]) -> Array:
        """Return a scratch array, or the buffer itself where nothing is to be rearranged."""
        swap = self.swaps[piece]
        whole = swap.source_shape(swap.rank)
        if self._in_place:
            return self.pool.get("send", whole)[chunk]
        return self.pool.get("chunk", _part_extents(whole, chunk))

    def put(self, piece: int, chunk: tuple[slice, ...], values: Array) -> None:
        """Put the chunk's parts where each rank's block is."""
        if self._in_place:
            return
        with self.phases("rearrange"):
            swap = self.swaps[piece]
            shapes = _sent_shapes(swap)
            buffer = self.pool.get("send", (sum(_block_sizes(shapes)),))
            # a block has its own extent along the scattered axis
            kept = tuple(slice(None) if k == swap.scatter else c for k, c in enumerate(chunk))
            for rank, block in enumerate(_side_by_side(buffer, shapes)):
                block[kept] = values[swap.sent(rank)]

    def finish(self, piece: int, target: Array) -> None:
        """Exchange by MPI_Alltoall or MPI_Alltoallv, and put what came into its place."""
        swap = self.swaps[piece]
        shapes = _received_shapes(swap)
        sent, came = _block_sizes(_sent_shapes(swap)), _block_sizes(shapes)
        send = self.pool.get("send", (sum(sent),))
        if self._direct:
            receive, row = target.reshape(-1), math.prod(target.shape[1:])
            places = [part.start * row for part in swap.gathered]
        else:
            receive, places = self.pool.get("receive", (sum(came),)), _block_starts(came)
        with self.phases("exchange"):
            if self._alike[piece]:
                self.comm.Alltoall(send, receive)
            else:
                kind = self._kind
                self.comm.Alltoallv(
                    [send, (sent, _block_starts(sent)), kind], [receive, (came, places), kind]
                )
        if not self._direct:
            with self.phases("rearrange"):
                for rank, block in enumerate(_side_by_side(receive, shapes)):
                    target[swap.received(rank)] = block


class Subarrays(Transpositions):
    """MPI_Alltoallw of subarrays; the source array itself is what is sent."""

    def prepare(self, largest: int) -> None:
        """Reserve the source array."""
        axes = sorted((self.swaps[0].gather, self.swaps[0].scatter))
        self._name = f"source {axes}"  # one exchange may receive into another's source
        self.pool.reserve(self._name, largest)
        self._types: dict[tuple[int, tuple[int, ...]], list[Any]] = {}
        self._made: list[MPI.Datatype] = []

    def target(self, piece: int, chunk: tuple[slice, ...]) -> Array:
        """Return the place of the chunk in the source array."""
        swap = self.swaps[piece]
        return self.pool.get(self._name, swap.source_shape(swap.rank))[chunk]

    def finish(self, piece: int, target: Array) -> None:
        """Exchange by datatypes that say where the blocks are."""
        with self.phases("exchange"):
            key = piece, target.shape
            if key not in self._types:
                self._types[key] = self._describe(self.swaps[piece], target.shape)
            source = self.target(piece, (slice(None),))
            self._exchange(self.swaps[piece], source, target, self._types[key])

    def _keep(self, made: MPI.Datatype) -> MPI.Datatype:
        """Return a new datatype ready for use; it is freed in the end."""
        self._made.append(made.Commit())
        return made

    def _describe(self, swap: Swap, shape: tuple[int, ...]) -> list[Any]:
        """Return what MPI is told of the blocks in a source and in a target of that shape."""
        whole, ranks = swap.source_shape(swap.rank), range(len(swap.gathered))
        types = (
            [self._subarray(whole, swap.sent(rank)) for rank in ranks],
            [self._subarray(shape, swap.received(rank)) for rank in ranks],
        )
        return [
            (([int(made is not None) for made in side], [0] * len(side)),
             [made or self._kind for made in side])
            for side in types
        ]  # fmt: skip

    def _subarray(self, shape: Sequence[int], index: tuple[slice, ...]) -> MPI.Datatype | None:
        starts, sizes = [part.start or 0 for part in index], _part_extents(shape, index)
        if not math.prod(sizes):
            return None  # MPI has no subarray without elements
        return self._keep(self._kind.Create_subarray(list(shape), sizes, starts))

    def _exchange(self, swap: Swap, source: Array, target: Array, types: list[Any]) -> None:
        """Send the blocks of the source into those of the target."""
        self.comm.Alltoallw([source, *types[0]], [target, *types[1]])

    def close(self) -> None:
        """Free the datatypes."""
        for made in self._made:
            made.Free()
        self._made, self._types = [], {}


class Vectors(Subarrays):
    """``vector``: MPI_Alltoall of MPI_Type_vector where all blocks are alike; else `Subarrays`.

    An MPI_Alltoallv has one datatype for all ranks, and blocks that differ in
    both of their extents cannot be counted in one datatype on both sides.
    """

    def _describe(self, swap: Swap, shape: tuple[int, ...]) -> list[Any]:
        if not swap.even:
            return super()._describe(swap, shape)
        source, item = swap.source_shape(swap.rank), self.pool.dtype.itemsize
        sides = []
        for whole, axis, parts in (
            (source, swap.scatter, swap.scattered),
            (shape, swap.gather, swap.gathered),
        ):
            inner, outer = math.prod(whole[axis + 1 :]), math.prod(whole[:axis])
            vector = self._kind.Create_vector(outer, parts[0].size * inner, whole[axis] * inner)
            # each rank's block follows the one before
            apart = (parts[1].start - parts[0].start) * inner if len(parts) > 1 else 0
            made = self._keep(self._keep(vector).Create_resized(0, max(apart, 1) * item))
            sides.append((parts[0].start * inner, made))
        return sides

    def _exchange(self, swap: Swap, source: Array, target: Array, types: list[Any]) -> None:
        if not swap.even:
            return super()._exchange(swap, source, target, types)
        (at, sent), (to, came) = types
        return self.comm.Alltoall(
            [source.reshape(-1)[at:], 1, sent], [target.reshape(-1)[to:], 1, came]
        )


#: The ways to transpose.
METHODS: dict[str, type[Transpositions]] = {"alltoall": Packed, "vector": Vectors}


def _reach_of(swap: Swap) -> int:
    """Return the elements of the target array up to the end of its last block."""
    row = math.prod(swap.block_shape(0, swap.rank)) // max(swap.gathered[0].size, 1)
    return max(part.stop for part in swap.gathered) * row


def _sent_shapes(swap: Swap) -> list[tuple[int, ...]]:
    """Return the shapes of the blocks that this rank sends, by rank."""
    return [swap.block_shape(swap.rank, rank) for rank in range(len(swap.scattered))]


def _received_shapes(swap: Swap) -> list[tuple[int, ...]]:
    """Return the shapes of the blocks that this rank receives, by rank."""
    return [swap.block_shape(rank, swap.rank) for rank in range(len(swap.gathered))]


def _block_sizes(shapes: Sequence[tuple[int, ...]]) -> list[int]:
    return [math.prod(shape) for shape in shapes]


def _block_starts(sizes: Sequence[int]) -> list[int]:
    return list(accumulate(sizes[:-1], initial=0))


def _part_extents(shape: Sequence[int], index: tuple[slice, ...]) -> list[int]:
    """Return the extents of a part of an array of that shape."""
    return [len(range(size)[part]) for size, part in zip(shape, index, strict=True)]


def _side_by_side(buffer: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """Return views of a buffer, one after the other, in these shapes."""
    sizes = _block_sizes(shapes)
    return [
        buffer[start : start + size].reshape(shape)
        for start, size, shape in zip(_block_starts(sizes), sizes, shapes, strict=True)
    ]
