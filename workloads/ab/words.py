"""The result of an A/B measurement as a person reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placement.commands.tables import aligned
from placement.errors import printable
from placement.quantities import time_text

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["sentence", "text"]


def text(header: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Return the tables and sentences of an A/B measurement.

    Parameters
    ----------
    header : mapping
        The samples' header.
    found : mapping
        What `workloads.ab.analysis.analyse` found.
    """
    parts = [_what(header, found), _times(found), _comparisons(found)]
    parts += [sentence(entry, found["level"]) + "\n" for entry in _credited(found)]
    parts += [f"{_skew(header)}\n"] if header.get("skew") else []
    parts += [f"{name}: {note}\n" for name, note in _notes(header)]
    return "\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def _what(header: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    options = header.get("workload_options") or {}
    shown = " ".join(f"{name}={value}" for name, value in options.items())
    on = f"{header['ranks']} ranks on {header['nodes']} node{'s' * (header['nodes'] != 1)}"
    many = f"{found['launches']} launch{'es' * (found['launches'] != 1)}"
    return printable(f"{header['workload']} {shown} on {on}, {many}".replace("  ", " "), 200) + "\n"


def _times(found: Mapping[str, Any]) -> str:
    rows = [
        [
            entry["arm"],
            entry["phase"],
            time_text(entry["best"]),
            time_text(entry["median"]),
            f"± {time_text(entry['spread'])}",
            str(entry["samples"]),
        ]
        for entry in found["arms"]
    ]
    return aligned([["arm", "phase", "best", "median", "spread", "samples"], *rows])


def _comparisons(found: Mapping[str, Any]) -> str:
    rows = []
    for entry in found["comparisons"]:
        low, high = (_number(entry[name], end) for name, end in (("low", "0"), ("high", "inf")))
        interval = f"{low} … {high}" if entry["ratio"] is not None else "-"
        rows.append(
            [
                f"{entry['arm']} : {entry['against']}",
                entry["phase"],
                _number(entry["ratio"], "-"),
                interval,
                _number(entry["smallest"], "-"),
                str(entry["blocks"]),
                entry["verdict"],
            ]
        )
    level = f"{found['level']:.0%}"
    return aligned([["compared", "phase", "ratio", level, "visible", "blocks", "verdict"], *rows])


def _number(value: float | None, otherwise: str) -> str:
    return otherwise if value is None else f"{value:.3f}"


def _credited(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the comparisons that an order can be credited with, controls left out."""
    entries = [c for c in found["comparisons"] if not c["control"]]
    measured = [c for c in entries if c["phase"] == "communication" and c["ratio"] is not None]
    return measured or [c for c in entries if c["phase"] == "total"]


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
    if entry["ratio"] is None:
        return f"{head} {entry['verdict']}"
    span = f"({level * 100:g} %: {_number(entry['low'], '0')} to {_number(entry['high'], 'inf')})"
    if not entry["shown"]:
        return f"{head} {entry['verdict']} {span}; {_blind(entry['smallest'])}"
    if entry["verdict"] not in ("faster", "slower"):
        return f"{head} {entry['verdict']} {span}"
    times = entry["ratio"] if entry["verdict"] == "faster" else 1 / entry["ratio"]
    if entry["verdict"] == "slower":
        low, high = 1 / entry["high"], 1 / entry["low"] if entry["low"] else None
        span = f"({level * 100:g} %: {_number(low, '0')} to {_number(high, 'inf')})"
    return f"{head} {times:.3f} times {entry['verdict']} {span}"


def _blind(smallest: float | None) -> str:
    if smallest is None:
        return "no difference could be seen in this noise"
    return f"differences below {(smallest - 1) * 100:.1f} % cannot be seen in this noise"


def _skew(header: Mapping[str, Any]) -> str:
    skew = header["skew"]
    apart = f"{time_text(skew['median'])} apart (worst {time_text(skew['worst'])})"
    clocks = f"clocks differ by {time_text(skew['clocks'])}"
    return f"ranks leave a barrier {apart}; {clocks}, known to {time_text(skew['known'])}"


def _notes(header: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(arm["name"], note) for arm in header["arms"] for note in arm["notes"]]
