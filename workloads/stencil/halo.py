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

from workloads.stencil.grid import NONE, OPPOSITE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi4py import MPI
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]

__all__ = ["METHODS", "Halo", "halo"]


class Halo(ABC):
    """Six blocks out and six in. Collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    neighbours : sequence of int
        Six ranks, `NONE` where there is none.
    size : int
        Bytes of a block.

    Attributes
    ----------
    out, into : uint8 (6, size)
        Blocks by direction: what goes that way, and what came from there.
    loose : bool
        Whether blocks of one rank in several directions may change places.
    """

    loose = False

    def __init__(self, comm: MPI.Intracomm, neighbours: Sequence[int], size: int) -> None:
        self.comm = comm
        self.neighbours = tuple(neighbours)
        self.out: Bytes = np.zeros((6, size), np.uint8)
        self.into: Bytes = np.zeros((6, size), np.uint8)

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
    """``put`` and ``put-all``.

    Parameters
    ----------
    comm, neighbours, size
        See `Halo`.
    shared : bool
        Whether neighbours on the same node are written to directly.
    overlap : bool
        Whether all puts are on their way at once.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        neighbours: Sequence[int],
        size: int,
        *,
        shared: bool,
        overlap: bool,
    ) -> None:
        from mpi4py import MPI

        super().__init__(comm, neighbours, size)
        self._overlap = overlap
        self._frees: list[Any] = []
        self._near: dict[int, Bytes] = {}
        if shared:
            self.into = self._share(size)
            self._window = MPI.Win.Create(self.into, 1, comm=comm)
        else:
            self._window = MPI.Win.Allocate(6 * size, 1, comm=comm)
            raw = np.frombuffer(cast("Any", self._window.tomemory()), np.uint8)
            self.into = raw[: 6 * size].reshape(6, size)
        self.into[...] = 0
        self._window.Lock_all(MPI.MODE_NOCHECK)
        self._steps = [
            (rank, OPPOSITE[way], [self.out[way], size, MPI.BYTE])
            for way, rank in enumerate(self.neighbours)
            if rank != NONE
        ]
        comm.Barrier()  # nobody puts before all have cleared their blocks

    def _share(self, size: int) -> Bytes:
        """Return this rank's part of the node's shared window; remember the neighbours'."""
        from mpi4py import MPI

        node = cast("MPI.Intracomm", self.comm.Split_type(MPI.COMM_TYPE_SHARED))
        window = MPI.Win.Allocate_shared(6 * size, 1, comm=node)
        window.Lock_all(MPI.MODE_NOCHECK)
        self._frees += [window, node]
        world, local = self.comm.Get_group(), node.Get_group()
        at = world.Translate_ranks(None, local)
        for rank in set(self.neighbours) - {NONE}:
            if at[rank] != MPI.UNDEFINED:
                self._near[rank] = _blocks(window.Shared_query(at[rank])[0], size)
        mine = _blocks(window.Shared_query(node.Get_rank())[0], size)
        world.Free()
        local.Free()
        return mine

    def exchange(self) -> None:
        """Put each block into its neighbour's memory."""
        window, overlap = self._window, self._overlap
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
        if self._frees:
            self._frees[0].Unlock_all()
        for made in self._frees:
            made.Free()


class SendRecv(Halo):
    """``sendrecv``."""

    def __init__(self, comm: MPI.Intracomm, neighbours: Sequence[int], size: int) -> None:
        from mpi4py import MPI

        super().__init__(comm, neighbours, size)
        ranks = [MPI.PROC_NULL if rank == NONE else rank for rank in self.neighbours]
        self._steps = [
            (
                [self.out[way], size, MPI.BYTE],
                ranks[way],
                [self.into[OPPOSITE[way]], size, MPI.BYTE],
                ranks[OPPOSITE[way]],
            )
            for way in range(6)
        ]

    def exchange(self) -> None:
        """Send one way along each axis while receiving from the other."""
        for out, target, into, source in self._steps:
            self.comm.Sendrecv(out, target, 0, into, source, 0)


class Neighbor(Halo):
    """``neighbor``: one collective on a Cartesian communicator."""

    loose = True

    def __init__(
        self,
        comm: MPI.Intracomm,
        neighbours: Sequence[int],
        size: int,
        grid: Sequence[int],
        periodic: bool,
    ) -> None:
        from mpi4py import MPI

        super().__init__(comm, neighbours, size)
        self._cart = comm.Create_cart(list(grid), [periodic] * 3, reorder=False)
        self._out = [self.out, size, MPI.BYTE]
        self._into = [self.into, size, MPI.BYTE]

    def exchange(self) -> None:
        """Exchange all six blocks."""
        self._cart.Neighbor_alltoall(self._out, self._into)

    def close(self) -> None:
        """Free the Cartesian communicator. Collective."""
        self._cart.Free()


#: The ways to exchange.
METHODS = ("put", "put-all", "sendrecv", "neighbor")


def halo(
    method: str,
    comm: MPI.Intracomm,
    neighbours: Sequence[int],
    size: int,
    *,
    grid: Sequence[int],
    periodic: bool,
    shared: bool,
) -> Halo:
    """Return the exchange by one of `METHODS`. Collective."""
    if method == "sendrecv":
        return SendRecv(comm, neighbours, size)
    if method == "neighbor":
        return Neighbor(comm, neighbours, size, grid, periodic)
    return Put(comm, neighbours, size, shared=shared, overlap=method == "put-all")


def _blocks(buffer: Any, size: int) -> Bytes:
    raw: Bytes = np.frombuffer(buffer, np.uint8)
    return raw[: 6 * size].reshape(6, size)
