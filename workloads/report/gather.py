"""From files of samples to cases: one case a set of labels, with a summary of each phase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import ParseError
from workloads.results import load, records

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Case", "File", "cases", "read"]

#: Columns of a sample that say which repetition of a case it is, or hold its time.
_NO_LABELS = {"warmup", "repetition", "phase", "min", "mean", "max"}

_NEEDED = ("phase", "warmup", "max")


@dataclass(frozen=True, slots=True)
class File:
    """One file of samples.

    Attributes
    ----------
    source : str
    header : dict
    rows : list of dict
    """

    source: str
    header: dict[str, Any]
    rows: list[dict[str, Any]]

    @property
    def compares(self) -> bool:
        """Whether it is of an A/B measurement."""
        return "arms" in self.header


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


def read(paths: Sequence[str]) -> list[File]:
    """Return the files of samples.

    Raises
    ------
    ParseError
        Where one holds no samples, or not what samples need.
    """
    files = []
    for path in paths:
        header, frame = load(path)
        missing = [name for name in _NEEDED if name not in frame.columns]
        if len(frame) and missing:
            raise ParseError(path, 2, f"samples without the column {missing[0]}")
        wrong = [k for k in ("workload", "ranks", "nodes") if k not in header]
        if wrong:
            raise ParseError(path, 1, f"the header does not say {wrong[0]}")
        files.append(File(path, header, records(frame)))
    return files


def cases(files: Sequence[File]) -> list[Case]:
    """Return the cases of all files that are no A/B measurements."""
    return [case for file in files if not file.compares for case in _of_file(file)]


def _of_file(file: File) -> list[Case]:
    groups: dict[tuple[Any, ...], dict[str, list[dict[str, Any]]]] = {}
    for row in file.rows:
        if row["warmup"]:
            continue
        labels = tuple((k, _plain(v)) for k, v in row.items() if k not in _NO_LABELS)
        labels = tuple((k, v) for k, v in labels if v is not None)
        groups.setdefault(labels, {}).setdefault(str(row["phase"]), []).append(row)
    return [_case(file, dict(labels), phases) for labels, phases in groups.items()]


def _plain(value: Any) -> Any:
    """Return the value; None for a column that the sample does not have."""
    return None if isinstance(value, float) and np.isnan(value) else value


def _case(file: File, labels: dict[str, Any], phases: dict[str, list[dict[str, Any]]]) -> Case:
    header = file.header
    sizes = {k: int(labels.pop(k, header.get(k, 1))) for k in ("ranks", "nodes", "ppn")}
    summed = {name: _summary(rows) for name, rows in phases.items()}
    return Case(file.source, str(header["workload"]), **sizes, labels=labels, phases=summed)


def _summary(rows: list[dict[str, Any]]) -> dict[str, float]:
    slowest = np.array([float(row["max"]) for row in rows])
    mean = [float(row.get("mean", row["max"])) for row in rows]
    low, middle, high = np.quantile(slowest, [0.25, 0.5, 0.75]).tolist()
    return {
        "best": float(slowest.min()),
        "median": middle,
        "low": low,
        "high": high,
        "mean": float(np.mean(mean)),
        "samples": len(slowest),
    }
