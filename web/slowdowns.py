"""How well the running jobs sit, and how broken up the free nodes are: for a table and for metrics.

A job is held to the best placement of as many nodes among those free now and its own, by the
function that ``nidmap jobs`` judges past jobs with (`nidmap.rankmap.past_jobs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nidmap.placement.nodelist import NodeList
from nidmap.placement.records import JobRecord
from nidmap.placement.seats import Seats, free_at_starts
from nidmap.rankmap.past_jobs import UNKNOWN, Judge
from nidmap.web.workers import report_progress

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine
    from nidmap.placement.support.array_types import Mask
    from nidmap.rankmap.past_jobs import Verdict
    from nidmap.web.snapshot import Snapshot


def slowdowns(machine: Machine, now: Snapshot) -> dict[str, Any]:
    """Return the jobs, the slowest against its best placement first.

    Where there is no time for all jobs, the smallest have no figures (None).
    """
    inside = {name: now.offer(machine, name).candidates for name in now.partitions}
    judge, seats = Judge(machine), _seat_running(now)
    largest = np.argsort(-seats.counts, kind="stable")
    rows, late = [], False
    for job, free in free_at_starts(seats, now.free(machine), largest):
        late = late or report_progress(lambda: {"text": f"{len(now.jobs)} jobs"})
        open_ = free & inside.get(now.jobs[job].partition, free)
        verdict = None if late else judge.verdict(seats, job, open_)
        rows.append(now.jobs[job].document() | _job_figures(verdict))
    return {
        "schema": "nidmap.slowdowns/2",
        "patterns": list(UNKNOWN.patterns),
        **now.standing,
        "jobs": sorted(rows, key=lambda job: -(job["slowdown"] or 0)),
    }


def _seat_running(now: Snapshot) -> Seats:
    """Return the running jobs on their rows: all have had their nodes ever since."""
    jobs = tuple(JobRecord(job.id, NodeList(), job.name) for job in now.jobs)
    rows = [job.rows for job in now.jobs]
    first = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    all_rows = np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)
    return Seats(jobs, all_rows, first, np.full(len(jobs), np.nan), np.full(len(jobs), np.inf))


def _job_figures(verdict: Verdict | None) -> dict[str, Any]:
    """Return one job's figures; None where it was too late for them."""
    if verdict is None:
        nothing = ("spread", "best", "slowdown", "slowdown_low", "slowdown_high")
        return {"touches": {}, **dict.fromkeys(nothing)}
    low, likely, high = (round(value, 4) for value in verdict.slowdown)
    return {
        "touches": verdict.touches, "spread": verdict.spread, "best": verdict.best,
        "slowdown": likely, "slowdown_low": low, "slowdown_high": high,
    }  # fmt: skip


def _free_by_unit(machine: Machine, free: Mask) -> tuple[str, list[str], list[int], float]:
    """Return the outermost level, its units, their free nodes and how broken up these are.

    0: as many of the free nodes are in one unit as fit there; 1: each is far from all others.
    """
    level, unit = machine.topology.levels[0], machine.coords[:, 0]
    units, at = np.unique(unit, return_inverse=True)
    counts = np.bincount(at[free], minlength=len(units))
    size = int(np.bincount(at[machine.compute], minlength=len(units)).max(initial=1))
    most = min(int(counts.sum()), size)
    fragmentation = round(1 - int(counts.max(initial=0)) / most, 4) if most else 0.0
    return level, [str(u) for u in units.tolist()], counts.tolist(), fragmentation


def metrics(machine: Machine, now: Snapshot, jobs: list[dict[str, Any]]) -> str:
    r"""Write the free nodes now, and what `slowdowns` found of the jobs, as OpenMetrics text.

    Examples
    --------
    >>> from nidmap.placement.specs import parse_spec
    >>> from nidmap.web.snapshot import of_dump
    >>> torus = parse_spec("torus:2x2")
    >>> job = {"id": '7"', "count": 8, "touches": {"group": 2, "blade": 2}, "spread": 0.5,
    ...        "slowdown": 1.2}
    >>> for line in metrics(torus, of_dump(torus), [job]).splitlines():
    ...     if line[0] != "#":
    ...         print(line)
    nidmap_free_nodes{level="x",unit="0"} 2
    nidmap_free_nodes{level="x",unit="1"} 2
    nidmap_free_fragmentation_ratio 0.0
    nidmap_job_nodes{job="7\""} 8
    nidmap_job_spread_ratio{job="7\""} 0.5
    nidmap_job_slowdown_ratio{job="7\""} 1.2
    nidmap_job_touches{job="7\"",level="group"} 2
    nidmap_job_touches{job="7\"",level="blade"} 2
    nidmap_states_stale 0
    """
    level, units, counts, fragmentation = _free_by_unit(machine, now.free(machine))
    nodes = zip(units, counts, strict=True)
    touches = [(job["id"], *touch) for job in jobs for touch in job["touches"].items()]
    lines = [
        *_gauge_family("free_nodes", "Free nodes of each outermost unit of the network.",
                       (({"level": level, "unit": unit}, count) for unit, count in nodes)),
        *_gauge_family("free_fragmentation_ratio", "0: free nodes stand together; 1: far apart.",
                       [({}, fragmentation)]),
        *_gauge_family("job_nodes", "Nodes of a job.",
                       (({"job": j["id"]}, j["count"]) for j in jobs)),
        *_gauge_family("job_spread_ratio", "Pairs of a job's nodes in different outermost units.",
                       (({"job": j["id"]}, j["spread"]) for j in jobs)),
        *_gauge_family("job_slowdown_ratio", "Communication against the best placement's.",
                       (({"job": j["id"]}, j["slowdown"]) for j in jobs)),
        *_gauge_family("job_touches", "Units of each level of the network that a job touches.",
                       (({"job": job, "level": level}, number) for job, level, number in touches)),
        *_gauge_family("states_stale", "1: the source of the states does not answer.",
                       [({}, int(now.stale))]),
        *_gauge_family("states_timestamp_seconds", "When the states were taken.",
                       [({}, now.taken)]),
    ]  # fmt: skip
    return "\n".join([*lines, "# EOF", ""])


def _gauge_family(name: str, text: str, samples: Any) -> list[str]:
    """Write one family of gauges; a value that is not known has no line."""
    lines = [f"# TYPE nidmap_{name} gauge", f"# HELP nidmap_{name} {text}"]
    plain = {ord("\\"): "\\\\", ord('"'): '\\"', ord("\n"): "\\n"}
    for labels, value in samples:
        inner = ",".join(f'{label}="{of.translate(plain)}"' for label, of in labels.items())
        if value is not None:
            lines.append(f"nidmap_{name}{inner and f'{{{inner}}}'} {value}")
    return lines
