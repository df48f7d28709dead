"""How well the running jobs sit, for the page's table.

A job is held to the best placement of as many nodes among those free now and its own, by the
function that ``nidmap jobs`` judges past jobs with (`rankmap.past_jobs.judging`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from placement.accounting.seats import Seats, free_at_starts
from placement.nodelist import NodeList
from placement.records import JobRecord
from rankmap.past_jobs.applications import UNKNOWN
from rankmap.past_jobs.judging import Judge
from web.workers import report

if TYPE_CHECKING:
    from placement.machine import Machine
    from rankmap.past_jobs.judging import Verdict
    from web.snapshot import Snapshot


__all__ = ["slowdowns"]


def slowdowns(machine: Machine, now: Snapshot) -> dict[str, Any]:
    """Return the jobs, the slowest against its best placement first.

    Where there is no time for all jobs, the smallest have no figures (None).
    """
    inside = {name: now.offer(machine, name).candidates for name in now.partitions}
    judge, seats = Judge(machine), _seat(now)
    largest = np.argsort(-seats.counts, kind="stable")
    rows, late = [], False
    for job, free in free_at_starts(seats, now.free(machine), largest):
        late = late or report(lambda: {"text": f"{len(now.jobs)} jobs"})
        open_ = free & inside.get(now.jobs[job].partition, free)
        verdict = None if late else judge.verdict(seats, job, open_)
        rows.append(now.jobs[job].document() | _figures(verdict))
    return {
        "schema": "nidmap.slowdowns/2",
        "patterns": list(UNKNOWN.patterns),
        **now.standing,
        "jobs": sorted(rows, key=lambda job: -(job["slowdown"] or 0)),
    }


def _seat(now: Snapshot) -> Seats:
    """Return the running jobs on their rows: all have had their nodes ever since."""
    jobs = tuple(JobRecord(job.id, NodeList(), job.name) for job in now.jobs)
    rows = [job.rows for job in now.jobs]
    first = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    all_rows = np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)
    return Seats(jobs, all_rows, first, np.full(len(jobs), np.nan), np.full(len(jobs), np.inf))


def _figures(verdict: Verdict | None) -> dict[str, Any]:
    """Return one job's figures; None where it was too late for them."""
    if verdict is None:
        nothing = ("spread", "best", "slowdown", "slowdown_low", "slowdown_high")
        return {"touches": {}, **dict.fromkeys(nothing)}
    low, likely, high = (round(value, 4) for value in verdict.slowdown)
    return {
        "touches": verdict.touches, "spread": verdict.spread, "best": verdict.best,
        "slowdown": likely, "slowdown_low": low, "slowdown_high": high,
    }  # fmt: skip
