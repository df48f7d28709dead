# SPDX-License-Identifier: Apache-2.0
"""The placement of running jobs, and the fragmentation of free nodes: table and metrics.

A job is held to the best placement of as many nodes among those free now and its own, by the
function that ``nidmap jobs`` judges past jobs with (`nidmap.rankmap.past_jobs`): with its own
ranks per node, and what the site's file of applications, else the page's form, says it sends.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from prometheus_client.core import CollectorRegistry, GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

from nidmap.placement.job_nodes import JobNodes, free_at_starts
from nidmap.placement.nodelist import NodeList
from nidmap.placement.records import JobRecord
from nidmap.rankmap.past_jobs import Application, Judge
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.search.cost import without_time
from nidmap.web import replies
from nidmap.web.workers import report_progress

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from nidmap.placement.machine import Machine
    from nidmap.placement.support.array_types import Mask
    from nidmap.rankmap.past_jobs import Verdict
    from nidmap.web.snapshot import RunningJob, Snapshot
    from nidmap.web.workers import Lane

#: Seconds for which a job's figures are good: what is free next to it changes meanwhile.
GOOD = 300.0

#: Reason given for jobs that could not be judged in time.
_NOTHING = ("spread", "best", "slowdown", "slowdown_low", "slowdown_high", "judged")


class Question(NamedTuple):
    """The pattern by which running jobs are judged."""

    applications: tuple[Application, ...] = ()  # the first that fits a job says what it sends
    ppn: int = 1  # ranks per node of a job whose own are unknown


class JudgedJobs(NamedTuple):
    """Figures of jobs by id, None if time ran out; and why costs are not times, or ''."""

    figures: dict[str, dict[str, Any] | None]
    timeless: str


class JobVerdicts:
    """Caches the figures of running jobs, job by job, for one question."""

    def __init__(self, lane: Lane, question: Question) -> None:
        self._lane = lane
        self._question = question
        self._known: dict[tuple[str, bytes], tuple[float, dict[str, Any]]] = {}
        self._timeless = ""
        self._turn = asyncio.Lock()

    async def of(self, now: Snapshot) -> replies.Slowdowns:
        """Return the jobs that hold nodes now, the worst slowdown first."""
        async with self._turn:
            await self._judge_others(now)
        jobs = [
            replies.JudgedJob(**msgspec.structs.asdict(job.document()) | self._figures(job))
            for job in now.jobs
        ]
        jobs.sort(key=lambda job: -(job.slowdown or 0))
        return replies.Slowdowns(
            schema="nidmap.slowdowns/3", timeless=self._timeless, **now.standing, jobs=jobs
        )

    async def _judge_others(self, now: Snapshot) -> None:
        """Judge jobs with missing or outdated figures, and forget ended ones."""
        begun = time.time()
        running = {_key(job): job for job in now.jobs}
        self._known = {
            key: kept
            for key, kept in self._known.items()
            if key in running and begun - kept[0] < GOOD
        }
        wanted = [job.id for key, job in running.items() if key not in self._known]
        if wanted:
            judged: JudgedJobs = await self._lane.call(judge_running, now, self._question, wanted)
            self._timeless = judged.timeless
            for key, job in running.items():
                if (figures := judged.figures.get(job.id)) is not None:
                    self._known[key] = begun, figures

    def _figures(self, job: RunningJob) -> dict[str, Any]:
        if _key(job) not in self._known:
            return {"touches": {}, "patterns": [], **dict.fromkeys(_NOTHING)}
        judged, figures = self._known[_key(job)]
        return figures | {"judged": judged}


def _key(job: RunningJob) -> tuple[str, bytes]:
    """Return the cache key of a job's figures; a job may shrink while it runs."""
    return job.id, job.rows.tobytes()


def judge_running(
    machine: Machine, now: Snapshot, question: Question, wanted: Collection[str]
) -> JudgedJobs:
    """Judge some of the running jobs, the largest first."""
    inside = {name: now.offer(machine, name).candidates for name in now.partitions}
    judge, job_nodes = Judge(machine, question.applications), _running_job_nodes(now, question.ppn)
    keys = set(wanted)
    largest = [
        job for job in np.argsort(-job_nodes.counts, kind="stable") if now.jobs[job].id in keys
    ]
    figures: dict[str, dict[str, Any] | None] = {}
    late = False
    for job, free in free_at_starts(job_nodes, now.free(machine), largest):
        late = late or report_progress(lambda: {"text": f"{len(keys)} jobs"})
        open_ = free & inside.get(now.jobs[job].partition, free)
        verdict = None if late else judge.verdict(job_nodes, job, open_)
        figures[now.jobs[job].id] = None if verdict is None else _job_figures(verdict)
    return JudgedJobs(figures, without_time(place_ranks(machine, "#0", 1)))


def _running_job_nodes(now: Snapshot, ppn: int) -> JobNodes:
    """Return the running jobs on their rows, which they have held since their start."""
    records = [job.record or JobRecord(job.id, NodeList(), job.name) for job in now.jobs]
    jobs = tuple(
        JobRecord(job.id, NodeList(), job.name, job.user, ppn=job.ppn or ppn) for job in records
    )
    rows = [job.rows for job in now.jobs]
    first = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    all_rows = np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)
    return JobNodes(jobs, all_rows, first, np.full(len(jobs), np.nan), np.full(len(jobs), np.inf))


def _job_figures(verdict: Verdict) -> dict[str, Any]:
    """Return one job's figures with the conditions under which they hold."""
    low, likely, high = (round(value, 4) for value in verdict.slowdown)
    return {
        "touches": verdict.touches, "spread": verdict.spread, "best": verdict.best,
        "slowdown": likely, "slowdown_low": low, "slowdown_high": high,
        "patterns": list(verdict.patterns), "ppn": verdict.ppn,
    }  # fmt: skip


def _free_by_unit(machine: Machine, free: Mask) -> tuple[str, list[str], list[int], float]:
    """Return the outermost level, its units, their free nodes and the fragmentation.

    0: as many of the free nodes are in one unit as fit there; 1: each is far from all others.
    """
    level, unit = machine.topology.levels[0], machine.coords[:, 0]
    units, at = np.unique(unit, return_inverse=True)
    counts = np.bincount(at[free], minlength=len(units))
    size = int(np.bincount(at[machine.compute], minlength=len(units)).max(initial=1))
    most = min(int(counts.sum()), size)
    fragmentation = round(1 - int(counts.max(initial=0)) / most, 4) if most else 0.0
    return level, [str(u) for u in units.tolist()], counts.tolist(), fragmentation


def metrics(machine: Machine, now: Snapshot, jobs: Sequence[replies.JudgedJob]) -> bytes:
    r"""Write the free nodes and the jobs' figures as OpenMetrics text."""
    registry = CollectorRegistry()
    registry.register(_Gauges(machine, now, jobs))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text


class _Gauges(Collector):
    """The gauges at one moment; unknown values have no line."""

    def __init__(self, machine: Machine, now: Snapshot, jobs: Sequence[replies.JudgedJob]) -> None:
        self._machine, self._now, self._jobs = machine, now, jobs

    def describe(self) -> list[GaugeMetricFamily]:
        """Return nothing: everything follows from the jobs."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the families: free nodes, jobs, and how reliable the states are."""
        machine, now = self._machine, self._now
        level, units, counts, fragmentation = _free_by_unit(machine, now.free(machine))
        yield _gauge_family("free_nodes", "Free nodes of each outermost unit of the network.",
                            [({"level": level, "unit": unit}, count)
                             for unit, count in zip(units, counts, strict=True)])  # fmt: skip
        yield _gauge_family("free_fragmentation_ratio",
                            "0: free nodes stand together; 1: far apart.",
                            [({}, fragmentation)])  # fmt: skip
        yield from self._job_families()
        yield _gauge_family("states_assumed", "1: nothing tells the states; all count as free.",
                            [({}, now.assumed)])  # fmt: skip
        yield _gauge_family("states_stale", "1: the source of the states does not answer.",
                            [({}, now.stale)])  # fmt: skip
        yield _gauge_family("states_timestamp_seconds", "When the states were taken.",
                            [({}, now.taken)])  # fmt: skip

    def _job_families(self) -> Iterator[GaugeMetricFamily]:
        def family(name: str, text: str, values: Iterable[float | None]) -> GaugeMetricFamily:
            judged = name.startswith("slowdown")
            labels = (_job_labels(job, judged) for job in self._jobs)
            return _gauge_family(f"job_{name}", text, zip(labels, values, strict=True))

        jobs = self._jobs
        yield family("nodes", "Nodes of a job.", [job.count for job in jobs])
        yield family("spread_ratio", "Pairs of a job's nodes in different outermost units.",
                     [job.spread for job in jobs])  # fmt: skip
        for field, text in (("slowdown", "Communication against the best placement's, likely."),
                            ("slowdown_low", "The same, at least."),
                            ("slowdown_high", "The same, at most.")):  # fmt: skip
            yield family(f"{field}_ratio", text, [getattr(job, field) for job in jobs])
        yield _gauge_family("job_touches", "Units of each level of the network that a job touches.",
                            (({"job": job.id, "level": level}, number) for job in jobs
                             for level, number in job.touches.items()))  # fmt: skip


def _job_labels(job: replies.JudgedJob, judged: bool) -> dict[str, str]:
    """Return the labels that identify a job's line, and what it was judged with."""
    known = {"pattern": " ".join(job.patterns), "ppn": str(job.ppn)} if judged else {}
    return {"job": job.id, **known}


def _gauge_family(
    name: str, text: str, samples: Iterable[tuple[dict[str, str], float | None]]
) -> GaugeMetricFamily:
    """Return one family of gauges; unknown values have no line."""
    known = [(labels, value) for labels, value in samples if value is not None]
    family = GaugeMetricFamily(f"nidmap_{name}", text, labels=list(known[0][0]) if known else [])
    for labels, value in known:
        family.add_metric(list(labels.values()), float(value))
    return family
