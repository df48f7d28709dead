# SPDX-License-Identifier: Apache-2.0
"""The time of a phase, by terms, from assumptions and the loads of links, nodes and ranks.

Everything that tells a time reads this one function: the search, the report, ranges, the page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from nidmap.placement.network.channel_loads import Sending, pay_for_detours
from nidmap.placement.support.array_types import Floats
from nidmap.placement.support.quantities import GB
from nidmap.rankmap.predict.assumptions import Values
from nidmap.rankmap.predict.constants import Constants, latency_s, messages_s
from nidmap.rankmap.predict.phase import Phase

#: Rounding that sums of many loads may have, as a share.
ROUNDING = 1e-9


class Sent(NamedTuple):
    """Bytes that cross the network at the same time."""

    times: float  # steps that it stands for
    # (k,), seconds of the busiest channel by share of the detours that are taken
    # (`nidmap.placement.network.channel_loads.TAKEN`)
    by_share: Floats
    detoured: float  # share of the bytes that all detours divert
    own_s: float  # seconds of the busiest node's own link
    message: float  # bytes of the busiest rank


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
    def seconds(self) -> float:
        """The total."""
        return self.bandwidth + self.memory + self.latency + self.messages


def phase_cost(
    loads: PhaseLoads,
    known: Constants,
    values: Values,
    nics: int = 1,
    place: int = 0,
    below: float = math.inf,
) -> PhaseCost:
    """Return the seconds of a phase, split by what they are spent on.

    All bytes at once need `max(links, own, rank)`, with what detours cost
    (`nidmap.placement.network.channel_loads.pay_for_detours`); in steps each needs as long as its
    own, less what ranks win that run ahead. Copies inside nodes pass meanwhile; latency and posting
    come on top.

    `known`: with which `loads` were worked out. `nics`: interfaces of a node. `place`: which
    placement it is of those for which `values` hold. `below`: seconds of bandwidth beyond which
    nobody asks how long it takes: some that are no less are returned. Steps take no less together
    than all of their bytes at once, so they are not looked at where these take so long.
    """
    phase = loads.phase
    rank_gbs = values.process if phase.everyone else values.posted

    def send(sent: Sent) -> Sending:
        own_s, rank_s = sent.own_s * known.reach / values.reach, _rank_s(sent.message, rank_gbs)
        by_share = sent.by_share * (known.payload / values.payload)
        return pay_for_detours(by_share, max(own_s, rank_s), values.loss * sent.detoured)

    at_once, rank_s = send(loads.together), _rank_s(loads.together.message, rank_gbs)
    own_s = loads.together.own_s * known.reach / values.reach
    name = "link" if at_once.busy == 1 or rank_s <= own_s else "process"
    limits = {"process": rank_s, name: at_once.seconds}
    if loads.steps is not None and at_once.seconds < below:
        ahead = 0.0 if phase.dependent else values.ahead[place]
        meeting = 0.0 if phase.dependent else known.meeting
        enough_s = at_once.seconds + (below - at_once.seconds) / max(1 - ahead, 1e-9)
        steps_s = _add_steps(loads, send, enough_s)
        limits["steps"] = run_ahead(at_once, steps_s, ahead, meeting)
    bandwidth = max(limits.values())
    longest = (name for name, seconds in limits.items() if seconds >= bandwidth * (1 - ROUNDING))
    inside = phase.inside / (values.memory * GB) if values.memory else 0.0
    memory = max(0.0, inside - bandwidth)
    bottleneck = "memory" if memory else next(longest, "link")  # NaN matches none of them
    latency = latency_s(phase, loads.hops, replace(known, hop_ns=values.hop_ns))
    return PhaseCost(bandwidth, memory, latency, messages_s(phase, known, nics), bottleneck)


def _rank_s(size: float, rank_gbs: float | None) -> float:
    """Return the seconds for one rank to send this many bytes; 0 if nothing limits it."""
    return size / (rank_gbs * GB) if rank_gbs else 0.0


def _add_steps(loads: PhaseLoads, send: Callable[[Sent], Sending], enough_s: float) -> float:
    """Return the seconds of all steps; inf as soon as they are sure to exceed a limit."""
    assert loads.steps is not None
    seconds, so_far = [], 0.0
    for sent in loads.steps:
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
