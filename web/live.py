"""The newest snapshot of states and jobs, renewed in the background once for all viewers."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from placement.errors import NidmapError, printable
from placement.lookup import nodes_of
from web.documents import Document, json_document
from web.snapshot import of_dump
from web.sources import SLURM

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from placement.machine import Machine
    from web.snapshot import Snapshot

__all__ = ["Live"]

#: Seconds between two questions at least.
LEAST = 1.0


class Live:
    """Keeps the newest snapshot; `listen` tells what is new.

    Parameters
    ----------
    machine : Machine
    sources : tuple of str
        ``slurm`` or files (`web.sources`); empty: the machine's own states, for ever.
    ask : async callable
        Returns a new snapshot, or raises a NidmapError.
    every : float
        Seconds between two questions.
    """

    def __init__(
        self,
        machine: Machine,
        sources: tuple[str, ...],
        ask: Callable[[], Awaitable[Snapshot]],
        every: float = 30.0,
    ) -> None:
        self.machine = machine
        self.sources = sources
        self.every = max(LEAST, every)
        self._ask = ask
        self._listeners: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None
        self._seen: tuple[object, ...] = ()
        first = of_dump(machine)
        if sources:
            first = replace(first, notes=("the sources have not answered yet",))
        self._set(first)

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot."""
        return self._newest

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
        """Call `listener` whenever there is something new."""
        self._listeners.append(listener)

    def start(self) -> None:
        """Begin to ask in the background; a Live without sources has nothing to ask."""
        if self.sources and self._task is None:
            self._task = asyncio.ensure_future(self._keep_asking())

    def stop(self) -> None:
        """Ask no more."""
        if self._task is not None:
            self._task.cancel()

    async def _keep_asking(self) -> None:
        while True:
            begun = time.monotonic()
            await self.renew()
            await asyncio.sleep(max(LEAST, self.every - (time.monotonic() - begun)))

    async def renew(self) -> None:
        """Ask once and keep the answer; where there is none, the last one goes stale."""
        signs = self._signs()
        if signs and signs == self._seen and not self.snapshot.stale:
            return  # files, and none has changed
        try:
            found = await self._ask()
            self._seen = signs
        except NidmapError as error:
            found = replace(self.snapshot, stale=True, error=printable(str(error), 300))
        except Exception as error:  # whatever it is, viewers keep the last good answer
            what = printable(f"{type(error).__name__}: {error}", 300)
            found = replace(self.snapshot, stale=True, error=what)
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
        """Take a snapshot, and write it down as it is sent."""
        old: Snapshot | None = getattr(self, "_newest", None)
        version = 1
        if old is not None:
            version = old.version if old.same(found) else old.version + 1
            if version == old.version and found.taken == old.taken:
                return
        self._newest = replace(found, version=version)
        mark = f"{version}-{found.taken or 0:.3f}"
        #: The snapshot as it is sent, and its jobs with their node lists.
        self.state: Document = json_document(self._newest.document(self.machine), "state", mark)
        self.jobs: Document = json_document(self._jobs(self._newest), "jobs", mark)

    def _jobs(self, now: Snapshot) -> dict[str, object]:
        """Return the jobs that hold nodes, each with its list."""
        rows = []
        for job in now.jobs:
            said = job.document()
            del said["rows"]
            rows.append(said | {"nodelist": nodes_of(self.machine, job.rows).fold()})
        return {"jobs": rows, "taken": now.taken, "stale": now.stale, "error": now.error}
