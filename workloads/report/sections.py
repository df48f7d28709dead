"""The tables of a report: plain rows, before anyone decides how they look."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workloads.report.fits import Fitted
    from workloads.report.gather import Case, File
    from workloads.report.scaling import Series

__all__ = ["Section", "ab", "bandwidth", "runs", "scaling", "summaries"]

Row = dict[str, Any]


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
    figures : list of str
        SVG.
    series : list of Series
    fitted : list of Fitted
        What figures may be drawn of.
    """

    name: str
    title: str
    words: str
    rows: list[Row]
    figures: list[str] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)
    fitted: list[Fitted] = field(default_factory=list)


def runs(files: Sequence[File]) -> Section:
    """Return what the files are."""
    rows = []
    for file in files:
        header = file.header
        rows.append(
            {
                "file": file.source,
                "workload": header["workload"],
                "ranks": header["ranks"],
                "nodes": header["nodes"],
                "ppn": header.get("ppn", ""),
                "machine": header.get("machine", ""),
                "mpi": header.get("versions", {}).get("mpi", ""),
                "date": header.get("date", ""),
                "ended": header.get("ended", ""),
                "samples": len(file.rows),
                "said": header.get("oversubscribed", ""),
            }
        )
    return Section("runs", "Runs", "What was read.", rows)


def summaries(cases: Sequence[Case]) -> Section:
    """Return the times of every case and phase."""
    rows = [
        {
            "file": case.source,
            "workload": case.workload,
            "ranks": case.ranks,
            "nodes": case.nodes,
            "ppn": case.ppn,
            "case": " ".join(f"{k}={v}" for k, v in case.labels.items()),
            "phase": phase,
            **{f"{name}_s": entry[name] for name in ("best", "median", "low", "high", "mean")},
            "samples": int(entry["samples"]),
        }
        for case in cases
        for phase, entry in case.phases.items()
    ]
    words = "Seconds of the slowest rank; low and high bound the middle half of the repetitions."
    return Section("times", "Times by phase", words, rows)


def scaling(found: Sequence[Series], kind: str) -> Section:
    """Return the points of the series of one kind, with efficiency against the fewest ranks."""
    rows = []
    for one in found:
        if one.kind != kind:
            continue
        for phase in one.phases():
            points = one.points(phase)
            first_ranks, first = points[0]
            for ranks, entry in points:
                both = first["median"] and entry["median"]
                speedup = first["median"] / entry["median"] if both else None
                ideal = ranks / first_ranks if kind == "strong" else 1.0
                rows.append(
                    {
                        "workload": one.workload,
                        "series": one.name,
                        "phase": phase,
                        "ranks": ranks,
                        "median_s": entry["median"],
                        "speedup": speedup,
                        "efficiency": speedup / ideal if speedup is not None else None,
                    }
                )
    words = {
        "strong": "The same work on more ranks. Efficiency 1: time falls as ranks grow.",
        "weak": "The same work on each rank. Efficiency 1: time does not grow.",
    }.get(kind, "The same options on more ranks.")
    return Section(kind.replace(" ", "_"), f"{kind.capitalize()} scaling", words, rows)


def bandwidth(cases: Sequence[Case]) -> Section:
    """Return all-to-all bandwidth by message size."""
    rows = []
    for case in cases:
        seconds = case.phases.get("total", {}).get("median")
        if case.workload != "alltoall" or not seconds or "bytes" not in case.labels:
            continue
        process = case.labels["bytes"] * (case.ranks - 1) / seconds
        rows.append(
            {
                "file": case.source,
                "call": case.labels.get("kind", ""),
                "ranks": case.ranks,
                "nodes": case.nodes,
                "ppn": case.ppn,
                "bytes": int(case.labels["bytes"]),
                "median_s": seconds,
                "process_bytes_per_s": process,
                "node_bytes_per_s": process * min(case.ppn, case.ranks),
                "off_node_bytes_per_s": case.labels["bytes"]
                * case.labels.get("off_node", 0)
                / seconds,
            }
        )
    words = "Bytes a second that a process sends to others, and its node's processes together."
    return Section("bandwidth", "All-to-all bandwidth by message size", words, rows)


def ab(header: Mapping[str, Any], found: Mapping[str, Any], source: str) -> list[Row]:
    """Return the comparisons of one A/B measurement."""
    options = header.get("workload_options") or {}
    return [
        {
            "files": source,
            "workload": header["workload"],
            "options": " ".join(f"{k}={v}" for k, v in options.items()),
            "bytes": header.get("bytes"),
            "ranks": header["ranks"],
            "nodes": header["nodes"],
            "arm": entry["arm"],
            "against": entry["against"],
            "control": entry["control"],
            "phase": entry["phase"],
            **{k: entry[k] for k in ("ratio", "low", "high", "smallest", "blocks", "launches")},
            "verdict": entry["verdict"],
        }
        for entry in found["comparisons"]
    ]
