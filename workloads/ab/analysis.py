# SPDX-License-Identifier: Apache-2.0
"""From a measurement's samples to ratios, intervals and verdicts, and their wording."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nidmap.placement.errors import printable
from nidmap.placement.support.quantities import time_text
from nidmap.placement.support.tables import align_columns
from nidmap.placement.support.writing import to_json, write_output
from nidmap.workloads.ab.statistics import FEWEST, Interval, mean_interval, nominal_level

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nidmap.placement.support.array_types import Floats

#: Confidence level of all interim looks together.
LEVEL = 0.95


def analyse(header: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Analyse samples: times of each arm, comparisons with the first, verdicts.

    `header`: of which ``arms`` counts, and where it is given ``looks`` (after how many blocks the
    measurement might have stopped: `nidmap.workloads.ab.statistics`). `rows`: samples, one for
    each arm of a block: block, arm, warmup, max. ``arms`` (best, median, middle half, spread =
    half of that; seconds), ``comparisons`` (ratio above 1: faster than the first arm), and
    ``trusted``, false where the same order twice shows a difference.
    """
    kept = [row for row in rows if not row["warmup"]]
    first, *others = header["arms"]
    nominal = nominal_level(tuple(header.get("looks") or ()), LEVEL)
    comparisons = []
    for arm in others:
        logs = paired_ratios(kept, first["name"], arm["name"])
        comparisons.append(_compare_arms(mean_interval(logs, level=nominal), arm, first))
    trusted = not any(entry["same"] and entry["shown"] for entry in comparisons)
    for entry in comparisons:
        entry["verdict"] = _verdict_words(entry, trusted)
    times = [_arm_times(kept, arm["name"]) for arm in header["arms"]]
    return {
        "level": LEVEL,
        "trusted": trusted,
        "arms": [entry for entry in times if entry["samples"]],
        "comparisons": comparisons,
    }


def paired_ratios(rows: Iterable[Mapping[str, Any]], first: str, second: str) -> Floats:
    """Return log(time of first / time of second) for each complete block.

    Blocks that were cut short are left out.
    """
    seconds = {(row["block"], row["arm"]): float(row["max"]) for row in rows}
    pairs = [
        (base, seconds.get((block, second), 0.0))
        for (block, arm), base in seconds.items()
        if arm == first
    ]
    return np.array([math.log(base / other) for base, other in pairs if min(base, other) > 0])


def _arm_times(rows: Iterable[Mapping[str, Any]], name: str) -> dict[str, Any]:
    """Return an arm's own times over all launches."""
    mine = [float(row["max"]) for row in rows if row["arm"] == name]
    entry = {"arm": name, "samples": len(mine)}
    if not mine:
        return entry
    low, middle, high = np.quantile(mine, [0.25, 0.5, 0.75]).tolist()
    spread = (high - low) / 2
    return {**entry, "best": min(mine), "median": middle, "spread": spread, "middle": [low, high]}


def _compare_arms(
    ratio: Interval | None, arm: Mapping[str, Any], first: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a comparison as JSON; unbounded ends are None."""
    values = {name: getattr(ratio, name, None) for name in ("ratio", "low", "high", "smallest")}
    return {
        "arm": arm["name"],
        "against": first["name"],
        "same": arm["members"] == first["members"],
        **{k: v if v is not None and math.isfinite(v) else None for k, v in values.items()},
        **{name: getattr(ratio, name, 0) for name in ("blocks", "missing")},
        "shown": ratio is not None and ratio.shown,
    }


def _verdict_words(entry: Mapping[str, Any], trusted: bool) -> str:
    """Describe the comparison without claiming more than was measured."""
    if entry["ratio"] is None:
        return f"not enough: at least {FEWEST} complete blocks with a time above 0 are needed"
    if entry["same"]:
        if entry["shown"]:
            return "the same order twice differs from itself: these samples prove nothing"
        return "no difference shown, as it should be (the same order)"
    if entry["missing"]:
        return f"not enough blocks: about {entry['missing']} more"
    if not entry["shown"]:
        return "no difference shown"
    if not trusted:
        return "a difference, but the same order twice shows one as well: not to be trusted"
    return "faster" if entry["ratio"] > 1 else "slower"


#: A predicted range has three digits: values this much beyond it still count as inside.
_SAME = 0.005


def show_result(
    schema: str,
    header: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    as_json: bool,
) -> None:
    """Print the analysis of samples, as JSON or text.

    `schema`: of the JSON.
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

    `header`: the samples' header. `analysis`: what `nidmap.workloads.ab.analysis.analyse`
    returns.
    """
    nodes = header["nodes"]
    where = f"{header['ranks']} ranks on {nodes} node{'s' * (nodes != 1)}"
    launches = sum(entry["samples"] for entry in analysis["arms"])  # one for each sample
    basis = f"{launches} launches that count, by {header['timer']['words']}"
    head = f"{header['workload']} on {where}, {basis}"
    lines = [printable(head, 200), _times_table(header, analysis)]
    lines += [comparison_sentence(entry, analysis["level"]) for entry in analysis["comparisons"]]
    lines += [foretold_sentence(promise) for promise in predicted_ranges(header, analysis)]
    lines += [f"{arm['name']}: {note}" for arm in header["arms"] for note in arm["notes"]]
    return "\n".join(line.rstrip("\n") for line in lines) + "\n"


def _times_table(header: Mapping[str, Any], analysis: Mapping[str, Any]) -> str:
    rows = []
    for entry in analysis["arms"]:
        best, middle, spread = _arm_figures(header, entry)
        rows.append([entry["arm"], best, middle, f"± {spread}", entry["samples"]])
    return align_columns([["arm", "best", "median", "spread", "samples"], *rows])


def _arm_figures(header: Mapping[str, Any], entry: Mapping[str, Any]) -> list[str]:
    """Return best, median and spread of the times, or of rates if the program reports those."""
    timer = header["timer"]
    if not timer["higher_is_better"]:
        return [time_text(entry[name]) for name in ("best", "median", "spread")]
    low, high = entry["middle"]
    rates = (1 / entry["best"], 1 / entry["median"], (1 / low - 1 / high) / 2)
    return [f"{rate:.4g} {timer['unit']}".rstrip() for rate in rates]


def _ratio_text(value: float | None, otherwise: str) -> str:
    return otherwise if value is None else f"{value:.3f}"


def comparison_sentence(entry: Mapping[str, Any], level: float) -> str:
    """Describe one comparison in a sentence."""
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
    unseen = "no difference could be detected"
    if entry["smallest"] is not None:
        unseen = f"differences below {(entry['smallest'] - 1) * 100:.1f} % cannot be detected"
    return f"{head} {verdict} {span}; {unseen} in this noise"


def predicted_ranges(
    header: Mapping[str, Any], analysis: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the ranges predicted before the measurement, and the measured values.

    `header`: of which ``expected`` counts: by arm, ``words`` and ``gain`` (low, likely, high,
    unknowns; None where nothing is known). `analysis`: what
    `nidmap.workloads.ab.analysis.analyse` returns. ``arm``, ``words``, ``gain``, ``measured``,
    and ``covers``: whether the predicted range holds the measured ratio, None where one of them
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
    """Compare a prediction with its measurement in a sentence."""
    if not promise["gain"]:
        return f"{promise['arm']}: no prediction ({promise['words']})"
    low, high = (
        _ratio_text(promise["gain"]["low"], "0"),
        _ratio_text(promise["gain"]["high"], "inf"),
    )
    gain = promise["gain"]
    of_run = gain.get("recorded") or gain.get("communicates", 1) < 1
    of = "" if of_run else " in communication"
    head = f"{promise['arm']}: predicted {low} to {high} times as fast{of}"
    if promise["covers"] is None:
        return head
    where = "outside, but the measured interval overlaps it" if promise["overlaps"] else "outside"
    where = "covered" if promise["covers"] else where
    return f"{head}, measured {promise['measured']:.3f}: {where}"
