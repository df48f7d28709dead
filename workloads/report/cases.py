"""From files of samples to cases, and from cases to weak and strong series."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placement.errors import ParseError
from workloads.results import Run, read_run

__all__ = ["Case", "Series", "case_work", "read_cases", "read_runs", "series_of"]

#: Columns of a sample that say which repetition of a case it is, or hold its time.
_NO_LABELS = {"warmup", "repetition", "phase", "min", "mean", "max"}

#: The label whose value is work on each rank, and in all, by program.
_EACH = {"sort": "items", "isx": "keys", "stencil": "bytes"}
_ALL = {"fft": "n"}

#: Labels that follow from the ranks: cases of a series differ in them.
_BY_RANKS = {"off_node", "inner", "dims", "grid", "procs"}


@dataclass(frozen=True, slots=True)
class Case:
    """What one run measured of one set of options.

    Attributes
    ----------
    source : str
        The file.
    workload : str
    ranks, nodes, ppn : int
    labels : dict
        What the case is besides.
    phases : dict of str to dict
        By phase: ``best``, ``median``, ``low`` and ``high`` (the middle half)
        of the slowest rank's seconds, ``mean`` over ranks, ``samples``.
    """

    source: str
    workload: str
    ranks: int
    nodes: int
    ppn: int
    labels: dict[str, Any]
    phases: dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Series:
    """Cases that differ only in the number of ranks.

    Attributes
    ----------
    workload : str
    kind : str
        ``strong`` (the same work in all), ``weak`` (the same on each rank) or
        ``same options`` (the work is not known).
    name : str
        What they have in common.
    cases : list of Case
        By ranks, at least two different numbers of them.
    """

    workload: str
    kind: str
    name: str
    cases: list[Case]

    @property
    def phases(self) -> list[str]:
        """The phases of the cases, in their order."""
        return list(dict.fromkeys(name for case in self.cases for name in case.phases))

    def points(self, phase: str) -> list[tuple[int, dict[str, float]]]:
        """Return (ranks, summary) of a phase, by ranks."""
        return [(case.ranks, case.phases[phase]) for case in self.cases if phase in case.phases]


def read_runs(paths: Sequence[str]) -> list[Run]:
    """Return the files of samples.

    Raises
    ------
    ParseError
        Where one holds no samples, or not what samples need.
    """
    runs = [read_run(path) for path in paths]
    for run in runs:
        for name in ("phase", "warmup", "max") if run.rows else ():
            if name not in run.rows[0]:
                raise ParseError(run.source, 2, f"samples without the column {name}")
        for name in ("workload", "ranks", "nodes"):
            if name not in run.header:
                raise ParseError(run.source, 1, f"the header does not say {name}")
    return runs


def read_cases(run: Run) -> list[Case]:
    """Return the cases of a run that is not an A/B measurement."""
    groups: dict[tuple[Any, ...], dict[str, list[dict[str, Any]]]] = {}
    for row in run.rows:
        if not row["warmup"]:
            kept = ((k, v) for k, v in row.items() if k not in _NO_LABELS)
            named = tuple((k, v) for k, v in kept if v is not None and v == v)  # neither is NaN
            groups.setdefault(named, {}).setdefault(str(row["phase"]), []).append(row)
    cases = []
    for named, phases in groups.items():
        labels: dict[str, Any] = dict(named)
        sizes = {k: int(labels.pop(k, run.header.get(k, 1))) for k in ("ranks", "nodes", "ppn")}
        times = {name: _summarise(rows) for name, rows in phases.items()}
        workload = str(run.header["workload"])
        cases.append(Case(run.source, workload, **sizes, labels=labels, phases=times))
    return cases


def _summarise(rows: list[dict[str, Any]]) -> dict[str, float]:
    slowest = np.array([float(row["max"]) for row in rows])
    ends = np.quantile(slowest, [0.25, 0.5, 0.75]).tolist()
    return {
        "best": float(slowest.min()),
        **dict(zip(("low", "median", "high"), ends, strict=True)),
        "mean": float(np.mean([float(row.get("mean", row["max"])) for row in rows])),
        "samples": len(slowest),
    }


def case_work(case: Case) -> tuple[float, float, str] | None:
    """Return the work of a case in all and on each rank, and the label that says it.

    Examples
    --------
    >>> case_work(Case("f", "sort", 4, 1, 4, {"items": 1000}, {}))
    (4000.0, 1000.0, 'items')
    >>> case_work(Case("f", "fft", 4, 1, 4, {"n": "128x128x64"}, {}))
    (1048576.0, 262144.0, 'n')
    """
    name = _ALL.get(case.workload) or _EACH.get(case.workload, "")
    try:
        amount = math.prod(float(part) for part in str(case.labels.get(name)).split("x"))
    except ValueError:
        return None
    if name in _ALL.values() or case.labels.get("mode") == "strong":  # ISx counts over all ranks
        return amount, amount / case.ranks, name
    return amount * case.ranks, amount, name


def series_of(cases: Iterable[Case]) -> list[Series]:
    """Return the weak and strong series among the cases.

    A case whose work is not known belongs to a series with those that have
    the same labels, called ``same options``.
    """
    groups: dict[tuple[str, str, str], list[Case]] = {}
    for case in cases:
        work = case_work(case)
        without = _BY_RANKS | {work[2] if work else ""}
        common = " ".join(f"{k}={v}" for k, v in case.labels.items() if k not in without)
        if work is None:
            names = {"same options": common}
        else:
            total, each, label = work
            shape = str(case.labels[label])  # of an array, which says more than its size
            in_all = shape if "x" in shape else f"{total:.0f}"
            names = {
                "strong": f"{label} {in_all} in all {common}",
                "weak": f"{label} {each:.0f} a rank {common}",
            }
        for kind, name in names.items():
            groups.setdefault((case.workload, kind, name.strip()), []).append(case)
    return [
        Series(*key, _best_by_ranks(found))
        for key, found in groups.items()
        if len({case.ranks for case in found}) > 1
    ]


def _best_by_ranks(cases: Sequence[Case]) -> list[Case]:
    """Return the cases by ranks; of several runs of the same, the one with the best median."""

    def median(case: Case) -> float:
        return case.phases.get("total", {}).get("median", math.inf)

    best = {case.ranks: case for case in sorted(cases, key=median, reverse=True)}
    return [best[ranks] for ranks in sorted(best)]
