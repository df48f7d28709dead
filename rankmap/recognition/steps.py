# SPDX-License-Identifier: Apache-2.0
"""The steps of a recording: one per kind of call, without sampling.

A phase of messages is what a rank posts until it next waits. Ranks come to their phases in order,
and the first of each rank go together, the second of each, and so on: ranks at an edge of a grid
take another way through the code than those inside. A collective goes step by step, by the
algorithm that its library takes for this many ranks and bytes; communicators that share no rank go
together, those on rows and then those on columns of a grid one after the other, also where only
what they sent from rank to rank was recorded. Each step counts as often as it happened, all of its
times together. Sweeps go wave after wave.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from nidmap.placement.support.arrays import sample_evenly
from nidmap.placement.traffic import Traffic, join_traffic
from nidmap.rankmap.collectives import partner_in_turn
from nidmap.rankmap.collectives.algorithms import call_steps
from nidmap.rankmap.collectives.libraries import LIBRARIES
from nidmap.rankmap.pattern.sweep import Sweep, waves
from nidmap.rankmap.recognition.order import RecordedStep, chains_of
from nidmap.rankmap.recognition.shapes import lines_in, sweep_in
from nidmap.rankmap.recording import (
    EVENTS,
    Choice,
    RecordedCollective,
    RecordedPhase,
    Recording,
)

#: Steps at most: those that cost most, and all that is left in one more.
MOST_STEPS = 64

#: Maximum number of turns of an all-to-all to consider: beyond, an even sample.
MOST_TURNS = 16

#: Bytes added to each message when comparing steps: headers and latency.
A_MESSAGE = 100.0


#: By phase, members and root how often a collective was called with each size.
Sizes = dict[tuple[int, bytes, int], dict[int, float]]


class RecordedRun(NamedTuple):
    """Everything that a program sends."""

    sent: Traffic  # each pair of ranks once
    steps: list[RecordedStep]
    dependent: bool  # whether most of it are waves that wait for each other


@lru_cache(maxsize=16)
def recorded_run(recording: Recording, library: str) -> RecordedRun:
    """Return all messages of a program, and those of its steps.

    `library`: whose rules collectives go by: a key of
    `nidmap.rankmap.collectives.libraries.LIBRARIES`; '': by those that libraries usually have.
    """
    choose: Choice = LIBRARIES[library].choose if library else _choose_usual
    ranks = recording.ranks
    sent: list[Traffic] = []
    steps: list[RecordedStep] = []
    in_waves, chains = 0.0, chains_of(recording)
    if chains is not None:
        steps += chains
        in_waves = sum(float(step.sent.bytes.sum()) for step in chains)
    for phases in _levels(recording):
        if chains is not None and phases[0].kind == "point-to-point":
            continue
        together = join_traffic(phase.sent for phase in phases).away()
        sweep = sweep_in(phases[0], ranks) if len(phases) == 1 else None
        lines = lines_in(together, ranks)[1] if phases[0].kind == "alltoall" else []
        if sweep is not None:
            steps += _sweep_steps(phases[0], sweep)
            in_waves += float(together.bytes.sum())
        elif lines:
            steps += [RecordedStep(sent, float(sent.messages.max())) for sent in lines]
        else:
            calls = max(phase.calls for phase in phases)
            steps.append(RecordedStep(together.by_pair(ranks), float(calls)))
    sizes = _sizes_called(recording)
    for number, phase in enumerate(recording.phases):
        phase = replace(phase, collectives=tuple(_by_size(number, phase, sizes)))
        sent.append(phase.messages(choose))  # too many are refused here
        for calls_of in _disjoint(phase.collectives):
            steps += _collective_steps(phase.kind, calls_of, choose)
    total = join_traffic(sent).away().by_pair(ranks)
    dependent = in_waves > 0.5 * float(total.bytes.sum())
    return RecordedRun(total, _largest(steps, ranks), dependent)


def _choose_usual(call: str, size: float, ranks: int) -> str:
    """Return the algorithm that libraries usually choose."""
    return LIBRARIES["mpich"].choose(call, size, ranks) if call != "alltoall" else "at-once"


def _sizes_called(recording: Recording) -> Sizes:
    """Return how often collectives of each size were called, as far as recorded.

    An older recording counts all sizes of a call site together.
    """
    sizes: Sizes = {}
    if (order := recording.order) is None:
        return sizes
    called = np.flatnonzero(order.events[:, 0] == EVENTS.index("collective"))
    times = np.bincount(order.numbers, minlength=len(order.events))
    for number in called.tolist():
        _, root, group, phase, size = order.events[number].tolist()
        key = phase, order.groups[group].tobytes(), root
        by_size = sizes.setdefault(key, {})
        by_size[size] = by_size.get(size, 0.0) + float(times[number])
    return sizes


def _by_size(number: int, phase: RecordedPhase, sizes: Sizes) -> Iterator[RecordedCollective]:
    """Yield a phase's collectives, one per call size."""
    for called in phase.collectives:
        by_size = sizes.get((number, called.members.tobytes(), called.root), {})
        if phase.kind in ("gather", "allgather") or len(by_size) < 2:
            yield called
            continue
        counted = sum(by_size.values())
        for size, times in by_size.items():
            calls = round(int(called.calls.max()) * times / counted)
            yield RecordedCollective.alike(called.members, called.root, calls, calls * size)


def _levels(recording: Recording) -> Iterator[list[RecordedPhase]]:
    """Yield phases that belong together: the first of each rank, the second of each, and so on.

    What a collective sends rank by rank is by itself.
    """
    level = np.zeros(recording.ranks, dtype=np.int64)
    together: dict[int, list[RecordedPhase]] = {}
    for phase in recording.phases:
        senders = np.unique(phase.sent.away().source)
        if not len(senders):
            continue
        place = int(level[senders].max())
        if phase.kind not in ("point-to-point", "one-sided"):
            place = int(level.max())
            level[:] = place + 1
        level[senders] = place + 1
        together.setdefault(place, []).append(phase)
    yield from together.values()


def _sweep_steps(phase: RecordedPhase, sweep: Sweep) -> Iterator[RecordedStep]:
    """Yield the waves of a sweep, with all of its passes merged."""
    wave, source, target = waves(sweep.dims, sweep.messages)
    passes = int(phase.sent.messages.max()) // (2 * sweep.messages)
    size = float(phase.sent.bytes.sum() / phase.sent.messages.sum())
    count = int(wave[-1]) + 1
    for number, alike in zip(*sample_evenly(count, MOST_STEPS // 2), strict=True):
        here, times = wave == number - 1, passes * alike
        sent = Traffic.of(source[here], target[here], size * times, times)
        yield RecordedStep(sent, times)


def _disjoint(collectives: Iterable[RecordedCollective]) -> Iterator[list[RecordedCollective]]:
    """Yield a phase's collectives in groups with disjoint members, which run at the same time."""
    groups: list[tuple[set[int], list[RecordedCollective]]] = []
    for collective in collectives:
        members = set(collective.members.tolist())
        group = next((group for group in groups if group[0].isdisjoint(members)), None)
        if group is None:
            groups.append((members, [collective]))
        else:
            group[0].update(members)
            group[1].append(collective)
    for _, together in groups:
        yield together


def _collective_steps(
    kind: str, together: list[RecordedCollective], choose: Choice
) -> Iterator[RecordedStep]:
    """Yield the steps of simultaneous collectives, with all of their calls."""
    by_call = [list(_call_steps(kind, called, choose)) for called in together]
    for steps in zip_longest(*by_call):
        several = [step for step in steps if step is not None]
        yield RecordedStep(
            join_traffic(step.sent for step in several), max(step.times for step in several)
        )


def _call_steps(kind: str, called: RecordedCollective, choose: Choice) -> Iterator[RecordedStep]:
    """Yield the steps of a collective on one communicator, with all of its calls."""
    count, calls, size = len(called.members), float(called.calls.max(initial=0)), called.call_bytes
    algorithm = choose(kind.replace("_", ""), size, count)
    if kind == "alltoall" and algorithm == "pairwise":
        rank = np.arange(count)
        for turn, alike in zip(*sample_evenly(count - 1, MOST_TURNS), strict=True):
            target = partner_in_turn(rank, turn, count, exchange=True)
            times = calls * alike
            sent = Traffic.of(called.members, called.members[target], size * times, times)
            yield RecordedStep(sent, times)
        return
    for source, target, block, alike in call_steps(kind, algorithm, count, called.root, size):
        ends, times = (called.members[source], called.members[target]), calls * alike
        yield RecordedStep(Traffic.of(*ends, block * times, times), times)


def _largest(steps: list[RecordedStep], ranks: int) -> list[RecordedStep]:
    """Return the most expensive steps, with all others merged into one."""
    steps = [step for step in steps if len(step.sent.away())]
    cost = [-float(step.sent.bytes.sum() + A_MESSAGE * step.sent.messages.sum()) for step in steps]
    kept = set(np.argsort(cost, kind="stable")[: MOST_STEPS - 1].tolist())
    rest = [step for k, step in enumerate(steps) if k not in kept]
    largest = [step for k, step in enumerate(steps) if k in kept]
    if rest:
        sent = join_traffic(step.sent for step in rest).by_pair(ranks)
        largest.append(RecordedStep(sent, sum(step.times for step in rest)))
    return largest
