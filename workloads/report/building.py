"""A report from files: what it says in sentences, and its sections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workloads.ab.analysis import Run, analyse, pooled
from workloads.ab.words import sentence
from workloads.report import sections as make
from workloads.report.fits import fits
from workloads.report.gather import cases, read
from workloads.report.scaling import series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placement.machine import Machine
    from workloads.report.gather import File
    from workloads.report.scaling import Series
    from workloads.report.sections import Section

__all__ = ["build"]


def build(
    paths: Sequence[str], machine: Machine | None, level: float, breaks: Sequence[int] = ()
) -> tuple[list[str], list[Section]]:
    """Return the findings in sentences, and the sections of the report.

    Parameters
    ----------
    paths : sequence of str
    machine : Machine or None
        To predict on; None: no predictions.
    level : float
        Coverage of the intervals.
    breaks : sequence of int
        Ranks above which a second piece of a fit begins.

    Raises
    ------
    ParseError
        A file that holds no samples.
    """
    files = read(paths)
    measured = cases(files)
    found = series(case for case in measured if case.workload != "alltoall")  # see bandwidth
    said, compared, foretold = _compared(files, machine, level)
    parts = [make.runs(files)]
    if compared:
        words = (
            "Time of the first arm over the other's, paired block by block: above 1 the arm is "
            "faster. Bars: intervals; grey: controls; open diamonds: predictions."
        )
        parts.append(make.Section("ab", "Measured A/B", words, compared))
    if foretold:
        words = "Ratios that the network model predicts, beside the measured ones."
        parts.append(make.Section("predicted", "Predicted beside measured", words, foretold))
    for kind in ("strong", "weak", "same options"):
        section = make.scaling(found, kind)
        section.series = [one for one in found if one.kind == kind]
        parts.append(section)
    parts.append(_fitted(found, level, breaks, machine))
    parts += [make.bandwidth(measured), make.summaries(measured)]
    return said or _plainly(files), [part for part in parts if part.rows]


def _plainly(files: Sequence[File]) -> list[str]:
    names = list(dict.fromkeys(str(file.header["workload"]) for file in files))
    many = f"{len(files)} run{'s' * (len(files) != 1)}"
    return [f"{many} of {', '.join(names)}."]


def _compared(
    files: Sequence[File], machine: Machine | None, level: float
) -> tuple[list[str], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return sentences, comparisons and predictions of the A/B measurements, pooled."""
    said: list[str] = []
    rows: list[dict[str, Any]] = []
    foretold: list[dict[str, Any]] = []
    for group in _alike([file for file in files if file.compares]):
        header, samples = pooled(group)
        found = analyse(header, samples, level=level)
        source = " ".join(run.source for run in group)
        rows += make.ab(header, found, source)
        what = f"{header['workload']} {_options(header)}".strip()
        said += [f"{what}: {sentence(e, level)}" for e in found["comparisons"] if _headline(e)]
        if machine is not None:
            from workloads.report.predicted import beside

            more, why = beside(machine, header, found)
            foretold += [{"files": source, **row} for row in more]
            said += [f"No prediction for {source}: {why}."] if why else []
    return said, rows, foretold


def _options(header: dict[str, Any]) -> str:
    given = header.get("workload_options") or {}
    return " ".join(f"{name}={value}" for name, value in given.items())


def _headline(entry: dict[str, Any]) -> bool:
    """Tell whether a comparison is one of the report's first sentences."""
    if entry["control"] == "A/A":
        return bool(entry["shown"])
    return not entry["control"] and entry["phase"] == "communication"


def _alike(files: Sequence[File]) -> list[list[Run]]:
    """Return the files in groups of those that measured the same thing."""
    groups: dict[str, list[Run]] = {}
    for file in files:
        header = file.header
        arms = [(arm["name"], arm["order"], arm["nodes"]) for arm in header["arms"]]
        what = [header.get(k) for k in ("workload", "workload_options", "ranks", "pattern")]
        key = repr((what, header.get("machine"), arms))
        groups.setdefault(key, []).append(Run(file.source, header, file.rows))
    return sorted(groups.values(), key=_place)


def _place(group: Sequence[Run]) -> tuple[str, float]:
    """Return what groups are sorted by: the workload, then the size of a message."""
    header = group[0].header
    return str(header["workload"]), float(header.get("bytes") or 0)


def _fitted(
    found: Sequence[Series], level: float, breaks: Sequence[int], machine: Machine | None
) -> Section:
    """Return the fits of the strong series, in two pieces where a level of the network ends."""
    words = "T = C · p^(-gamma) through the medians of strong series, with its interval."
    section = make.Section("gamma", "Scaling exponents", words, [])
    for one in found:
        if one.kind == "strong":
            ends = {f"{at} ranks": at for at in breaks} or _levels(machine, one)
            section.fitted += fits(one, level, ends)
    section.rows = [row for fitted in section.fitted for row in fitted.rows()]
    return section


def _levels(machine: Machine | None, series: Series) -> dict[str, int]:
    """Return the ranks up to which each level of the machine reaches."""
    if machine is None:
        return {}
    from workloads.fft.scaling import levels

    return levels(machine, max(case.ppn for case in series.cases))
