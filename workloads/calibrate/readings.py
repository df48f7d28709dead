"""What is read off the machine in every round, as positive numbers by name.

==================  ========================================================
name                number
==================  ========================================================
``flows K``         seconds of set K of flows, all ranks sending, two sizes
``ranks R``         the same of one set with R ranks of each node
``copies``          seconds of copies between the ranks of one node, two sizes
``message``         seconds between two messages of one rank
``node messages``   seconds between two messages of one node, all sending
``latency L K``     seconds of an empty message, pair K of level L
``step``            seconds of a step of a staged exchange, two sizes
==================  ========================================================

What has two sizes is two numbers, named ``NAME short`` and ``NAME long``, of
messages with as many bytes as `readings` says: what does not grow with them cancels.
Rounds are interleaved: what disturbs a machine for a while disturbs all alike.
Exchanges are timed on all ranks that take part, and the others sleep
meanwhile. Seconds are the slowest rank's, from when it left a barrier to when
all of its messages were there.
"""

from __future__ import annotations

import random
import time
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

from workloads.ab.statistics import FEWEST
from workloads.calibrate.choice import Plan
from workloads.calibrate.flows import Flows
from workloads.places import doubling
from workloads.progress import Progress
from workloads.session import Session
from workloads.world import Comm

__all__ = ["Rounds", "readings"]

Reading = Callable[[], dict[str, float]]
Sizes = dict[str, tuple[int, int]]

#: Bytes of a flow at first, and at most; bytes into and out of a node at most.
FIRST, MOST, NODE_MOST = 1 << 16, 1 << 25, 1 << 28

#: How much shorter the messages are with which the others are compared.
SHORTER = 8

#: Bytes of the copies inside a node.
COPY = 1 << 22

#: Bytes of a step of the staged
GAP_BYTES = 1 << 15

#: Steps of the staged exchange at most.
STEPS = 8

#: Empty messages to and fro between two ranks.
TIMES = 10

#: Seconds between two looks of a rank that waits for an exchange of others.
NAP = 0.01

#: Messages that are under way at the same time where their rate is measured.
WINDOW = 64


def readings(comm: Comm, plan: Plan, target: float) -> tuple[list[Reading], Sizes]:
    """Return all that is read in a round, and the bytes of what is read with two sizes.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    plan : Plan
    target : float
        Seconds that the flows of a set should take together: long against a barrier.

    Returns
    -------
    list of callable
        Each returns numbers by their names, the same on all ranks. Collective.
    dict of str to (int, int)
        Bytes of the short and of the long messages by name; those of sets of
        flows are added when these are first read.
    """
    buffers, seats, ppn = Buffers(), plan.seats, plan.ppn
    sizes = {"step": (GAP_BYTES, 2 * GAP_BYTES)}
    sets = plan.chosen.table.flows
    named = [(f"flows {k}", one, ppn) for k, one in enumerate(sets)]
    named += [(f"ranks {r}", sets[plan.node_set], r) for r in doubling(ppn)[:-1]]
    found: list[Reading] = [
        partial(_read_flows, name, one, r, target, sizes,
                flow_exchange(comm, seats, one, r, buffers))
        for name, one, r in named
    ]  # fmt: skip
    if ppn > 1:
        sizes["copies"] = (COPY // SHORTER, COPY)
        to_next = partial(time_steps, comm, seats[0], 1, buffers)
        found.append(lambda: _read_both("copies", to_next, sizes))
    ring = [ranks[0] for ranks in seats]
    steps = partial(time_steps, comm, ring, min(STEPS, len(ring) - 1), buffers)
    found.append(lambda: _read_both("step", steps, sizes))
    found.append(lambda: _messages(comm, plan))
    found.append(lambda: _latencies(comm, plan))
    return found, sizes


def _read_both(name: str, seconds: Callable[[int], float], sizes: Sizes) -> dict[str, float]:
    """Return the seconds with short and with long messages."""
    short, long = sizes[name]
    return {f"{name} short": seconds(short), f"{name} long": seconds(long)}


def _read_flows(
    name: str,
    flows: Flows,
    each: int,
    target: float,
    sizes: Sizes,
    seconds: Callable[[int], float],
) -> dict[str, float]:
    """Return the seconds of a set of flows, with sizes that are found at the first reading."""
    if name not in sizes:
        ends = flows.source.tolist(), flows.target.tolist()
        busiest = max(column.count(node) for column in ends for node in column)
        long = _suitable_size(seconds, min(MOST, NODE_MOST // busiest), target)
        # the ranks of a node share both equally
        short, long = (max(1, size // each) * each for size in (long // SHORTER, long))
        sizes[name] = short, long
    return _read_both(name, seconds, sizes)


def _suitable_size(seconds: Callable[[int], float], most: int, target: float) -> int:
    """Return the bytes that take as long as they should, or as many as are allowed."""
    seconds(FIRST)  # makes the connections
    size, spent = FIRST, seconds(FIRST)
    while spent < target / 4 and size < most:
        size *= 2
        spent = seconds(size)
    return int(min(most, max(FIRST // 2, size * target / spent)))


def _messages(comm: Comm, plan: Plan) -> dict[str, float]:
    """Return the seconds between two messages of one rank, and of one node."""
    ends = list(zip(*plan.seats[:2], strict=True))
    found = {"message": time_stream(comm, ends[:1]) / WINDOW}
    if len(ends) > 1:
        found["node messages"] = time_stream(comm, ends) / (WINDOW * len(ends))
    return found


def _latencies(comm: Comm, plan: Plan) -> dict[str, float]:
    """Return the seconds of an empty message for every pair of nodes."""
    named = {
        f"latency {level} {k}": (plan.seats[a][0], plan.seats[b][int(a == b)])
        for level, listed in plan.pairs.items()
        for k, (a, b) in enumerate(listed)
    }
    found = ping_pongs(comm, list(named.values()), TIMES)
    return dict(zip(named, found, strict=True))


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
    comm: Comm, seats: list[list[int]], flows: Flows, each: int, buffers: Buffers
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


class Rounds(Session):
    """A calibration: whole rounds are kept, and enough of them are a result.

    Attributes
    ----------
    finished : list of dict of str to float
        Readings of each round by their names; the same on all ranks.
    """

    rounds: list[dict[str, float]]

    @property
    def enough(self) -> bool:
        """Whether intervals can be given."""
        return len(self.rounds) >= FEWEST

    def ending(self) -> str:
        """Say that the run ended early, and what of it counts."""
        done = f"{self.ended} after {len(self.rounds)} of {self.common.repeat} rounds"
        if self.enough:
            return f"{done}: the figures rest on these"
        return f"{done}: nothing is written, as {FEWEST} rounds are the fewest that say anything"

    def measure_rounds(self, readings: Sequence[Reading]) -> None:
        """Take all readings in every round, each round in an order of its own. Collective.

        A first round does not count: connections are made in it, and sizes found.
        """
        self.rounds = []
        self._say_remark()
        order = random.Random(self.common.seed)  # noqa: S311  # an order, no secret
        done, total = 0, len(readings) * (self.common.repeat + 1)
        with Progress("calibrate", total, shown=self.root) as progress:
            for number in range(self.common.repeat + 1):
                values: dict[str, float] = {}
                for reading in order.sample(list(readings), len(readings)):
                    began = time.monotonic()
                    values |= {name: max(s, 1e-12) for name, s in reading().items()}
                    done += 1
                    progress.at(done)
                    if self.over(time.monotonic() - began):
                        return
                if number:
                    self.rounds.append(values)
