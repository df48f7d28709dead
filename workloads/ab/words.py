"""The result of an A/B measurement as a person reads it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from placement.commands.common import to_json, write_output
from placement.errors import printable
from placement.support.quantities import time_text
from placement.support.tables import align_columns
from workloads.ab.analysis import analyse

#: A predicted range ends where its third digit does: so much beyond it is still inside.
_SAME = 0.005

__all__ = [
    "comparison_sentence",
    "foretold_sentence",
    "predicted_ranges",
    "result_text",
    "show_result",
]


def show_result(
    schema: str,
    header: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    as_json: bool,
) -> None:
    """Print what samples say, as JSON or for a person.

    Parameters
    ----------
    schema : str
        Of the JSON.
    header, rows
        See `workloads.ab.analysis.analyse`.
    as_json : bool
    """
    analysis = analyse(header, rows)
    if not as_json:
        return write_output(result_text(header, analysis), None)
    document = {
        "schema": schema,
        **header,
        **analysis,
        "arms": header["arms"],
        "times": analysis["arms"],
    }
    if "expected" in header:
        document["expected"] = predicted_ranges(header, analysis)
    return write_output(to_json(document), None)


def result_text(header: Mapping[str, Any], analysis: Mapping[str, Any]) -> str:
    """Return the tables and sentences of an A/B measurement.

    Parameters
    ----------
    header : mapping
        The samples' header.
    analysis : mapping
        What `workloads.ab.analysis.analyse` returns.
    """
    nodes = header["nodes"]
    where = f"{header['ranks']} ranks on {nodes} node{'s' * (nodes != 1)}"
    head = f"{header['workload']} on {where}, {_launch_words(header, analysis)}"
    lines = [printable(head, 200), _times_table(header, analysis), _comparisons_table(analysis)]
    lines += [comparison_sentence(entry, analysis["level"]) for entry in analysis["comparisons"]]
    lines += [foretold_sentence(promise) for promise in predicted_ranges(header, analysis)]
    lines += [f"{arm['name']}: {note}" for arm in header["arms"] for note in arm["notes"]]
    return "\n".join(line.rstrip("\n") for line in lines) + "\n"


def _launch_words(header: Mapping[str, Any], analysis: Mapping[str, Any]) -> str:
    """Return how many launches there were: a program is launched anew for each sample."""
    count = analysis["launches"]
    launches = sum(entry["samples"] for entry in analysis["arms"])
    sessions = f" in {count} sessions" if count > 1 else ""
    return f"{launches} launches that count{sessions}, by {header['timer']['words']}"


def _times_table(header: Mapping[str, Any], analysis: Mapping[str, Any]) -> str:
    rows = []
    for entry in analysis["arms"]:
        best, middle, spread = _arm_figures(header, entry)
        rows.append([entry["arm"], best, middle, f"± {spread}", entry["samples"]])
    return align_columns([["arm", "best", "median", "spread", "samples"], *rows])


def _arm_figures(header: Mapping[str, Any], entry: Mapping[str, Any]) -> list[str]:
    """Return best, median and spread: times, or rates where the program states those."""
    timer = header["timer"]
    if not timer["higher_is_better"]:
        return [time_text(entry[name]) for name in ("best", "median", "spread")]
    low, high = entry["middle"]
    rates = (1 / entry["best"], 1 / entry["median"], (1 / low - 1 / high) / 2)
    return [f"{rate:.4g} {timer['unit']}".rstrip() for rate in rates]


def _comparisons_table(analysis: Mapping[str, Any]) -> str:
    head = ["compared", "ratio", f"{analysis['level']:.0%}", "visible", "blocks", "verdict"]
    rows = []
    for entry in analysis["comparisons"]:
        span = f"{_ratio_text(entry['low'], '0')} … {_ratio_text(entry['high'], 'inf')}"
        span = "-" if entry["ratio"] is None or entry["missing"] else span
        rows.append([
            f"{entry['arm']} : {entry['against']}", _ratio_text(entry["ratio"], "-"), span,
            _ratio_text(entry["smallest"], "-"), entry["blocks"], entry["verdict"],
        ])  # fmt: skip
    return align_columns([head, *rows])


def _ratio_text(value: float | None, otherwise: str) -> str:
    return otherwise if value is None else f"{value:.3f}"


def comparison_sentence(entry: Mapping[str, Any], level: float) -> str:
    """Return one comparison as a sentence.

    Examples
    --------
    >>> entry = {"arm": "auto", "against": "default", "ratio": 1.08,
    ...          "low": 1.05, "high": 1.11, "smallest": 1.03, "verdict": "faster", "shown": True,
    ...          "missing": 0}
    >>> comparison_sentence(entry, 0.95)
    'auto against default: 1.080 times faster (95 %: 1.050 to 1.110)'
    >>> comparison_sentence({**entry, "low": 0.99, "shown": False, "verdict": "no difference shown"}, 0.95)
    'auto against default: no difference shown (95 %: 0.990 to 1.110); differences below 3.0 % cannot be seen in this noise'
    """  # noqa: E501  # the sentence as it is
    head = f"{entry['arm']} against {entry['against']}:"
    verdict, ratio, low, high = (entry[name] for name in ("verdict", "ratio", "low", "high"))
    if ratio is None or entry["missing"]:
        return f"{head} {verdict}"
    if verdict == "slower":
        ratio, low, high = 1 / ratio, 1 / high, 1 / low if low else None
    span = f"({level * 100:g} %: {_ratio_text(low, '0')} to {_ratio_text(high, 'inf')})"
    if entry["shown"]:
        times = f"{ratio:.3f} times " if verdict in ("faster", "slower") else ""
        return f"{head} {times}{verdict} {span}"
    unseen = "no difference could be seen"
    if entry["smallest"] is not None:
        unseen = f"differences below {(entry['smallest'] - 1) * 100:.1f} % cannot be seen"
    return f"{head} {verdict} {span}; {unseen} in this noise"


def predicted_ranges(
    header: Mapping[str, Any], analysis: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the ranges that were predicted before the measurement, beside what came out.

    Parameters
    ----------
    header : mapping
        Of which ``expected`` counts: by arm, ``words`` and ``gain`` (low,
        likely, high, unknowns; None where nothing is known).
    analysis : mapping
        What `workloads.ab.analysis.analyse` returns.

    Returns
    -------
    list of dict
        ``arm``, ``words``, ``gain``, ``measured``, and ``covers``: whether
        the predicted range holds the measured ratio, None where one of them
        is not known; ``overlaps``: whether it meets the measured interval.
    """
    measured, rows = {c["arm"]: c for c in analysis["comparisons"]}, []
    for arm, expected in (header.get("expected") or {}).items():
        entry, gain = measured.get(arm, {}), expected["gain"]
        row = {"arm": arm, **expected, "measured": entry.get("ratio")}
        if gain and row["measured"] is not None:
            low, high = (gain["low"] or 0.0) * (1 - _SAME), (gain["high"] or math.inf) * (1 + _SAME)
            row["covers"] = low <= row["measured"] <= high
            row["overlaps"] = low <= (entry["high"] or math.inf) and (entry["low"] or 0.0) <= high
        rows.append({"covers": None, "overlaps": None, **row})
    return rows


def foretold_sentence(promise: Mapping[str, Any]) -> str:
    """Return a prediction beside its measurement as a sentence.

    Examples
    --------
    >>> promise = {"arm": "plan", "words": "", "gain": {"low": 1.1, "high": 1.3}, "measured": 1.18,
    ...        "covers": True, "overlaps": True}
    >>> foretold_sentence(promise)
    'plan: predicted 1.100 to 1.300 times as fast in communication, measured 1.180: covered'
    """
    if not promise["gain"]:
        return f"{promise['arm']}: no prediction ({promise['words']})"
    low, high = (
        _ratio_text(promise["gain"]["low"], "0"),
        _ratio_text(promise["gain"]["high"], "inf"),
    )
    of = "" if promise["gain"].get("communicates", 1) < 1 else " in communication"
    head = f"{promise['arm']}: predicted {low} to {high} times as fast{of}"
    if promise["covers"] is None:
        return head
    where = (
        "outside, but the measured interval reaches into it" if promise["overlaps"] else "outside"
    )
    where = "covered" if promise["covers"] else where
    return f"{head}, measured {promise['measured']:.3f}: {where}"
