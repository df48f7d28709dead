"""What is timed from rank 0 alone: one message to a partner, and one copy of a block."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import NidmapError
from workloads.phases import seconds_of
from workloads.world import together

if TYPE_CHECKING:
    from mpi4py import MPI
    from numpy.typing import NDArray

    from workloads.stencil.blocks import Blocks

__all__ = ["Fetch", "Message", "Plain"]


class Message:
    """One message from rank 0 to rank 1 of a pair, over and over: Figure 6's latency.

    ``put``: a blocking put, done when it is in the other's memory;
    ``sendrecv``: half of there and back.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        Two ranks.
    size : int
        Bytes.
    method : {"put", "sendrecv"}
    iterations : int
        Messages of one repetition.
    """

    def __init__(self, comm: MPI.Intracomm, size: int, method: str, iterations: int) -> None:
        from mpi4py import MPI

        self.comm, self._size, self._iterations = comm, size, iterations
        rank = comm.Get_rank()
        self._block = np.full(size, 7 + rank, np.uint8)
        self._message = [self._block, size, MPI.BYTE]
        self._window: MPI.Win | None = None
        if method == "put":
            self._window = MPI.Win.Allocate(max(size, 1), 1, comm=comm)
            self._window.Lock_all(MPI.MODE_NOCHECK)

    def run(self) -> dict[str, float]:
        """Send `iterations` times and return the seconds of one."""
        if self._window is None:
            spent = seconds_of(self._bounce, self._iterations) / 2
        elif self.comm.Get_rank() == 0:
            spent = seconds_of(self._put, self._iterations)
        else:  # it waits inside the barrier, where its MPI can help
            spent = 0.0
        self.comm.Barrier()
        return {"total": spent, "communication": spent}

    def _put(self) -> None:
        assert self._window is not None
        self._window.Put(self._message, 1)
        self._window.Flush(1)

    def _bounce(self) -> None:
        """Send there and back, as rank 0 sees it."""
        rank = self.comm.Get_rank()
        if rank == 0:
            self.comm.Send(self._message, 1)
        self.comm.Recv(self._message, 1 - rank)
        if rank:
            self.comm.Send(self._message, 0)

    def verify(self) -> None:
        """Raise on both ranks where the message did not arrive. Collective."""
        got = self._block
        if self._window is not None:
            self._window.Flush_all()
            self.comm.Barrier()
            self._window.Sync()
            memory: Any = self._window.tomemory()
            got = np.frombuffer(memory, np.uint8)[: self._size]
        with together(self.comm):
            if (self._window is None or self.comm.Get_rank()) and not (got == 7).all():
                raise NidmapError("the message did not arrive as it was sent")

    def close(self) -> None:
        """Free the window. Collective."""
        if self._window is not None:
            self._window.Unlock_all()
            self._window.Free()


class Plain:
    """A copy inside this process: the reference of Figures 1 and 2 (``std::copy``)."""

    def __init__(self, count: int, iterations: int) -> None:
        self._source = np.arange(count, dtype=np.float64)
        self._target = np.zeros(count)
        self._iterations = iterations

    def run(self) -> dict[str, float]:
        """Copy `iterations` times and return the seconds of one."""
        copy = partial(np.copyto, self._target, self._source)
        return {"total": seconds_of(copy, self._iterations)}

    def verify(self) -> None:
        """Raise where the copy is not the original."""
        if not np.array_equal(self._source, self._target):
            raise NidmapError("the copy is not what was copied")


class Fetch:
    """A region of a distributed array copied by rank 0, while the others wait inside MPI.

    Parameters
    ----------
    blocks : Blocks
        One axis; element k holds the value k.
    start, count : int
        The region.
    iterations : int
        Copies of one repetition.
    """

    def __init__(self, blocks: Blocks, start: int, count: int, iterations: int) -> None:
        self._blocks, self._iterations = blocks, iterations
        self._region = (slice(start, start + count),)
        first = blocks.comm.Get_rank() == 0
        self._out: NDArray[Any] = np.zeros(count if first else 0, blocks.dtype)

    def run(self) -> dict[str, float]:
        """Copy `iterations` times on rank 0 and return the seconds of one; 0 elsewhere."""
        spent = 0.0
        if self._blocks.comm.Get_rank() == 0:
            copy = partial(self._blocks.copy, self._region, self._out)
            spent = seconds_of(copy, self._iterations)
        self._blocks.comm.Barrier()
        return {"total": spent}

    def verify(self) -> None:
        """Raise on all ranks where the copy is not what the units hold."""
        span = self._region[0]
        with together(self._blocks.comm):
            expected = np.arange(span.start, span.start + len(self._out), dtype=self._out.dtype)
            if not np.array_equal(self._out, expected):
                raise NidmapError("the copy is not what the units hold")
