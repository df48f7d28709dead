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

What has two sizes is two numbers, named ``NAME short`` and ``NAME long``, and
its bytes are the reading's: what does not grow with them cancels.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from workloads.calibrate import exchange
from workloads.places import doubling

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpi4py import MPI

    from placement.support.array_types import Floats
    from workloads.calibrate.exchange import Seats
    from workloads.calibrate.flows import Flows


__all__ = ["GAP_BYTES", "Reading", "per_gb", "readings"]

GB = 1e9

#: Bytes of a flow at first, and at most; bytes into and out of a node at most.
FIRST, MOST, NODE_MOST = 1 << 16, 1 << 25, 1 << 28

#: How much shorter the messages are with which the others are compared.
SHORTER = 8

#: Bytes of the copies inside a node.
COPY = 1 << 22

#: Bytes of a step of the staged exchange.
GAP_BYTES = 1 << 15

#: Steps of the staged exchange at most.
STEPS = 8

#: Empty messages to and fro between two ranks.
TIMES = 10


class Reading:
    """Something that is read in every round. Collective.

    Parameters
    ----------
    name : str
    seconds : callable
        From bytes to seconds, the same on all ranks.
    sizes : (int, int)
        Bytes of the short and of the long messages.
    """

    def __init__(self, name: str, seconds: Callable[[int], float], sizes: tuple[int, int]) -> None:
        self.name, self.sizes = name, sizes
        self._seconds = seconds

    def take(self) -> dict[str, float]:
        """Return the numbers by their names, the same on all ranks."""
        return {
            f"{self.name} {word}": self._seconds(size)
            for word, size in zip(("short", "long"), self.sizes, strict=True)
        }


class _Flows(Reading):
    """A set of flows with sizes that suit the machine: found at the first reading."""

    def __init__(
        self,
        name: str,
        flows: Flows,
        each: int,
        seconds: Callable[[int], float],
        target: float,
    ) -> None:
        super().__init__(name, seconds, (0, 0))
        self._target = target
        ends = flows.source.tolist(), flows.target.tolist()
        busiest = max(column.count(node) for column in ends for node in column)
        self._most = min(MOST, NODE_MOST // busiest)
        self._each = each

    def take(self) -> dict[str, float]:
        """Return the seconds of both sizes."""
        if not self.sizes[1]:
            long = self._suitable()
            self.sizes = (self._whole(long // SHORTER), self._whole(long))
        return super().take()

    def _whole(self, size: int) -> int:
        """Return a size that the ranks of a node share equally."""
        return max(1, size // self._each) * self._each

    def _suitable(self) -> int:
        """Return the bytes that take as long as they should, or as many as are allowed."""
        self._seconds(FIRST)  # makes the connections
        size, spent = FIRST, self._seconds(FIRST)
        while spent < self._target / 4 and size < self._most:
            size *= 2
            spent = self._seconds(size)
        return int(min(self._most, max(FIRST // 2, size * self._target / spent)))


class _Single(Reading):
    """Something without bytes: one number, or several."""

    def __init__(self, name: str, take: Callable[[], dict[str, float]]) -> None:
        super().__init__(name, lambda size: 0.0, (0, 0))
        self._take = take

    def take(self) -> dict[str, float]:
        """Return the numbers."""
        return self._take()


def readings(
    comm: MPI.Intracomm,
    seats: Seats,
    sets: Sequence[Flows],
    node_set: int,
    pairs: dict[str, list[tuple[int, int]]],
    target: float,
) -> list[Reading]:
    """Return all that is read in a round.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    seats : list of list of int
        Ranks of each node.
    sets : sequence of Flows
    node_set : int
        The set in which what ranks send is compared by their number.
    pairs : dict
        Of nodes by level, as `workloads.calibrate.seats.pairs_by_level` returns them.
    target : float
        Seconds that the flows of a set should take together: long against a barrier.
    """
    buffers, ppn = exchange.Buffers(), len(seats[0])
    named = [(f"flows {k}", one, ppn) for k, one in enumerate(sets)]
    named += [(f"ranks {r}", sets[node_set], r) for r in doubling(ppn)[:-1]]
    found: list[Reading] = [
        _Flows(name, one, r, exchange.flow_exchange(comm, seats, one, r, buffers), target)
        for name, one, r in named
    ]
    if ppn > 1:
        to_next = partial(exchange.time_steps, comm, seats[0], 1, buffers)
        found.append(Reading("copies", to_next, (COPY // SHORTER, COPY)))
    ring = [ranks[0] for ranks in seats]
    steps = partial(exchange.time_steps, comm, ring, min(STEPS, len(ring) - 1), buffers)
    found.append(Reading("step", steps, (GAP_BYTES, 2 * GAP_BYTES)))
    found.append(_Single("messages", lambda: _messages(comm, seats)))
    return [*found, _Single("latency", lambda: _latencies(comm, seats, pairs))]


def per_gb(short: Floats, long: Floats, sizes: tuple[int, int]) -> Floats:
    """Return the seconds of a GB in every round; what does not grow with bytes cancels.

    Parameters
    ----------
    short, long : float64 (rounds,)
        Seconds with both sizes; of the short one the median counts. A long one
        that is no longer than that counts for itself.
    sizes : (int, int)
        Their bytes.

    Examples
    --------
    >>> per_gb(np.array([3.0, 9.0, 3.0]), np.array([5.0, 5.0, 5.0]), (10**9, 2 * 10**9)).tolist()
    [2.0, 2.0, 2.0]
    """
    less = float(np.median(short))
    beyond = np.where(long > less, long - less, long * (1 - sizes[0] / sizes[1]))
    return np.asarray(beyond / (sizes[1] - sizes[0]) * GB)


def _messages(comm: MPI.Intracomm, seats: Seats) -> dict[str, float]:
    """Return the seconds between two messages of one rank, and of one node."""
    ends = list(zip(seats[0], seats[1], strict=True))
    found = {"message": exchange.time_stream(comm, ends[:1]) / exchange.WINDOW}
    if len(ends) > 1:
        found["node messages"] = exchange.time_stream(comm, ends) / (exchange.WINDOW * len(ends))
    return found


def _latencies(
    comm: MPI.Intracomm, seats: Seats, pairs: dict[str, list[tuple[int, int]]]
) -> dict[str, float]:
    """Return the seconds of an empty message for every pair of nodes."""
    named = {
        f"latency {level} {k}": (seats[a][0], seats[b][int(a == b)])
        for level, listed in pairs.items()
        for k, (a, b) in enumerate(listed)
    }
    found = exchange.ping_pongs(comm, list(named.values()), TIMES)
    return dict(zip(named, found, strict=True))
