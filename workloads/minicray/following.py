"""What a mini-Cray's exchange takes: its ranks followed through their steps, packet by packet.

The one term that a mini-Cray has and no other machine: the front door names it to the predictor
(`rankmap.predict.model`), which asks for it where the bytes of a burst are stated.

No barrier parts the steps of an exchange: a rank begins its next one when all that it
receives in this one is there and all that it sends is done, which it is when the receiver's
acknowledgement is back. So ranks drift apart, data of different steps meet on a link, and the
acknowledgement of a message that has long arrived queues behind them. A message that the library
sends eagerly is done when it is handed over: nobody waits for its acknowledgement. All-to-alls
that are posted at once are one such step; libraries post them in an order in which ranks do not
collide, rank r to r + 1 first.

Ranks are followed here, packet by packet. A link serves packets in the order in which they
come, s seconds each, and one that finds the link idle passes at once: packet n of a queue goes
on when the link has served n - 1. Acknowledgements have no bytes, but wait their turn. Which of two
packets comes first is chance where ranks are about equally far, so that ranks begin a little
apart, at random within the time of a burst; the median of several runs counts. Each segment of
TCP carries a header, and another one comes back: of a full one that is the factor by which all
times grow (`workloads.minicray.against`), a segment that is not full costs as much. A recording is
followed through all of its passes, or as many as there is time for: then the later half counts, as
links that were idle let a packet pass at once and the first passes find them so. Nothing is fitted.
"""

from __future__ import annotations

import heapq
from statistics import median
from typing import NamedTuple

import numpy as np

from placement.support.array_types import Floats, Ints
from rankmap.placement import Placement
from rankmap.predict.phase import Phase, Sends
from workloads.minicray.against import HEADER, segment
from workloads.minicray.net import MTU

Ways = list[list[int]]

__all__ = ["Course", "course"]

#: Packets of a burst: the least that Linux sends as one (``tcp_min_tso_segs``).
A_BURST = 2

#: Packets of an exchange up to which its ranks are followed, and in all runs together.
MOST_PACKETS = 20_000

#: Runs at most.
MOST_RUNS = 5

#: The same of a recording's passes.
MOST_OF_PASSES = 6_000


class Course(NamedTuple):
    """An exchange as its ranks go through it.

    Attributes
    ----------
    sends : Sends
    there, back : list of list of int
        Links of each message and of its acknowledgement: channels, then the nodes'
        injection, then their ejection. None inside a node.
    packets : int64 (m,)
        Of each message.
    head : int
        Messages of what ranks do before.
    ranks : int
    burst : float
        Bytes.
    runs : int
    passes : float
        How often ranks go through it.
    """

    sends: Sends
    there: Ways
    back: Ways
    packets: Ints
    head: int
    ranks: int
    burst: float
    runs: int
    passes: float = 1.0

    @property
    def smallest(self) -> float:
        """Bytes of the smallest message; inf where ranks go through one step only."""
        return float(self.sends.size.min()) if self.sends.step.max(initial=0) else np.inf

    def seconds(self, bandwidth: Floats, eager: float = 0.0) -> float:
        """Return from the first rank's beginning, or what came before, to the last one's end.

        Parameters
        ----------
        bandwidth : float64 (l,)
            GB/s of all links.
        eager : float
            Bytes up to which a message is done for its sender when it is handed over.
        """
        a_byte = 1 / (bandwidth * 1e9)
        first = [way[0] for way in self.there if way]
        apart = self.burst * float(a_byte[first].max(initial=0.0))
        begins = np.random.default_rng(0).random((self.runs, self.ranks)) * apart
        slow, runs = a_byte.tolist(), []
        for row in begins.tolist():
            before = _FollowedRun(self, slow, self.head, eager).end(row) if self.head else 0.0
            runs.append(_FollowedRun(self, slow, len(self.packets), eager).end(row) - before)
        return self.passes * median(runs)


class _FollowedRun:
    """Ranks and links of one run of the first so many messages.

    Attributes
    ----------
    at : list of int
        Step of each rank.
    left : list of int
        Packets of each message that are not there.
    open : list of list of int
        Messages and acknowledgements that each rank still waits for in each step.
    answered : list of bool
        Whether a message is done for its sender only with its acknowledgement.
    early : list of list of int
        Messages that are there before their receiver has come to their step.
    """

    def __init__(self, course: Course, a_byte: list[float], many: int, eager: float) -> None:
        sends = [column[:many] for column in course.sends]
        self.course, self.a_byte, self.packet = course, a_byte, course.burst / A_BURST
        self.step, self.source, self.target, self.size = (x.tolist() for x in sends)
        self.left = course.packets.tolist()
        self.answered = [size > eager for size in self.size]
        steps = max(self.step, default=-1) + 1
        self.posts: list[Ways] = [[[] for _ in range(steps)] for _ in range(course.ranks)]
        self.open = [[0] * steps for _ in range(course.ranks)]
        for k, (s, a, b) in enumerate(zip(self.step, self.source, self.target, strict=True)):
            self.posts[a][s].append(k)
            self.open[a][s] += self.answered[k]
            self.open[b][s] += 1
        self.at = [-1] * course.ranks
        self.early: Ways = [[] for _ in range(course.ranks)]
        self.events: list[tuple[float, int, int, int, float]] = []
        self.count = 0
        self.last = 0.0

    def end(self, begins: list[float]) -> float:
        """Return when the last rank is through, where they begin at these times."""
        for rank, now in enumerate(begins):
            self._begin(rank, now)
        there, back = self.course.there, self.course.back
        a_byte, packet = self.a_byte, self.packet
        served, passed = [0.0] * len(a_byte), [0.0] * len(a_byte)
        while self.events:
            now, _, k, hop, size = heapq.heappop(self.events)
            way = there[k] if size else back[k]
            if hop == len(way):
                self._arrive(k, size, now)
                continue
            link = way[hop]
            now = max(now, passed[link], served[link] - (packet - size) * a_byte[link])
            passed[link] = now
            served[link] = max(served[link], now) + size * a_byte[link]
            self._send(now, k, hop + 1, size)
        return self.last

    def _send(self, now: float, k: int, hop: int, size: float) -> None:
        self.count += 1  # of equal times the first that was sent
        heapq.heappush(self.events, (now, self.count, k, hop, size))

    def _begin(self, rank: int, now: float) -> None:
        """Let a rank begin its next step, and go on where it has nothing to wait for."""
        self.last = max(self.last, now)
        for s in range(self.at[rank] + 1, len(self.open[rank])):
            self.at[rank] = s
            for k in self.posts[rank][s]:
                whole = self.left[k] - 1
                for _ in range(whole):
                    self._send(now, k, 0, self.packet)
                self._send(now, k, 0, self.size[k] - whole * self.packet)
            early, self.early[rank] = self.early[rank], []
            for k in early:
                self._take(k, now)
            if self.open[rank][s]:
                return

    def _take(self, k: int, now: float) -> None:
        """Acknowledge a message, once its receiver has come to its step; none that is eager."""
        if not self.answered[k]:
            return
        if self.step[k] > self.at[self.target[k]]:
            self.early[self.target[k]].append(k)
        else:
            self._send(now, k, 0, 0.0)

    def _arrive(self, k: int, size: float, now: float) -> None:
        """Count a packet of a message, or its acknowledgement."""
        rank = self.target[k] if size else self.source[k]
        if size:
            self.left[k] -= 1
            if self.left[k]:
                return
            self._take(k, now)
        self.open[rank][self.step[k]] -= 1
        if self.at[rank] == self.step[k] and not self.open[rank][self.step[k]]:
            self._begin(rank, now)


def course(phase: Phase, routing: str, channels: int, burst: float) -> Course | None:
    """Return a phase as its ranks go through it; None where nobody knows or it takes too long.

    Parameters
    ----------
    phase : Phase
    routing : str
        With one path a pair.
    channels : int
        Of the routing.
    burst : float
        Bytes that a message is sent in.
    """
    placement = phase.placement
    every = (*phase.before, phase)
    many = sum(max(one.in_turn, one.a_rank) for one in every) * len(placement.node_of_rank)
    if many > MOST_PACKETS * phase.passes or placement.known_machine.router.shape[1] > 1:
        return None
    each = [one.sends() for one in every if one.sends is not None]
    if len(each) < len(every) or not len(each[-1].step):
        return None
    head, again = sum(len(one.step) for one in each[:-1]), phase.passes
    if again > 1:
        room = MOST_OF_PASSES // int(_packets(each[-1], burst).sum())
        again, before = (again, 0) if again <= room else (room - room // 2, room // 2)
        head += before * len(each[-1].step)
        each += each[-1:] * int(again + before - 1)
    if again < 1:
        return None
    sends = Sends.joined(each)
    packets = _packets(sends, burst)
    if not packets.all() or packets.sum() > MOST_PACKETS:
        return None
    full = segment(MTU)
    headers = 2 * HEADER * (np.ceil(sends.size / full) - sends.size / full)
    sends = sends._replace(size=sends.size + headers)
    packets = _packets(sends, burst)
    a, b = placement.node_of_rank[sends.source], placement.node_of_rank[sends.target]
    there, back = (
        _ways(placement, a, b, routing, channels),
        _ways(placement, b, a, routing, channels),
    )
    runs = min(-(-MOST_RUNS // int(again)), MOST_PACKETS // int(packets.sum())) or 1
    passes = phase.passes / again
    return Course(
        sends, there, back, packets, head, len(placement.node_of_rank), burst, runs, passes
    )


def _packets(sends: Sends, burst: float) -> Ints:
    """Return the packets of each message."""
    return np.ceil(sends.size * A_BURST / burst).astype(np.int64)


def _ways(placement: Placement, a: Ints, b: Ints, routing: str, channels: int) -> Ways:
    """Return the links from each node to another one, both by their place in the job."""
    from placement.network.routes import walk

    pair, place = np.unique(a * len(placement.rows) + b, return_inverse=True)
    one, other = (placement.rows[x] for x in np.divmod(pair, len(placement.rows)))
    message, channel = walk(placement.known_machine, one, other, routing)
    order = np.argsort(message, kind="stable")
    ends = np.searchsorted(message[order], np.arange(len(pair) + 1))
    ejection = channels + len(placement.known_machine)
    found = [
        [channels + x, *channel[order[i:j]].tolist(), ejection + y] if x != y else []
        for x, y, i, j in zip(one.tolist(), other.tolist(), ends[:-1], ends[1:], strict=True)
    ]
    return [found[k] for k in place.tolist()]
