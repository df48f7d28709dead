# SPDX-License-Identifier: Apache-2.0
"""The time of a phase, by terms, from assumptions and the loads of links, nodes and ranks.

Everything that tells a time reads this one function: the search, the report, ranges, the page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nidmap.placement.network import Loads
from nidmap.placement.network.channel_loads import Sending, pay_for_detours
from nidmap.placement.support.array_types import Floats
from nidmap.placement.support.quantities import GB
from nidmap.placement.traffic import NO_TRAFFIC, Traffic
from nidmap.rankmap.predict.constants import Constants
from nidmap.rankmap.predict.phase import Phase

#: Rounding that sums of many loads may have, as a share.
ROUNDING = 1e-9

#: No link takes any time.
IDLE = np.zeros(1)


class Sent(NamedTuple):
    """Bytes that cross the network at the same time; seconds if all that links move is payload."""

    times: float  # steps that it stands for
    # (k,), seconds of the busiest channel by share of the detours that are taken
    # (`nidmap.placement.network.channel_loads.TAKEN`)
    by_share: Floats
    detoured: float  # share of the bytes that all detours divert
    own_s: float  # seconds of the busiest node's own link, if exchanges reach all of it
    message: float  # bytes of the busiest rank
    flows: Traffic = NO_TRAFFIC  # between the job's nodes, each to itself included
    loads: Loads | None = None  # on all links; None where it took only those that are passed


@dataclass(frozen=True, slots=True, eq=False)
class PhaseLoads:
    """The load of a phase on links, nodes and ranks."""

    phase: Phase
    together: Sent  # all its bytes
    steps: Iterable[Sent] | None  # the consecutive steps; None if everything is sent at once
    hops: dict[str, float]  # links of each class that a byte passes


class PhaseCost(NamedTuple):
    """The seconds of a phase, split by what they are spent on."""

    bandwidth: float  # in which links, nodes' own ones and ranks move its bytes
    memory: float  # of copies inside nodes, beyond that
    latency: float  # of messages that wait for each other
    messages: float  # in which messages are posted
    # The longest of the first two: ``link``, ``process``, ``steps`` or ``memory``
    bottleneck: str

    @property
    def moved(self) -> float:
        """Seconds in which bytes are moved, between nodes and inside them."""
        return self.bandwidth + self.memory

    @property
    def seconds(self) -> float:
        """The total."""
        return self.moved + self.latency + self.messages


def phase_cost(loads: PhaseLoads, known: Constants, below: float = math.inf) -> PhaseCost:
    """Return the seconds of a phase, split by what they are spent on.

    All bytes at once need `max(links, own, rank)`, with what detours cost
    (`nidmap.placement.network.channel_loads.pay_for_detours`); in steps each needs as long as its
    own, less what ranks win that run ahead. Copies inside nodes pass meanwhile; latency and posting
    come on top.

    `below`: seconds of bandwidth beyond which nobody asks how long it takes: some that are no less
    are returned. Steps take no less together than all of their bytes at once, so they are not
    looked at where these take so long.
    """
    phase = loads.phase
    rank_gbs = known.process_gbs if phase.everyone else known.posted_gbs

    def needed(sent: Sent) -> tuple[float, float]:
        """Return the seconds of nodes' own links, and of ranks."""
        return sent.own_s / known.reach, sent.message / (rank_gbs * GB) if rank_gbs else 0.0

    def send(sent: Sent) -> Sending:
        by_share = sent.by_share / known.payload
        return pay_for_detours(by_share, max(needed(sent)), known.loss * sent.detoured)

    at_once, (own_s, rank_s) = send(loads.together), needed(loads.together)
    name = "link" if at_once.busy == 1 or rank_s <= own_s else "process"
    limits = {"process": rank_s, name: at_once.seconds}
    if loads.steps is not None and at_once.seconds < below:
        ahead, meeting = (0.0, 0.0) if phase.dependent else (known.ahead, known.meeting)
        enough_s = at_once.seconds + (below - at_once.seconds) / max(1 - ahead, 1e-9)
        steps_s = _add_steps(loads.steps, send, enough_s)
        limits["steps"] = run_ahead(at_once, steps_s, ahead, meeting)
    bandwidth = max(limits.values())
    longest = (name for name, seconds in limits.items() if seconds >= bandwidth * (1 - ROUNDING))
    inside = phase.inside / (known.memory_gbs * GB) if known.memory_gbs else 0.0
    memory = max(0.0, inside - bandwidth)
    bottleneck = "memory" if memory else next(longest, "link")  # NaN matches none of them
    return PhaseCost(
        bandwidth, memory, _latency_s(phase, loads.hops, known), _messages_s(phase, known),
        bottleneck,
    )  # fmt: skip


def _add_steps(steps: Iterable[Sent], send: Callable[[Sent], Sending], enough_s: float) -> float:
    """Return the seconds of all steps; inf as soon as they are sure to exceed a limit."""
    seconds, so_far = [], 0.0
    for sent in steps:
        seconds.append(sent.times * send(sent).seconds)
        so_far += seconds[-1]
        if so_far >= enough_s:
            return math.inf
    return math.fsum(seconds)


def run_ahead(at_once: Sending, steps_s: float, ahead: float, meeting: float = 0.0) -> float:
    """Return the seconds of steps in which ranks may run ahead of each other.

    `at_once`: all bytes together. `steps_s`: one step after the other. `ahead`: from 0, none, to
    1, as far as sending all at once. `meeting`: how much longer it takes, as a share, where
    messages meet on links that are always busy and no rank runs ahead.
    """
    if math.isinf(steps_s):
        return math.inf
    won = ahead * max(0.0, steps_s - at_once.seconds)
    longer = 1 + meeting * (1 - ahead) * at_once.busy
    return (max(steps_s, at_once.seconds) - won) * longer


def _latency_s(phase: Phase, hops: dict[str, float], known: Constants) -> float:
    """Return the seconds of dependent messages, each costing MPI latency plus hops.

    Each after the first costs the measured gap between steps, where that is longer.
    Nothing where no message leaves its node; no hops where messages are empty.
    """
    if not phase.a_node:
        return 0.0
    message_s = known.mpi_us * 1e-6 + sum(hops.values()) * known.hop_ns * 1e-9
    longer = max(0.0, known.gap_us * 1e-6 - message_s)
    return phase.in_turn * message_s + max(0.0, phase.in_turn - 1) * longer


def _messages_s(phase: Phase, known: Constants) -> float:
    """Return the seconds for posting all messages of a rank, or of a node on its interfaces.

    The longer of the two counts: a node's ranks post at the same time. The first one is in MPI's
    latency.
    """
    posted = max(0.0, phase.a_rank - 1) * known.message_us
    return max(posted, max(0.0, phase.a_node - 1) * known.nic_us / known.nics) * 1e-6


def hops_by_class(loads: Loads, total: float) -> dict[str, float]:
    """Return how many channels of each class a byte crosses on average.

    `total`: bytes that leave their node.
    """
    kinds = loads.channels.kinds
    if not total:
        return dict.fromkeys(kinds, 0.0)
    sums = np.bincount(loads.channels.kind[loads.used], loads.carried, minlength=len(kinds)) / total
    return dict(zip(kinds, sums.tolist(), strict=True))
