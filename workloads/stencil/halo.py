"""The ways to bring six messages to six neighbours.

``put``
    a blocking one-sided put to each, as DART's: MPI_Put and MPI_Win_flush,
    one after the other. Where the neighbour is on the same node and shared
    windows are on, the bytes are written into its memory instead (the
    "zero-copy model" of DART-MPI).
``put-all``
    all six puts, then one flush.
``sendrecv``
    MPI_Sendrecv along each axis, up and down.
``neighbor``
    one MPI_Neighbor_alltoall on a Cartesian communicator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from workloads.node_memory import NodeMemory
from workloads.stencil.grid import NONE, OPPOSITE, neighbours

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi4py import MPI
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]

__all__ = ["METHODS", "Halo"]


class Halo(ABC):
    """Six blocks out and six in. Collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    size : int
        Bytes of a block.
    grid : sequence of int
        Extents of the grid of units.
    periodic : bool
        Whether it wraps around.
    shared : bool
        Whether puts to neighbours on the same node are written to their memory.

    Attributes
    ----------
    neighbours : tuple of int
        Six ranks, `NONE` where there is none.
    out, into : uint8 (6, size)
        Blocks by direction: what goes that way, and what came from there.
    loose : bool
        Whether blocks of one rank in several directions may change places.
    """

    loose = False

    def __init__(
        self, comm: MPI.Intracomm, size: int, *, grid: Sequence[int], periodic: bool, shared: bool
    ) -> None:
        self.comm, self.size, self.grid, self.periodic = comm, size, grid, periodic
        self.neighbours = neighbours(comm.Get_rank(), grid, periodic)
        self.out: Bytes = np.zeros((6, size), np.uint8)
        self.into: Bytes = np.zeros((6, size), np.uint8)
        self.prepare(shared)

    @abstractmethod
    def prepare(self, shared: bool) -> None:
        """Make what the exchanges need."""

    @abstractmethod
    def exchange(self) -> None:
        """Send all blocks."""

    def settle(self) -> None:
        """Wait until what all ranks sent is in `into`. Collective."""
        self.comm.Barrier()

    def close(self) -> None:
        """Free what MPI keeps. Collective."""
        self.comm.Barrier()


class Put(Halo):
    """``put``: one after the other, each complete before the next."""

    overlap = False

    def prepare(self, shared: bool) -> None:
        """Open the windows that neighbours put into."""
        from mpi4py import MPI

        comm, size = self.comm, self.size
        self._memory = NodeMemory(comm, 6 * size) if shared else None
        self._near: dict[int, Bytes] = {}
        if self._memory is not None:
            raw = self._memory.mine
            self._near = {rank: self._blocks(raw) for rank, raw in self._memory.near.items()}
            self._window = MPI.Win.Create(raw, 1, comm=comm)
        else:
            self._window = MPI.Win.Allocate(6 * size, 1, comm=comm)
            raw = np.frombuffer(cast("Any", self._window.tomemory()), np.uint8)
        self.into = self._blocks(raw)
        self.into[...] = 0
        if shared:
            self._near[comm.Get_rank()] = self.into  # where the grid wraps around
        self._window.Lock_all(MPI.MODE_NOCHECK)
        self._steps = [
            (rank, OPPOSITE[way], [self.out[way], size, MPI.BYTE])
            for way, rank in enumerate(self.neighbours)
            if rank != NONE
        ]
        comm.Barrier()  # nobody puts before all have cleared their blocks

    def _blocks(self, raw: Bytes) -> Bytes:
        """Return the six blocks in the bytes that hold them."""
        return raw[: 6 * self.size].reshape(6, self.size)

    def exchange(self) -> None:
        """Put each block into its neighbour's memory."""
        window, overlap = self._window, self.overlap
        for rank, way, block in self._steps:
            near = self._near.get(rank)
            if near is not None:
                near[way] = block[0]
            else:
                window.Put(block, rank, way * self.into.shape[1])
                if not overlap:
                    window.Flush(rank)
        if overlap:
            window.Flush_all()

    def settle(self) -> None:
        """Wait until what all ranks put is visible. Collective."""
        self._window.Flush_all()
        self._window.Sync()
        self.comm.Barrier()
        self._window.Sync()

    def close(self) -> None:
        """Free the windows. Collective."""
        self.comm.Barrier()
        self._window.Unlock_all()
        self._near.clear()
        self.into = np.zeros((6, 0), np.uint8)
        self._window.Free()
        if self._memory is not None:
            self._memory.close()


class PutAll(Put):
    """``put-all``: all on their way at once."""

    overlap = True


class SendRecv(Halo):
    """``sendrecv``."""

    def prepare(self, shared: bool) -> None:
        """Lay out the six messages."""
        from mpi4py import MPI

        ranks = [MPI.PROC_NULL if rank == NONE else rank for rank in self.neighbours]
        out, into = (
            [[block, self.size, MPI.BYTE] for block in side] for side in (self.out, self.into)
        )
        self._steps = [
            (out[way], ranks[way], into[back], ranks[back]) for way, back in enumerate(OPPOSITE)
        ]

    def exchange(self) -> None:
        """Send one way along each axis while receiving from the other."""
        for out, target, into, source in self._steps:
            self.comm.Sendrecv(out, target, 0, into, source, 0)


class Neighbor(Halo):
    """``neighbor``: one collective on a Cartesian communicator."""

    loose = True

    def prepare(self, shared: bool) -> None:
        """Make the Cartesian communicator."""
        from mpi4py import MPI

        self._cart = self.comm.Create_cart(list(self.grid), [self.periodic] * 3, reorder=False)
        self._out, self._into = ([side, self.size, MPI.BYTE] for side in (self.out, self.into))

    def exchange(self) -> None:
        """Exchange all six blocks."""
        self._cart.Neighbor_alltoall(self._out, self._into)

    def close(self) -> None:
        """Free the Cartesian communicator. Collective."""
        self._cart.Free()


#: The ways to exchange.
METHODS: dict[str, type[Halo]] = {
    "put": Put,
    "put-all": PutAll,
    "sendrecv": SendRecv,
    "neighbor": Neighbor,
}
