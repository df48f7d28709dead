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

from placement.network.routes import walk
from placement.support.array_types import Floats, Ints
from rankmap.placement import Placement
from rankmap.predict.phase import Phase, Sends
from workloads.minicray.against import HEADER, segment
from workloads.minicray.net import MTU

Ways = list[list[int]]

__all__ = ["Course", "Stretch", "course"]

#: Packets of a burst: the least that Linux sends as one (``tcp_min_tso_segs``).
A_BURST = 2

#: Packets of an exchange up to which its ranks are followed, and in all runs together.
MOST_PACKETS = 20_000

#: Runs at most.
MOST_RUNS = 5

#: The same of a recording's passes.
MOST_OF_PASSES = 6_000


class Stretch(NamedTuple):
    """A part of an exchange as its ranks go through it.

    Attributes
    ----------
    sends : Sends
    there, back : list of list of int
        Links of each message and of its acknowledgement: channels, then the nodes'
        injection, then their ejection. None inside a node.
    wire : float64 (m,)
        Bytes of each message with its headers.
    packets : int64 (m,)
        Of each message.
    head : int
        Messages of what ranks do before.
    """

    sends: Sends
    there: Ways
    back: Ways
    wire: Floats
    packets: Ints
    head: int


class Course(NamedTuple):
    """An exchange as its ranks go through it.

    Attributes
    ----------
    stretches : list of Stretch
    ranks : int
    burst : float
        Bytes.
    runs : int
    passes : float
        How many times as long as its stretches it is.
    """

    stretches: list[Stretch]
    ranks: int
    burst: float
    runs: int
    passes: float = 1.0

    @property
    def head(self) -> int:
        """Messages of what ranks do before."""
        return sum(stretch.head for stretch in self.stretches)

    @property
    def smallest(self) -> float:
        """Bytes of the smallest message; inf where ranks go through one step only."""
        several = [s.sends.size.min() for s in self.stretches if s.sends.step.max(initial=0)]
        return float(min(several, default=np.inf))

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
        first = [way[0] for stretch in self.stretches for way in stretch.there if way]
        apart = self.burst * float(a_byte[first].max(initial=0.0))
        begins = np.random.default_rng(0).random((self.runs, self.ranks)) * apart
        slow = a_byte.tolist()
        runs = [
            sum(self._stretch_s(stretch, slow, eager, row) for stretch in self.stretches)
            for row in begins.tolist()
        ]
        return self.passes * median(runs)

    def _stretch_s(
        self, stretch: Stretch, a_byte: list[float], eager: float, begins: list[float]
    ) -> float:
        """Return the seconds of a stretch, without those of its head."""
        head, whole = stretch.head, len(stretch.packets)
        before = self._run_s(stretch, a_byte, head, eager, begins) if head else 0.0
        return self._run_s(stretch, a_byte, whole, eager, begins) - before

    def _run_s(
        self, stretch: Stretch, a_byte: list[float], first: int, eager: float, begins: list[float]
    ) -> float:
        """Return the seconds of a stretch's first messages; all eager where ranks stand else."""
        run = _FollowedRun(self, stretch, a_byte, first, eager)
        end_s = run.end(begins)
        if run.stands:  # a program that counts on its library to take its messages
            return _FollowedRun(self, stretch, a_byte, first, np.inf).end(begins)
        return end_s


class _FollowedRun:
    """Ranks and links of one run of the first so first messages.

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

    def __init__(
        self, course: Course, stretch: Stretch, a_byte: list[float], first: int, eager: float
    ) -> None:
        sends = [column[:first] for column in stretch.sends]
        self.stretch, self.a_byte, self.packet = stretch, a_byte, course.burst / A_BURST
        step, self.source, self.target, size, self.done, self.taken, self.awaited = (
            column.tolist() for column in sends
        )
        self.size = stretch.wire.tolist()
        self.left = stretch.packets.tolist()
        self.answered = [payload > eager for payload in size]
        steps = max((*self.done, *self.taken, *self.awaited), default=-1) + 1
        self.posts: list[Ways] = [[[] for _ in range(steps)] for _ in range(course.ranks)]
        self.open = [[0] * steps for _ in range(course.ranks)]
        for k, (s, a, b) in enumerate(zip(step, self.source, self.target, strict=True)):
            self.posts[a][s].append(k)
            self.open[a][self.done[k]] += self.answered[k]
            if self.awaited[k] >= 0:
                self.open[b][self.awaited[k]] += 1
        self.at = [-1] * course.ranks
        self.early: Ways = [[] for _ in range(course.ranks)]
        self.events: list[tuple[float, int, int, int, float]] = []
        self.count = 0
        self.last = 0.0

    def end(self, begins: list[float]) -> float:
        """Return when the last rank is through, where they begin at these times."""
        for rank, now in enumerate(begins):
            self._begin(rank, now)
        there, back = self.stretch.there, self.stretch.back
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

    @property
    def stands(self) -> bool:
        """Whether a rank waits for ever."""
        return any(sum(steps) > 0 for steps in self.open)

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
        if self.taken[k] > self.at[self.target[k]]:
            self.early[self.target[k]].append(k)
        else:
            self._send(now, k, 0, 0.0)

    def _arrive(self, k: int, size: float, now: float) -> None:
        """Count a packet of a message, or its acknowledgement."""
        if size:
            self.left[k] -= 1
            if self.left[k]:
                return
            self._take(k, now)
        rank, step = (self.target[k], self.awaited[k]) if size else (self.source[k], self.done[k])
        if step < 0:
            return
        self.open[rank][step] -= 1
        if self.at[rank] == step and not self.open[rank][step]:
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
    if placement.known_machine.router.shape[1] > 1:
        return None
    if phase.stretches is not None:
        parts, again = phase.stretches(lambda size: _packets(size, burst), MOST_OF_PASSES)
        runs = 1 if again > 1 else MOST_RUNS
    else:
        every = (*phase.before, phase)
        messages = sum(max(earlier.in_turn, earlier.a_rank) for earlier in every) * len(
            placement.node_of_rank
        )
        if messages > MOST_PACKETS * phase.passes:
            return None
        passes = _passes(phase, every, burst)
        if passes is None:
            return None
        sends, head, followed = passes
        parts, again, runs = [(sends, head)], phase.passes / followed, -(-MOST_RUNS // followed)
    packets = sum(int(_packets(sends.size, burst).sum()) for sends, _ in parts)
    if not 0 < packets <= MOST_PACKETS or any(not sends.size.all() for sends, _ in parts):
        return None
    runs = min(runs, MOST_PACKETS // packets) or 1
    stretches = [_stretch(placement, *part, routing, channels, burst) for part in parts]
    return Course(stretches, len(placement.node_of_rank), burst, runs, again)


def _passes(phase: Phase, every: tuple[Phase, ...], burst: float) -> tuple[Sends, int, int] | None:
    """Return the messages of a phase's passes and of what comes before; None where not known.

    Returns
    -------
    Sends
    int
        Messages that come before what counts.
    int
        Passes that count.
    """
    sends = [earlier.sends() for earlier in every if earlier.sends is not None]
    if len(sends) < len(every) or not len(sends[-1].step):
        return None
    head, again = sum(len(earlier.step) for earlier in sends[:-1]), int(phase.passes)
    if again > 1:
        room = MOST_OF_PASSES // max(1, int(_packets(sends[-1].size, burst).sum()))
        again, before = (again, 0) if again <= room else (room - room // 2, room // 2)
        head += before * len(sends[-1].step)
        sends += sends[-1:] * (again + before - 1)
    return (Sends.joined(sends), head, again) if again else None


def _stretch(
    placement: Placement, sends: Sends, head: int, routing: str, channels: int, burst: float
) -> Stretch:
    """Return messages with the links that they take; each segment carries its headers."""
    full = segment(MTU)
    headers = 2 * HEADER * (np.ceil(sends.size / full) - sends.size / full)
    wire = sends.size + headers
    a, b = placement.node_of_rank[sends.source], placement.node_of_rank[sends.target]
    there, back = (_ways(placement, *ends, routing, channels) for ends in ((a, b), (b, a)))
    return Stretch(sends, there, back, wire, _packets(wire, burst), head)


def _packets(size: Floats, burst: float) -> Ints:
    """Return the packets of each message."""
    return np.ceil(size * A_BURST / burst).astype(np.int64)


def _ways(placement: Placement, a: Ints, b: Ints, routing: str, channels: int) -> Ways:
    """Return the links from each node to another one, both by their place in the job."""
    pair, place = np.unique(a * len(placement.rows) + b, return_inverse=True)
    source, target = (placement.rows[x] for x in np.divmod(pair, len(placement.rows)))
    message, channel = walk(placement.known_machine, source, target, routing)
    order = np.argsort(message, kind="stable")
    ends = np.searchsorted(message[order], np.arange(len(pair) + 1))
    ejection = channels + len(placement.known_machine)
    ways = [
        [channels + x, *channel[order[i:j]].tolist(), ejection + y] if x != y else []
        for x, y, i, j in zip(source.tolist(), target.tolist(), ends[:-1], ends[1:], strict=True)
    ]
    return [ways[k] for k in place.tolist()]
