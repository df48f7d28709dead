# SPDX-License-Identifier: Apache-2.0
"""The few collective calls on which the sorting algorithms are built.

The algorithms see `Ranks` only, so that a test can run them on ranks that are
threads of one process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from nidmap.placement.support.array_types import Array, Ints
from nidmap.workloads.world import Comm

if TYPE_CHECKING:
    from mpi4py import MPI

#: Most bytes that one message of a point-to-point exchange carries.
PIECE = 1 << 30

#: Counts and displacements of MPI-3's Alltoallv are C ints.
INT_MAX = 2**31 - 1

#: Tag of the exchange's messages.
TAG = 77


class Ranks:
    """The ranks of a communicator and their exchanges.

    Every method is collective. Arrays are C-contiguous.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm

    Attributes
    ----------
    rank, size : int
    """

    def __init__(self, comm: Comm) -> None:
        from mpi4py import MPI

        self.comm, self._mpi = comm, MPI
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()

    def total(self, values: Array) -> Array:
        """Return the sum of an array over the ranks, element by element."""
        return self._over(values, self._mpi.SUM)

    def least(self, values: Array) -> Array:
        """Return the minimum over the ranks, element by element."""
        return self._over(values, self._mpi.MIN)

    def _over(self, values: Array, op: MPI.Op) -> Array:
        out = np.empty_like(values)
        self.comm.Allreduce(values, out, op=op)
        return out

    def before(self, values: Ints) -> Ints:
        """Return the sum over the ranks below this one, element by element."""
        out = np.zeros_like(values)
        self.comm.Exscan(values, out, op=self._mpi.SUM)
        return out if self.rank else np.zeros_like(values)

    def all(self, flag: bool) -> bool:
        """Tell whether a condition holds on every rank (one Allreduce of a boolean)."""
        mine, out = np.array([flag]), np.empty(1, np.bool_)
        self.comm.Allreduce([mine, self._mpi.C_BOOL], [out, self._mpi.C_BOOL], op=self._mpi.LAND)
        return bool(out[0])

    def swap(self, rows: Array) -> Array:
        """Return an array whose row q is the row that rank q had for this rank (Alltoall)."""
        out = np.empty_like(rows)
        self.comm.Alltoall(rows, out)
        return out

    def share(self, values: Array) -> Array:
        """Return equally many values from all ranks, one row per rank (Allgather)."""
        out = np.empty((self.size, *values.shape), values.dtype)
        self.comm.Allgather(values, out)
        return out

    def collect(self, values: Array) -> Array:
        """Return all ranks' values in rank order (Allgatherv), for any dtype."""
        counts = self.share(np.array(len(values)))
        out = np.empty(int(counts.sum()), values.dtype)
        kind = _bytes_type(values.dtype.itemsize)
        starts = np.cumsum(counts) - counts
        self.comm.Allgatherv([values, len(values), kind], [out, counts, starts, kind])
        kind.Free()
        return out

    def alltoallv(self, items: Array, send: Ints, out: Array, receive: Ints) -> None:
        """Send runs of items to all ranks in rank order, with one MPI_Alltoallv.

        Parameters
        ----------
        items, out : (n,) and (m,) of one dtype
            What is sent, sorted by destination, and room for what comes,
            which will be sorted by source.
        send, receive : int64 (P,)
            Items to and from each rank.
        """
        kind = _bytes_type(items.dtype.itemsize)
        starts, ends = np.cumsum(send) - send, np.cumsum(receive) - receive
        self.comm.Alltoallv([items, send, starts, kind], [out, receive, ends, kind])
        kind.Free()

    def sparse(
        self,
        items: Array,
        send: Ints,
        out: Array,
        receive: Ints,
        *,
        piece: int = PIECE,
    ) -> None:
        """Do the same as `alltoallv` with point-to-point messages, skipping empty ones.

        A run of more than `piece` bytes goes in several messages, so that no
        count comes near 2**31: this is also the way beyond MPI-3's int counts.

        Parameters
        ----------
        items, send, out, receive
            See `alltoallv`.
        piece : int
            Bytes that one message holds at most.
        """
        # Upwards from one's own: at any moment each rank is the target of one sender.
        turns = [(self.rank + k) % self.size for k in range(1, self.size)]
        kind = _bytes_type(items.dtype.itemsize)
        length = max(1, piece // items.dtype.itemsize)
        requests = [
            self.comm.Irecv([part, len(part), kind], source=rank, tag=TAG)
            for rank, part in _parts_of_ranks(out, receive, turns[::-1], length)
        ]
        _items_of(out, receive, self.rank)[:] = _items_of(items, send, self.rank)
        requests += [
            self.comm.Isend([part, len(part), kind], dest=rank, tag=TAG)
            for rank, part in _parts_of_ranks(items, send, turns, length)
        ]
        self._mpi.Request.Waitall(requests)
        kind.Free()

    def part(self, color: int) -> Ranks:
        """Split off the ranks of one color, in the same order; the caller frees them."""
        return Ranks(self._mpi.Intracomm(self.comm.Split(color, self.rank)))

    def free(self) -> None:
        """Free the communicator."""
        self.comm.Free()

    def fits(self, send: Ints, receive: Ints) -> bool:
        """Tell whether MPI_Alltoallv can count these items: MPI-4, or all sums below 2**31."""
        most = max(int(send.sum()), int(receive.sum()))
        return self._mpi.VERSION >= 4 or most <= INT_MAX


def _bytes_type(size: int) -> MPI.Datatype:
    """Return a committed MPI datatype of this many bytes, so that counts are in items."""
    from mpi4py import MPI

    return MPI.BYTE.Create_contiguous(size).Commit()


def _items_of(items: Array, counts: Ints, rank: int) -> Array:
    start = int(counts[:rank].sum())
    return items[start : start + int(counts[rank])]


def _parts_of_ranks(
    items: Array, counts: Ints, turns: Sequence[int], length: int
) -> Iterator[tuple[int, Array]]:
    """Yield (other rank, its items in pieces), rank by rank."""
    ends = np.cumsum(counts).tolist()
    for rank in turns:
        for start in range(ends[rank - 1] if rank else 0, ends[rank], length):
            yield rank, items[start : min(start + length, ends[rank])]
