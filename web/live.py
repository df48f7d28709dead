"""The newest snapshot of states and jobs, renewed once for all viewers, and their streams."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec

from placement.errors import NidmapError, printable
from placement.lookup import nodes_of
from placement.machine import Machine
from web.answers import Document, json_document
from web.snapshot import SLURM, Snapshot, of_dump

__all__ = ["Live", "Streams"]

#: Seconds between two questions at least, and between two signs of life of a stream.
LEAST, PING = 1.0, 15.0


class Live:
    """Keeps the newest snapshot; `news` is set when there may be another one.

    Parameters
    ----------
    machine : Machine
    sources : tuple of str
        ``slurm`` or files (`web.snapshot`); empty: the machine's own states, for ever.
    ask : async callable
        Returns a new snapshot, or raises a NidmapError.
    every : float
        Seconds between two questions.
    first : Snapshot or None
        What there is before the sources have answered; None: the machine's own states.

    Attributes
    ----------
    snapshot : Snapshot
        The newest.
    state, jobs : Document
        The snapshot as it is sent, and its jobs with their node lists.
    news : asyncio.Event
        Set, and replaced, when the sources have been asked.
    """

    def __init__(
        self,
        machine: Machine,
        sources: tuple[str, ...],
        ask: Callable[[], Awaitable[Snapshot]],
        every: float = 30.0,
        first: Snapshot | None = None,
    ) -> None:
        self.machine = machine
        self.sources = sources
        self.every = max(LEAST, every)
        self._ask = ask
        self.news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._seen: list[tuple[int, ...]] = []
        notes = ("the sources have not answered yet",) if sources else ()
        self._keep(replace(first or of_dump(machine), notes=notes))

    @property
    def age(self) -> int | None:
        """Seconds since the data was taken; None where that is not known."""
        taken = self.snapshot.taken
        return None if taken is None else max(0, round(time.time() - taken))

    @property
    def event(self) -> bytes:
        """What a stream is told: version, time of the data, whether they are stale."""
        said = {"version": self.snapshot.version, **self.snapshot.standing, "now": time.time()}
        return b"event: state\ndata: " + msgspec.json.encode(said) + b"\n\n"

    def tell(self) -> None:
        """Wake those who wait for news."""
        self.news.set()
        self.news = asyncio.Event()

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
        signs = [] if SLURM in self.sources else [_sign(path) for path in self.sources]
        if signs and signs == self._seen and not self.snapshot.stale:
            return  # files, and none has changed
        try:
            found = await self._ask()
            self._seen = signs
        except Exception as error:  # whatever it is, viewers keep the last good answer
            what = (
                str(error) if isinstance(error, NidmapError) else f"{type(error).__name__}: {error}"
            )
            found = replace(self.snapshot, stale=True, error=printable(what, 300))
        self._keep(found)
        self.tell()

    def _keep(self, found: Snapshot) -> None:
        """Keep a snapshot, and write it down as it is sent."""
        said = found.document(self.machine)
        old: dict[str, Any] = getattr(self, "_said", {"version": 0})
        moment = {"version": old["version"], "taken": found.taken}
        same = said | moment == old | moment
        if same and found.taken == old["taken"]:
            return
        version = old["version"] + (not same)
        self.snapshot = replace(found, version=version)
        self._said = said | {"version": version}
        mark = f"{version}-{found.taken or 0:.3f}"
        self.state: Document = json_document(self._said, f"state-{mark}")
        jobs = [
            {key: value for key, value in one.items() if key != "rows"}
            | {"nodelist": nodes_of(self.machine, job.rows).fold()}
            for job, one in zip(found.jobs, said["jobs"], strict=True)
        ]
        self.jobs: Document = json_document({"jobs": jobs, **found.standing}, f"jobs-{mark}")


def _sign(path: str) -> tuple[int, ...]:
    """Return what tells a changed file."""
    try:
        stat = os.stat(path)
    except OSError:
        return ()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


class Streams:
    """All open event streams of one server: each viewer is told by one task and no thread.

    A stream that falls behind is told the newest state only, so that none
    holds more than one event.

    Parameters
    ----------
    live : Live
    most : int
        Streams at once.
    """

    def __init__(self, live: Live, most: int = 256) -> None:
        self.live = live
        self.most = most
        self._open = 0
        self._closing = False

    def __len__(self) -> int:
        return self._open

    @property
    def full(self) -> bool:
        """Whether no more may be opened."""
        return self._open >= self.most

    def close(self) -> None:
        """End all streams."""
        self._closing = True
        self.live.tell()

    async def events(self) -> AsyncIterator[bytes]:
        """Yield what one viewer is told, until the server is stopped."""
        told: asyncio.Event | None = None
        self._open += 1
        try:
            yield b"retry: 3000\n\n"
            while not self._closing:
                news = self.live.news
                yield b": ping\n\n" if news is told else self.live.event
                told = news
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(news.wait(), PING)
        finally:
            self._open -= 1
