"""The exchanges that are timed, each on all ranks that take part; the others sleep meanwhile.

Seconds are the slowest rank's, from when it left a barrier to when all of its
messages were there.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Sequence
from statistics import median

from workloads.calibrate.flows import Flows
from workloads.world import Comm

__all__ = ["Buffers", "Seats", "flow_exchange", "ping_pongs", "slowest", "time_steps",
           "time_stream"]  # fmt: skip

#: Seconds between two looks of a rank that waits for an exchange of others.
NAP = 0.01

#: Messages that are under way at the same time where their rate is measured.
WINDOW = 64

#: Ranks of each node.
Seats = list[list[int]]


class Buffers:
    """What a rank sends and receives into, as large as it was ever needed."""

    def __init__(self) -> None:
        self._out, self._into = bytearray(), bytearray()

    def grow(self, out: int, into: int) -> None:
        """Make room, and touch it."""
        if out > len(self._out):
            self._out = bytearray(b"\1") * out
        if into > len(self._into):
            self._into = bytearray(b"\1") * into

    def out(self, size: int) -> memoryview:
        """Return what is sent; all messages may send the same bytes."""
        return memoryview(self._out)[:size]

    def into(self, size: int, number: int = 0) -> memoryview:
        """Return where the message of that number goes, all being of one size."""
        return memoryview(self._into)[number * size : (number + 1) * size]


def slowest(comm: Comm, run: Callable[[], float] | None) -> float:
    """Return the seconds of the slowest rank. Collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    run : callable or None
        Returns this rank's seconds; None where it takes no part.
    """
    comm.Barrier()
    return _largest(comm, array("d", [run() if run else 0.0]), asleep=run is None)[0]


def _largest(comm: Comm, mine: array[float], asleep: bool) -> list[float]:
    """Return the largest of each number over the ranks; a rank waits asleep or as MPI does."""
    from mpi4py import MPI

    most = array("d", mine)
    request = comm.Iallreduce(mine, most, op=MPI.MAX)
    while asleep and not request.Test():
        time.sleep(NAP)
    request.Wait()
    return list(most)


def flow_exchange(
    comm: Comm, seats: Seats, flows: Flows, each: int, buffers: Buffers
) -> Callable[[int], float]:
    """Return a collective function from the bytes of a flow to the seconds of the exchange.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    seats : list of list of int
        Ranks of each node.
    flows : Flows
    each : int
        Ranks of each node that share its flow.
    buffers : Buffers
    """
    me = comm.Get_rank()
    pairs = [
        (seats[a][k], seats[b][k])
        for a, b in zip(flows.source.tolist(), flows.target.tolist(), strict=True)
        for k in range(each)
    ]
    targets = [b for a, b in pairs if a == me]
    sources = [a for a, b in pairs if b == me]

    def exchange(size: int) -> float:
        from mpi4py import MPI

        part = max(1, size // each)
        buffers.grow(part, part * len(sources))

        def run() -> float:
            began = time.perf_counter()
            under_way = [
                comm.Irecv([buffers.into(part, k), MPI.BYTE], source)
                for k, source in enumerate(sources)
            ]
            under_way += [comm.Isend([buffers.out(part), MPI.BYTE], peer) for peer in targets]
            MPI.Request.Waitall(under_way)
            return time.perf_counter() - began

        return slowest(comm, run if targets or sources else None)

    return exchange


def ping_pongs(comm: Comm, pairs: Sequence[tuple[int, int]], times: int) -> list[float]:
    """Return the seconds in which an empty message gets from one rank to the other. Collective.

    Each rank takes its pairs in the order given: pairs without a rank in
    common go at the same time.
    """
    me, mine = comm.Get_rank(), array("d", [0.0]) * len(pairs)
    comm.Barrier()
    for k, (one, other) in enumerate(pairs):
        if me in (one, other):
            mine[k] = _ping_pong(comm, other if me == one else one, me == one, times)
    return _largest(comm, mine, asleep=not any(mine))


def _ping_pong(comm: Comm, peer: int, first: bool, times: int) -> float:
    """Return the median seconds of a way, once the other one is there too."""
    from mpi4py import MPI

    byte, spent = bytearray(1), []
    for _ in range(times + 1):
        began = time.perf_counter()
        if first:
            comm.Send([byte, MPI.BYTE], peer)
        comm.Recv([byte, MPI.BYTE], peer)
        if not first:
            comm.Send([byte, MPI.BYTE], peer)
        spent.append((time.perf_counter() - began) / 2)
    return median(spent[1:]) if first else 0.0


def time_stream(comm: Comm, pairs: Sequence[tuple[int, int]]) -> float:
    """Return the seconds in which each pair of ranks moves `WINDOW` short messages. Collective."""
    from mpi4py import MPI

    me = comm.Get_rank()
    to, of = (dict(ends).get(me) for ends in (pairs, [(b, a) for a, b in pairs]))
    words = [bytearray(8) for _ in range(WINDOW)]

    def run() -> float:
        began = time.perf_counter()
        peer = of if to is None else to
        assert peer is not None
        start = comm.Irecv if to is None else comm.Isend
        MPI.Request.Waitall([start([word, MPI.BYTE], peer) for word in words])
        return time.perf_counter() - began

    return slowest(comm, None if to is None and of is None else run)


def time_steps(comm: Comm, ring: Sequence[int], steps: int, buffers: Buffers, size: int) -> float:
    """Return the seconds of a step, each to a rank further and after the last one. Collective."""
    from mpi4py import MPI

    me = comm.Get_rank()
    at = ring.index(me) if me in ring else None

    def run() -> float:
        assert at is not None
        buffers.grow(size, size)
        out, into = [buffers.out(size), MPI.BYTE], [buffers.into(size), MPI.BYTE]
        began = time.perf_counter()
        for step in range(1, steps + 1):
            to, of = ring[(at + step) % len(ring)], ring[at - step]
            comm.Sendrecv(out, to, recvbuf=into, source=of)
        return (time.perf_counter() - began) / steps

    return slowest(comm, None if at is None else run)
