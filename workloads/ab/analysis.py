"""From the samples of one or several launches to ratios, intervals and verdicts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import UsageError, printable
from workloads.ab.statistics import FEWEST, Interval, mean_interval, nominal_level

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from placement.support.array_types import Floats
    from workloads.results import Run

__all__ = ["LEVEL", "analyse", "comparison_key", "paired_ratios", "pool_runs"]

#: How often the intervals hold the truth, over all looks together.
LEVEL = 0.95

#: What headers must agree in, besides the arms, for samples to be pooled.
_ALIKE = ("workload", "ranks", "pattern", "machine", "timer")


def comparison_key(run: Run) -> list[Any]:
    """Return what a run compares: runs that agree in it may be pooled."""
    arms = [(arm["name"], arm["order"]) for arm in run.header["arms"]]
    return [*(run.header.get(name) for name in _ALIKE), arms]


def pool_runs(runs: Sequence[Run]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return one header and all rows of runs that measured the same thing.

    Raises
    ------
    UsageError
        No A/B samples, other arms, another workload, other options, another
        number of ranks, or the same launch twice.
    """
    first, seen = runs[0], dict[str, str]()
    for run in runs:
        source = printable(run.source)
        if not run.compares:
            raise UsageError(f"{source} holds no A/B samples")
        pairs = zip((*_ALIKE, "arms"), comparison_key(run), comparison_key(first), strict=True)
        what, mine, theirs = next((p for p in pairs if p[1] != p[2]), ("", None, None))
        if what == "arms":
            raise UsageError(f"{source} compares other arms than {first.source}")
        if what:
            shown = f"{printable(str(mine))}, not {printable(str(theirs))}"
            raise UsageError(f"{source} has another {what}: {shown}")
        for launch in {str(row["launch"]) for row in run.rows}:
            if seen.setdefault(launch, run.source) != run.source:
                raise UsageError(f"the same launch is in {printable(seen[launch])} and {source}")
    return first.header, [row for run in runs for row in run.rows]


def analyse(header: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what samples say: times of each arm, comparisons with the first, verdicts.

    Parameters
    ----------
    header : mapping
        Of which ``arms`` counts, and where it is given ``looks`` (after how many blocks the
        measurement might have stopped: `workloads.ab.statistics`).
    rows : iterable of mapping
        Samples, one for each arm of a block: launch, block, arm, warmup, max.

    Returns
    -------
    dict
        ``arms`` (best, median, middle half, spread = half of that; seconds),
        ``comparisons`` (ratio above 1: faster than the first arm), and
        ``trusted``, false where the same order twice shows a difference.
    """
    kept = [row for row in rows if not row["warmup"]]
    first, *others = header["arms"]
    nominal = nominal_level(tuple(header.get("looks") or ()), LEVEL)
    comparisons = []
    for arm in others:
        logs = paired_ratios(kept, first["name"], arm["name"])
        # Launches that ended early are one value each, and nobody looks before the last.
        ratio = mean_interval(logs, level=nominal if len(logs) < 2 else LEVEL)
        comparisons.append(_compare_arms(ratio, arm, first))
    trusted = not any(entry["same"] and entry["shown"] for entry in comparisons)
    for entry in comparisons:
        entry["verdict"] = _verdict_words(entry, trusted)
    times = [_arm_times(kept, arm["name"]) for arm in header["arms"]]
    return {
        "level": LEVEL,
        "launches": len({row["launch"] for row in kept}),
        "trusted": trusted,
        "arms": [entry for entry in times if entry["samples"]],
        "comparisons": comparisons,
    }


def paired_ratios(rows: Iterable[Mapping[str, Any]], first: str, second: str) -> list[Floats]:
    """Return log(time of first / time of second) of each whole block, by launch.

    Blocks that were cut short are left out.
    """
    seconds = {
        (str(row["launch"]), int(row["block"]), str(row["arm"])): float(row["max"]) for row in rows
    }
    ratios: dict[str, list[float]] = {}
    for (launch, block, arm), base in seconds.items():
        with_arm = seconds.get((launch, block, second), 0.0)
        if arm == first and min(base, with_arm) > 0:
            ratios.setdefault(launch, []).append(math.log(base / with_arm))
    return [np.array(values) for values in ratios.values()]


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
    """Return a comparison as JSON has it; what no interval bounds is None."""
    values = {name: getattr(ratio, name, None) for name in ("ratio", "low", "high", "smallest")}
    return {
        "arm": arm["name"],
        "against": first["name"],
        "same": arm["members"] == first["members"],
        **{k: v if v is not None and math.isfinite(v) else None for k, v in values.items()},
        **{name: getattr(ratio, name, 0) for name in ("blocks", "launches", "missing")},
        "shown": ratio is not None and ratio.shown,
    }


def _more_needed(entry: Mapping[str, Any]) -> str:
    """Return what an interval that says nothing needs more of."""
    return "launches" if entry["launches"] > 1 else "blocks"


def _verdict_words(entry: Mapping[str, Any], trusted: bool) -> str:
    """Return the comparison in words that claim no more than was measured."""
    if entry["ratio"] is None:
        return f"not enough: at least {FEWEST} whole blocks with a time above 0 are needed"
    if entry["same"]:
        if entry["shown"]:
            return "the same order twice differs from itself: these samples prove nothing"
        return "no difference shown, as it should be (the same order)"
    if entry["missing"]:
        return f"not enough {_more_needed(entry)}: about {entry['missing']} more"
    if not entry["shown"]:
        return "no difference shown"
    if not trusted:
        return "a difference, but the same order twice shows one as well: not to be trusted"
    return "faster" if entry["ratio"] > 1 else "slower"
