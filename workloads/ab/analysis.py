"""From the samples of one or several launches to ratios, intervals and verdicts."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import UsageError, printable
from workloads.ab.statistics import FEWEST, Interval, interval, nominal_level

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from placement.support.array_types import Floats
    from workloads.results import Run

    #: By (launch, block, arm): the seconds of the repetitions of each visit that count.
    Table = dict[tuple[str, int, str], list[list[float]]]

__all__ = ["LEVEL", "analyse", "comparison_key", "credited_phase", "paired_ratios", "pool_runs"]

#: How often the intervals hold the truth, over all looks together.
LEVEL = 0.95

#: Phases that are compared, the one that an order can be credited with first.
_PHASES = ("communication", "total")

#: What headers must agree in, besides the arms, for samples to be pooled.
_ALIKE = ("workload", "workload_options", "ranks", "pattern", "machine", "visits", "timer")


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
        Of which ``arms`` counts, and where they are given ``visits`` (of an
        arm in a block) and ``looks`` (after how many blocks the measurement
        might have stopped: `workloads.ab.statistics`).
    rows : iterable of mapping
        Samples: launch, block, visit, arm, repetition, warmup, phase, max.

    Returns
    -------
    dict
        ``arms`` (best, median, middle half, spread = half of that; seconds),
        ``comparisons`` (ratio above 1: faster than the first arm), and
        ``trusted``, false where the same order twice (the A/A control)
        shows a difference.
    """
    kept = list(rows)
    first, *others = header["arms"]
    visits = int(header.get("visits") or 1)
    nominal = nominal_level(tuple(header.get("looks") or ()), LEVEL)
    comparisons, times = [], []
    for phase in [name for name in _PHASES if any(r["phase"] == name for r in kept)] or _PHASES:
        table = _visits(kept, phase)
        times += [_arm_times(table, arm["name"], phase) for arm in header["arms"]]
        for arm in others:
            logs = paired_ratios(table, first["name"], arm["name"], visits)
            # Launches that ended early are one value each, and nobody looks before the last.
            ratio = interval(logs, level=nominal if len(logs) < 2 else LEVEL)
            comparisons.append(_compare(ratio, arm, first, phase))
    unsound = {c["phase"] for c in comparisons if c["same"] and c["shown"]}
    for entry in comparisons:
        entry["verdict"] = _verdict(entry, entry["phase"] in unsound)
    return {
        "level": LEVEL,
        "launches": len({row["launch"] for row in kept}),
        "trusted": not unsound,
        "arms": [entry for entry in times if entry["samples"]],
        "comparisons": comparisons,
    }


def _visits(rows: Sequence[Mapping[str, Any]], phase: str) -> Table:
    """Return the slowest rank's seconds of the repetitions that count."""
    visits: dict[tuple[str, int, str], dict[int, list[float]]] = {}
    for row in rows:
        if row["phase"] == phase and not row["warmup"]:
            key = str(row["launch"]), int(row["block"]), str(row["arm"])
            mine = visits.setdefault(key, {}).setdefault(int(row["visit"]), [])
            mine.append(float(row["max"]))
    return {key: list(of_arm.values()) for key, of_arm in visits.items()}


def paired_ratios(table: Table, first: str, second: str, visits: int = 1) -> list[Floats]:
    """Return log(time of first / time of second) of each whole block, by launch.

    A block's time of an arm is the geometric mean over its visits of the
    median over a visit's repetitions: a linear drift cancels, and one slow
    repetition does not count. Blocks that were cut short are left out.
    """
    ratios: dict[str, list[float]] = {}
    for launch, block, arm in table:
        if arm == first:
            base, with_arm = (
                _log(table.get((launch, block, name), []), visits) for name in (first, second)
            )
            if math.isfinite(base - with_arm):
                ratios.setdefault(launch, []).append(base - with_arm)
    return [np.array(values) for values in ratios.values()]


def _log(visits: list[list[float]], count: int) -> float:
    """Return the mean over visits of the log of the median; nan for what is not whole."""
    medians = [median(seconds) for seconds in visits]
    whole = len(visits) == count and min(medians) > 0
    return float(np.log(medians).mean()) if whole else math.nan


def _arm_times(table: Table, name: str, phase: str) -> dict[str, Any]:
    """Return an arm's own times over all launches."""
    mine = [s for (_, _, arm), v in table.items() if arm == name for r in v for s in r]
    entry = {"arm": name, "phase": phase, "samples": len(mine)}
    if not mine:
        return entry
    low, middle, high = np.quantile(mine, [0.25, 0.5, 0.75]).tolist()
    spread = (high - low) / 2
    return {**entry, "best": min(mine), "median": middle, "spread": spread, "middle": [low, high]}


def _compare(
    ratio: Interval | None, arm: Mapping[str, Any], first: Mapping[str, Any], phase: str
) -> dict[str, Any]:
    """Return a comparison as JSON has it; what no interval bounds is None."""
    values = {name: getattr(ratio, name, None) for name in ("ratio", "low", "high", "smallest")}
    return {
        "arm": arm["name"],
        "against": first["name"],
        "control": arm["control"],
        "phase": phase,
        "same": arm["members"] == first["members"],
        **{k: v if v is not None and math.isfinite(v) else None for k, v in values.items()},
        **{name: getattr(ratio, name, 0) for name in ("blocks", "launches", "missing")},
        "shown": ratio is not None and ratio.shown,
    }


def credited_phase(analysis: Mapping[str, Any]) -> str:
    """Return the phase that an order is credited with: communication where that was measured."""
    measured = {c["phase"] for c in analysis["comparisons"] if not c["control"] and c["ratio"]}
    return next((phase for phase in _PHASES if phase in measured), _PHASES[-1])


def _more(entry: Mapping[str, Any]) -> str:
    """Return what an interval that says nothing needs more of."""
    return "launches" if entry["launches"] > 1 else "blocks"


def _verdict(entry: Mapping[str, Any], unsound: bool) -> str:
    """Return the comparison in words that claim no more than was measured."""
    if entry["ratio"] is None:
        return f"not enough: at least {FEWEST} whole blocks with a time above 0 are needed"
    if entry["same"]:
        if entry["shown"]:
            return "the same order twice differs from itself: these samples prove nothing"
        return "no difference shown, as it should be (the same order)"
    if entry["missing"]:
        return f"not enough {_more(entry)}: about {entry['missing']} more"
    if not entry["shown"]:
        return "no difference shown"
    if unsound:
        return "a difference, but the same order twice shows one as well: not to be trusted"
    return "faster" if entry["ratio"] > 1 else "slower"
