"""The result of an A/B measurement as a person reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placement.commands.tables import aligned
from placement.errors import printable
from placement.support.quantities import time_text

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["options_text", "sentence", "text"]


def text(header: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Return the tables and sentences of an A/B measurement.

    Parameters
    ----------
    header : mapping
        The samples' header.
    found : mapping
        What `workloads.ab.analysis.analyse` found.
    """
    what = f"{header['workload']} {options_text(header)}".strip()
    nodes, launches = header["nodes"], found["launches"]
    where = f"{header['ranks']} ranks on {nodes} node{'s' * (nodes != 1)}"
    head = f"{what} on {where}, {launches} launch{'es' * (launches != 1)}"
    entries = [c for c in found["comparisons"] if not c["control"]]
    measured = [c for c in entries if c["phase"] == "communication" and c["ratio"] is not None]
    credited = measured or [c for c in entries if c["phase"] == "total"]
    lines = [printable(head, 200), _times(found), _comparisons(found)]
    lines += [sentence(entry, found["level"]) for entry in credited]
    if header.get("skew"):
        skew = {name: time_text(seconds) for name, seconds in header["skew"].items()}
        lines.append(
            f"ranks leave a barrier {skew['median']} apart (worst {skew['worst']}); "
            f"clocks differ by {skew['clocks']}, known to {skew['known']}"
        )
    lines += [f"{arm['name']}: {note}" for arm in header["arms"] for note in arm["notes"]]
    return "\n".join(line.rstrip("\n") for line in lines) + "\n"


def options_text(header: Mapping[str, Any]) -> str:
    """Return the workload's options as ``name=value``."""
    return " ".join(f"{k}={v}" for k, v in (header.get("workload_options") or {}).items())


def _times(found: Mapping[str, Any]) -> str:
    rows = []
    for entry in found["arms"]:
        best, middle, spread = (time_text(entry[name]) for name in ("best", "median", "spread"))
        rows.append([entry["arm"], entry["phase"], best, middle, f"± {spread}", entry["samples"]])
    return aligned([["arm", "phase", "best", "median", "spread", "samples"], *rows])


def _comparisons(found: Mapping[str, Any]) -> str:
    head = ["compared", "phase", "ratio", f"{found['level']:.0%}", "visible", "blocks", "verdict"]
    rows = []
    for entry in found["comparisons"]:
        span = f"{_ratio(entry['low'], '0')} … {_ratio(entry['high'], 'inf')}"
        rows.append([
            f"{entry['arm']} : {entry['against']}", entry["phase"], _ratio(entry["ratio"], "-"),
            "-" if entry["ratio"] is None else span, _ratio(entry["smallest"], "-"),
            entry["blocks"], entry["verdict"],
        ])  # fmt: skip
    return aligned([head, *rows])


def _ratio(value: float | None, otherwise: str) -> str:
    return otherwise if value is None else f"{value:.3f}"


def sentence(entry: Mapping[str, Any], level: float) -> str:
    """Return one comparison as a sentence.

    Examples
    --------
    >>> entry = {"arm": "auto", "against": "default", "phase": "communication", "ratio": 1.08,
    ...          "low": 1.05, "high": 1.11, "smallest": 1.03, "verdict": "faster", "shown": True}
    >>> sentence(entry, 0.95)
    'auto against default, communication: 1.080 times faster (95 %: 1.050 to 1.110)'
    >>> sentence({**entry, "low": 0.99, "shown": False, "verdict": "no difference shown"}, 0.95)
    'auto against default, communication: no difference shown (95 %: 0.990 to 1.110); differences below 3.0 % cannot be seen in this noise'
    """  # noqa: E501  # the sentence as it is
    head = f"{entry['arm']} against {entry['against']}, {entry['phase']}:"
    verdict, ratio, low, high = (entry[name] for name in ("verdict", "ratio", "low", "high"))
    if ratio is None:
        return f"{head} {verdict}"
    if verdict == "slower":
        ratio, low, high = 1 / ratio, 1 / high, 1 / low if low else None
    span = f"({level * 100:g} %: {_ratio(low, '0')} to {_ratio(high, 'inf')})"
    if entry["shown"]:
        times = f"{ratio:.3f} times " if verdict in ("faster", "slower") else ""
        return f"{head} {times}{verdict} {span}"
    unseen = "no difference could be seen"
    if entry["smallest"] is not None:
        unseen = f"differences below {(entry['smallest'] - 1) * 100:.1f} % cannot be seen"
    return f"{head} {verdict} {span}; {unseen} in this noise"
