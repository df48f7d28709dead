# SPDX-License-Identifier: Apache-2.0
"""Counts as written by the preload library, read into a `Recording`.

The library writes a stream of records in the machine's own byte order, one
``RNK2`` a rank, which says how long it is, each followed by the communicators
that this rank describes and its phases, and closed by ``END.``. The ranks of a
node have one file.

Ranks are read one after the other. A collective is kept once, not once per rank:
its members have called it alike, and only who has not is kept next to it. So a
broadcast from every root takes as many rows as there are roots.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO, NamedTuple

import numpy as np

from nidmap.placement.errors import ParseError
from nidmap.placement.support.array_types import Ints
from nidmap.placement.support.arrays import sum_by_key
from nidmap.placement.support.quantities import counted
from nidmap.placement.traffic import Traffic, join_traffic
from nidmap.rankmap.recording import (
    EVENTS,
    KINDS,
    RecordedCollective,
    RecordedOrder,
    RecordedPhase,
    Recording,
)

#: Kind of a phase, class of the bytes of its calls (0: any), and call sites.
_PhaseKey = tuple[str, int, tuple[str, ...]]

#: Number of time bins that the library distinguishes if a window is requested.
_BINS = 64


@dataclass(frozen=True, slots=True)
class Window:
    """A time window within a run."""

    # low, high: seconds after MPI_Init, or shares of the whole run where `shares`
    low: float
    high: float
    shares: bool

    def bins(self, run: float, width: float) -> range:
        """Return the bins of `width` seconds whose middle is within the window."""
        scale = run if self.shares else 1.0
        first = np.ceil(self.low * scale / width - 0.5)
        last = np.ceil(self.high * scale / width - 0.5)
        return range(int(max(first, 0)), int(min(max(last, first + 1), _BINS)))


class _RecordHeader(NamedTuple):
    """The header of a rank's record, and its position in the file."""

    path: str
    place: int
    rank: int
    size: int
    seconds: float
    bin_seconds: float
    failed: bool


class _RankPart(NamedTuple):
    """A rank's part of a phase in one time bin; `cells` are rows of to, bytes, times."""

    bin: int
    kind: str
    comm: int
    first: int
    calls: int
    uneven: bool
    size_class: int
    sites: tuple[str, ...]
    cells: Ints


class _RankOrder(NamedTuple):
    """A rank's events as rows of kind, peer, communicator, phase, bytes, times."""

    events: Ints
    numbers: Ints
    tags: Ints
    ended: bool


class _RankTimes(NamedTuple):
    """When a rank first sent and last left MPI, and its time in MPI in between, in seconds.

    Also a number of the kernel that it ran under, and how many processors that has.
    """

    began: float
    left: float
    inside: float
    kernel: int
    processors: int


class _Stream:
    """A file of records, possibly truncated."""

    def __init__(self, file: BinaryIO, source: str) -> None:
        self.file, self.source = file, source

    def take(self, count: int) -> bytes:
        raw = self.file.read(count)
        if len(raw) < count:
            raise ParseError(self.source, 0, "the counts are cut short")
        return raw

    def numbers(self, count: int) -> list[int]:
        return list(struct.unpack(f"={count}q", self.take(8 * count)))

    def text(self) -> str:
        return self.take(self.numbers(1)[0]).decode("utf-8", "replace")

    def headers(self) -> Iterator[_RecordHeader]:
        """Yield the header of each rank's record, skipping an incomplete last one."""
        end = os.fstat(self.file.fileno()).st_size
        place = 0
        while place + 52 <= end:
            self.file.seek(place)
            if self.take(4) != b"RNK2":
                raise ParseError(self.source, 0, "not a file of counts from nidmap record")
            length, rank, size, nanoseconds, bin_nanoseconds, failed = self.numbers(6)
            times = 1e-9 * nanoseconds, 1e-9 * bin_nanoseconds
            header = _RecordHeader(self.source, place, rank, size, *times, bool(failed))
            place += 12 + max(length, 40)
            if place <= end:
                yield header

    def record(
        self, place: int, comms: dict[int, Ints]
    ) -> Iterator[_RankPart | _RankOrder | _RankTimes]:
        """Yield the parts of the record at `place`, collecting its communicators."""
        self.file.seek(place + 52)
        while (tag := self.take(4)) != b"END.":
            if tag == b"COMM":
                name, members, listed = self.numbers(3)
                raw = self.take(8 * members) if listed else b""
                comms[name] = np.frombuffer(raw, np.int64) if listed else np.arange(members)
            elif tag == b"PHAS":
                yield self._part()
            elif tag == b"ORDR":
                events, length, ended = self.numbers(3)
                rows = np.frombuffer(self.take(48 * events), np.int64).reshape(-1, 6)
                numbers = np.frombuffer(self.take(2 * length), np.uint16).astype(np.int64)
                tags = np.frombuffer(self.take(4 * length), np.int32).astype(np.int64)
                yield _RankOrder(rows, numbers, tags, ended > 0)
            elif tag == b"TIME":
                began, left, inside, kernel, processors = self.numbers(5)
                yield _RankTimes(1e-9 * began, 1e-9 * left, 1e-9 * inside, kernel, processors)
            else:
                raise ParseError(self.source, 0, "not a file of counts from nidmap record")

    def _part(self) -> _RankPart:
        place, kind, comm, first, calls, uneven, size_class, sites = self.numbers(8)
        names = tuple(self.text() for _ in range(sites))
        cells = np.frombuffer(self.take(24 * self.numbers(1)[0]), np.int64).reshape(-1, 3)
        kept = KINDS[kind], comm, first, calls, uneven > 0, size_class
        return _RankPart(place, *kept, names, cells)


def read_raw(paths: Sequence[str], program: str = "", window: Window | None = None) -> Recording:
    """Return the records of the ranks.

    `paths`: the files of the nodes. `program`: what was recorded. `window`: keep only this part
    of the run; None keeps all.
    """
    phases: dict[_PhaseKey, _PhaseCounts] = {}
    comms: dict[int, Ints] = {}
    headers = list(chain.from_iterable(map(_read_headers, paths)))
    if not headers:
        raise ParseError(", ".join(paths), 0, "no rank wrote any counts")
    # of several programs one after the other the last, of a rank that counted twice one
    size = headers[-1].size
    ranks = list({header.rank: header for header in headers if header.size == size}.values())
    run = max(header.seconds for header in ranks)
    orders, times = _Orders(size), list[_RankTimes]()
    for header in ranks:
        bins = window.bins(run, header.bin_seconds) if window else range(_BINS)
        with open(header.path, "rb") as file:
            for part in _Stream(file, header.path).record(header.place, comms):
                if isinstance(part, _RankOrder):
                    orders.by_rank[header.rank] = part
                elif isinstance(part, _RankTimes):
                    times.append(part)
                elif part.bin in bins:
                    key = part.kind, part.size_class, part.sites
                    phases.setdefault(key, _PhaseCounts()).add(header.rank, part)
                    orders.phase[header.rank, part.first] = key
    in_order = sorted(phases.items(), key=lambda item: item[1].first)
    recorded: list[RecordedPhase] = []
    places: dict[_PhaseKey, int] = {}
    for key, phase in in_order:
        places[key] = len(recorded)
        recorded += phase.finished(key, comms)
    order = None if window else orders.joined(places, comms)
    exchange_s = max((rank.left for rank in times), default=0.0)
    exchange_s -= min((rank.began for rank in times), default=0.0)
    work_s = max((rank.left - rank.began - rank.inside for rank in times), default=0.0)
    notes = (*_note_losses(headers, ranks, size), *_note_processors(times))
    return Recording(
        size, run, tuple(recorded), program, notes=notes, order=order,
        exchange_s=exchange_s, work_s=max(0.0, work_s),
    )  # fmt: skip


def _read_headers(path: str) -> list[_RecordHeader]:
    try:
        with open(path, "rb") as file:
            return list(_Stream(file, path).headers())
    except OSError as error:
        raise ParseError(path, 0, error.strerror or str(error)) from None


def _note_losses(
    headers: list[_RecordHeader], ranks: list[_RecordHeader], size: int
) -> tuple[str, ...]:
    if size == 1 and len(headers) > 1:  # started by another MPI's launcher
        return (
            f"{len(headers)} processes were each rank 0 of 1: if they are one program, its launcher"
            " belongs to another MPI than the program (srun: --mpi=pmi2 or pmix)",
        )
    less = [f"{size - len(ranks)} of {size} ranks left no counts"] if len(ranks) < size else []
    failed = [header.rank for header in ranks if header.failed][:1]
    text = "rank {} ran out of memory for its counts: they are not complete"
    return (*less, *map(text.format, failed))


def _note_processors(times: list[_RankTimes]) -> Iterator[str]:
    """Yield a remark if ranks had fewer processors than ranks, which adds time in MPI."""
    kernels = Counter(rank.kernel for rank in times)
    for kernel, ranks in kernels.most_common(1):
        processors = max(rank.processors for rank in times if rank.kernel == kernel)
        if 0 < processors < ranks:
            shared = counted(processors, "processor")
            yield f"{ranks} ranks shared {shared}: their time in MPI is not the network's alone"


class _Orders:
    """The ranks' events while they are read, and the phases of their collectives."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.by_rank: dict[int, _RankOrder] = {}
        self.phase: dict[tuple[int, int], _PhaseKey] = {}

    def joined(self, places: dict[_PhaseKey, int], comms: dict[int, Ints]) -> RecordedOrder | None:
        """Return the events of all ranks; None if a rank or a communicator's ranks are missing.

        `places`: place of each phase by its key. `comms`: ranks of each communicator.
        """
        groups: dict[int, int] = {}
        rows, numbers, tags, before = [], [], [], 0
        whole = True
        for rank in range(self.size):
            if rank not in self.by_rank:
                return None
            events, order, rank_tags, ended = self.by_rank[rank]
            whole = whole and not ended
            tags.append(rank_tags)
            what, peer, comm, phase, size, times = events.T.copy()
            called = what == EVENTS.index("collective")
            for k in np.flatnonzero(called).tolist():
                key = self.phase.get((rank, int(phase[k])))
                if key is None or int(comm[k]) not in comms:
                    return None
                comm[k] = groups.setdefault(int(comm[k]), len(groups))
                phase[k] = places[key]
            rows.append(np.stack([what, peer, comm, phase, size // np.maximum(times, 1)], axis=1))
            numbers.append(order + before)
            before += len(events)
        start = np.cumsum([0, *map(len, numbers)])
        members = tuple(comms[comm] for comm in groups)
        columns = np.concatenate(rows), np.concatenate(numbers), start
        return RecordedOrder(*columns, members, np.concatenate(tags), whole)


class _PhaseCounts:
    """A phase while ranks are read: parts with the same kind and call sites."""

    def __init__(self) -> None:
        self.first = 2**63  # its place in the order of first use
        self.calls: dict[int, dict[int, int]] = {}  # by communicator and rank
        self.sent: dict[int, list[Traffic]] = {}  # by communicator
        self.called: dict[int, _Called] = {}  # by communicator

    def add(self, rank: int, part: _RankPart) -> None:
        """Add a rank's part; its time bins come in sequence."""
        self.first = min(self.first, part.first)
        by_rank = self.calls.setdefault(part.comm, {})
        by_rank[rank] = by_rank.get(rank, 0) + part.calls
        if not part.comm or part.uneven:
            self.sent.setdefault(part.comm, []).append(_cell_messages(rank, part.cells))
        elif part.kind != "barrier":
            self.called.setdefault(part.comm, _Called()).add(rank, part.cells)

    def finished(self, key: _PhaseKey, comms: dict[int, Ints]) -> Iterator[RecordedPhase]:
        """Yield the calls that all ranks made together.

        What differs from rank to rank, on communicators that share ranks, are phases of their own.
        """
        kind, _, sites = key
        groups = _disjoint(self.sent, comms) or [[]]
        groups[0] += [comm for comm in self.calls if comm not in self.sent]
        for number, group in enumerate(groups):
            calls = Counter[int]()
            for comm in group:
                calls.update(self.calls[comm])
            called = self.called.items() if not number else ()
            yield RecordedPhase(
                kind,
                ", ".join(sites) or "many call sites",
                max(calls.values()),
                sum(calls.values()),
                join_traffic(chain.from_iterable(self.sent.get(comm, []) for comm in group)),
                tuple(
                    collective
                    for comm, counts in called
                    for collective in counts.collectives(comms.get(comm))
                ),
            )


def _disjoint(used: Iterable[int], comms: dict[int, Ints]) -> list[list[int]]:
    """Group communicators so that members are disjoint; an unknown one conflicts with none."""
    groups: list[tuple[set[int], list[int]]] = []
    for comm in used:
        members = set(comms[comm].tolist()) if comm in comms else set()
        group = next((group for group in groups if group[0].isdisjoint(members)), None)
        if group is None:
            groups.append((members, [comm]))
        else:
            group[0].update(members)
            group[1].append(comm)
    return [together for _, together in groups]


class _Called:
    """The collectives on one communicator from one place in the code, while ranks are read."""

    def __init__(self) -> None:
        self.ranks: list[int] = []  # those that have been read; the last is being read
        # (k, 3), root, bytes and calls of that one
        # (k, 3), those of the first rank
        self.cells = self.usual = np.empty((0, 3), dtype=np.int64)
        # (k, 4), differing calls of other ranks: rank, root, bytes, calls
        self.other = [np.empty((0, 4), dtype=np.int64)]

    def add(self, rank: int, cells: Ints) -> None:
        """Add a rank's cells of one time bin."""
        if rank not in self.ranks[-1:]:
            self._close()
            self.ranks.append(rank)
            self.cells = self.cells[:0]
        self.cells = _by_root(np.concatenate([self.cells, cells]))

    def _close(self) -> None:
        """Keep those of the current rank's calls that differ from the first rank's."""
        if len(self.ranks) == 1:
            self.usual = self.cells
        if np.array_equal(self.cells, self.usual):
            return
        rows, times = np.unique(
            np.concatenate([self.usual, self.cells]), axis=0, return_counts=True
        )
        roots = np.unique(rows[times == 1, 0])
        differ = self.cells[np.isin(self.cells[:, 0], roots)]
        none = np.stack([roots, *np.zeros((2, len(roots)), dtype=np.int64)], axis=1)
        differ = _by_root(np.concatenate([none, differ]))
        self.other.append(np.insert(differ, 0, self.ranks[-1], axis=1))

    def collectives(self, members: Ints | None) -> Iterator[RecordedCollective]:
        """Yield one collective per root; `members` are the communicator's, None if unknown."""
        self._close()
        members = np.sort(self.ranks) if members is None else members
        if len(members) < 2:
            return
        seen = np.isin(members, self.ranks)
        other = np.concatenate(self.other)
        place = np.argsort(members)[np.searchsorted(np.sort(members), other[:, 0])]
        alike = {root: (size, calls) for root, size, calls in self.usual.tolist()}
        for root in sorted({*alike, *other[:, 1].tolist()}):
            size, calls = alike.get(root, (0, 0))
            rows = np.flatnonzero(other[:, 1] == root)
            if seen.all() and not len(rows):
                yield RecordedCollective.alike(members, root, calls, size)
            else:
                sums = np.where(seen, [[size], [calls]], 0)
                sums[:, place[rows]] = other[rows, 2:].T
                yield RecordedCollective(members, root, sums[1], sums[0])


def _by_root(cells: Ints) -> Ints:
    """Return each root once, in ascending order, with its bytes and calls summed."""
    return np.stack(sum_by_key(*cells.T), axis=1)


def _cell_messages(rank: int, cells: Ints) -> Traffic:
    """Return a rank's cells as messages; the target of one-sided gets is the sender."""
    other, size, times = cells.T
    came = other < 0
    source = np.where(came, -1 - other, rank)
    return Traffic(source, np.where(came, rank, other), size, times)
