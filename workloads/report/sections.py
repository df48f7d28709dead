"""What a report says: findings in sentences, and tables as plain rows.

Beside what was measured stands what the network model says of the arms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import NidmapError
from workloads.ab.analysis import analyse, comparison_key, credited_phase, pool_runs
from workloads.ab.words import options_text, sentence
from workloads.report.cases import Case, Series, read_cases, read_runs, series_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from placement.machine import Machine
    from placement.support.array_types import Ints
    from workloads.fft.scaling import Fit
    from workloads.results import Run

__all__ = ["Fitted", "Section", "build", "predict_arms", "slots_of_arm"]

Row = dict[str, Any]

#: Phases to which T = C p^(-gamma) is fitted, and the fewest numbers of ranks of a piece.
_FITTED, _FEWEST = ("total", "communication"), 3

#: What the series of each kind show.
_KINDS = {
    "strong": "The same work on more ranks. Efficiency 1: time falls as ranks grow.",
    "weak": "The same work on each rank. Efficiency 1: time does not grow.",
    "same options": "The same options on more ranks.",
}


@dataclass(frozen=True, slots=True)
class Fitted:
    """The fits of T = C p^(-gamma) to one phase of a series.

    Attributes
    ----------
    series : Series
    phase : str
    points : dict of int to float
        Median seconds by ranks.
    pieces : list of (str, Fit)
        The whole first, called ''; then below and above each break.
    """

    series: Series
    phase: str
    points: dict[int, float]
    pieces: list[tuple[str, Fit]]

    def rows(self) -> list[Row]:
        """Return a row a piece."""
        return [
            {
                "workload": self.series.workload,
                "series": self.series.name,
                "phase": self.phase,
                "where": where,
                "from_ranks": int(fit.first),
                "to_ranks": int(fit.last),
                "points": fit.points,
                "gamma": fit.gamma,
                "gamma_low": fit.low,
                "gamma_high": fit.high,
                "c_s": fit.constant,
            }
            for where, fit in self.pieces
        ]


@dataclass(slots=True)
class Section:
    """A part of a report.

    Attributes
    ----------
    name : str
        One word, for the CSV.
    title : str
    words : str
        What it shows, in a sentence.
    rows : list of dict
        Seconds, bytes a second and ratios as plain numbers.
    series : list of Series
    fitted : list of Fitted
        What figures may be drawn of.
    figures : list of str
        SVG.
    """

    name: str
    title: str
    words: str
    rows: list[Row]
    series: list[Series] = field(default_factory=list)
    fitted: list[Fitted] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)


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
    runs = read_runs(paths)
    cases = [case for run in runs if not run.compares for case in read_cases(run)]
    series = series_of(case for case in cases if case.workload != "alltoall")  # see bandwidth
    findings, compared, foretold = _comparisons(runs, machine, level)
    if not findings:
        names = ", ".join(dict.fromkeys(str(run.header["workload"]) for run in runs))
        findings = [f"{len(runs)} run{'s' * (len(runs) != 1)} of {names}."]
    sections = [
        Section("runs", "Runs", "What was read.", [_run_row(run) for run in runs]),
        Section(
            "ab", "Measured A/B",
            "Time of the first arm over the other's, paired block by block: above 1 the arm is "
            "faster. Bars: intervals; grey: controls; open diamonds: predictions.", compared,
        ),
        Section(
            "predicted", "Predicted beside measured",
            "Ratios that the network model predicts, beside the measured ones.", foretold,
        ),
        *(_scaling([one for one in series if one.kind == kind], kind) for kind in _KINDS),
        _exponents(series, level, breaks, machine),
        Section(
            "bandwidth", "All-to-all bandwidth by message size",
            "Bytes a second that a process sends to others, and its node's processes together.",
            [row for case in cases for row in _bandwidth_rows(case)],
        ),
        Section(
            "times", "Times by phase",
            "Seconds of the slowest rank; low and high bound the middle half of the repetitions.",
            [row for case in cases for row in _time_rows(case)],
        ),
    ]  # fmt: skip
    return findings, [section for section in sections if section.rows]


def _run_row(run: Run) -> Row:
    header = run.header
    return {
        "file": run.source,
        **{name: header[name] for name in ("workload", "ranks", "nodes")},
        **{name: header.get(name, "") for name in ("ppn", "machine")},
        "mpi": header.get("versions", {}).get("mpi", ""),
        **{name: header.get(name, "") for name in ("date", "ended")},
        "samples": len(run.rows),
        "said": header.get("oversubscribed", ""),
    }


def _comparisons(
    runs: Sequence[Run], machine: Machine | None, level: float
) -> tuple[list[str], list[Row], list[Row]]:
    """Return findings, comparisons and predictions of the A/B measurements, alike ones pooled."""
    findings: list[str] = []
    rows: list[Row] = []
    foretold: list[Row] = []
    for group in _alike_runs(runs):
        header, samples = pool_runs(group)
        found = analyse(header, samples, level=level)
        source = " ".join(run.source for run in group)
        rows += [_comparison_row(header, entry, source) for entry in found["comparisons"]]
        what = f"{header['workload']} {options_text(header)}".strip()
        findings += [
            f"{what}: {sentence(entry, level)}"
            for entry in found["comparisons"]
            if (entry["shown"] if entry["control"] == "A/A" else
                not entry["control"] and entry["phase"] == credited_phase(found))
        ]  # fmt: skip
        if machine is not None:
            more, why = predict_arms(machine, header, found)
            foretold += [{"files": source, **row} for row in more]
            findings += [f"No prediction for {source}: {why}."] if why else []
    return findings, rows, foretold


def _alike_runs(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Yield the A/B measurements of the same thing together, by workload and message size."""

    def key(run: Run) -> tuple[str, float, str]:
        size = float(run.header.get("bytes") or 0)
        return str(run.header["workload"]), size, repr(comparison_key(run))

    for _, group in groupby(sorted((run for run in runs if run.compares), key=key), key):
        yield list(group)


def _comparison_row(header: Mapping[str, Any], entry: Row, source: str) -> Row:
    return {
        "files": source,
        "workload": header["workload"],
        "options": options_text(header),
        "bytes": header.get("bytes"),
        **{name: header[name] for name in ("ranks", "nodes")},
        **{name: entry[name] for name in ("arm", "against", "control", "phase", "ratio", "low",
                                          "high", "smallest", "blocks", "launches", "verdict")},
    }  # fmt: skip


def _scaling(series: list[Series], kind: str) -> Section:
    """Return the points of the series of one kind, with efficiency against the fewest ranks."""
    rows = []
    for one, phase in [(found, name) for found in series for name in found.phases]:
        points = one.points(phase)
        first_ranks, first = points[0]
        for ranks, entry in points:
            both = first["median"] and entry["median"]
            speedup = first["median"] / entry["median"] if both else None
            ideal = ranks / first_ranks if kind == "strong" else 1.0
            rows.append({
                "workload": one.workload,
                "series": one.name,
                "phase": phase,
                "ranks": ranks,
                "median_s": entry["median"],
                "speedup": speedup,
                "efficiency": None if speedup is None else speedup / ideal,
            })  # fmt: skip
    title = f"{kind.capitalize()} scaling"
    return Section(kind.replace(" ", "_"), title, _KINDS[kind], rows, series)


def _exponents(
    series: Sequence[Series], level: float, breaks: Sequence[int], machine: Machine | None
) -> Section:
    """Return the fits of the strong series, in two pieces where a level of the network ends."""
    fitted = []
    for one in series:
        if one.kind == "strong":
            ends = {f"{at} ranks": at for at in breaks}
            if not ends and machine is not None:
                from workloads.fft.scaling import levels

                ends = levels(machine, max(case.ppn for case in one.cases))
            fitted += [found for phase in _FITTED if (found := _fit(one, phase, level, ends))]
    words = "T = C · p^(-gamma) through the medians of strong series, with its interval."
    rows = [row for found in fitted for row in found.rows()]
    return Section("gamma", "Scaling exponents", words, rows, fitted=fitted)


def _fit(series: Series, phase: str, level: float, ends: Mapping[str, int]) -> Fitted | None:
    """Return the fits of one phase; a piece of fewer than 3 numbers of ranks is none."""
    points = {n: entry["median"] for n, entry in series.points(phase) if entry["median"] > 0}
    if len(points) < _FEWEST:
        return None
    from workloads.fft.scaling import fit_gamma

    ranks, seconds = list(points), list(points.values())
    pieces = [("", fit_gamma(ranks, seconds, confidence=level).whole)]
    for name, at in ends.items():
        below = sum(n <= at for n in ranks)
        if min(below, len(ranks) - below) >= _FEWEST:
            split = fit_gamma(ranks, seconds, break_at=at, level=name, confidence=level)
            sides = (("within", split.inside), ("beyond", split.beyond))
            pieces += [(f"{side} {name}", fit) for side, fit in sides if fit is not None]
    return Fitted(series, phase, points, pieces)


def _bandwidth_rows(case: Case) -> Iterator[Row]:
    """Yield the bandwidth of an all-to-all; nothing for other cases."""
    labels, seconds = case.labels, case.phases.get("total", {}).get("median")
    if case.workload == "alltoall" and seconds and "bytes" in labels:
        from workloads.alltoall.command import bandwidths

        sizes = {name: getattr(case, name) for name in ("ranks", "nodes", "ppn")}
        rates = bandwidths({**labels, **sizes}, seconds)
        yield {
            "file": case.source,
            "call": labels.get("kind", ""),
            **sizes,
            "bytes": int(labels["bytes"]),
            "median_s": seconds,
            **{f"{name}_bytes_per_s": rate for name, rate in rates.items()},
        }


def _time_rows(case: Case) -> Iterator[Row]:
    """Yield the times of a case by phase."""
    for phase, entry in case.phases.items():
        yield {
            "file": case.source,
            **{name: getattr(case, name) for name in ("workload", "ranks", "nodes", "ppn")},
            "case": " ".join(f"{k}={v}" for k, v in case.labels.items()),
            "phase": phase,
            **{f"{name}_s": entry[name] for name in ("best", "median", "low", "high", "mean")},
            "samples": int(entry["samples"]),
        }


def predict_arms(
    machine: Machine, header: Mapping[str, Any], found: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], str]:
    """Return predicted and measured ratios of each arm to the first.

    Returns
    -------
    list of dict
        ``arm``, ``predicted_s``, ``predicted_ratio``, ``measured_ratio``,
        ``low``, ``high``, ``inside`` (whether the interval holds the
        prediction).
    str
        Why there is none, '' where there is.
    """
    from rankmap.predict import predict

    size, times = header.get("bytes"), []
    if not header.get("pattern"):
        return [], "who talks to whom is not known (--pattern of the measurement says it)"
    pairs = zip(header["hosts"], header["counts"], strict=True)
    hosts = header.get("rank_hosts") or [host for host, count in pairs for _ in range(count)]
    try:
        for arm in header["arms"]:
            nodes, ppn, slots = slots_of_arm(hosts, arm["members"])
            expected = predict(machine, nodes, header["pattern"], order=slots, ppn=ppn, bytes=size)
            times.append(float(expected.time_s))
    except NidmapError as error:
        return [], str(error)
    phase = credited_phase(found)
    measured = {c["arm"]: c for c in found["comparisons"] if c["phase"] == phase}
    rows = []
    for arm, seconds in zip(header["arms"], times, strict=True):
        entry = measured.get(arm["name"], {})
        ratio = times[0] / seconds if seconds else None
        low, high = entry.get("low"), entry.get("high")
        inside = None
        if ratio is not None and entry.get("ratio") is not None:
            inside = (low or 0.0) <= ratio <= (high or np.inf)
        rows.append({
            "workload": header["workload"],
            "arm": arm["name"],
            "predicted_s": seconds if size else None,
            "predicted_ratio": ratio,
            "measured_ratio": entry.get("ratio"),
            "low": low,
            "high": high,
            "inside": inside,
        })  # fmt: skip
    return rows, ""


def slots_of_arm(hosts: Sequence[str], members: Sequence[int]) -> tuple[list[str], list[int], Ints]:
    """Return an arm's nodes, the ranks on each, and the slot of each of its ranks.

    Nodes stand in the order of the world's lowest rank on each; so do the
    slots of a node.

    Examples
    --------
    >>> slots_of_arm(["a", "b", "a", "b"], [3, 0, 1, 2])
    (['a', 'b'], [2, 2], array([3, 0, 2, 1]))
    """
    by_rank = sorted(members)
    names = list(dict.fromkeys(hosts[rank] for rank in by_rank))
    number = {name: k for k, name in enumerate(names)}
    node = {rank: number[hosts[rank]] for rank in by_rank}
    slot = {rank: k for k, rank in enumerate(sorted(by_rank, key=node.__getitem__))}
    counts: list[int] = np.bincount(list(node.values())).tolist()
    return names, counts, np.array([slot[rank] for rank in members], dtype=np.int64)
