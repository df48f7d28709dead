# SPDX-License-Identifier: Apache-2.0
"""One case with one seed: a fragmented machine, the arms, a launch, the results."""

from __future__ import annotations

import json
import os
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from benchmarks.experiment.counted import CountedLinks, expected_bytes, total_demand
from nidmap.placement.options import with_figures
from nidmap.placement.plan import plan
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.job import fit_pattern
from nidmap.workloads.minicray.net import wire_factor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from benchmarks.experiment.cases import Case
    from benchmarks.experiment.cluster import Cluster
    from nidmap.placement.machine import Machine
    from nidmap.placement.support.array_types import Ints


#: How MPICH is told to post all messages of an all-to-all at once, which is what is predicted.
_AT_ONCE = {
    "MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM": "scattered",
    "MPIR_CVAR_ALLTOALLV_INTRA_ALGORITHM": "scattered",
    "MPIR_CVAR_ALLTOALL_THROTTLE": "1024",
}


#: How often each arm is visited in a block: there and back.
VISITS = 2

#: What is known of a ratio.
_RATIO = ("ratio", "low", "high")


@dataclass(frozen=True, slots=True)
class Arm:
    """Nodes and an order of ranks.

    Attributes
    ----------
    name : str
        ``slurm`` (its nodes, ranks one after another), ``order`` (its nodes,
        nidmap's order), ``nidmap``, a planner's name, ``random``.
    rows : int64 (n,)
        Nodes, in the order that numbers the slots.
    slots : int64 (ranks,)
        Slot of each rank.
    control : str
        ``A/A`` for the first arm over again.
    """

    name: str
    rows: Ints
    slots: Ints
    control: str = ""

    def members(self, used: Ints, ppn: int) -> list[int]:
        """Return the world rank in each place, for a launch that fills these nodes in turn.

        Examples
        --------
        >>> Arm("one", np.array([7, 3]), np.array([0, 2, 1, 3])).members(np.array([3, 7]), 2)
        [2, 0, 3, 1]
        """
        places = np.searchsorted(used, self.rows[self.slots // ppn]) * ppn + self.slots % ppn
        found: list[int] = places.tolist()
        return found

    def same_as(self, other: Arm, ppn: int) -> bool:
        """Tell whether every rank is on the same node."""
        return bool(np.array_equal(self.rows[self.slots // ppn], other.rows[other.slots // ppn]))


def arms_for(
    case: Case, machine: Machine, slurm: Sequence[str], free: Sequence[str], seed: int
) -> list[Arm]:
    """Return the arms: Slurm's choice first, controls last.

    Parameters
    ----------
    case : Case
    machine : Machine
    slurm : sequence of str
        The nodes that Slurm gave, in its order.
    free : sequence of str
        The nodes that are not held.
    seed : int
    """
    may, inside = (np.isin(machine.names, np.array(names)) for names in (free, slurm))
    own, ranks = np.flatnonzero(inside), np.arange(case.nodes * case.ppn)
    arms = [Arm("slurm", own, ranks)]
    if case.ppn > 1:
        arms.append(_plan_with_auto("order", case, machine, inside, seed))
    arms.append(_plan_with_auto("nidmap", case, machine, may, seed))
    arms += [_other(name, case, machine, may, own, seed) for name in case.others]
    return [*arms, Arm("slurm again", own, ranks, "A/A")]


def _plan_with_auto(
    name: str, case: Case, machine: Machine, may: NDArray[np.bool_], seed: int
) -> Arm:
    """Return what `nidmap plan --strategy auto` chooses among some nodes."""
    found = plan(
        with_figures(machine, routing="single", latency=0),
        case.nodes,
        job=Job(case.pattern, ppn=case.ppn, bytes=case.size),
        strategy="auto",
        candidates=may,
        seed=seed,
    )
    order = found.facts["predicted"]["order"]["slots"]
    slots = np.arange(case.nodes * case.ppn) if order is None else np.array(order, dtype=np.int64)
    return Arm(name, np.asarray(found.rows, dtype=np.int64), slots)


def _other(
    name: str, case: Case, machine: Machine, may: NDArray[np.bool_], own: Ints, seed: int
) -> Arm:
    """Return another planner's nodes, another order of Slurm's, or a random choice of both."""
    ranks = case.nodes * case.ppn
    if name.endswith(" order"):
        model = _predictor(case, machine)
        slots = model.place(own)
        order = arrange(slots, fit_pattern(model.pattern, slots), name.removesuffix(" order"))
        return Arm(name, own, np.asarray(order.slot_of_rank, dtype=np.int64))
    if name != "random":
        rows = plan(machine, case.nodes, strategy=name, candidates=may, seed=seed).rows
        return Arm(name, np.asarray(rows, dtype=np.int64), np.arange(ranks))
    rng = random.Random(f"random {case.name} {seed}")  # a choice of nodes, no secret
    rows = np.array(sorted(rng.sample(np.flatnonzero(may).tolist(), case.nodes)))
    return Arm(name, rows, np.array(rng.sample(range(ranks), ranks)))


def measure_case(
    cluster: Cluster, case: Case, machine: Machine, seed: int, blocks: int, folder: Path
) -> dict[str, Any]:
    """Measure a case once and return the results; samples and counts stay in `folder`.

    Parameters
    ----------
    blocks : int
        Blocks of turns that count; one more warms up.

    Raises
    ------
    LaunchError
        Slurm or MPI fails.
    """
    free = cluster.hold(seed, case.held)
    arms = arms_for(case, machine, cluster.choice(case.nodes), free, seed)
    used = np.unique(np.concatenate([arm.rows for arm in arms]))
    stem = str(folder / f"{case.name.replace(' ', '-')}-{seed}")
    job = {
        **{name: getattr(case, name) for name in ("machine", "workload", "options", "pattern",
                                                  "phase")},
        "minicray": cluster.name,
        "seed": seed,
        "blocks": blocks,
        "repeat": 1,
        "output": f"{stem}.csv",
        "counts": f"{stem}.links.json",
        "arms": [
            {
                "name": arm.name,
                "order": "given",
                "members": arm.members(used, case.ppn),
            }
            for arm in arms
        ],
        "hosts": np.repeat(machine.names[used], case.ppn).tolist(),
    }  # fmt: skip
    path = Path(f"{stem}.job.json")
    path.write_text(json.dumps(job))
    began, idle = time.monotonic(), idle_seconds()
    env = [f"{key}={value}" for key, value in _AT_ONCE.items()]
    env.append(f"PYTHONPATH={Path(__file__).parents[2]}")  # ranks start anywhere, not in a checkout
    program = [sys.executable, "-m", "benchmarks.experiment.ranks", str(path)]
    cluster.launch(machine.names[used].tolist(), case.ppn, "env", *env, *program)
    path.unlink()
    return {
        "case": case.name,
        "seed": seed,
        "kept": arms[0].same_as(next(arm for arm in arms if arm.name == "nidmap"), case.ppn),
        "free": len(free),
        "idle_cores": round((idle_seconds() - idle) / (time.monotonic() - began), 2),
        "arms": _figures(case, arms, _predictor(case, machine), cluster, stem),
    }


def idle_seconds() -> float:
    """Return the summed idle time of the cores that this process may use."""
    own = {f"cpu{k}" for k in os.sched_getaffinity(0)}
    rows = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    ticks = sum(float(row[4]) + float(row[5]) for row in rows if row[0] in own)
    return ticks / os.sysconf("SC_CLK_TCK")


def _predictor(case: Case, machine: Machine) -> Predictor:
    return Predictor(
        with_figures(machine, routing="single", latency=0),
        Job(case.pattern, case.ppn, case.size, algorithm=""),
    )


def _figures(
    case: Case, arms: Sequence[Arm], predictor: Predictor, cluster: Cluster, stem: str
) -> list[dict[str, Any]]:
    """Return the predicted and measured figures of each arm."""
    from nidmap.workloads.ab.analysis import analyse

    header, rows = _read_samples(f"{stem}.csv")
    of_phase, of_run = (
        analyse(header, block_times(rows, phase)) for phase in (case.phase, "total")
    )
    times = {entry["arm"]: entry["median"] for entry in of_phase["arms"]}
    ratios, run_ratios = (
        {entry["arm"]: entry for entry in analysis["comparisons"]}
        for analysis in (of_phase, of_run)
    )
    counts = json.loads(Path(f"{stem}.links.json").read_text())
    base = predictor.time(predictor.place(arms[0].rows, arms[0].slots))
    itself = dict.fromkeys(_RATIO, 1.0)
    rows = []
    for arm in arms:
        time_s = predictor.time(predictor.place(arm.rows, arm.slots))
        ratio = ratios.get(arm.name, {**itself, "shown": False})
        rows.append({
            "arm": arm.name,
            "control": arm.control,
            "nodes": predictor.machine.names[arm.rows].tolist(),
            "predicted_s": time_s * cluster.scale * wire_factor(cluster.mtu),
            "measured_s": times[arm.name],
            "predicted": base / time_s,
            **{key: ratio[key] for key in (*_RATIO, "shown")},
            "whole_run": run_ratios.get(arm.name, itself)["ratio"],
            **_links(predictor, arm, cluster, counts[arm.name]),
        })  # fmt: skip
    return rows


def _read_samples(path: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the header and the rows of a file of samples."""
    import pandas as pd

    with open(path, encoding="utf-8") as stream:
        header: dict[str, Any] = json.loads(stream.readline().split(" ", 2)[2])
    rows = pd.read_csv(path, skiprows=1).to_dict("records")
    return header, cast("list[dict[str, Any]]", rows)


def block_times(rows: Sequence[Mapping[str, Any]], phase: str) -> list[dict[str, Any]]:
    """Return one sample per arm of each block with both of its visits.

    It is the geometric mean over the two visits of the median over a visit's repetitions: a
    linear drift cancels, and one slow repetition does not count.
    """
    visits: dict[tuple[int, str], dict[int, list[float]]] = {}
    for row in rows:
        if row["phase"] == phase and not row["warmup"]:
            place = int(row["block"]), str(row["arm"])
            seconds = visits.setdefault(place, {}).setdefault(int(row["visit"]), [])
            seconds.append(float(row["max"]))
    return [
        {
            "block": block,
            "arm": arm,
            "warmup": 0,
            "max": geometric_mean(map(median, of_visit.values())),
        }
        for (block, arm), of_visit in visits.items()
        if len(of_visit) == VISITS
    ]


def _links(
    predictor: Predictor, arm: Arm, cluster: Cluster, counts: dict[str, Any]
) -> dict[str, Any]:
    """Return a run's predicted and counted bytes, headers included, link by link."""
    demand = total_demand(predictor.predict(predictor.place(arm.rows, arm.slots)))
    names, payload, wire = expected_bytes(predictor.machine, demand, "single", cluster.mtu)
    counted = np.array([counts["links"][name] for name in names.tolist()]) / counts["runs"]
    side = CountedLinks(names, payload, wire, counted)
    error, judged = np.abs(side.error), side.judged
    columns = zip(names[judged].tolist(), wire[judged].tolist(), counted[judged].tolist(),
                  strict=True)  # fmt: skip
    return {
        "links": [{"link": a, "predicted": b, "counted": c} for a, b, c in columns],
        "link_error": float(np.median(error)) if len(error) else 0.0,
        "link_worst": float(error.max(initial=0.0)),
    }
