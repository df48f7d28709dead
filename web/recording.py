"""A day of states and jobs in a small file, sampled while a machine runs and replayed on the page.

Lines of JSON, each a gzip member of its own, so that a recording that is ended
in the middle keeps all before it: the machine first, then a sample whenever
states or jobs have changed.
"""

from __future__ import annotations

import gzip
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from placement.errors import NidmapError, OutputError, ParseError, printable
from placement.machine import Machine
from placement.support.array_types import Ints
from web.columns import folded_rows
from web.snapshot import Job, Snapshot

__all__ = ["Recording", "read", "record"]

SCHEMA = "nidmap.states/1"

#: Samples of the longest recording that is read, and bytes of the largest.
_MOST, _LARGEST = 100_000, 2**30


class _Head(msgspec.Struct):
    schema: str
    machine: str
    nodes: int


class _Job(msgspec.Struct, omit_defaults=True):
    id: str
    rows: str
    name: str = ""
    partition: str = ""
    user: str = ""


class _Sample(msgspec.Struct):
    taken: float
    states: dict[str, str]
    planned: str
    jobs: list[_Job]


def record(
    machine: Machine, ask: Callable[[], Snapshot], path: str, every: float, seconds: float
) -> Iterator[str]:
    """Sample states and jobs into a new file; yield a line of what was done after each sample.

    Parameters
    ----------
    machine : Machine
    ask : callable
        Returns the newest snapshot, or raises a NidmapError: then the next one is waited for.
    path : str
    every, seconds : float
        Between two samples, and how long altogether.

    Raises
    ------
    OutputError
        The file is there already, or cannot be written.
    """
    end, last = time.monotonic() + seconds, None
    _add(path, _Head(SCHEMA, machine.name, len(machine)), "xb")
    while True:
        try:
            now = _sample(ask())
        except NidmapError as error:
            yield str(error)
        else:
            same = last is not None and msgspec.structs.replace(now, taken=last.taken) == last
            if not same:
                _add(path, now, "ab")
            last = now
            yield f"{len(now.jobs)} jobs{' as before' if same else ''}"
        if time.monotonic() + every > end:
            return
        time.sleep(every)


def _add(path: str, line: msgspec.Struct, mode: str) -> None:
    raw = gzip.compress(msgspec.json.encode(line) + b"\n", 9, mtime=0)
    try:
        with open(path, mode) as stream:
            stream.write(raw)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a file name"
        raise OutputError(f"{printable(path)}: {reason}") from None


def _sample(now: Snapshot) -> _Sample:
    words = {str(word): folded_rows(np.flatnonzero(now.state == word)) for word in set(now.state)}
    jobs = [_Job(j.id, folded_rows(j.rows), j.name, j.partition, j.user) for j in now.jobs]
    planned = folded_rows(np.flatnonzero(now.planned))
    return _Sample(now.taken or time.time(), words, planned, jobs)


def _rows(text: str, count: int) -> Ints:
    """Return the rows of some ranges; ValueError where one is not among `count`."""
    parts = [part.split("-") for part in text.split(",") if part]
    ends = [(int(part[0]), int(part[-1])) for part in parts]
    if any(not 0 <= low <= high < count for low, high in ends):
        raise ValueError("a row that the machine does not have")
    found = [np.arange(low, high + 1, dtype=np.int64) for low, high in ends]
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Recording:
    """What a file of `record` holds.

    Attributes
    ----------
    machine : Machine
    samples : list
    """

    machine: Machine
    samples: list[_Sample]

    def snapshot(self, number: int) -> Snapshot:
        """Return states and jobs as of a sample; its version is its number."""
        sample, count = self.samples[number], len(self.machine)
        state = self.machine.state.astype(object)
        planned = np.zeros(count, dtype=bool)
        planned[_rows(sample.planned, count)] = True
        for word, where in sample.states.items():
            state[_rows(where, count)] = word
        jobs = (Job(j.id, _rows(j.rows, count), j.name, j.partition, j.user) for j in sample.jobs)
        return Snapshot(
            "recording", state.astype(np.str_), planned, tuple(jobs), taken=sample.taken,
            version=number,
        )  # fmt: skip


def read(machine: Machine, path: str, users: bool = False) -> Recording:
    """Read a recording of a machine; what was cut off at its end is left out.

    Raises
    ------
    ParseError
        It is none, or of another machine.
    """
    head, *samples = _lines(path)
    if head.machine != machine.name or head.nodes != len(machine):
        what = f"recorded on {printable(head.machine)}, {head.nodes} nodes"
        raise ParseError(path, 0, what, f"-m gives {printable(machine.name)}, {len(machine)}")
    if not samples:
        raise ParseError(path, 0, "holds no sample")
    for sample in samples if not users else ():
        sample.jobs = [msgspec.structs.replace(job, user="") for job in sample.jobs]
    found = Recording(machine, samples)
    try:
        for number in range(len(samples)):
            found.snapshot(number)
    except ValueError as error:
        raise ParseError(path, number + 2, str(error)) from None
    return found


def _lines(path: str) -> list[Any]:
    """Return the head and the samples of a file."""
    raw: list[bytes] = []
    try:
        with gzip.open(path, "rb") as stream:
            while line := stream.readline(_LARGEST):
                raw.append(line)
                if len(raw) > _MOST:
                    raise ParseError(path, 0, f"more than {_MOST} samples")
    except EOFError:
        pass  # ended in the middle of a sample
    except (OSError, ValueError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "no recording of nidmap web record"
        raise ParseError(path, 0, reason) from None
    try:
        head = msgspec.json.decode(raw[0] if raw else b"", type=_Head)
        return [head, *(msgspec.json.decode(line, type=_Sample) for line in raw[1:])]
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ParseError(path, 0, f"no recording: {error}") from None
