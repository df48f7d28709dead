"""The newest snapshot of states and jobs, renewed in the background once for all viewers."""

from __future__ import annotations

import gzip
import os
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from placement.errors import NidmapError, printable
from placement.lookup import nodes_of
from web.snapshot import of_dump
from web.sources import SLURM

if TYPE_CHECKING:
    from collections.abc import Callable

    from placement.machine import Machine
    from web.snapshot import Snapshot

__all__ = ["Body", "Live"]

#: Seconds between two questions at least.
LEAST = 1.0


class Body(NamedTuple):
    """A JSON document as it is sent."""

    raw: bytes
    packed: bytes
    tag: str


def body(value: object, tag: str) -> Body:
    """Return a value as JSON, plain and packed."""
    raw = msgspec.json.encode(value)
    return Body(raw, gzip.compress(raw, 6, mtime=0), tag)


class Live:
    """Keeps the newest snapshot; `listen` tells what is new.

    Parameters
    ----------
    machine : Machine
    sources : tuple of str
        ``slurm`` or files (`web.sources`); empty: the machine's own states, for ever.
    ask : callable
        Returns a new snapshot, or raises a NidmapError.
    every : float
        Seconds between two questions.
    """

    def __init__(
        self,
        machine: Machine,
        sources: tuple[str, ...],
        ask: Callable[[], Snapshot],
        every: float = 30.0,
    ) -> None:
        self.machine = machine
        self.sources = sources
        self.every = max(LEAST, every)
        self._ask = ask
        self._listeners: list[Callable[[], None]] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._seen: tuple[object, ...] = ()
        first = of_dump(machine)
        if sources:
            first = replace(first, notes=("the sources have not answered yet",))
        self._set(first)

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot."""
        return self._now[0]

    @property
    def body(self) -> Body:
        """The newest snapshot as it is sent."""
        return self._now[1]

    @property
    def jobs(self) -> Body:
        """Its jobs with their node lists, as they are sent."""
        return self._now[2]

    @property
    def age(self) -> int | None:
        """Seconds since the data was taken; None where that is not known."""
        taken = self.snapshot.taken
        return None if taken is None else max(0, round(time.time() - taken))

    @property
    def event(self) -> bytes:
        """What a stream is told: version, time of the data, whether they are stale."""
        now = self.snapshot
        said = {
            "version": now.version,
            "taken": now.taken,
            "stale": now.stale,
            "error": now.error,
            "now": time.time(),
        }
        return b"event: state\ndata: " + msgspec.json.encode(said) + b"\n\n"

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener`, from the background thread, whenever there is something new."""
        self._listeners.append(listener)

    def start(self) -> None:
        """Begin to ask in the background; a Live without sources has nothing to ask."""
        if self.sources and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="nidmap-live", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            begun = time.monotonic()
            self.renew()
            self._stop.wait(max(LEAST, self.every - (time.monotonic() - begun)))

    def renew(self) -> None:
        """Ask once and keep the answer; where there is none, the last one goes stale."""
        signs = self._signs()
        if signs and signs == self._seen and not self.snapshot.stale:
            return  # files, and none has changed
        try:
            found = self._ask()
            self._seen = signs
        except NidmapError as error:
            found = replace(self.snapshot, stale=True, error=printable(str(error), 300))
        except Exception as error:  # whatever it is, viewers keep the last good answer
            what = printable(f"{type(error).__name__}: {error}", 300)
            found = replace(self.snapshot, stale=True, error=what)
        if self._stop.is_set():
            return
        self._set(found)
        for listener in self._listeners:
            listener()

    def _signs(self) -> tuple[object, ...]:
        """Return what tells a changed file; () where Slurm is asked too."""
        if SLURM in self.sources:
            return ()
        found = []
        for path in self.sources:
            try:
                stat = os.stat(path)
                found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
            except OSError:
                found.append((0, 0, 0))
        return tuple(found)

    def _set(self, found: Snapshot) -> None:
        old = getattr(self, "_now", None)
        version = 1
        if old is not None:
            version = old[0].version if old[0].same(found) else old[0].version + 1
        found = replace(found, version=version)
        if old is not None and version == old[0].version and found.taken == old[0].taken:
            return
        mark = f"{version}-{found.taken or 0:.3f}"
        made = body(found.document(self.machine), f"state-{mark}")
        self._now = (found, made, body(self._jobs(found), f"jobs-{mark}"))

    def _jobs(self, now: Snapshot) -> dict[str, object]:
        """Return the jobs that hold nodes, each with its list."""
        rows = []
        for job in now.jobs:
            said = job.document()
            del said["rows"]
            rows.append(said | {"nodelist": nodes_of(self.machine, job.rows).fold()})
        return {"jobs": rows, "taken": now.taken, "stale": now.stale, "error": now.error}
