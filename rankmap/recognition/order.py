# SPDX-License-Identifier: Apache-2.0
"""A recording's messages and their dependencies, from the order in which ranks acted.

Ranks go from wait to wait: a *step* of a rank is what it does until it next waits. A message is
posted in a step of its sender, and its receiver waits for it at the end of one of its own. Messages
of one tag and communicator are paired in the order of their posting, as MPI does. A receive from
any rank, or of any tag, got what the recorder saw it get; an older recording does not say, and
there it takes what no other one does. At a collective all of its members wait for each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nidmap.placement.support.array_types import Ints
from nidmap.placement.support.arrays import sample_evenly
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.recording import EVENTS, Recording

SEND, RECEIVE, WAIT_FOR_LAST, SEND_DONE, RECEIVE_DONE, COLLECTIVE, ANY_DONE, CANCELLED = range(
    len(EVENTS)
)

#: Events at most.
MOST_EVENTS = 400_000

#: Waves for each step of the busiest rank from which messages are a chain: a halo exchange has 1,
#: AMG's cycles, whose coarse grids have few ranks, 1.45, a chain as many as it has ranks.
CHAIN = 2.0

#: Maximum number of waves to consider: beyond, an even sample of differing ones.
MOST_WAVES = 64

#: Sender, receiver, and tag with communicator.
Envelope = tuple[int, int, int]


class RecordedStep(NamedTuple):
    """Messages sent at the same time, all repetitions together."""

    sent: Traffic
    times: float  # how often


class Sends(NamedTuple):
    """Messages between ranks, each rank's in the order in which it posts them."""

    # step, source, target: (m,), ranks, and the sender's step in which it posts the message
    step: Ints
    source: Ints
    target: Ints
    size: Ints  # (m,), bytes
    # (m,), the receiver's step at whose end it waits for the message; -1: nobody does
    awaited: Ints

    def some(self, kept: Ints | slice) -> Sends:
        """Return some of the messages, in the order of `kept`."""
        return Sends(*(column[kept] for column in self))


#: A communicator's place in the order's groups, and how many of its calls came before.
Meeting = tuple[int, int]

#: No collective.
NOWHERE: Meeting = (-1, 0)


class Did(NamedTuple):
    """The events of all ranks."""

    sends: Sends
    meets: list[dict[int, Meeting]]  # for each rank, the collective at the end of a step
    members: dict[Meeting, int]  # how many ranks take part in each collective


def chains_of(recording: Recording) -> list[RecordedStep] | None:
    """Return the waves of a program whose messages wait for each other; None for any other.

    Ranks of a halo exchange send in as many waves as each of them takes steps; a chain or a sweep
    goes on while other ranks wait. What follows the order that was kept counts as more of the same.
    """
    did = messages_of(recording)
    wave = None if did is None else waves_of(did, recording.ranks)
    if did is None or wave is None or not len(wave):
        return None
    between = [phase.sent.away() for phase in recording.phases if phase.kind == "point-to-point"]
    # How many times as many messages the whole run has as the part whose order was kept.
    longer = sum(float(sent.messages.sum()) for sent in between) / len(wave)
    if longer * len(np.unique(wave)) < CHAIN * max(_steps_in_turn(recording), 1):
        return None
    return list(wave_steps(did.sends, wave, longer))


def _steps_in_turn(recording: Recording) -> int:
    """Return the largest number of waits, counting phases of the same ranks as consecutive."""
    calls = np.zeros(recording.ranks, dtype=np.int64)
    for phase in recording.phases:
        senders = np.unique(phase.sent.away().source)
        if phase.kind == "point-to-point" and len(senders):
            calls[senders] += phase.calls
    return int(calls.max(initial=0))


def wave_steps(sends: Sends, wave: Ints, times: float) -> Iterator[RecordedStep]:
    """Yield the messages of each wave; equal or similar waves represent each other.

    `wave` (m,): of each message. `times`: how often all of this was done.
    """
    ordered = sends.some(np.argsort(wave, kind="stable"))
    ends = np.cumsum(np.bincount(wave))
    # Waves with the same messages are one step that happens several times.
    alike: dict[bytes, list[int]] = defaultdict(list)
    columns = [ordered.source, ordered.target, ordered.size]
    for number, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        if end > begin:
            alike[b"".join(column[begin:end].tobytes() for column in columns)].append(number)
    groups = sorted(alike.values(), key=lambda group: ends[group[0]])
    for place, stands in zip(*sample_evenly(len(groups), MOST_WAVES), strict=True):
        group = groups[place - 1]
        sent = ordered.some(slice(ends[group[0] - 1] if group[0] else 0, ends[group[0]]))
        count = len(group) if stands == 1 else sum(map(len, groups)) / len(groups) * stands
        stands_for = count * times
        every = Traffic.of(sent.source, sent.target, sent.size * stands_for, stands_for)
        yield RecordedStep(every, stands_for)


def messages_of(recording: Recording) -> Did | None:
    """Return the messages of a recording, each with the steps of both ranks.

    None where the recording does not say what follows what, or it is too much to go through.
    """
    order = recording.order
    if order is None or len(order.numbers) > MOST_EVENTS:
        return None
    tags = np.zeros_like(order.numbers) if order.tags is None else order.tags
    posted, meets = _Posted(), list[dict[int, Meeting]]()
    members: dict[Meeting, int] = {}
    # Each rank is walked once by itself; its messages and receives meet by (from, to, tag), in the
    # order in which MPI matches them.
    for rank in range(recording.ranks):
        here = slice(order.start[rank], order.start[rank + 1])
        path = _RankPath(rank, posted)
        events = zip(order.events[order.numbers[here]].tolist(), tags[here].tolist(), strict=True)
        for (what, peer, group, _, size), tag in events:
            if what == COLLECTIVE:
                members[path.meet(group)] = len(order.groups[group])
            else:
                path.do(what, peer, tag, size)
        meets.append(path.meets)
    sends = posted.paired()
    return None if sends is None else Did(sends, meets, members)


class _Posted:
    """What ranks have posted: messages [from, to, bytes, step], receives [awaited]."""

    def __init__(self) -> None:
        self.sends: list[tuple[int, int, int, int]] = []
        self.sent: dict[Envelope, list[int]] = defaultdict(list)
        self.received: dict[Envelope, list[list[int]]] = defaultdict(list)

    def paired(self) -> Sends | None:
        """Return the messages with their receives; unreceived ones keep nobody waiting."""
        awaited = [-1] * len(self.sends)
        left: dict[int, list[int]] = defaultdict(list)
        for envelope, sends in self.sent.items():
            receives = self.received.pop(envelope, [])
            # MPI does not overtake: the k-th message of an envelope goes to the k-th receive.
            for send, receive in zip(sends, receives, strict=False):
                awaited[send] = receive[0]
            left[envelope[1]] += sends[len(receives) :]
        for (_, target, _), receives in self.received.items():  # from an unknown source
            sends = sorted(left[target], key=lambda send: self.sends[send][3])
            for send, receive in zip(sends, receives, strict=False):
                awaited[send] = receive[0]
            left[target] = sends[len(receives) :]
        if not self.sends:
            return None
        source, target, size, step = np.array(self.sends).T
        every = Sends(step, source, target, size, np.array(awaited))
        return every.some(np.flatnonzero(source != target))


class _RankPath:
    """A rank's state while its events are replayed: its step, and what it awaits there."""

    def __init__(self, rank: int, posted: _Posted) -> None:
        self.rank, self.posted = rank, posted
        self.step = 0
        # (sender, tag, receive), receives that are posted and were not waited for, oldest first;
        # -1: any
        self.open: list[tuple[int, int, list[int]]] = []
        # What was posted in this step, in order: receives, and None for a message
        self.last: list[list[int] | None] = []
        # Whether the rank has begun to wait in this step: its next message belongs to another one
        self.waits = False
        self.meets: dict[int, Meeting] = {}  # the collective at the end of a step
        self.met: dict[int, int] = defaultdict(int)

    def do(self, what: int, peer: int, tag: int, size: int) -> None:
        """Handle an event that is not a collective."""
        if what == SEND:
            self.send(peer, tag, size)
        elif what == RECEIVE:
            self.receive(peer, tag)
        elif what == WAIT_FOR_LAST:
            self.wait_for_last(peer)
        elif what == ANY_DONE:
            self.match_any_receive(peer, tag)
        elif what == CANCELLED:
            self.cancel(peer, tag)
        elif what == RECEIVE_DONE:
            self.wait_for(peer, tag)
        else:
            self.waits = True

    def send(self, target: int, tag: int, size: int) -> None:
        """Post a message."""
        self._go_on()
        self.posted.sent[self.rank, target, tag].append(len(self.posted.sends))
        self.posted.sends.append((self.rank, target, size, self.step))
        self.last.append(None)

    def receive(self, source: int, tag: int) -> None:
        """Post a receive."""
        self._go_on()
        awaited = [-1]
        self.posted.received[source, self.rank, tag].append(awaited)
        self.open.append((source, tag, awaited))
        self.last.append(awaited)

    def match_any_receive(self, source: int, tag: int) -> None:
        """Wait for the oldest receive from any rank, or of any tag, that got this message."""
        for place, (peer, wanted, awaited) in enumerate(self.open):
            if -1 in (peer, wanted) and peer in (-1, source) and wanted in (-1, tag):
                del self.open[place]
                self._forget(peer, wanted, awaited)
                self.posted.received[source, self.rank, tag].append(awaited)
                self._wait(awaited)
                return

    def cancel(self, source: int, tag: int) -> None:
        """Forget the oldest receive of these."""
        for place, (peer, wanted, awaited) in enumerate(self.open):
            if (peer, wanted) == (source, tag):
                del self.open[place]
                self._forget(peer, wanted, awaited)
                return

    def wait_for(self, source: int, tag: int) -> None:
        """Wait for the oldest receive of these."""
        for place, (peer, wanted, awaited) in enumerate(self.open):
            if (peer, wanted) == (source, tag):
                del self.open[place]
                self._wait(awaited)
                return

    def wait_for_last(self, count: int) -> None:
        """Wait for whatever was posted last."""
        self.waits = True
        for awaited in self.last[len(self.last) - count :]:
            if awaited is not None:
                place = next(k for k, entry in enumerate(self.open) if entry[2] is awaited)
                del self.open[place]
                self._wait(awaited)

    def meet(self, group: int) -> Meeting:
        """Call a collective on a communicator, which takes a step of its own."""
        if self.last or self.waits:
            self.step += 1
        self.meets[self.step] = meeting = (group, self.met[group])
        self.met[group] += 1
        self.waits = True
        return meeting

    def _wait(self, awaited: list[int]) -> None:
        awaited[0] = self.step
        self.waits = True

    def _forget(self, source: int, tag: int, awaited: list[int]) -> None:
        """Remove a receive from those posted."""
        posted = self.posted.received[source, self.rank, tag]
        del posted[next(k for k, receive in enumerate(posted) if receive is awaited)]

    def _go_on(self) -> None:
        """Begin another step if the rank has waited in this one."""
        if self.waits:
            self.step, self.waits = self.step + 1, False
            self.last.clear()


def waves_of(did: Did, ranks: int) -> Ints | None:
    """Return when each message is sent if all take equally long; None in a deadlock.

    A rank begins its next step in the wave after the last message came that it waits for, and after
    all members of a collective have come to it. It does not wait for its own messages to be taken.
    """
    sends, meets = did.sends, did.meets
    last = np.array([max(entries, default=-1) for entries in meets])
    np.maximum.at(last, sends.source, sends.step)
    np.maximum.at(last, sends.target, sends.awaited)
    steps = (last + 1).tolist()
    posts: list[dict[int, list[int]]] = [defaultdict(list) for _ in range(ranks)]
    missing = [[0] * count for count in steps]
    target, awaited = sends.target.tolist(), sends.awaited.tolist()
    for k, (step, a) in enumerate(zip(sends.step.tolist(), sends.source.tolist(), strict=True)):
        posts[a][step].append(k)
        if awaited[k] >= 0:
            missing[target[k]][awaited[k]] += 1
    wave = np.zeros(len(sends.step), dtype=np.int64)
    number, at, absent = 0, [0] * ranks, dict(did.members)
    begins = [rank for rank in range(ranks) if steps[rank]]
    while begins:
        for rank in begins:
            for k in posts[rank].get(at[rank], ()):
                wave[k] = number
                if awaited[k] >= 0:
                    missing[target[k]][awaited[k]] -= 1
            if (meeting := meets[rank].get(at[rank])) is not None:
                absent[meeting] -= 1
        number += 1
        through = [
            rank
            for rank in range(ranks)
            if at[rank] < steps[rank]
            and not missing[rank][at[rank]]
            and not absent.get(meets[rank].get(at[rank], NOWHERE), 0)
        ]
        for rank in through:
            at[rank] += 1
        begins = [rank for rank in through if at[rank] < steps[rank]]
    return wave if at == steps else None
