"""Counts as the library between program and MPI writes them, read into a `Recording`.

The library writes a stream of records in the machine's own byte order, one
``RANK`` a rank, each followed by the communicators that this rank describes
and its phases, and closed by ``END.``. The ranks of a node have one file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from placement.errors import ParseError
from placement.support.array_types import Ints
from rankmap.recording import KINDS, Collective, Messages, Phase, Recording, join_messages

Parts = list[tuple[int, "_Part"]]
Comms = dict[int, Ints]

__all__ = ["Window", "read_raw"]

#: Bins of time that the library keeps apart where a window is asked for.
_BINS = 64


@dataclass(frozen=True, slots=True)
class Window:
    """A part of the run.

    Attributes
    ----------
    low, high : float
        Seconds after MPI_Init, or shares of the whole run where `shares`.
    shares : bool
    """

    low: float
    high: float
    shares: bool

    def bins(self, run: float, width: float) -> range:
        """Return the bins of `width` seconds whose middle lies in the window of a run."""
        scale = run if self.shares else 1.0
        first = np.ceil(self.low * scale / width - 0.5)
        last = np.ceil(self.high * scale / width - 0.5)
        return range(int(max(first, 0)), int(min(max(last, first + 1), _BINS)))


@dataclass(slots=True)
class _Rank:
    """What one rank wrote."""

    rank: int
    size: int
    seconds: float
    bin_seconds: float
    failed: bool
    comms: dict[int, Ints] = field(default_factory=dict)
    phases: list[_Part] = field(default_factory=list)


@dataclass(slots=True)
class _Part:
    """One rank's part of a phase, in one bin of time."""

    bin: int
    kind: str
    root: int
    comm: int
    first: int
    calls: int
    bytes: int
    uneven: bool
    sites: tuple[str, ...]
    cells: Ints


class _Stream:
    """A file of records that may be cut short."""

    def __init__(self, file: BinaryIO, source: str) -> None:
        self.file, self.source = file, source

    def take(self, many: int) -> bytes:
        raw = self.file.read(many)
        if len(raw) < many:
            raise ParseError(self.source, 0, "the counts are cut short")
        return raw

    def numbers(self, many: int) -> list[int]:
        return list(struct.unpack(f"={many}q", self.take(8 * many)))

    def text(self) -> str:
        return self.take(self.numbers(1)[0]).decode("utf-8", "replace")

    def ranks(self) -> Iterator[_Rank]:
        while tag := self.file.read(4):
            if tag != b"RANK":
                raise ParseError(self.source, 0, "no counts of an MPI program")
            yield self._rank()

    def _rank(self) -> _Rank:
        rank, size, nanoseconds, bin_nanoseconds, failed = self.numbers(5)
        one = _Rank(rank, size, 1e-9 * nanoseconds, 1e-9 * bin_nanoseconds, bool(failed))
        while (tag := self.take(4)) != b"END.":
            if tag == b"COMM":
                name, members, listed = self.numbers(3)
                raw = self.take(8 * members) if listed else b""
                one.comms[name] = np.frombuffer(raw, np.int64) if listed else np.arange(members)
            elif tag == b"PHAS":
                one.phases.append(self._part())
            else:
                raise ParseError(self.source, 0, "no counts of an MPI program")
        return one

    def _part(self) -> _Part:
        place, kind, root, comm, first, calls, many, uneven, sites = self.numbers(9)
        names = tuple(self.text() for _ in range(sites))
        cells = np.frombuffer(self.take(24 * self.numbers(1)[0]), np.int64).reshape(-1, 3)
        return _Part(place, KINDS[kind], root, comm, first, calls, many, uneven > 0, names, cells)


def read_raw(paths: Sequence[str], program: str = "", window: Window | None = None) -> Recording:
    """Return what the ranks wrote.

    Parameters
    ----------
    paths : sequence of str
        The files of the nodes.
    program : str
        What was recorded.
    window : Window or None
        Keep only this part of the run; None keeps all.

    Raises
    ------
    ParseError
        A missing file, or one that holds no counts or not all of them.
    """
    ranks: list[_Rank] = []
    for path in paths:
        try:
            with open(path, "rb") as file:
                ranks += _Stream(file, path).ranks()
        except OSError as error:
            raise ParseError(path, 0, error.strerror or str(error)) from None
    if not ranks:
        raise ParseError(", ".join(paths), 0, "no rank wrote any counts")
    # of several programs one after the other the last, of a rank that counted twice one
    ranks = list({one.rank: one for one in ranks if one.size == ranks[-1].size}.values())
    run = max(one.seconds for one in ranks)
    parts = [
        (one.rank, part)
        for one in ranks
        for bins in [window.bins(run, one.bin_seconds) if window else range(_BINS)]
        for part in one.phases
        if part.bin in bins
    ]
    comms = {name: members for one in ranks for name, members in one.comms.items()}
    size = ranks[0].size
    return Recording(size, run, _phases(parts, comms), program, notes=_notes(ranks, size))


def _notes(ranks: list[_Rank], size: int) -> tuple[str, ...]:
    less = [f"{size - len(ranks)} of {size} ranks left no counts"] if len(ranks) < size else []
    failed = [one.rank for one in ranks if one.failed][:1]
    text = "rank {} ran out of memory for its counts: they are not complete"
    return (*less, *map(text.format, failed))


def _phases(parts: Parts, comms: Comms) -> tuple[Phase, ...]:
    """Return the phases of all ranks: those with the same kind and call sites are one."""
    grouped: dict[tuple[str, tuple[str, ...]], Parts] = {}
    for rank, part in parts:
        grouped.setdefault((part.kind, part.sites), []).append((rank, part))
    by_first_use = sorted(grouped.items(), key=lambda item: min(p.first for _, p in item[1]))
    return tuple(_phase(*key, found, comms) for key, found in by_first_use)


def _phase(kind: str, sites: tuple[str, ...], parts: Parts, comms: Comms) -> Phase:
    calls: dict[int, int] = {}
    for rank, part in parts:
        calls[rank] = calls.get(rank, 0) + part.calls
    even = [(rank, part) for rank, part in parts if part.comm and not part.uneven]
    return Phase(
        kind,
        ", ".join(sites) or "many call sites",
        max(calls.values()),
        sum(calls.values()),
        join_messages(_messages(rank, part.cells) for rank, part in parts),
        () if kind == "barrier" else _collectives(even, comms),
    )


def _messages(rank: int, cells: Ints) -> Messages:
    """Return a rank's cells as messages: what it got one-sidedly was sent by the other."""
    other, many, times = cells.T
    came = other < 0
    source = np.where(came, -1 - other, rank)
    return Messages(source, np.where(came, rank, other), many, times)


def _collectives(parts: Parts, comms: Comms) -> tuple[Collective, ...]:
    grouped: dict[tuple[int, int], Parts] = {}
    for rank, part in parts:
        grouped.setdefault((part.comm, part.root), []).append((rank, part))
    found = []
    for (comm, root), each in grouped.items():
        members = comms.get(comm, np.sort(np.array([rank for rank, _ in each])))
        place = {int(rank): i for i, rank in enumerate(members)}
        calls, many = np.zeros((2, len(members)), dtype=np.int64)
        for rank, part in each:
            calls[place[rank]] += part.calls
            many[place[rank]] += part.bytes
        if len(members) > 1:
            found.append(Collective(members, root, calls, many))
    return tuple(found)
