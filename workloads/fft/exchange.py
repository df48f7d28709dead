"""The transposition between two stages of an FFT: one piece of the array at a time.

Four ways, of which the first three are the paper's ("MPI_Vectors vs Local
rearrangement", section IV-D, and MPI_Alltoallw, its reference 1):

``alltoall``
    the blocks for each rank are put side by side, chunk by chunk while they
    are in the cache, and sent by MPI_Alltoall, or MPI_Alltoallv where they
    differ in size or land in places of their own;
``vector``
    each block is an MPI_Type_vector in the array itself: MPI_Alltoall of
    resized vectors where all are alike, else pairwise;
``alltoallw``
    each block is an MPI_Type_create_subarray, in one MPI_Alltoallw;
``shared``
    ranks of one node read each other's blocks out of a shared window, which
    MPI need not copy through.

A piece goes ``target -> put`` chunk by chunk on the sending side, then
``finish`` brings all blocks into the target array.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpi4py import MPI
    from numpy.typing import NDArray

    from workloads.fft.parts import Swap
    from workloads.fft.window import Window
    from workloads.phases import Phases

    Array = NDArray[Any]

__all__ = ["METHODS", "Exchange", "Pool", "exchange"]

#: The ways to transpose, apart from ``auto``.
METHODS = ("alltoall", "vector", "alltoallw", "shared")


class Pool:
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


class Exchange(ABC):
    """The transpositions of all pieces of an array in one direction.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        The row or column of the process grid.
    swaps : sequence of Swap
        One a piece.
    pool : Pool
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
        self, comm: MPI.Intracomm, swaps: Sequence[Swap], pool: Pool, phases: Phases
    ) -> None:
        self.comm = comm
        self.swaps = swaps
        self.pool = pool
        self.phases = phases

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

    def _largest(self) -> int:
        """Return the elements of this rank's largest source array."""
        return max(math.prod(swap.source_shape(swap.rank)) for swap in self.swaps)


class Packed(Exchange):
    """``alltoall``: blocks put side by side."""

    natural = False

    def __init__(
        self, comm: MPI.Intracomm, swaps: Sequence[Swap], pool: Pool, phases: Phases
    ) -> None:
        super().__init__(comm, swaps, pool, phases)
        rows = swaps[0].gather == 0  # blocks are whole stretches of the target array
        self._direct = rows and all(_reach(swap) < _MOST for swap in swaps)
        self._alike = [swap.even and (not rows or len(swaps) == 1) for swap in swaps]
        self._in_place = swaps[0].scatter == 0  # blocks are side by side already
        pool.reserve("send", self._largest())
        if not self._direct:
            pool.reserve("receive", max(sum(_came(swap)) for swap in swaps))

    def target(self, piece: int, chunk: tuple[slice, ...]) -> Array:
        """Return a scratch array, or the buffer itself where nothing is to be rearranged."""
        swap = self.swaps[piece]
        whole = swap.source_shape(swap.rank)
        if self._in_place:
            return self.pool.get("send", whole)[chunk]
        sizes = [len(range(size)[part]) for size, part in zip(whole, chunk, strict=True)]
        return self.pool.get("chunk", sizes)

    def put(self, piece: int, chunk: tuple[slice, ...], values: Array) -> None:
        """Put the chunk's parts where each rank's block is."""
        if self._in_place:
            return
        with self.phases("rearrange"):
            swap = self.swaps[piece]
            shapes = [swap.block_shape(swap.rank, rank) for rank in range(len(swap.scattered))]
            buffer = self.pool.get("send", (sum(_sent(swap)),))
            for rank, block in enumerate(_side_by_side(buffer, shapes)):
                block[_kept(chunk, swap.scatter)] = values[swap.sent(rank)]

    def finish(self, piece: int, target: Array) -> None:
        """Exchange by MPI_Alltoall or MPI_Alltoallv, and put what came into its place."""
        swap = self.swaps[piece]
        sent, came = _sent(swap), _came(swap)
        send = self.pool.get("send", (sum(sent),))
        receive, places = target.reshape(-1), _starts(came)
        if self._direct:
            row = math.prod(target.shape[1:])
            places = [part.start * row for part in swap.gathered]
        else:
            receive = self.pool.get("receive", (sum(came),))
        with self.phases("exchange"):
            if self._alike[piece]:
                self.comm.Alltoall(send, receive)
            else:
                self._alltoallv(send, sent, receive, came, places)
        if not self._direct:
            self._unpack(swap, receive, target)

    def _alltoallv(
        self, send: Array, sent: list[int], receive: Array, came: list[int], at: list[int]
    ) -> None:
        from mpi4py import MPI

        kind = MPI._typedict[self.pool.dtype.char]
        self.comm.Alltoallv([send, (sent, _starts(sent)), kind], [receive, (came, at), kind])

    def _unpack(self, swap: Swap, receive: Array, target: Array) -> None:
        with self.phases("rearrange"):
            shapes = [swap.block_shape(rank, swap.rank) for rank in range(len(swap.gathered))]
            for rank, block in enumerate(_side_by_side(receive, shapes)):
                target[swap.received(rank)] = block


def _sent(swap: Swap) -> list[int]:
    """Return the elements of the blocks that this rank sends, by rank."""
    ranks = range(len(swap.scattered))
    return [math.prod(swap.block_shape(swap.rank, rank)) for rank in ranks]


def _came(swap: Swap) -> list[int]:
    """Return the elements of the blocks that this rank receives, by rank."""
    ranks = range(len(swap.gathered))
    return [math.prod(swap.block_shape(rank, swap.rank)) for rank in ranks]


class _Typed(Exchange):
    """What the ways by datatypes share: the source array itself is what is sent."""

    def __init__(
        self, comm: MPI.Intracomm, swaps: Sequence[Swap], pool: Pool, phases: Phases
    ) -> None:
        super().__init__(comm, swaps, pool, phases)
        axes = sorted((swaps[0].gather, swaps[0].scatter))
        self._name = f"source {axes}"  # one exchange may receive into another's source
        pool.reserve(self._name, self._largest())
        self._made: dict[tuple[int, tuple[int, ...]], Any] = {}

    def _whole(self, piece: int) -> Array:
        swap = self.swaps[piece]
        shape = swap.source_shape(swap.rank)
        return self.pool.get(self._name, shape)

    def target(self, piece: int, chunk: tuple[slice, ...]) -> Array:
        """Return the place of the chunk in the source array."""
        return self._whole(piece)[chunk]

    def finish(self, piece: int, target: Array) -> None:
        """Exchange by datatypes that say where the blocks are."""
        with self.phases("exchange"):
            key = piece, target.shape
            if key not in self._made:
                self._made[key] = self._types(self.swaps[piece], target.shape)
            self._talk(self._whole(piece), target, self._made[key])

    @abstractmethod
    def _types(self, swap: Swap, shape: tuple[int, ...]) -> Any:
        """Return the datatypes of the blocks in a source and in a target of that shape."""

    @abstractmethod
    def _talk(self, source: Array, target: Array, types: Any) -> None:
        """Exchange."""

    @abstractmethod
    def _free(self, types: Any) -> None:
        """Free datatypes."""

    def close(self) -> None:
        """Free the datatypes."""
        for types in self._made.values():
            self._free(types)
        self._made.clear()

    @property
    def _kind(self) -> MPI.Datatype:
        from mpi4py import MPI

        return MPI._typedict[self.pool.dtype.char]


class Subarrays(_Typed):
    """``alltoallw``: MPI_Alltoallw of subarrays."""

    def _types(self, swap: Swap, shape: tuple[int, ...]) -> Any:
        ranks = range(len(swap.gathered))
        whole = swap.source_shape(swap.rank)
        sent = [self._subarray(whole, swap.sent(rank)) for rank in ranks]
        came = [self._subarray(shape, swap.received(rank)) for rank in ranks]
        return sent, came

    def _subarray(self, shape: Sequence[int], index: tuple[slice, ...]) -> MPI.Datatype | None:
        starts = [part.start or 0 for part in index]
        sizes = [len(range(size)[part]) for size, part in zip(shape, index, strict=True)]
        if not math.prod(sizes):
            return None  # MPI has no subarray without elements
        return self._kind.Create_subarray(list(shape), sizes, starts).Commit()

    def _talk(self, source: Array, target: Array, types: Any) -> None:
        sent, came = (
            ([int(t is not None) for t in side], [t or self._kind for t in side]) for side in types
        )
        zeros = [0] * len(sent[0])
        self.comm.Alltoallw(
            [source, (sent[0], zeros), sent[1]], [target, (came[0], zeros), came[1]]
        )

    def _free(self, types: Any) -> None:
        for made in (*types[0], *types[1]):
            if made is not None:
                made.Free()


class Vectors(_Typed):
    """``vector``: MPI_Type_vector, in MPI_Alltoall where all blocks are alike, else pairwise.

    An MPI_Alltoallv has one datatype for all ranks, and blocks that differ in
    both of their extents cannot be counted in one datatype on both sides.
    """

    def _types(self, swap: Swap, shape: tuple[int, ...]) -> Any:
        source = swap.source_shape(swap.rank)
        sent = [self._vector(source, swap.scatter, part.size) for part in swap.scattered]
        came = [self._vector(shape, swap.gather, part.size) for part in swap.gathered]
        steps = _stride(source, swap.scatter), _stride(shape, swap.gather)
        at = [part.start * steps[0] for part in swap.scattered]
        to = [part.start * steps[1] for part in swap.gathered]
        spread = self._spread(swap, sent, came, at, to) if swap.even else None
        return sent, came, at, to, spread

    def _vector(self, shape: Sequence[int], axis: int, size: int) -> MPI.Datatype:
        """Return the type of `size` elements of an axis and all of the others."""
        inner = _stride(shape, axis)
        outer = math.prod(shape[:axis])
        return self._kind.Create_vector(outer, size * inner, shape[axis] * inner).Commit()

    def _spread(
        self, swap: Swap, sent: list[Any], came: list[Any], at: list[int], to: list[int]
    ) -> Any:
        """Return the vectors resized so that each rank's block follows the one before."""
        item = self.pool.dtype.itemsize
        extents = [(where[1] - where[0] if len(where) > 1 else 0) * item for where in (at, to)]
        return [
            types[0].Create_resized(0, max(extent, item)).Commit()
            for types, extent in zip((sent, came), extents, strict=True)
        ]

    def _talk(self, source: Array, target: Array, types: Any) -> None:
        sent, came, at, to, spread = types
        flat = source.reshape(-1), target.reshape(-1)
        if spread is not None:
            self.comm.Alltoall([flat[0][at[0] :], 1, spread[0]], [flat[1][to[0] :], 1, spread[1]])
            return
        self._pairwise(flat, sent, came, at, to)

    def _pairwise(
        self, flat: tuple[Array, Array], sent: list[Any], came: list[Any], at: Any, to: Any
    ) -> None:
        from mpi4py import MPI

        me, size = self.comm.Get_rank(), self.comm.Get_size()
        requests = []
        for step in range(size):
            rank = (me - step) % size
            requests.append(self.comm.Irecv([flat[1][to[rank] :], 1, came[rank]], rank))
        for step in range(size):
            rank = (me + step) % size
            requests.append(self.comm.Isend([flat[0][at[rank] :], 1, sent[rank]], rank))
        MPI.Request.Waitall(requests)

    def _free(self, types: Any) -> None:
        sent, came, _, _, spread = types
        for made in (*sent, *came, *(spread or ())):
            made.Free()


class Shared(Exchange):
    """``shared``: blocks read out of the other ranks' memory.

    Parameters
    ----------
    window : Window
        Its pieces hold any rank's source array.
    comm, swaps, pool, phases
        See `Exchange`.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        swaps: Sequence[Swap],
        pool: Pool,
        phases: Phases,
        window: Window,
    ) -> None:
        super().__init__(comm, swaps, pool, phases)
        self._window = window

    def _of(self, piece: int, rank: int) -> Array:
        shape = self.swaps[piece].source_shape(rank)
        return self._window.array(rank, shape, self.pool.dtype)

    def target(self, piece: int, chunk: tuple[slice, ...]) -> Array:
        """Return the place of the chunk in this rank's part of the window."""
        with self.phases("exchange"):
            self._window.wait_read()
        return self._of(piece, self.swaps[piece].rank)[chunk]

    def finish(self, piece: int, target: Array) -> None:
        """Wait for all, then copy the blocks, each rank beginning with its own."""
        swap = self.swaps[piece]
        size = len(swap.gathered)
        with self.phases("exchange"):
            self._window.wait_written()
            for step in range(size):
                rank = (swap.rank + step) % size
                target[swap.received(rank)] = self._of(piece, rank)[swap.sent(swap.rank)]
            self._window.say_read()


#: Elements of an array that an MPI without large counts can reach into.
_MOST = 2**31


def _reach(swap: Swap) -> int:
    """Return the elements of the target array up to the end of its last block."""
    row = math.prod(swap.block_shape(0, swap.rank)) // max(swap.gathered[0].size, 1)
    return max(part.stop for part in swap.gathered) * row


_KINDS: dict[str, Callable[..., Exchange]] = {
    "alltoall": Packed,
    "vector": Vectors,
    "alltoallw": Subarrays,
}


def exchange(
    method: str,
    comm: MPI.Intracomm,
    swaps: Sequence[Swap],
    pool: Pool,
    phases: Phases,
    window: Window | None = None,
) -> Exchange:
    """Return the transpositions of all pieces by one of `METHODS`."""
    if method == "shared":
        assert window is not None
        return Shared(comm, swaps, pool, phases, window)
    return _KINDS[method](comm, swaps, pool, phases)


def _stride(shape: Sequence[int], axis: int) -> int:
    """Return the elements from one to the next along an axis of a contiguous array."""
    return math.prod(shape[axis + 1 :])


def _starts(sizes: Sequence[int]) -> list[int]:
    starts = [0]
    for size in sizes[:-1]:
        starts.append(starts[-1] + size)
    return starts


def _side_by_side(buffer: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """Return views of a buffer, one after the other, in these shapes."""
    sizes = [math.prod(shape) for shape in shapes]
    return [
        buffer[start : start + size].reshape(shape)
        for start, size, shape in zip(_starts(sizes), sizes, shapes, strict=True)
    ]


def _kept(chunk: tuple[slice, ...], axis: int) -> tuple[slice, ...]:
    """Return a chunk's place in a block, which has its own extent along the scattered axis."""
    return tuple(slice(None) if k == axis else part for k, part in enumerate(chunk))
