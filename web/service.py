# SPDX-License-Identifier: Apache-2.0
"""The state of one server: the machine's documents, its live state, its computations."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from nidmap.placement import __version__
from nidmap.placement.errors import NidmapError, UsageError, error_text, printable
from nidmap.placement.lookup import nodes_of
from nidmap.rankmap.past_jobs import Application
from nidmap.rankmap.predict import Job
from nidmap.web import figures, layout, replies, requests
from nidmap.web.answers import RenderedAnswer, json_document, kept_document
from nidmap.web.columns import document as machine_columns
from nidmap.web.guard import Guard
from nidmap.web.page import served_files
from nidmap.web.slowdowns import JobVerdicts, Question
from nidmap.web.snapshot import SLURM, Snapshot, ask_sources, of_dump
from nidmap.web.workers import Lane

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from nidmap.placement.machine import Machine
    from nidmap.web import snapshot as snapshots
    from nidmap.web.workers import Told

    #: The machine's columns, and the layout's views by id.
    _Drawn = tuple[RenderedAnswer, dict[str, RenderedAnswer]]

#: Minimum seconds between two queries of the sources.
LEAST = 1.0

#: Maximum share of time for which our queries may keep slow sources busy.
_BUSY = 0.25

#: Seconds after which a page that asks no more is closed, and between two questions then.
_WATCHED, _UNWATCHED = 60.0, 30.0

#: The documents of the machine and of its state.
_DOCUMENTS = ("/api/v1/machine", "/api/v1/layout", "/api/v1/state", "/api/v1/jobs")

#: Questions about the running jobs whose figures are kept.
_QUESTIONS = 16

#: Seconds for a question that should take milliseconds, and for Slurm's own answers.
_QUICK, _SLURM = 20.0, 60.0

#: Seconds that the first states are waited for, which a page opens with.
_PATIENCE = 3.0

#: Seconds in which what searches use is compiled, once on a machine.
_COMPILING = 600.0


@dataclass(frozen=True)
class Settings:
    """The settings of a server."""

    prefix: str = "/"  # the path that a proxy serves it under, from ``/`` to ``/``
    users: bool = False  # show users' names
    owner: str = ""  # whose jobs come first; '' means nobody's
    taken: float | None = None  # unix time of the machine's own states
    every: float = 3.0  # seconds between two questions to the sources while somebody looks
    plans: int | None = None  # long calculations at once; None means by the number of cores
    waiting: int = 8  # long calculations that may wait
    seconds: float = 60.0  # longest calculation
    applications: tuple[Application, ...] = ()  # what jobs send, by their names and users
    link_loads: tuple[str, ...] = ()  # files of link counters (`nidmap.web.measured`)


class Service:
    """One machine, ready to be served.

    `sources`: where states and jobs come from (`nidmap.web.snapshot`).
    """

    def __init__(
        self,
        machine: Machine,
        sources: tuple[str, ...] = (),
        guard: Guard | None = None,
        settings: Settings = Settings(),
    ) -> None:
        self.machine = machine
        self.guard = guard or Guard()
        self.settings = settings
        processes = max(1, min(4, len(os.sched_getaffinity(0)) // 2))
        self.long = Lane(machine, settings.plans or processes, settings.waiting, settings.seconds)
        self.short = Lane(machine, processes + 1, 64, min(_QUICK, settings.seconds))
        self._asking = Lane(machine, 1, 0, _SLURM)
        first = of_dump(machine, None if sources else settings.taken)
        self.live = LiveSnapshot(machine, sources, self._ask, settings.every, first)
        self._files = {
            f"/static/{name}": kept_document(name, text) for name, text in served_files().items()
        }
        self._drawing: asyncio.Future[_Drawn] | None = None
        self._compiling: asyncio.Future[None] | None = None
        self._judged: dict[requests.Slowdowns, JobVerdicts] = {}

    def start(self) -> None:
        """Start querying the sources, and prepare what the first viewer will request."""
        self.live.start()
        asyncio.ensure_future(self._drawn())  # noqa: RUF006 - kept as `_drawing`

    def close(self) -> None:
        """End everything that was started."""
        self.live.stop()
        for lane in (self.long, self.short, self._asking):
            lane.close()

    async def _ask(self) -> Snapshot:
        snapshot: Snapshot = await self._asking.call(
            ask_sources, self.live.sources, self.settings.users, self.settings.owner
        )
        return snapshot

    def has_document(self, path: str) -> bool:
        """Tell whether a path is answered by a prepared document."""
        return path in self._files or path in _DOCUMENTS

    async def document(self, path: str, view: str = "") -> RenderedAnswer:
        """Return the prepared document for a path.

        `path`: one that `has_document`. `view`: of the layout, one view by its id; '' for all.
        """
        if path in self._files:
            return self._files[path]
        name = path.rpartition("/")[2]
        if name in ("state", "jobs"):
            self.live.watch()
            if not self.live.has_answer:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self.live.answered(), _PATIENCE)
            return self.live.state if name == "state" else self.live.jobs
        machine, views = await self._drawn()
        if name == "machine":
            return machine
        if view not in views:
            known = ", ".join(name for name in views if name)
            raise UsageError(f"unknown view {printable(view)!r}", f"choose from {known}")
        return views[view]

    async def _drawn(self) -> _Drawn:
        """Return the documents that never change, created once in a thread."""
        if self._drawing is None:
            self._drawing = asyncio.ensure_future(asyncio.to_thread(self._draw))
        return await asyncio.shield(self._drawing)

    def _draw(self) -> _Drawn:
        columns = machine_columns(self.machine) | {
            "show_users": self.settings.users,
            "live": bool(self.live.sources),
            "measured": bool(self.settings.link_loads),
            "refresh": self.live.every if self.live.sources else 0,
            "version": __version__,
            "limits": {"body": requests.BODY, "text": requests.TEXT, "marks": 8},
        }
        drawing = layout.document(self.machine)
        views = {"": drawing, **layout.view_parts(drawing)}
        return json_document(columns), {name: json_document(view) for name, view in views.items()}

    async def figure(self, name: str, wanted: msgspec.Struct, told: Told = None) -> bytes:
        """Return one of `nidmap.web.figures` as JSON, passing on a search's progress."""
        lane = self.long if figures.takes_long(wanted) else self.short
        if figures.maps_graphs(wanted):
            await self._compiled(told)
        await self.live.answered()
        now, partition = self.live.snapshot, getattr(wanted, "partition", "")
        if isinstance(wanted, requests.Choice) and not partition and not wanted.from_.strip():
            partition = now.default_partition
        offer, question = now.offer(self.machine, partition), getattr(wanted, "question", "")
        return await lane.json(getattr(figures, name), offer, wanted, question=question, told=told)

    async def _compiled(self, told: Told) -> None:
        """Wait until the kernels of searches are compiled, which takes long the first time."""
        if self._compiling is None:
            self._compiling = asyncio.ensure_future(
                self.long.call(figures.compile_kernels, seconds=_COMPILING)
            )
        if told is not None and not self._compiling.done():
            told({"text": "getting ready to search, once"})
        with contextlib.suppress(NidmapError):  # a search without them says so itself
            await asyncio.shield(self._compiling)

    async def slowdowns(self, wanted: requests.Slowdowns) -> replies.Slowdowns:
        """Return the running jobs with their slowdowns; only new ones are judged."""
        verdicts = self._judged.pop(wanted, None)
        if verdicts is None:
            pattern = figures.safe_pattern(wanted.pattern)
            Job(pattern)  # refuses an unknown one
            others = Application(pattern=pattern, bytes=wanted.bytes or None)
            question = Question((*self.settings.applications, others), wanted.ppn)
            verdicts = JobVerdicts(self.long, question)
        await self.live.answered()
        self._judged[wanted] = verdicts  # the one that was asked for last is the last
        while len(self._judged) > _QUESTIONS:
            del self._judged[next(iter(self._judged))]
        return await verdicts.of(self.live.snapshot)

    def status(self) -> replies.Status:
        """Return the server's status."""
        now = self.live.snapshot
        return replies.Status(
            machine=self.machine.name,
            nodes=len(self.machine),
            live=bool(self.live.sources),
            source=now.source,
            version=now.version,
            **now.standing,
            calculations=self.long.inside + self.short.inside,
        )


# --- what changes ----------------------------------------------------------------------


class LiveSnapshot:
    """Holds the newest snapshot, querying its sources in the background.

    `sources`: ``slurm`` or files (`nidmap.web.snapshot`); empty: the machine's own states, for
    ever. `ask`: returns a new snapshot, or raises a NidmapError. `every`: seconds between two
    questions while somebody looks; else half a minute at least. `first`: what there is before the
    sources have answered; None means the machine's own states. `snapshot`: the newest. `state`,
    `jobs`: the snapshot as it is sent, and its jobs with their node lists.
    """

    def __init__(
        self,
        machine: Machine,
        sources: tuple[str, ...],
        ask: Callable[[], Awaitable[Snapshot]],
        every: float = 3.0,
        first: Snapshot | None = None,
    ) -> None:
        self.machine = machine
        self.sources = sources
        self.every = max(LEAST, every)
        self._ask = ask
        self._task: asyncio.Task[None] | None = None
        self._watched = time.monotonic()
        self._wanted: asyncio.Event | None = None
        self._first: asyncio.Event | None = None
        self._seen: list[tuple[int, ...]] = []
        self._written: replies.State | None = None
        notes = ("the sources have not answered yet",) if sources else ()
        self._keep(replace(first or of_dump(machine), notes=notes))

    @property
    def age(self) -> int | None:
        """Seconds since the data was taken; None if unknown."""
        taken = self.snapshot.taken
        return None if taken is None else max(0, round(time.time() - taken))

    def start(self) -> None:
        """Start querying in the background; without sources there is nothing to query."""
        if self.sources and self._task is None:
            self._first = asyncio.Event()
            self._task = asyncio.ensure_future(self._keep_asking())

    def stop(self) -> None:
        """Stop querying."""
        if self._task is not None:
            self._task.cancel()

    def watch(self) -> None:
        """Note that somebody is looking; sources not queried for long are queried now."""
        self._watched = time.monotonic()
        if self._wanted is not None:
            self._wanted.set()

    @property
    def has_answer(self) -> bool:
        """Whether the sources have been queried once, or there are none."""
        return self._first is None or self._first.is_set()

    async def answered(self) -> None:
        """Wait until the sources have been queried once, as free nodes are unknown before."""
        if self._first is not None:
            await self._first.wait()

    async def _keep_asking(self) -> None:
        self._wanted = asyncio.Event()
        while True:
            begun = time.monotonic()
            await self.renew()
            if self._first is not None:
                self._first.set()
            waited = time.monotonic() - begun
            took = waited if self.snapshot.stale else self.snapshot.took
            await asyncio.sleep(max(LEAST, self.every - waited, took * (1 / _BUSY - 1)))
            if time.monotonic() - self._watched > _WATCHED:
                self._wanted.clear()
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._wanted.wait(), _UNWATCHED)

    async def renew(self) -> None:
        """Query once and keep the answer; without one, the last answer goes stale."""
        signs = [] if SLURM in self.sources else [_file_state(path) for path in self.sources]
        if signs and all(signs) and signs == self._seen and not self.snapshot.stale:
            return  # files, and none has changed
        try:
            snapshot = await self._ask()
            self._seen = signs
        except Exception as error:  # whatever the error, viewers keep the last good answer
            snapshot = replace(self.snapshot, stale=True, error=printable(error_text(error), 300))
        self._keep(snapshot)

    def _keep(self, snapshot: Snapshot) -> None:
        """Keep a snapshot, serialised as it is sent."""
        old = self._written
        document = snapshot.document(self.machine)
        document.version = old.version if old else 1
        same = old is not None and msgspec.structs.replace(old, taken=snapshot.taken) == document
        if same and old is not None and snapshot.taken == old.taken:
            return
        document.version += bool(old and not same)
        version = document.version
        self.snapshot = replace(snapshot, version=version)
        self._written = document
        mark = f"{version}-{snapshot.taken or 0:.3f}"
        self.state: RenderedAnswer = json_document(self._written, f"state-{mark}")
        jobs = [self._listed(job) for job in snapshot.jobs]
        self.jobs: RenderedAnswer = json_document(
            replies.Jobs(jobs, **snapshot.standing), f"jobs-{mark}"
        )

    def _listed(self, job: snapshots.RunningJob) -> replies.ListedJob:
        """Return a job with the list of its nodes."""
        fields = msgspec.structs.asdict(job.document())
        del fields["rows"]
        return replies.ListedJob(**fields, nodelist=nodes_of(self.machine, job.rows).fold())


def _file_state(path: str) -> tuple[int, ...]:
    """Return a fingerprint of a file to detect changes; () for other things, such as a FIFO."""
    try:
        stat = os.stat(path)
    except OSError:
        return ()
    if not os.path.isfile(path):
        return ()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
