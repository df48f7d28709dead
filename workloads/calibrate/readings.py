# SPDX-License-Identifier: Apache-2.0
"""The measurements taken in every round, as positive numbers by name.

==================  ========================================================
name                number
==================  ========================================================
``flows K``         seconds of set K of flows, all ranks sending, two sizes
``alone``           the same of one set with one rank of each node
``copies``          seconds of copies between the ranks of one node, two sizes
``message``         seconds between two messages of one rank
``node messages``   seconds between two messages of one node, all sending
``latency L K``     seconds of an empty message, pair K of level L
``step``            seconds of a step of a staged exchange, two sizes
==================  ========================================================

What has two sizes is two numbers, named ``NAME short`` and ``NAME long``, of
messages with as many bytes as `Reader.sizes` says: what does not grow with them cancels.
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

from nidmap.workloads.ab.statistics import FEWEST
from nidmap.workloads.calibrate.choice import Flows, MeasurePlan
from nidmap.workloads.progress import Progress
from nidmap.workloads.session import Session
from nidmap.workloads.trials import SEED
from nidmap.workloads.world import Comm

Reading = Callable[[], dict[str, float]]

#: Bytes of a flow at first, and at most; bytes into and out of a node at most.
FIRST, MOST, NODE_MOST = 1 << 16, 1 << 25, 1 << 28

#: Ratio of the long to the short messages that are compared.
SHORTER = 8

#: Bytes of the copies inside a node.
COPY = 1 << 22

#: Bytes of a step of the staged exchange.
GAP_BYTES = 1 << 15

#: Steps of the staged exchange at most.
STEPS = 8

#: Number of empty messages back and forth between two ranks.
TIMES = 10

#: Polling interval in seconds of a rank that waits for others' exchange.
NAP = 0.01

#: Messages that are under way at the same time where their rate is measured.
WINDOW = 64


class Reader:
    """The measurements that a rank takes in every round. Collective.

    `target`: seconds that the flows of a set should take together: long against a barrier.
    """

    def __init__(self, comm: Comm, plan: MeasurePlan, target: float) -> None:
        self.comm, self.plan, self.target = comm, plan, target
        # Bytes of the short and of the long messages of what is read with two sizes, by its name;
        # those of sets of flows are added when these are first read
        self.sizes = {"step": (GAP_BYTES, 2 * GAP_BYTES)}
        if plan.ppn > 1:
            self.sizes["copies"] = (COPY // SHORTER, COPY)
        self._out, self._into = bytearray(), bytearray()

    def readings(self) -> list[Reading]:
        """Return a function per measurement, each returning numbers equal on all ranks."""
        plan, sets = self.plan, self.plan.table.flows
        named = [(f"flows {k}", flows, plan.ppn) for k, flows in enumerate(sets)]
        named += [("alone", sets[plan.node_set], 1)] if plan.ppn > 1 else []
        made: list[Reading] = [
            partial(self._read_flows, name, flows, ppn, self._exchange_of(flows, ppn))
            for name, flows, ppn in named
        ]
        if plan.ppn > 1:
            to_next = partial(self._time_steps, plan.ranks_of_nodes[0], 1)
            made.append(partial(self._read_both, "copies", to_next))
        ring = [ranks[0] for ranks in plan.ranks_of_nodes]
        steps = partial(self._time_steps, ring, min(STEPS, len(ring) - 1))
        made.append(partial(self._read_both, "step", steps))
        return [*made, self._read_messages, self._read_latencies]

    def _read_both(self, name: str, seconds: Callable[[int], float]) -> dict[str, float]:
        """Return the seconds with short and with long messages."""
        short, long = self.sizes[name]
        return {f"{name} short": seconds(short), f"{name} long": seconds(long)}

    def _read_flows(
        self, name: str, flows: Flows, each: int, seconds: Callable[[int], float]
    ) -> dict[str, float]:
        """Return the seconds of a set of flows, with sizes determined at the first reading."""
        if name not in self.sizes:
            ends = flows.source.tolist(), flows.target.tolist()
            busiest = max(column.count(node) for column in ends for node in column)
            long = self._suitable_size(seconds, min(MOST, NODE_MOST // busiest))
            # the ranks of a node share both equally
            short, long = (max(1, size // each) * each for size in (long // SHORTER, long))
            self.sizes[name] = short, long
        return self._read_both(name, seconds)

    def _suitable_size(self, seconds: Callable[[int], float], most: int) -> int:
        """Return the bytes that take as long as intended, up to the maximum allowed."""
        seconds(FIRST)  # makes the connections
        size, spent = FIRST, seconds(FIRST)
        while spent < self.target / 4 and size < most:
            size *= 2
            spent = seconds(size)
        return int(min(most, max(FIRST // 2, size * self.target / spent)))

    def _read_messages(self) -> dict[str, float]:
        """Return the seconds between consecutive messages of one rank, and of one node."""
        ends = list(zip(*self.plan.ranks_of_nodes[:2], strict=True))
        seconds = {"message": self._time_stream(ends[:1]) / WINDOW}
        if len(ends) > 1:
            seconds["node messages"] = self._time_stream(ends) / (WINDOW * len(ends))
        return seconds

    def _read_latencies(self) -> dict[str, float]:
        """Return the seconds of an empty message between nodes, by pairs.

        Each rank takes its pairs in the order given: pairs without a rank in
        common go at the same time.
        """
        ranks_of_nodes, me = self.plan.ranks_of_nodes, self.comm.Get_rank()
        named = {
            f"latency {level} {k}": (ranks_of_nodes[a][0], ranks_of_nodes[b][int(a == b)])
            for level, listed in self.plan.pairs.items()
            for k, (a, b) in enumerate(listed)
        }
        mine = array("d", [0.0]) * len(named)
        self.comm.Barrier()
        for k, (source, target) in enumerate(named.values()):
            if me in (source, target):
                mine[k] = self._ping_pong(target if me == source else source, me == source)
        return dict(zip(named, self._largest(mine, asleep=not any(mine)), strict=True))

    # The exchanges.

    def _slowest(self, run: Callable[[], float] | None) -> float:
        """Return the seconds of the slowest rank; None if this one takes no part."""
        self.comm.Barrier()
        return self._largest(array("d", [run() if run else 0.0]), asleep=run is None)[0]

    def _largest(self, mine: array[float], asleep: bool) -> list[float]:
        """Return each number's maximum over ranks, which wait asleep or as MPI does."""
        from mpi4py import MPI

        most = array("d", mine)
        request = self.comm.Iallreduce(mine, most, op=MPI.MAX)
        while asleep and not request.Test():
            time.sleep(NAP)
        request.Wait()
        return list(most)

    def _grow(self, out: int, into: int) -> None:
        """Provide a message buffer of the largest size needed so far, and touch it."""
        if out > len(self._out):
            self._out = bytearray(b"\1") * out
        if into > len(self._into):
            self._into = bytearray(b"\1") * into

    def _exchange_of(self, flows: Flows, each: int) -> Callable[[int], float]:
        """Return a collective function from the bytes of a flow to the exchange's seconds.

        This many ranks (`each`) of each node share its flow.
        """
        from mpi4py import MPI

        ranks_of_nodes, comm, me = self.plan.ranks_of_nodes, self.comm, self.comm.Get_rank()
        pairs = [
            (ranks_of_nodes[a][k], ranks_of_nodes[b][k])
            for a, b in zip(flows.source.tolist(), flows.target.tolist(), strict=True)
            for k in range(each)
        ]
        targets = [b for a, b in pairs if a == me]
        sources = [a for a, b in pairs if b == me]

        def exchange(size: int) -> float:
            part = max(1, size // each)
            self._grow(part, part * len(sources))
            out, into = memoryview(self._out)[:part], memoryview(self._into)

            def run() -> float:
                began = time.perf_counter()
                under_way = [
                    comm.Irecv([into[k * part : (k + 1) * part], MPI.BYTE], source)
                    for k, source in enumerate(sources)
                ]
                under_way += [comm.Isend([out, MPI.BYTE], peer) for peer in targets]
                MPI.Request.Waitall(under_way)
                return time.perf_counter() - began

            return self._slowest(run if targets or sources else None)

        return exchange

    def _ping_pong(self, peer: int, first: bool) -> float:
        """Return the median one-way seconds, once the partner is ready."""
        from mpi4py import MPI

        byte, spent = bytearray(1), []
        for _ in range(TIMES + 1):
            began = time.perf_counter()
            if first:
                self.comm.Send([byte, MPI.BYTE], peer)
            self.comm.Recv([byte, MPI.BYTE], peer)
            if not first:
                self.comm.Send([byte, MPI.BYTE], peer)
            spent.append((time.perf_counter() - began) / 2)
        return median(spent[1:]) if first else 0.0

    def _time_stream(self, pairs: Sequence[tuple[int, int]]) -> float:
        """Return the seconds in which each pair of ranks transfers `WINDOW` short messages."""
        from mpi4py import MPI

        me = self.comm.Get_rank()
        to, of = (dict(ends).get(me) for ends in (pairs, [(b, a) for a, b in pairs]))
        words = [bytearray(8) for _ in range(WINDOW)]

        def run() -> float:
            began = time.perf_counter()
            peer = of if to is None else to
            assert peer is not None
            start = self.comm.Irecv if to is None else self.comm.Isend
            MPI.Request.Waitall([start([word, MPI.BYTE], peer) for word in words])
            return time.perf_counter() - began

        return self._slowest(None if to is None and of is None else run)

    def _time_steps(self, ring: Sequence[int], steps: int, size: int) -> float:
        """Return the seconds per step, each to a more distant rank and after the last one."""
        from mpi4py import MPI

        me = self.comm.Get_rank()
        at = ring.index(me) if me in ring else 0

        def run() -> float:
            self._grow(size, size)
            out, into = ([memoryview(raw)[:size], MPI.BYTE] for raw in (self._out, self._into))
            began = time.perf_counter()
            for step in range(1, steps + 1):
                to, of = ring[(at + step) % len(ring)], ring[at - step]
                self.comm.Sendrecv(out, to, recvbuf=into, source=of)
            return (time.perf_counter() - began) / steps

        return self._slowest(run if me in ring else None)


class Rounds(Session):
    """A calibration's rounds; only complete ones count, and a minimum is required.

    `finished`: readings of each round by their names; the same on all ranks.
    """

    rounds: list[dict[str, float]]

    @property
    def enough(self) -> bool:
        """Whether there are enough rounds for intervals."""
        return len(self.rounds) >= FEWEST

    def ending(self) -> str:
        """Report that the run ended early, and which part of it counts."""
        done = f"{self.ended} after {len(self.rounds)} of {self.common.repeat} rounds"
        if self.enough:
            return f"{done}: the figures rest on these"
        return f"{done}: nothing is written, as {FEWEST} rounds are the fewest that say anything"

    def measure_rounds(self, readings: Sequence[Reading]) -> None:
        """Take all measurements in every round, in a new order each time. Collective.

        A first round does not count: connections are made in it, and sizes found.
        """
        self.rounds = []
        self._say_remark()
        order = random.Random(SEED)  # noqa: S311  # an order, no secret
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
