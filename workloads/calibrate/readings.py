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

    Reading = Callable[[], dict[str, float]]


__all__ = ["GAP_BYTES", "per_gb", "readings"]

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


def readings(
    comm: MPI.Intracomm,
    seats: Seats,
    sets: Sequence[Flows],
    node_set: int,
    pairs: dict[str, list[tuple[int, int]]],
    target: float,
) -> tuple[list[Reading], dict[str, tuple[int, int]]]:
    """Return all that is read in a round, and the bytes of what is read with two sizes.

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

    Returns
    -------
    list of callable
        Each returns numbers by their names, the same on all ranks. Collective.
    dict of str to (int, int)
        Bytes of the short and of the long messages by name; those of sets of
        flows are added when these are first read.
    """
    buffers, ppn = exchange.Buffers(), len(seats[0])
    sizes = {"step": (GAP_BYTES, 2 * GAP_BYTES)}
    named = [(f"flows {k}", one, ppn) for k, one in enumerate(sets)]
    named += [(f"ranks {r}", sets[node_set], r) for r in doubling(ppn)[:-1]]
    found: list[Reading] = [
        partial(_read_flows, name, one, r, target, sizes,
                exchange.flow_exchange(comm, seats, one, r, buffers))
        for name, one, r in named
    ]  # fmt: skip
    if ppn > 1:
        sizes["copies"] = (COPY // SHORTER, COPY)
        to_next = partial(exchange.time_steps, comm, seats[0], 1, buffers)
        found.append(lambda: _read_both("copies", to_next, sizes))
    ring = [ranks[0] for ranks in seats]
    steps = partial(exchange.time_steps, comm, ring, min(STEPS, len(ring) - 1), buffers)
    found.append(lambda: _read_both("step", steps, sizes))
    found.append(lambda: _messages(comm, seats))
    found.append(lambda: _latencies(comm, seats, pairs))
    return found, sizes


def _read_both(
    name: str, seconds: Callable[[int], float], sizes: dict[str, tuple[int, int]]
) -> dict[str, float]:
    """Return the seconds with short and with long messages."""
    short, long = sizes[name]
    return {f"{name} short": seconds(short), f"{name} long": seconds(long)}


def _read_flows(
    name: str,
    flows: Flows,
    each: int,
    target: float,
    sizes: dict[str, tuple[int, int]],
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
