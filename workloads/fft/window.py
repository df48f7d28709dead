"""Memory that the ranks of a node share, for transpositions without messages."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from placement.errors import UsageError
from placement.support.array_types import Array, Ints
from workloads.node_memory import NodeMemory
from workloads.world import Comm, processor, together

__all__ = ["SharedWindow", "choose_method", "one_node"]

#: Where MPIs put the memory that ranks of a node share.
_SHARED = "/dev/shm"  # noqa: S108  # only its free space is looked at

#: Bytes in front of a piece: two counters, each on a cache line of its own.
_LINE = 128

#: Turns of waiting after which MPI may do something.
_PROGRESS = 64


def choose_method(comm: Comm, part: Comm, method: str, piece: int) -> str:
    """Return the way to transpose inside a row or column: what ``auto`` comes to. Collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        All ranks, which get the same error.
    part : mpi4py.MPI.Intracomm
        The row or column.
    method : str
    piece : int
        Bytes of a piece.

    Raises
    ------
    UsageError
        On every rank alike: ``shared`` is asked for where nodes part a row or column.
    """
    if method not in ("auto", "shared"):
        return method
    near = one_node(part, piece)
    with together(comm):
        if method == "shared" and not near:
            raise UsageError(
                "not all ranks of a row or column share a node's memory",
                "--transpose auto takes it where it is there",
            )
    return "shared" if near else "alltoall"


def one_node(part: Comm, need: int = 0) -> bool:
    """Tell whether all ranks are on one node with room for so many bytes each. Collective."""
    from mpi4py import MPI

    size = part.Get_size()
    node = part.Split_type(MPI.COMM_TYPE_SHARED)
    near = node.Get_size() == size and len(set(part.allgather(processor(part)))) == 1
    node.Free()
    with suppress(OSError):  # where it is not, the MPI puts it elsewhere
        found = os.statvfs(_SHARED)
        near = near and found.f_bavail * found.f_frsize > 4 * need * size
    return bool(part.allreduce(near, MPI.LAND))


class SharedWindow:
    """Memory that all ranks of a node's communicator read: a piece a rank, and two counters each.

    The ranks meet by the counters, not by MPI: a rank that waits gives its
    core away, which MPI's own barriers do not, so that ranks that share cores
    with others do not wait for a turn of the scheduler at every piece.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        Ranks of one node.
    piece : int
        Bytes of a piece, the same on all ranks.
    """

    def __init__(self, comm: Comm, piece: int) -> None:
        self.comm = comm
        self.nbytes = piece + _LINE
        self._rank, self._turn = comm.Get_rank(), 0
        self._memory = memory = NodeMemory(comm, self.nbytes)
        every = {**memory.near, self._rank: memory.mine}
        self._parts = [every[rank] for rank in range(comm.Get_size())]
        self._written = [part[:8].view(np.int64) for part in self._parts]
        self._read = [part[64:72].view(np.int64) for part in self._parts]
        self._written[self._rank][0] = self._read[self._rank][0] = 0
        memory.sync()
        comm.Barrier()

    def array(self, rank: int, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """Return a rank's piece as an array."""
        raw = self._parts[rank][_LINE : _LINE + math.prod(shape) * dtype.itemsize]
        return raw.view(dtype).reshape(shape)

    def wait_read(self) -> None:
        """Wait until all ranks have read this rank's last piece: it may be written then."""
        self._wait(self._read)

    def wait_written(self) -> None:
        """Say that this rank's next piece is written and wait for those of all ranks."""
        self._turn += 1
        self._say(self._written)
        self._wait(self._written)

    def say_read(self) -> None:
        """Say that this rank has read all pieces."""
        self._say(self._read)

    def _say(self, counters: list[Ints]) -> None:
        self._memory.sync()  # what was written before is seen before the counter
        counters[self._rank][0] = self._turn
        self._memory.sync()

    def _wait(self, counters: list[Ints]) -> None:
        waits = 0
        for counter in counters:
            while counter[0] < self._turn:
                os.sched_yield()
                self._memory.sync()
                waits += 1
                if waits % _PROGRESS == 0:
                    self.comm.Iprobe()  # MPI may have work that the others wait for
        self._memory.sync()

    def close(self) -> None:
        """Free the memory. Collective."""
        self._parts, self._written, self._read = [], [], []
        self._memory.close()
