"""The terms of a time that do not grow with the bytes: latency, messages, a sort's histogram."""

from __future__ import annotations

import math

import numpy as np

from placement.network import Loads
from rankmap.predict.constants import COUNTER, PROBES, ROUNDS, Constants
from rankmap.predict.phase import Phase

__all__ = ["histogram_s", "hops_by_class", "latency_s", "messages_s"]


def hops_by_class(loads: Loads, total: float) -> dict[str, float]:
    """Return how many channels of each class a byte passes in the mean.

    Parameters
    ----------
    loads : Loads
    total : float
        Bytes that leave their node.

    Examples
    --------
    >>> import nidmap
    >>> from placement.network import Demand, loads
    >>> from placement.traffic import Traffic
    >>> m = nidmap.load_machine("torus:5x5")
    >>> d = Demand.of(m, Traffic.of(np.array([0, 0]), np.array([1, 6]), 1.0))
    >>> hops_by_class(loads(m, d), d.total)
    {'x': 1.0, 'y': 0.5}
    """
    kinds = loads.channels.kinds
    if not total:
        return dict.fromkeys(kinds, 0.0)
    sums = np.bincount(loads.channels.kind, loads.load, minlength=len(kinds)) / total
    return dict(zip(kinds, sums.tolist(), strict=True))


def latency_s(phase: Phase, hops: dict[str, float], known: Constants) -> float:
    """Return the seconds of messages that wait for each other: each costs MPI's latency and hops.

    Each after the first costs the measured gap between steps, where that is longer.
    Nothing where no message leaves its node; no hops where messages are empty.
    """
    if not phase.a_node:
        return 0.0
    message_s = known.mpi_us * 1e-6 + sum(hops.values()) * known.hop_ns * 1e-9
    longer = max(0.0, known.gap_us * 1e-6 - message_s)
    return phase.in_turn * message_s + max(0.0, phase.in_turn - 1) * longer


def messages_s(phase: Phase, known: Constants, nics: int = 1) -> float:
    """Return the seconds of posting all messages of a rank, or of a node's through its interfaces.

    The longer of the two counts: a node's ranks post at the same time.
    """
    posted = phase.a_rank * known.message_us
    return max(posted, phase.a_node * known.nic_us / nics) * 1e-6


def histogram_s(
    ranks: int,
    nodes: int,
    injection: float,
    known: Constants,
    rounds: int = ROUNDS,
    probes: int = PROBES,
) -> float:
    """Return the seconds of a sort's histogram rounds.

    Each round is an Allreduce of `probes` counters a splitter: twice log2 of
    the nodes messages, and twice the counters through a node's interface.

    Parameters
    ----------
    ranks, nodes : int
    injection : float
        GB/s of a node; inf where unlimited.
    known : Constants
    rounds, probes : int
        MP-sort has 56 rounds of two Allreduces of one counter.

    Examples
    --------
    >>> from rankmap.predict.constants import Constants
    >>> round(histogram_s(64, 16, float("inf"), Constants(1.0, 0.0)) * 1e6)
    32
    """
    if known.timeless or ranks < 2:
        return 0.0
    turns = 2 * math.ceil(math.log2(nodes)) * (known.mpi_us + known.hop_ns * 1e-3) * 1e-6
    return rounds * (turns + 2 * COUNTER * probes * (ranks - 1) / (injection * 1e9))
