"""One case with one seed: a fragmented machine, the arms, a launch, figures."""

from __future__ import annotations

import json
import os
import random
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from placement.machine import Machine
    from rankmap.predict import Predictor
    from workloads.minicray.experiment.cases import Case
    from workloads.minicray.experiment.cluster import Cluster

    Ints = NDArray[np.int64]

__all__ = ["Arm", "Effort", "arms_for", "measured"]

#: How MPICH is told to post all messages of an all-to-all at once, which is what is predicted.
_AT_ONCE = {
    "MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM": "scattered",
    "MPIR_CVAR_ALLTOALLV_INTRA_ALGORITHM": "scattered",
    "MPIR_CVAR_ALLTOALL_THROTTLE": "1024",
}


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

    def same_as(self, other: Arm, ppn: int) -> bool:
        """Tell whether every rank sits on the same node."""
        return bool(np.array_equal(self.rows[self.slots // ppn], other.rows[other.slots // ppn]))


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured.

    Attributes
    ----------
    blocks : int
        That count; one more warms up.
    repeat : int
        Repetitions of each turn.
    """

    blocks: int = 9
    repeat: int = 1


def arms_for(
    case: Case, machine: Machine, slurm: Sequence[str], free: Sequence[str], seed: int
) -> list[Arm]:
    """Return what is compared: Slurm's choice first, controls last.

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
    may = np.isin(machine.names, np.array(free))
    own = np.sort(np.flatnonzero(np.isin(machine.names, np.array(slurm))))
    ranks = np.arange(case.nodes * case.ppn)
    first = Arm("slurm", own, ranks)
    inside = np.zeros(len(machine), dtype=bool)
    inside[own] = True
    wanted = [_planned("order", case, machine, inside, seed)] if case.ppn > 1 else []
    wanted.append(_planned("nidmap", case, machine, may, seed))
    wanted += [_other(name, case, machine, may, own, seed) for name in case.others]
    again = Arm("slurm again", own, ranks, "A/A")
    return [first, *wanted, again]


def _planned(name: str, case: Case, machine: Machine, may: NDArray[np.bool_], seed: int) -> Arm:
    """Return what `nidmap plan --strategy auto` chooses among some nodes."""
    from placement.plan import plan

    found = plan(
        machine, case.nodes, strategy="auto", candidates=may, seed=seed, pattern=case.pattern,
        ppn=case.ppn, bytes=case.size, routing="single", latency=0,
    )  # fmt: skip
    order = found.facts["predicted"]["order"]["slots"]
    slots = np.arange(case.nodes * case.ppn) if order is None else np.array(order, dtype=np.int64)
    return Arm(name, np.asarray(found.rows, dtype=np.int64), slots)


def _other(
    name: str, case: Case, machine: Machine, may: NDArray[np.bool_], own: Ints, seed: int
) -> Arm:
    """Return another planner's nodes, another order of Slurm's, or a random choice of both."""
    from placement.plan import plan

    ranks = case.nodes * case.ppn
    if name.endswith(" order"):
        return Arm(name, own, _ordered(name.removesuffix(" order"), case, machine, own))
    if name != "random":
        rows = plan(machine, case.nodes, strategy=name, candidates=may, seed=seed).rows
        return Arm(name, np.asarray(rows, dtype=np.int64), np.arange(ranks))
    rng = random.Random(f"random {case.name} {seed}")  # noqa: S311  # a choice of nodes, no secret
    rows = np.array(sorted(rng.sample(np.flatnonzero(may).tolist(), case.nodes)))
    return Arm(name, rows, np.array(rng.sample(range(ranks), ranks)))


def _ordered(strategy: str, case: Case, machine: Machine, rows: Ints) -> Ints:
    """Return the slots of the ranks on some nodes by an order's name."""
    from rankmap.orders import arrange
    from rankmap.predict.asked import fitted

    model = _predictor(case, machine)
    slots = model.slots(rows)
    return np.asarray(arrange(slots, fitted(model.pattern, slots), strategy).slots, dtype=np.int64)


def measured(
    cluster: Cluster, case: Case, machine: Machine, seed: int, effort: Effort, folder: Path
) -> dict[str, Any]:
    """Measure a case once and return its figures; samples and counts stay in `folder`.

    Raises
    ------
    LaunchError
        Slurm or MPI fails.
    """
    free = cluster.hold(seed, case.held)
    arms = arms_for(case, machine, cluster.choice(case.nodes), free, seed)
    kept = arms[0].same_as(next(arm for arm in arms if arm.name == "nidmap"), case.ppn)
    used = np.unique(np.concatenate([arm.rows for arm in arms]))
    stem = folder / f"{case.name.replace(' ', '-')}-{seed}"
    job = _job(case, arms, machine, seed, effort, stem, cluster.name)
    path = Path(f"{stem}.job.json")
    path.write_text(json.dumps(job))
    idle = _Idle()
    env = [f"{key}={value}" for key, value in _AT_ONCE.items()]
    program = [sys.executable, "-m", "workloads.minicray.experiment.ranks", str(path)]
    cluster.launch(machine.names[used].tolist(), case.ppn, "env", *env, *program)
    path.unlink()
    predictor = _predictor(case, machine)
    return {
        "case": case.name,
        "seed": seed,
        "kept": kept,
        "free": len(free),
        "idle_cores": round(idle.cores(), 2),
        "arms": _figures(case, arms, predictor, cluster, stem),
    }


def _job(
    case: Case, arms: Sequence[Arm], machine: Machine, seed: int, effort: Effort, stem: Path,
    name: str,
) -> dict[str, Any]:  # fmt: skip
    return {
        "minicray": name,
        "machine": case.machine,
        "workload": case.workload,
        "options": list(case.options),
        "pattern": case.pattern,
        "phase": case.phase,
        "seed": seed,
        **asdict(effort),
        "output": f"{stem}.csv",
        "counts": f"{stem}.links.json",
        "arms": [
            {
                "name": arm.name,
                "nodes": machine.names[arm.rows].tolist(),
                "slots": arm.slots.tolist(),
                "control": arm.control,
            }
            for arm in arms
        ],
    }


def _predictor(case: Case, machine: Machine) -> Predictor:
    from rankmap.predict import Predictor

    return Predictor(machine, case.pattern, case.ppn, case.size, "single", latency=0)


def _figures(
    case: Case, arms: Sequence[Arm], predictor: Predictor, cluster: Cluster, stem: Path
) -> list[dict[str, Any]]:
    """Return what was predicted and measured of each arm."""
    from workloads.ab.analysis import analyse
    from workloads.minicray.wire import factor
    from workloads.results import read_run

    run = read_run(f"{stem}.csv")
    found = analyse(run.header, _of_phase(run.rows, case.phase))
    ratios = {c["arm"]: c for c in found["comparisons"] if c["phase"] == "communication"}
    whole = {c["arm"]: c["ratio"] for c in found["comparisons"] if c["phase"] == "total"}
    times = {t["arm"]: t["median"] for t in found["arms"] if t["phase"] == "communication"}
    counts = json.loads(Path(f"{stem}.links.json").read_text())
    slower = cluster.scale * factor(cluster.mtu)
    rows = []
    base = predictor.time(arms[0].rows, arms[0].slots)
    for arm in arms:
        time_s = predictor.time(arm.rows, arm.slots)
        ratio = ratios.get(arm.name, {"ratio": 1.0, "low": 1.0, "high": 1.0, "shown": False})
        links = _links(predictor, arm, cluster, counts[arm.name])
        rows.append(
            {
                "arm": arm.name,
                "control": arm.control,
                "nodes": predictor.machine.names[arm.rows].tolist(),
                "predicted_s": time_s * slower,
                "measured_s": times[arm.name],
                "predicted": base / time_s,
                **{key: ratio[key] for key in ("ratio", "low", "high", "shown")},
                "whole_run": whole.get(arm.name, 1.0),
                **links,
            }
        )
    return rows


def _of_phase(rows: list[dict[str, Any]], phase: str) -> list[dict[str, Any]]:
    """Return samples in which one phase stands for all communication."""
    if phase == "communication":
        return rows
    kept = [row for row in rows if row["phase"] != "communication"]
    return [{**r, "phase": "communication"} if r["phase"] == phase else r for r in kept]


def _links(
    predictor: Predictor, arm: Arm, cluster: Cluster, counts: dict[str, Any]
) -> dict[str, Any]:
    """Return predicted bytes with headers, and counted bytes, of one run, link by link."""
    from workloads.minicray.against import Side, expected

    found = predictor.predict(arm.rows, arm.slots)
    whole = found.phases[0].demand
    for phase in found.phases[1:]:
        whole = whole + phase.demand
    names, payload, wire = expected(predictor.machine, whole, "single", cluster.mtu)
    counted = np.array([counts["links"][name] for name in names.tolist()]) / counts["runs"]
    side = Side(names, payload, wire, counted)
    error = np.abs(side.error)
    busy = np.flatnonzero(side.judged)
    return {
        "links": [
            {"link": str(names[k]), "predicted": float(wire[k]), "counted": float(counted[k])}
            for k in busy.tolist()
        ],
        "link_error": float(np.median(error)) if len(error) else 0.0,
        "link_worst": float(error.max()) if len(error) else 0.0,
    }


class _Idle:
    """How many of the cores that this process may use have had nothing to do since it was made."""

    def __init__(self) -> None:
        self.began, self.idle = time.monotonic(), self._read()

    def cores(self) -> float:
        """Return the mean."""
        return (self._read() - self.idle) / (time.monotonic() - self.began)

    @staticmethod
    def _read() -> float:
        own = {f"cpu{k}" for k in os.sched_getaffinity(0)}
        with open("/proc/stat", encoding="ascii") as stream:
            rows = [line.split() for line in stream if line.startswith("cpu")]
        ticks = sum(float(row[4]) + float(row[5]) for row in rows if row[0] in own)
        return ticks / os.sysconf("SC_CLK_TCK")
