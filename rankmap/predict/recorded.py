"""A recording's messages and what waits for what, from the order in which ranks did things.

Ranks go from wait to wait: a *step* of a rank is what it does until it next waits. A message is
posted in a step of its sender, its receive in one of the receiver's, and each of them waits for it
at the end of that step or of a later one. Messages are paired in the order of their posting, as MPI
does where one rank's are asked for. A receive from any rank got what the recorder saw it get; an
older recording does not say, and there it takes what no other one does.
Collectives are the messages of a usual algorithm, or, where their bytes differ by rank, all at
once.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.arrays import sample_evenly
from nidmap.rankmap.collectives import LIBRARIES
from nidmap.rankmap.collectives.algorithms import call_steps, usual_algorithm_of
from nidmap.rankmap.predict.phase import RankStep, Sends, Stretches
from nidmap.rankmap.recording import EVENTS, RecordedPhase, Recording

SEND, RECEIVE, WAIT_FOR_LAST, SEND_DONE, RECEIVE_DONE, COLLECTIVE, ANY_DONE, CANCELLED = range(
    len(EVENTS)
)

#: Messages at most.
MOST_MESSAGES = 400_000

#: Parts of a run that are followed, of one that is too long to be followed whole.
PARTS = 3

#: Waves that are looked at, at most: of more that differ an even sample.
MOST_WAVES = 64

#: What a member of a collective does in turn: whom it sends how many bytes, whom it hears from.
Turns = list[tuple[list[tuple[int, float]], list[int]]]


@lru_cache(maxsize=8)
def messages_in_waves(recording: Recording, library: str) -> tuple[Sends, Waves, float] | None:
    """Return a recording's messages, when they go, and how many times as long the whole run is.

    Parameters
    ----------
    recording : Recording
    library : str
        See `messages_of`.

    Returns
    -------
    Sends, Waves, float
        None where nobody knows what waits for what. The run is longer by its bytes.
    """
    sends = messages_of(recording, library)
    waves = None if sends is None else waves_of(sends, recording.ranks)
    if sends is None or waves is None:
        return None
    total = sum(float(phase.messages().away().bytes.sum()) for phase in recording.phases)
    return sends, waves, max(1.0, total / max(1.0, float(sends.size.sum())))


def cheap_stretches(
    sends: Sends, waves: Waves, cost: Callable[[Floats], Floats | Ints], room: int
) -> Stretches:
    """Return parts of a run that cost no more together than there is room for.

    Parameters
    ----------
    sends : Sends
    waves : Waves
    cost : callable
        Returns what messages of so many bytes cost.
    room : int
    """
    by_wave = np.cumsum(np.bincount(waves.wave, cost(sends.size)))
    total = float(by_wave[-1])
    if total <= room:
        return Stretches([(sends, 0)], 1.0)
    chosen: list[tuple[Sends, int]] = []
    counted = 0.0
    for k in range(PARTS):
        begins = (k + 0.5) / PARTS * total - room / (2 * PARTS)
        ends = np.array([begins, begins + room / (2 * PARTS), begins + room / PARTS])
        first, middle, last = np.searchsorted(by_wave, np.maximum(ends, 0.0), side="right").tolist()
        last = max(last, middle + 1)
        inside = (waves.wave >= first) & (waves.wave < last)
        head = waves.wave[inside] < middle
        order = np.argsort(~head, kind="stable")
        part = waves.stretch(sends, first, last)
        chosen.append((part.some(order), int(head.sum())))
        counted += float(by_wave[last - 1] - (by_wave[middle - 1] if middle else 0.0))
    return Stretches(chosen, total / counted)


def wave_steps(sends: Sends, waves: Waves, times: float) -> Iterator[RankStep]:
    """Yield what goes in a wave; waves that are alike, or much the same, stand for each other.

    Parameters
    ----------
    sends : Sends
    waves : Waves
    times : float
        How often all of this was done.
    """
    ordered = sends.some(np.argsort(waves.wave, kind="stable"))
    ends = np.cumsum(np.bincount(waves.wave))
    alike: dict[bytes, list[int]] = defaultdict(list)
    columns = [ordered.source, ordered.target, ordered.size]
    for number, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        if end > begin:
            alike[b"".join(column[begin:end].tobytes() for column in columns)].append(number)
    groups = sorted(alike.values(), key=lambda group: ends[group[0]])
    for place, many in zip(*sample_evenly(len(groups), MOST_WAVES), strict=True):
        group = groups[place - 1]
        sent = ordered.some(slice(ends[group[0] - 1] if group[0] else 0, ends[group[0]]))
        count = len(group) if many == 1 else sum(map(len, groups)) / len(groups) * many
        yield RankStep(sent.source, sent.target, sent.size, count * times)


def messages_of(recording: Recording, library: str) -> Sends | None:
    """Return the messages of a recording, each with the steps of both ranks.

    Parameters
    ----------
    recording : Recording
    library : str
        That chooses the algorithm of an all-to-all; '': all at once.

    Returns
    -------
    Sends or None
        None where the recording does not say what follows what, or it is too much to go through.
    """
    order = recording.order
    if order is None or len(order.numbers) > MOST_MESSAGES:
        return None
    collectives = _Collectives(recording, library)
    posted = _Posted()
    for rank in range(recording.ranks):
        numbers = order.numbers[order.start[rank] : order.start[rank + 1]]
        path = _RankPath(rank, posted)
        for what, peer, group, phase, size in order.events[numbers].tolist():
            if what == COLLECTIVE:
                for turn in collectives.turns(rank, group, phase, peer, size):
                    path.take_turn(*turn)
            else:
                path.do(what, peer, size)
        path.finish()
        if len(posted.sends) > MOST_MESSAGES:
            return None
    return posted.paired()


class _Posted:
    """What ranks have posted: messages [from, to, bytes, step, done], receives [taken, awaited]."""

    def __init__(self) -> None:
        self.sends: list[list[float]] = []
        self.sent: dict[tuple[int, int, bool], list[list[float]]] = defaultdict(list)
        self.received: dict[tuple[int, int, bool], list[list[float]]] = defaultdict(list)

    def remove(self, taken_awaited: list[float], source: int, rank: int) -> list[float]:
        """Take away a receive that a rank posted, from a rank or from any (-1), and return it."""
        posted = self.received[source, rank, False]
        place = next(k for k, receive in enumerate(posted) if receive is taken_awaited)
        return posted.pop(place)

    def paired(self) -> Sends | None:
        """Return the messages with their receives; one that nobody takes keeps nobody waiting."""
        ends: dict[int, list[float]] = {}
        left: dict[int, list[list[float]]] = defaultdict(list)
        for key, sends in self.sent.items():
            receives = self.received.get(key, [])
            ends |= {id(send): receive for send, receive in zip(sends, receives, strict=False)}
            left[key[1]] += sends[len(receives) :]
        for target, sends in left.items():
            sends.sort(key=lambda send: send[3])
            receives = self.received.get((-1, target, False), [])
            ends |= {id(send): receive for send, receive in zip(sends, receives, strict=False)}
        if not self.sends:
            return None
        rows = np.array([[*send, *ends.get(id(send), (0, -1))] for send in self.sends])
        source, target, size, step, done, taken, awaited = rows.T
        away = source != target
        step, source, target, done, taken, awaited = (
            column[away].astype(np.int64) for column in (step, source, target, done, taken, awaited)
        )
        return Sends(step, source, target, np.maximum(size[away], 1.0), done, taken, awaited)


class _RankPath:
    """Where a rank is while its events are gone through: its step, and what it waits for there.

    Attributes
    ----------
    open : dict of (rank, whether sent) to deque
        What is posted and was not waited for, oldest first.
    last : list
        What was posted in this step, in order.
    waits : bool
        Whether the rank has begun to wait in this step: what it posts next is in another one.
    """

    def __init__(self, rank: int, posted: _Posted) -> None:
        self.rank, self.posted = rank, posted
        self.step = 0
        self.open: dict[tuple[int, bool], deque[list[float]]] = defaultdict(deque)
        self.last: list[tuple[int, bool]] = []
        self.waits = False

    def do(self, what: int, peer: int, size: float) -> None:
        """Take an event that is no collective."""
        if what == SEND:
            self.send(peer, size)
        elif what == RECEIVE:
            self.receive(peer)
        elif what == WAIT_FOR_LAST:
            self.wait_for_last(peer)
        elif what == ANY_DONE:
            self.match_any_receive(peer)
        elif what == CANCELLED:
            self.cancel_from(peer)
        else:
            self.wait_for(peer, what == SEND_DONE)

    def send(self, target: int, size: float, collective: bool = False) -> None:
        """Post a message."""
        self._go_on()
        message: list[float] = [self.rank, target, size, self.step, self.step]
        self.posted.sends.append(message)
        self.posted.sent[self.rank, target, collective].append(message)
        self._open((target, True), message)

    def receive(self, source: int, collective: bool = False) -> None:
        """Post a receive; of rank -1 from any."""
        self._go_on()
        taken_awaited: list[float] = [self.step, -1]
        self.posted.received[source, self.rank, collective].append(taken_awaited)
        self._open((source, False), taken_awaited)

    def match_any_receive(self, source: int) -> None:
        """Wait for the oldest receive from any rank, which got its message from this one."""
        if waiting := self.open[-1, False]:
            receive = self.posted.remove(waiting[0], -1, self.rank)
            self.posted.received[source, self.rank, False].append(receive)
            self.wait_for(-1, sent=False)

    def cancel_from(self, source: int) -> None:
        """Forget the oldest receive from a rank, or from any (-1)."""
        if waiting := self.open[source, False]:
            self.posted.remove(waiting.popleft(), source, self.rank)

    def wait_for(self, other: int, sent: bool) -> None:
        """Wait for the oldest message to a rank, or from it."""
        if waiting := self.open[other, sent]:
            waiting.popleft()[-1] = self.step
            self.waits = True

    def wait_for_last(self, count: int) -> None:
        """Wait for what was posted last."""
        for key in self.last[len(self.last) - count :]:
            self.open[key].pop()[-1] = self.step
            self.waits = True

    def take_turn(self, sends: list[tuple[int, float]], sources: list[int]) -> None:
        """Do a step of a collective, and wait for it alone."""
        for target, size in sends:
            self.send(target, size, collective=True)
        for source in sources:
            self.receive(source, collective=True)
        self.wait_for_last(len(sends) + len(sources))

    def finish(self) -> None:
        """Wait for all messages that are left."""
        for (_, sent), waiting in self.open.items():
            for ends in waiting if sent else ():
                ends[-1] = self.step

    def _go_on(self) -> None:
        """Begin another step where the rank has waited in this one."""
        if self.waits:
            self.step, self.waits = self.step + 1, False
            self.last.clear()

    def _open(self, key: tuple[int, bool], ends: list[float]) -> None:
        self.open[key].append(ends)
        self.last.append(key)


class _Collectives:
    """What members of a recording's collectives do, step by step."""

    def __init__(self, recording: Recording, library: str) -> None:
        self.recording, self.library = recording, library
        self._kept: dict[tuple[int, ...], dict[int, Turns]] = {}

    def turns(self, rank: int, group: int, phase: int, root: int, size: int) -> Turns:
        """Return the turns of one rank."""
        key = group, phase, root, size
        if key not in self._kept:
            assert self.recording.order is not None
            members = self.recording.order.groups[group]
            recorded = self.recording.phases[phase]
            steps = self._even_steps(recorded.kind, members, root, size)
            if recorded.sent.source.size and root < 0:
                steps = iter([_uneven_step(recorded, members)])
            self._kept[key] = _as_turns(steps, members)
        return self._kept[key].get(rank, [])

    def _even_steps(
        self, kind: str, members: Ints, root: int, size: float
    ) -> Iterator[tuple[Ints, Ints, Any]]:
        """Yield the steps of the algorithm that the library takes, or libraries usually do."""
        count = len(members)
        algorithm = usual_algorithm_of(kind, size, count)
        if kind == "alltoall" and self.library:
            algorithm = LIBRARIES[self.library].choose(kind, size, count)
        for source, target, sent, times in call_steps(kind, algorithm, count, root, size):
            yield from [(members[source], members[target], sent)] * times


def _uneven_step(phase: RecordedPhase, members: Ints) -> tuple[Ints, Ints, Any]:
    """Return one step: a call's share of all that the phase sends between these ranks."""
    here = np.isin(phase.sent.source, members) & np.isin(phase.sent.target, members)
    sent = phase.sent.some(here).away()
    return sent.source, sent.target, sent.bytes / np.maximum(1, sent.messages)


def _as_turns(steps: Iterable[tuple[Ints, Ints, Any]], members: Ints) -> dict[int, Turns]:
    """Return what each rank does in each step in which it takes part."""
    turns: dict[int, Turns] = {rank: [] for rank in members.tolist()}
    for source, target, size in steps:
        sends: dict[int, list[tuple[int, float]]] = defaultdict(list)
        sources: dict[int, list[int]] = defaultdict(list)
        size = np.broadcast_to(size, source.shape)
        for a, b, n in zip(source.tolist(), target.tolist(), size.tolist(), strict=True):
            if a != b:
                sends[a].append((b, n))
                sources[b].append(a)
        for rank in {*sends, *sources}:
            turns[rank].append((sends[rank], sources[rank]))
    return turns


class Waves(NamedTuple):
    """When messages go, where each takes as long as any other.

    Attributes
    ----------
    wave : int64 (m,)
        Of each message.
    at : int64 (w + 1, ranks)
        The step that each rank is in when a wave begins.
    """

    wave: Ints
    at: Ints

    def stretch(self, sends: Sends, begin: int, end: int) -> Sends:
        """Return the messages of some waves: what came before is there, what follows is not."""
        inside = (self.wave >= begin) & (self.wave < end)
        first, last = self.at[begin], self.at[end]
        some = sends.some(inside)
        a, b = some.source, some.target
        reached = some.awaited <= last[b]
        return some._replace(
            step=some.step - first[a],
            done=np.minimum(some.done, last[a]) - first[a],
            taken=np.clip(some.taken, first[b], last[b]) - first[b],
            awaited=np.where((some.awaited >= 0) & reached, some.awaited - first[b], -1),
        )


def waves_of(sends: Sends, ranks: int) -> Waves | None:
    """Return when each message goes if all take equally long; None where ranks wait for ever.

    A rank begins its next step in the wave after the last message came that it waits for. It does
    not wait for its own messages to be taken.

    Examples
    --------
    >>> ring = np.arange(3), (np.arange(3) + 1) % 3
    >>> chain = Sends.of([(0, ring[0], ring[1], 8.0), (1, ring[0], ring[1], 8.0)])
    >>> waves_of(chain, 3).wave.tolist()
    [0, 0, 0, 1, 1, 1]
    """
    steps = _steps_of_ranks(sends, ranks)
    posts: list[dict[int, list[int]]] = [defaultdict(list) for _ in range(ranks)]
    missing = [[0] * count for count in steps]
    target, awaited = sends.target.tolist(), sends.awaited.tolist()
    for k, (step, a) in enumerate(zip(sends.step.tolist(), sends.source.tolist(), strict=True)):
        posts[a][step].append(k)
        if awaited[k] >= 0:
            missing[target[k]][awaited[k]] += 1
    wave = np.zeros(len(sends.step), dtype=np.int64)
    rows: list[list[int]] = []
    at = [0] * ranks
    begins = [rank for rank in range(ranks) if steps[rank]]
    while begins:
        for k in [k for rank in begins for k in posts[rank].get(at[rank], ())]:
            wave[k] = len(rows)
            if awaited[k] >= 0:
                missing[target[k]][awaited[k]] -= 1
        rows.append(list(at))
        waiting = [rank for rank in range(ranks) if at[rank] < steps[rank]]
        through = [rank for rank in waiting if not missing[rank][at[rank]]]
        for rank in through:
            at[rank] += 1
        begins = [rank for rank in through if at[rank] < steps[rank]]
    return Waves(wave, np.array([*rows, at])) if at == steps else None


def _steps_of_ranks(sends: Sends, ranks: int) -> list[int]:
    """Return how many steps each rank has."""
    last = np.full(ranks, -1)
    np.maximum.at(last, sends.source, np.maximum(sends.step, sends.done))
    np.maximum.at(last, sends.target, np.maximum(sends.taken, sends.awaited))
    return (last + 1).tolist()
