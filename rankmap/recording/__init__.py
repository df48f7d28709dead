# SPDX-License-Identifier: Apache-2.0
"""A recording of an unmodified MPI program: phases, pairs, totals.

A `Recording` is what ``nidmap record`` keeps in a file: for each phase of the
program its messages by pair of ranks, or the collective that it is. A
collective is stored as such, whatever its size, and becomes messages only
where these are asked for: those of a usual algorithm, the ones that
`nidmap.rankmap.collectives.algorithms` has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.machine import Machine
from nidmap.placement.support.array_types import Ints
from nidmap.placement.support.hosts import HostNames
from nidmap.placement.traffic import Traffic, join_traffic
from nidmap.rankmap.collectives import algorithms

#: What a rank does, as the library numbers it: it posts a message or a receive, waits for what it
#: posted last, sees that its oldest message to a rank or receive from it is done, calls a
#: collective, sees that its oldest receive from any rank has got a message from this one, or that
#: its oldest receive from it (-1: any) is cancelled.
EVENTS = (
    "send", "receive", "wait-for-last", "send-done", "receive-done", "collective", "any-done",
    "cancelled",
)  # fmt: skip

#: Kinds of a phase, as the library between program and MPI numbers them.
KINDS = (
    "point-to-point", "one-sided", "barrier", "bcast", "gather", "scatter", "allgather", "alltoall",
    "reduce", "allreduce", "reduce_scatter", "scan", "exscan", "neighbor",
)  # fmt: skip

#: Returns the algorithm of a call, from its name, the bytes that a member gives and the members.
Choice: TypeAlias = Callable[[str, float, int], str]

#: More ranks than any program has.
_MOST_RANKS = 1 << 31

#: Messages of collectives that are kept before those of the same pair are added up.
_AT_ONCE = 8_000_000

#: Pairs of ranks at most that collectives are written out to.
MOST_PAIRS = 50_000_000


@dataclass(frozen=True, slots=True, eq=False)
class RecordedCollective:
    """A collective on one communicator, with all its calls from one place in the code."""

    members: Ints  # (n,), ranks of MPI_COMM_WORLD in the communicator's order
    root: int  # rank in the communicator, -1 where there is none
    calls: Ints  # (n,), how often each member called it
    # (n,), what each member gave in all its calls: its block of a gather or a scatter, what it
    # sends each other rank of an all-to-all, what it reduces
    bytes: Ints

    @classmethod
    def alike(cls, members: Ints, root: int, calls: int, size: int) -> RecordedCollective:
        """Return a collective that all members called equally often with equal amounts.

        The members' numbers are one in memory, however many they are.
        """
        figures, same = np.array([calls, size], dtype=np.int64), members.shape
        return cls(
            members, root, np.broadcast_to(figures[0], same), np.broadcast_to(figures[1], same)
        )

    @property
    def call_bytes(self) -> float:
        """Bytes that a member contributes to a call, on average."""
        return float(self.bytes.sum()) / max(1, int(self.calls.sum()))

    def messages(self, kind: str, choose: Choice | None = None) -> Traffic:
        """Return the messages of a given or the usual algorithm, in ranks of MPI_COMM_WORLD."""
        size, count = self.call_bytes, len(self.members)
        algorithm = None if choose is None else choose(kind.replace("_", ""), size, count)
        pairs, share = algorithms.collective_messages(kind, count, self.root, size, algorithm)
        source, target, times = pairs
        sent = np.rint(self.bytes[source] * share).astype(np.int64), self.calls[source] * times
        return Traffic(self.members[source], self.members[target], *sent)


@dataclass(frozen=True, slots=True, eq=False)
class RecordedPhase:
    """What a program sent from the same places in its code."""

    kind: str  # one of `KINDS`
    site: str  # the call site: library or program, offset, function
    calls: int  # steps, or calls of a collective, of the rank that took most
    steps: int  # the same, of all ranks together
    # By pair of ranks: all of a phase of messages; of a collective what differs from rank to rank
    # (v- and w-forms, neighbours)
    sent: Traffic
    collectives: tuple[RecordedCollective, ...] = ()  # one per communicator and root

    @property
    def together(self) -> float:
        """Messages that a rank has in flight at once, averaged over its steps."""
        return float(self.sent.messages.sum() / self.steps) if self.steps else 0.0

    def messages(self, choose: Choice | None = None) -> Traffic:
        """Return all messages of this phase, with collectives by the usual algorithm.

        `choose`: returns another algorithm, from a call, its bytes and its ranks.
        """
        parts, pairs, room = [self.sent], len(self.sent.source), _AT_ONCE
        for collective in self.collectives:
            size = len(collective.members)
            more = size**2 if self.kind in algorithms.EVERY_PAIR else 0
            if pairs + more > MOST_PAIRS:
                raise UsageError(
                    f"{self.kind} of {size} ranks has too many pairs to write out",
                    "name the pattern instead: alltoall, fft:PxQ",
                )
            parts.append(collective.messages(self.kind, choose))
            pairs += len(parts[-1].source)
            if pairs > room:  # trees from many roots have few pairs together
                parts = [join_traffic(parts).by_pair(_MOST_RANKS)]
                pairs = len(parts[0].source)
                room = max(room, 2 * pairs)
        return join_traffic(parts)


@dataclass(frozen=True, slots=True, eq=False)
class RecordedOrder:
    """What each rank did, event by event, from the start of the recording."""

    # (e, 5), what a rank does: a place in `EVENTS`; the other rank, a collective's root, or how
    # many it posted last (-1: any rank, no root); of a collective its place in `groups` and the
    # place of its phase; mean bytes
    events: Ints
    numbers: Ints  # (n,), rows of `events`, those of one rank after those of another
    start: Ints  # (ranks + 1,), where each rank's begin
    groups: tuple[Ints, ...] = ()  # (k,), communicators: ranks of MPI_COMM_WORLD
    # (n,), what messages and their receives have in common, made of tag and communicator, -1: any;
    # of each of `numbers`. None in an older recording.
    tags: Ints | None = None
    # Whether this covers everything; False: only the beginning, or unknown
    whole: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """The recorded messages of a program's ranks."""

    ranks: int
    seconds: float  # from MPI_Init to the end, of the rank that took longest
    phases: tuple[RecordedPhase, ...]  # in the order in which the program came to them
    program: str = ""  # the command that was recorded
    window: str = ""  # the part of the run that was counted, '' for all of it
    notes: tuple[str, ...] = ()  # what is missing: ranks that left no counts, memory that ran out
    # The order of events; None if unknown (several threads, a window, an older recording)
    order: RecordedOrder | None = None
    hosts: tuple[str, ...] = ()  # the nodes that it ran on; () in an older recording
    machine: str = ""  # the machine, where the environment named one (``$NIDMAP_MACHINE``)
    # From the first call that sends to the return of the last call of MPI; 0 in an older recording
    exchange_s: float = 0.0
    work_s: float = 0.0  # time outside MPI during that time, of the rank with most

    def ran_on(self, machine: Machine) -> bool:
        """Tell whether it was recorded on a machine, judging by its nodes and its name."""
        words = self.machine.split()
        named = not words or any(f"{word},".startswith(f"{machine.name},") for word in words)
        hosts = HostNames(machine.names.tolist())
        return named and bool(self.hosts) and all(map(hosts.find, self.hosts))

    def total(self) -> Traffic:
        """Return all messages by ordered pair of ranks."""
        return join_traffic(phase.messages() for phase in self.phases).by_pair(self.ranks)
