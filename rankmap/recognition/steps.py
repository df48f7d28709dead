"""What of a recording goes one after the other.

A phase of a recording is what a rank posts until it next waits, so that phases follow each
other. Where each rank has one message in flight at a time, a phase's own messages follow each
other as well: along one direction of a stencil after the other, or to one partner after the
other. Collectives that share a rank follow each other, as those on rows and on columns of a grid
that one line of the program calls. Phases of different ranks that are entered equally often, as
where ranks at an edge take another way through the code, go together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from nidmap.placement.support.array_types import Ints
from nidmap.placement.support.arrays import sample_evenly
from nidmap.placement.traffic import NO_TRAFFIC, Traffic, join_traffic
from nidmap.rankmap.pattern.sweep import Sweep, waves
from nidmap.rankmap.recognition.shapes import NEARLY_EQUAL, stencil_in, sweep_in
from nidmap.rankmap.recording import RecordedCollective, RecordedPhase, Recording

#: Steps at most: the largest, and all that is left in one more.
MOST_STEPS = 16

#: Waves of a sweep at most: of more an even sample.
MOST_WAVES = 64

#: Share of all bytes from which messages are a step of their own.
LEAST_SHARE = 0.01


class RecordedStep(NamedTuple):
    """What a program sends before it goes on.

    Attributes
    ----------
    sent : Traffic
        Each pair of ranks once.
    times : int
        How often: of messages that go together how often ranks waited for them, else by the
        messages of the pair that has most.
    place : int64 (ranks,) or None
        Of an all-to-all, each rank's place in its communicator, -1 where it takes no part;
        None for what is no all-to-all of equal blocks.
    alike : float
        Steps that it stands for.
    """

    sent: Traffic
    times: int
    place: Ints | None = None
    alike: float = 1.0

    @classmethod
    def of(cls, sent: Traffic, place: Ints | None = None) -> RecordedStep:
        """Return a step of messages."""
        return cls(sent, int(sent.messages.max(initial=0)), place)


@lru_cache(maxsize=8)
def steps_in(recording: Recording) -> list[RecordedStep]:
    """Return what a program sends, step by step; all in one where nothing tells steps apart.

    Parameters
    ----------
    recording : Recording

    Returns
    -------
    list of RecordedStep
        In the order in which the program came to them, what is least last. Together all that
        was recorded.

    Raises
    ------
    UsageError
        A collective has too many pairs to write out.

    Examples
    --------
    >>> from nidmap.placement.traffic import Traffic
    >>> from nidmap.rankmap.recording import RecordedPhase, Recording
    >>> pairs = np.array([0, 1, 1, 0]), np.array([1, 0, 2, 2])
    >>> sent = Traffic(*pairs, np.full(4, 100), np.full(4, 10))
    >>> alone = RecordedPhase("point-to-point", "app+0x1f", 20, 40, sent)
    >>> [step.sent.target.tolist() for step in steps_in(Recording(3, 1.0, (alone,)))]
    [[1, 2], [2, 0]]
    """
    ranks = recording.ranks
    in_waves: list[RecordedStep] = []
    phases: list[RecordedPhase] = []
    for phase in recording.phases:
        if (sweep := sweep_in(phase, ranks)) is not None:
            in_waves += _sampled_waves(phase, sweep)
        else:
            phases += _one_after_another(phase)
    sent = [phase.messages().by_pair(ranks) for phase in phases]
    least = LEAST_SHARE * sum(int(traffic.bytes.sum()) for traffic in sent)
    entries: list[RecordedStep | _Together] = []
    rest: list[Traffic] = []
    for phase, traffic in zip(phases, sent, strict=True):
        partners = np.bincount(traffic.source, minlength=ranks)
        groups = (other for other in entries if isinstance(other, _Together))
        if traffic.bytes.sum() <= least:
            rest.append(traffic)
        elif phase.kind == "alltoall" and not len(phase.sent.source):
            entries.append(RecordedStep.of(traffic, _places_in(phase, ranks)))
        elif phase.together <= 1 and not phase.collectives and partners.max() > 1:
            entries += map(RecordedStep.of, _one_by_one(traffic, ranks))
        elif not any(other.joined_by(phase.calls, traffic) for other in groups):
            entries.append(_Together(phase.calls, partners, [traffic]))
    steps = [step.joined() if isinstance(step, _Together) else step for step in entries]
    size = [-int(step.sent.bytes.sum()) for step in steps]
    kept = set(np.argsort(size, kind="stable")[: MOST_STEPS - 1].tolist())
    rest += [step.sent for k, step in enumerate(steps) if k not in kept]
    last = RecordedStep.of(join_traffic(rest).by_pair(ranks))
    all_steps = (*in_waves, *(step for k, step in enumerate(steps) if k in kept), last)
    return [step for step in all_steps if step.sent.bytes.sum()]


def _sampled_waves(phase: RecordedPhase, sweep: Sweep) -> Iterator[RecordedStep]:
    """Yield the waves of a sweep, of many an even sample, all of its passes together."""
    wave, source, target = waves(sweep.dims, sweep.messages)
    passes = int(phase.sent.messages.max()) // (2 * sweep.messages)
    size = passes * float(phase.sent.bytes.sum() / phase.sent.messages.sum())
    for number, alike in zip(*sample_evenly(int(wave[-1]) + 1, MOST_WAVES), strict=True):
        here = wave == number - 1
        sent = Traffic.of(source[here], target[here], size, float(passes))
        yield RecordedStep(sent, passes, alike=alike)


def _one_after_another(phase: RecordedPhase) -> Iterator[RecordedPhase]:
    """Yield a phase, in parts where its collectives share ranks: those that do not go together."""
    groups: list[tuple[set[int], list[RecordedCollective]]] = []
    for collective in phase.collectives:
        members = set(collective.members.tolist())
        group = next((group for group in groups if group[0].isdisjoint(members)), None)
        if group is None:
            groups.append((members, [collective]))
        else:
            group[0].update(members)
            group[1].append(collective)
    if len(groups) < 2:
        yield phase
        return
    none = NO_TRAFFIC
    for k, (_, together) in enumerate(groups):
        calls = max(int(collective.calls.max(initial=0)) for collective in together)
        yield replace(
            phase, calls=calls, sent=none if k else phase.sent, collectives=tuple(together)
        )


def _places_in(phase: RecordedPhase, ranks: int) -> Ints:
    """Return each rank's place in its communicator, -1 where it is in none."""
    place = np.full(ranks, -1)
    for collective in phase.collectives:
        place[collective.members] = np.arange(len(collective.members))
    return place


@dataclass
class _Together:
    """Phases of different ranks that are entered equally often.

    Attributes
    ----------
    calls : int
    senders : int64 (ranks,)
        Pairs that each rank sends to.
    parts : list of Traffic
    """

    calls: int
    senders: Ints
    parts: list[Traffic]

    def joined_by(self, calls: int, sent: Traffic) -> bool:
        """Take a phase in, unless it is entered otherwise or a rank sends in both."""
        fits = calls == self.calls and not self.senders[sent.source].any()
        if fits:
            self.parts.append(sent)
            self.senders += np.bincount(sent.source, minlength=len(self.senders))
        return fits

    def joined(self) -> RecordedStep:
        """Return the phases as one step."""
        return RecordedStep(join_traffic(self.parts).by_pair(len(self.senders)), self.calls)


def _one_by_one(sent: Traffic, ranks: int) -> Iterator[Traffic]:
    """Yield messages that ranks send one at a time: by direction, or by how far they go."""
    grid = stencil_in(sent, ranks, NEARLY_EQUAL)
    dims = (ranks,) if grid is None else grid.dims
    here = np.array(np.unravel_index(sent.source, dims))
    there = np.array(np.unravel_index(sent.target, dims))
    offset = np.ravel_multi_index(tuple((there - here) % np.array(dims)[:, None]), dims)
    offsets = np.unique(offset)
    if len(offsets) > MOST_STEPS:  # no grid: to each rank's first partner, then to its second
        first = np.searchsorted(sent.source, sent.source)
        offset = np.arange(len(offset)) - first
        offsets = np.unique(offset)
    for direction in offsets:
        yield sent.some(offset == direction)
