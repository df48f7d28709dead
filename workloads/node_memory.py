"""Memory that the ranks of a node read and write by loads and stores."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from workloads.world import MPI, Comm

__all__ = ["NodeMemory"]


class NodeMemory:
    """A part of the node's memory for each of its ranks. Collective to make and to close.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        Ranks of one or more nodes.
    size : int
        Bytes of this rank's part.

    Attributes
    ----------
    mine : uint8 (size,)
    near : dict of int to uint8 array
        The parts of the node's other ranks, by their rank in `comm`; at least as long as theirs.
    """

    def __init__(self, comm: Comm, size: int) -> None:
        self._node = node = cast("Comm", comm.Split_type(MPI.COMM_TYPE_SHARED))
        self._window = MPI.Win.Allocate_shared(max(size, 8), 1, comm=node)
        self._window.Lock_all(MPI.MODE_NOCHECK)
        self.near: dict[int, NDArray[np.uint8]] = {}
        for at, rank in enumerate(node.allgather(comm.Get_rank())):
            buffer: Any = self._window.Shared_query(at)[0]
            self.near[rank] = np.frombuffer(buffer, np.uint8)
        self.mine = self.near.pop(comm.Get_rank())[:size]

    def sync(self) -> None:
        """Make this rank's stores visible to the others, and theirs to it."""
        self._window.Sync()

    def close(self) -> None:
        """Free the memory."""
        self.mine = np.empty(0, np.uint8)
        self.near.clear()
        self._window.Unlock_all()
        self._window.Free()
        self._node.Free()
