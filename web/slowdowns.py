"""How well the running jobs sit, and how broken up the free nodes are: for a table and for metrics.

A job is held to the best placement of as many nodes among those free now and
its own. What it really sends is not known: an all-to-all with one rank a node
stands for it.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import NidmapError
from web.workers import report

if TYPE_CHECKING:
    from placement.machine import Machine
    from placement.support.array_types import Ints, Mask
    from rankmap.predict import Predictor
    from web.snapshot import Job, Snapshot


__all__ = ["metrics", "slowdowns"]

#: Strategies of which the best one counts; others take longer or are hardly ever better.
_STRATEGIES = ("compact", "level-spread")

#: Nodes of a job among which links are counted.
_SAMPLE = 48


def slowdowns(machine: Machine, now: Snapshot) -> dict[str, Any]:
    """Return the jobs, the slowest against its best placement first.

    Where there is no time for all jobs, the smallest have no figures (None).
    """
    from rankmap.predict import Job, Predictor

    free = now.free(machine)
    inside = {name: now.offer(machine, name).free for name in now.partitions}
    model = Predictor(machine, Job("alltoall"))
    said, late = [], False
    for job in sorted(now.jobs, key=lambda job: -len(job.rows)):
        late = late or report(lambda: {"text": f"{len(now.jobs)} jobs"})
        said.append(_judge_job(model, inside.get(job.partition, free), job, late))
    return {
        "schema": "nidmap.slowdowns/1",
        "pattern": "alltoall",
        **now.standing,
        "jobs": sorted(said, key=lambda job: -(job["slowdown"] or 0)),
    }


def _judge_job(model: Predictor, free: Mask, job: Job, late: bool) -> dict[str, Any]:
    """Return one job's figures; without times where it is too late for them."""
    from placement.plan import plan, spans
    from placement.scheduler.kinds import ANY, offered

    said: dict[str, Any] = job.document() | {
        "touches": spans(model.machine, job.rows), "hops": _mean_hops(model.machine, job.rows),
        "time_s": None, "best_s": None, "slowdown": None,
    }  # fmt: skip
    usable = offered(model.machine, free, job.rows)
    with contextlib.suppress(NidmapError):
        if late:
            return said
        time = best = model.time(job.rows)
        for strategy in _STRATEGIES:
            with contextlib.suppress(NidmapError):  # not for this network
                found = plan(
                    model.machine, len(job.rows), strategy=strategy, candidates=usable, kind=ANY
                )
                best = min(best, model.time(found.rows))
        said |= {"time_s": time, "best_s": best, "slowdown": time / best if best else 1.0}
    return said


def _mean_hops(machine: Machine, rows: Ints) -> float | None:
    """Return the links between two nodes of a job in the mean, by minimal paths of a sample."""
    from placement.network import hops
    from placement.network.rails import rails_of

    some = rows[np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLE)).astype(np.int64)]
    if (machine.router[some, 0] < 0).any() or len(some) < 2:
        return None
    with contextlib.suppress(NidmapError):
        one, other = rails_of(machine).first_ends(*(x.ravel() for x in np.meshgrid(some, some)))
        apart = one != other
        if not apart.any():
            return 0.0
        found = hops(machine, one[apart], other[apart], "minimal").sum()
        return round(float(found) / (len(some) * (len(some) - 1)), 2)
    return None


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
    >>> from placement.specs import parse_spec
    >>> from web.snapshot import of_dump
    >>> torus = parse_spec("torus:2x2")
    >>> job = {"id": '7"', "count": 8, "touches": {"group": 2, "blade": 2}, "hops": 1.5,
    ...        "slowdown": 1.2}
    >>> for line in metrics(torus, of_dump(torus), [job]).splitlines():
    ...     if line[0] != "#":
    ...         print(line)
    nidmap_free_nodes{level="x",unit="0"} 2
    nidmap_free_nodes{level="x",unit="1"} 2
    nidmap_free_fragmentation_ratio 0.0
    nidmap_job_nodes{job="7\""} 8
    nidmap_job_hops{job="7\""} 1.5
    nidmap_job_slowdown_ratio{job="7\""} 1.2
    nidmap_job_touches{job="7\"",level="group"} 2
    nidmap_job_touches{job="7\"",level="blade"} 2
    nidmap_states_stale 0
    """
    level, units, counts, fragmentation = _free_by_unit(machine, now.free(machine))
    nodes = zip(units, counts, strict=True)
    touches = [(job["id"], *each) for job in jobs for each in job["touches"].items()]
    lines = [
        *_family("free_nodes", "Free nodes of each outermost unit of the network.",
                 (({"level": level, "unit": unit}, count) for unit, count in nodes)),
        *_family("free_fragmentation_ratio", "0: free nodes stand together; 1: far apart.",
                 [({}, fragmentation)]),
        *_family("job_nodes", "Nodes of a job.", (({"job": j["id"]}, j["count"]) for j in jobs)),
        *_family("job_hops", "Links between two nodes of a job in the mean.",
                 (({"job": j["id"]}, j["hops"]) for j in jobs)),
        *_family("job_slowdown_ratio", "Predicted time against that of the best placement.",
                 (({"job": j["id"]}, j["slowdown"]) for j in jobs)),
        *_family("job_touches", "Units of each level of the network that a job touches.",
                 (({"job": job, "level": level}, number) for job, level, number in touches)),
        *_family("states_stale", "1: the source of the states does not answer.",
                 [({}, int(now.stale))]),
        *_family("states_timestamp_seconds", "When the states were taken.", [({}, now.taken)]),
    ]  # fmt: skip
    return "\n".join([*lines, "# EOF", ""])


def _family(name: str, text: str, samples: Any) -> list[str]:
    """Write one family of gauges; a value that is not known has no line."""
    lines = [f"# TYPE nidmap_{name} gauge", f"# HELP nidmap_{name} {text}"]
    plain = {ord("\\"): "\\\\", ord('"'): '\\"', ord("\n"): "\\n"}
    for labels, value in samples:
        inner = ",".join(f'{label}="{of.translate(plain)}"' for label, of in labels.items())
        if value is not None:
            lines.append(f"nidmap_{name}{inner and f'{{{inner}}}'} {value}")
    return lines
