"""What a mini-Cray's exchange takes: its ranks followed through their steps, packet by packet.

The one term that a mini-Cray has and no other machine: the front door names it to the predictor
(`nidmap.rankmap.predict.model`), which asks for it where the bytes of a burst are stated.

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
times grow (`minicray/net.py`), a segment that is not full costs as much. A recording is
followed through all of its passes, or as many as there is time for: then the later half counts, as
links that were idle let a packet pass at once and the first passes find them so. Nothing is fitted.
"""

from __future__ import annotations

import heapq
from statistics import median
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nidmap.placement.network.routes import walk_paths
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.rankmap.predict.phase import Phase, Sends
from nidmap.rankmap.refine.cache import numba_installed
from nidmap.rankmap.refine.jit import inlined, kernel
from nidmap.workloads.minicray.net import HEADER, MTU, segment_bytes

T = TypeVar("T", bound=tuple[Any, ...])

#: When a packet comes, its number, its message, where its way goes on, its bytes.
Event = tuple[float, int, int, int, float]

#: Packets of a burst: the least that Linux sends as one (``tcp_min_tso_segs``).
A_BURST = 2

#: Packets of an exchange up to which its ranks are followed, and in all runs together.
MOST_PACKETS = 20_000

#: Runs at most.
MOST_RUNS = 5

#: The same of a recording's passes.
MOST_OF_PASSES = 6_000


class Ways(NamedTuple):
    """Links that messages take, channels, then the nodes' injection, then their ejection.

    Attributes
    ----------
    first : int64 (m,)
        Where the way of each message begins in `link`.
    link : int64 (l,)
        The links of a way after one another, then -1; none inside a node.
    """

    first: Ints
    link: Ints


class Stretch(NamedTuple):
    """A part of an exchange as its ranks go through it.

    Attributes
    ----------
    sends : Sends
    there, back : Ways
        Of each message and of its acknowledgement.
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
        apart = self.burst * max(_slowest_first_link(a_byte, s.there) for s in self.stretches)
        begins = np.random.default_rng(0).random((self.runs, self.ranks)) * apart
        runs = np.sum([self._stretch_s(s, a_byte, eager, begins) for s in self.stretches], axis=0)
        return float(self.passes * median(runs.tolist()))

    def _stretch_s(
        self, stretch: Stretch, a_byte: Floats, eager: float, begins: Floats
    ) -> list[float]:
        """Return the seconds of a stretch in each run, without those of its head."""
        ends_s = self._ends(stretch, a_byte, len(stretch.packets), eager, begins)
        if not stretch.head:
            return ends_s
        heads_s = self._ends(stretch, a_byte, stretch.head, eager, begins)
        return [end_s - head_s for end_s, head_s in zip(ends_s, heads_s, strict=True)]

    def _ends(
        self, stretch: Stretch, a_byte: Floats, count: int, eager: float, begins: Floats
    ) -> list[float]:
        """Return when the last rank is through so many messages, in each run.

        All are eager where a rank stands for ever else: its program counts on its library to take
        its messages.
        """
        packet = self.burst / A_BURST
        sent = _in_order(stretch, count, eager, self.ranks)
        runs = [_follow_ranks(sent, a_byte, packet, row) for row in begins]
        if any(stands for _, stands in runs):
            eagerly = _in_order(stretch, count, np.inf, self.ranks)
            runs = [_follow_ranks(eagerly, a_byte, packet, row) if run[1] else run
                    for row, run in zip(begins, runs, strict=True)]  # fmt: skip
        return [end_s for end_s, _ in runs]


def _slowest_first_link(a_byte: Floats, ways: Ways) -> float:
    """Return the seconds of a byte on the slowest link that a message takes first."""
    link = ways.link[ways.first]
    return float(a_byte[link[link >= 0]].max(initial=0.0))


class _Sent(NamedTuple):
    """The first messages of a stretch, by rank and step, as a kernel reads them.

    A place is a step of a rank, the ranks' after one another.

    Attributes
    ----------
    there, back : Ways
    source, target : int64 (m,)
    size : float64 (m,)
        Bytes with headers.
    packets : int64 (m,)
    answered : bool (m,)
        Whether a message is done for its sender only with its acknowledgement.
    done, awaited : int64 (m,)
        The places at whose end sender and receiver wait for it; -1: nobody does.
    taken : int64 (m,)
        The place in which its receive is posted.
    posted : int64 (m,)
        Messages by place, each rank's in its order.
    first : int64 (places + 1,)
        Where those of each place begin in `posted`.
    waits : int64 (places,)
        Messages and acknowledgements that are waited for.
    """

    there: Ways
    back: Ways
    source: Ints
    target: Ints
    size: Floats
    packets: Ints
    answered: Mask
    done: Ints
    awaited: Ints
    taken: Ints
    posted: Ints
    first: Ints
    waits: Ints


class _State(NamedTuple):
    """How far a run is.

    Attributes
    ----------
    at : int64 (ranks,)
        The place of each rank.
    end : int64 (ranks,)
        The place behind its last one.
    left : int64 (m,)
        Packets that are not there.
    waits : int64 (places,)
        What is still waited for.
    early, latest : int64 (ranks,)
        The first and the last message that is there before its receiver has come to its place;
        -1: none.
    after : int64 (m,)
        The next of these.
    served, passed : float64 (l,)
        When a link has served all packets, and when the last one went on.
    """

    at: Ints
    end: Ints
    left: Ints
    waits: Ints
    early: Ints
    latest: Ints
    after: Ints
    served: Floats
    passed: Floats


def _in_order(stretch: Stretch, count: int, eager: float, ranks: int) -> _Sent:
    """Return the first messages of a stretch as ranks go through them."""
    sends = stretch.sends.some(slice(count))
    source, target, waited = sends.source, sends.target, sends.awaited >= 0
    waited_in = (sends.done, sends.taken, sends.awaited)
    steps = int(max(step.max(initial=-1) for step in waited_in)) + 1
    places = ranks * steps
    answered, posted_in = sends.size > eager, source * steps + sends.step
    done, awaited = source * steps + sends.done, target * steps + sends.awaited
    waits = np.bincount(done[answered], minlength=places)
    waits += np.bincount(awaited[waited], minlength=places)
    return _Sent(
        stretch.there, stretch.back, source, target, stretch.wire[:count],
        stretch.packets[:count], answered, done, np.where(waited, awaited, -1),
        target * steps + sends.taken, np.argsort(posted_in, kind="stable"),
        np.append(0, np.cumsum(np.bincount(posted_in, minlength=places))), waits,
    )  # fmt: skip


def _follow_ranks(sent: _Sent, a_byte: Floats, packet: float, begins: Floats) -> tuple[float, bool]:
    """Return when the last rank is through, where they begin at these times, and if one stands."""
    ranks = len(begins)
    steps = len(sent.waits) // ranks
    end = np.arange(1, ranks + 1) * steps
    none, idle = np.full(ranks, -1), np.zeros(len(a_byte))
    state = _State(
        end - steps - 1, end, sent.packets.copy(), sent.waits.copy(), none, none.copy(),
        np.full(len(sent.source), -1), idle, idle.copy(),
    )  # fmt: skip
    if not numba_installed():  # Python reads lists faster
        sent, state = _as_lists(sent), _as_lists(state)
        return _run_links(sent, state, a_byte.tolist(), packet, begins.tolist())
    end_s, stands = _run_links(sent, state, a_byte, packet, begins)
    return float(end_s), bool(stands)


def _as_lists(arrays: T) -> T:
    """Return a tuple of lists for one of arrays, and of tuples of them."""
    return type(arrays)(*(_as_lists(x) if isinstance(x, tuple) else x.tolist() for x in arrays))


@kernel
def _run_links(
    sent: _Sent, state: _State, a_byte: Any, packet: float, begins: Any
) -> tuple[float, bool]:
    """Serve packets link by link until none is on its way; return when the last rank began a step.

    A packet on its way is (when it comes, a number, its message, where its way goes on, bytes); of
    equal times the one that was sent first counts. One of no bytes is an acknowledgement.
    """
    there, back, served, passed = sent.there.link, sent.back.link, state.served, state.passed
    events = [(0.0, 0, 0, 0, 0.0)]
    events.pop()
    count, last = 0, 0.0
    for rank in range(len(begins)):
        last = max(last, begins[rank])
        count = _go_on(sent, state, events, count, rank, begins[rank], packet)
    while events:
        now, _, k, at, size = heapq.heappop(events)
        link = there[at] if size > 0.0 else back[at]
        if link >= 0:
            now = max(now, passed[link], served[link] - (packet - size) * a_byte[link])
            passed[link] = now
            served[link] = max(served[link], now) + size * a_byte[link]
            count += 1
            heapq.heappush(events, (now, count, k, at + 1, size))
            continue
        place, rank = sent.done[k], sent.source[k]
        if size > 0.0:
            state.left[k] -= 1
            if state.left[k]:
                continue
            count = _take_message(sent, state, events, count, k, now)
            place, rank = sent.awaited[k], sent.target[k]
        if place < 0:
            continue
        state.waits[place] -= 1
        if state.at[rank] == place and not state.waits[place]:
            last = max(last, now)
            count = _go_on(sent, state, events, count, rank, now, packet)
    stands = False
    for waits in state.waits:
        stands |= waits > 0
    return last, stands


@inlined
def _go_on(
    sent: _Sent, state: _State, events: list[Event], count: int, rank: int, now: float,
    packet: float,
) -> int:  # fmt: skip
    """Let a rank begin its next step, and go on where it has nothing to wait for."""
    waits = 0
    while not waits and state.at[rank] + 1 < state.end[rank]:
        state.at[rank] += 1
        place = state.at[rank]
        for j in range(sent.first[place], sent.first[place + 1]):
            k = sent.posted[j]
            begin, whole = sent.there.first[k], sent.packets[k] - 1
            for _ in range(whole):
                count += 1
                heapq.heappush(events, (now, count, k, begin, packet))
            count += 1
            heapq.heappush(events, (now, count, k, begin, sent.size[k] - whole * packet))
        k = state.early[rank]
        state.early[rank] = -1
        while k >= 0:
            following = state.after[k]
            count = _take_message(sent, state, events, count, k, now)
            k = following
        waits = state.waits[place]
    return count


@inlined
def _take_message(
    sent: _Sent, state: _State, events: list[Event], count: int, k: int, now: float
) -> int:
    """Acknowledge a message, once its receiver has come to its step; none that is eager."""
    if not sent.answered[k]:
        return count
    rank = sent.target[k]
    if sent.taken[k] <= state.at[rank]:
        count += 1
        heapq.heappush(events, (now, count, k, sent.back.first[k], 0.0))
        return count
    if state.early[rank] < 0:
        state.early[rank] = k
    else:
        state.after[state.latest[rank]] = k
    state.latest[rank], state.after[k] = k, -1
    return count


def ranks_course(phase: Phase, routing: str, channels: int, burst: float) -> Course | None:
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
        parts, again = phase.stretches(lambda size: _split_packets(size, burst), MOST_OF_PASSES)
        runs = 1 if again > 1 else MOST_RUNS
    else:
        every = (*phase.before, phase)
        messages = sum(max(earlier.in_turn, earlier.a_rank) for earlier in every) * len(
            placement.node_of_rank
        )
        if messages > MOST_PACKETS * phase.passes:
            return None
        passes = _phase_passes(phase, every, burst)
        if passes is None:
            return None
        sends, head, followed = passes
        parts, again, runs = [(sends, head)], phase.passes / followed, -(-MOST_RUNS // followed)
    packets = sum(int(_split_packets(sends.size, burst).sum()) for sends, _ in parts)
    if not 0 < packets <= MOST_PACKETS or any(not sends.size.all() for sends, _ in parts):
        return None
    runs = min(runs, MOST_PACKETS // packets) or 1
    stretches = [_stretch_messages(placement, *part, routing, channels, burst) for part in parts]
    return Course(stretches, len(placement.node_of_rank), burst, runs, again)


def _phase_passes(
    phase: Phase, every: tuple[Phase, ...], burst: float
) -> tuple[Sends, int, int] | None:
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
        room = MOST_OF_PASSES // max(1, int(_split_packets(sends[-1].size, burst).sum()))
        again, before = (again, 0) if again <= room else (room - room // 2, room // 2)
        head += before * len(sends[-1].step)
        sends += sends[-1:] * (again + before - 1)
    return (Sends.joined(sends), head, again) if again else None


def _stretch_messages(
    placement: Placement, sends: Sends, head: int, routing: str, channels: int, burst: float
) -> Stretch:
    """Return messages with the links that they take; each segment carries its headers."""
    full = segment_bytes(MTU)
    headers = 2 * HEADER * (np.ceil(sends.size / full) - sends.size / full)
    wire = sends.size + headers
    a, b = placement.node_of_rank[sends.source], placement.node_of_rank[sends.target]
    there, back = (_ways_between(placement, *ends, routing, channels) for ends in ((a, b), (b, a)))
    return Stretch(sends, there, back, wire, _split_packets(wire, burst), head)


def _split_packets(size: Floats, burst: float) -> Ints:
    """Return the packets of each message."""
    return np.ceil(size * A_BURST / burst).astype(np.int64)


def _ways_between(placement: Placement, a: Ints, b: Ints, routing: str, channels: int) -> Ways:
    """Return the links from each node to another one, both by their place in the job."""
    pair, way = np.unique(a * len(placement.rows) + b, return_inverse=True)
    source, target = (placement.rows[x] for x in np.divmod(pair, len(placement.rows)))
    every, apart = np.arange(len(pair)), np.flatnonzero(source != target)
    source, target = source[apart], target[apart]
    message, channel = walk_paths(placement.known_machine, source, target, routing)
    ejection = channels + len(placement.known_machine)
    parts = (
        (apart, channels + source), (apart[message], channel), (apart, ejection + target),
        (every, np.full(len(pair), -1)),
    )  # fmt: skip
    of, link = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(of, kind="stable")
    first = np.searchsorted(of[order], every)
    return Ways(first[way], link[order])
