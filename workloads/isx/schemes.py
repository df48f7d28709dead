"""Ways to bring every bucket to its rank.

The order in which a rank turns to the others decides whether the network
sees an in-cast: in `naive` all turn to rank 0 first, then to 1, and so on.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from placement.support.array_types import Array, Ints
from workloads.world import Comm

__all__ = ["SCHEMES", "SIDES", "Window", "order"]

#: alltoallv is MPI's own; at-once posts everything and waits; the others send one by one.
SCHEMES = ("alltoallv", "at-once", "naive", "round-robin", "random")

#: Both ranks take part in a message, or the sender puts keys into the other's memory.
SIDES = ("two", "put")


def order(scheme: str, rank: int, size: int, seed: int) -> list[int]:
    """Return the ranks in the order in which this rank turns to them, itself left out.

    Examples
    --------
    >>> order("naive", 2, 4, 0), order("round-robin", 2, 4, 0)
    ([0, 1, 3], [3, 0, 1])
    >>> sorted(order("random", 2, 4, 0))
    [0, 1, 3]
    """
    if scheme == "random":
        rng = np.random.default_rng((seed, rank, size))
        turns = rng.permutation(size).tolist()
    elif scheme == "naive":
        turns = list(range(size))
    else:
        turns = [(rank + k) % size for k in range(1, size)]
    return [q for q in turns if q != rank]


class Window:
    """Memory that others put keys into, and a counter by which they say that they have.

    Collective: made and freed by all ranks.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    room : int
        Keys that fit.
    dtype : numpy dtype
    """

    def __init__(self, comm: Comm, room: int, dtype: np.dtype[Any]) -> None:
        from mpi4py import MPI

        self.comm = comm
        self._data = MPI.Win.Allocate(max(room, 1) * dtype.itemsize, dtype.itemsize, comm=comm)
        self._flag = MPI.Win.Allocate(8, 8, comm=comm)
        data, flag = (cast("Any", window.tomemory()) for window in (self._data, self._flag))
        self.keys: Array = np.frombuffer(data, dtype)[:room]
        np.frombuffer(flag, np.int64)[0] = 0
        self._expected = 0
        self._data.Lock_all()
        self._flag.Lock_all()
        self._flag.Sync()
        comm.Barrier()

    def put(
        self, scheme: str, turns: list[int], keys: Array, send: Ints, receive: Ints, places: Ints
    ) -> None:
        """Put each bucket into its rank's window, notify it, and wait for one's own keys.

        Parameters
        ----------
        scheme : str
            alltoallv counts as at-once here.
        turns : list of int
            See `order`.
        keys : (n,)
            Bucketed keys.
        send, receive : int64 (P,)
        places : int64 (P,)
            Where in each rank's window the keys of this rank belong.
        """
        rank, at_once = self.comm.Get_rank(), scheme in ("alltoallv", "at-once")
        starts = np.cumsum(send) - send
        here = int(places[rank])
        self.keys[here : here + send[rank]] = keys[starts[rank] : starts[rank] + send[rank]]
        busy = [q for q in turns if send[q]]
        for q in busy:
            bucket = keys[starts[q] : starts[q] + send[q]]
            self._data.Put(bucket, q, (int(places[q]), len(bucket)))
            if not at_once:
                self._data.Flush(q)
                self._notify([q])
        if at_once:
            self._data.Flush_all()
            self._notify(busy)
        self._expected += int(np.count_nonzero(receive)) - int(receive[rank] > 0)
        self._wait()

    def _notify(self, others: list[int]) -> None:
        """Add one to each one's counter: its keys of ours are there."""
        from mpi4py import MPI

        one = np.ones(1, np.int64)
        for q in others:
            self._flag.Accumulate(one, q, op=MPI.SUM)
        for q in others:
            self._flag.Flush(q)

    def _wait(self) -> None:
        """Wait until all who have keys for us have said so; reading by MPI makes it progress."""
        from mpi4py import MPI

        rank, nothing, seen = self.comm.Get_rank(), np.zeros(1, np.int64), np.full(1, -1)
        while seen[0] < self._expected:
            self._flag.Fetch_and_op(nothing, seen, rank, op=MPI.NO_OP)
            self._flag.Flush(rank)
        self._data.Sync()

    def free(self) -> None:
        """Give the windows back."""
        for window in (self._data, self._flag):
            window.Unlock_all()
        del self.keys
        for window in (self._data, self._flag):
            window.Free()
