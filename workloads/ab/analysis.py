"""From the samples of one or several launches to ratios, intervals and verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import UsageError, printable
from workloads.ab.statistics import FEWEST, interval
from workloads.session import median

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from workloads.ab.statistics import Interval

__all__ = ["Run", "analyse", "paired", "pooled"]

#: Phases that are compared, the one that an order can be credited with first.
_PHASES = ("communication", "total")

_VISITS = 2  # of an arm in a block


@dataclass(frozen=True, slots=True)
class Run:
    """The samples of one file: one launch, or several that were pooled before.

    Attributes
    ----------
    source : str
        For messages.
    header : dict
    rows : list of dict
        As `workloads.results` keeps them: launch, block, visit, arm,
        repetition, warmup, phase, max (and min, mean).
    """

    source: str
    header: dict[str, Any]
    rows: list[dict[str, Any]]


def pooled(runs: Sequence[Run]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return one header and all rows of runs that measured the same thing.

    Raises
    ------
    UsageError
        No A/B samples, other arms, another workload, other options, another
        number of ranks, or the same launch twice.
    """
    first = runs[0]
    seen: dict[str, str] = {}
    for run in runs:
        if "arms" not in run.header:
            raise UsageError(f"{printable(run.source)} holds no A/B samples")
        _refuse_other(first, run)
        for launch in dict.fromkeys(str(row["launch"]) for row in run.rows):
            if seen.setdefault(launch, run.source) != run.source:
                where = f"{printable(seen[launch])} and {printable(run.source)}"
                raise UsageError(f"the same launch is in {where}")
    return first.header, [row for run in runs for row in run.rows]


def _refuse_other(first: Run, run: Run) -> None:
    """Refuse to pool what is not alike."""
    for what in ("workload", "workload_options", "ranks", "pattern", "machine"):
        mine, theirs = run.header.get(what), first.header.get(what)
        if mine != theirs:
            shown = f"{printable(str(mine))}, not {printable(str(theirs))}"
            raise UsageError(f"{printable(run.source)} has another {what}: {shown}")
    names = [[(a["name"], a["order"], a["nodes"]) for a in r.header["arms"]] for r in (first, run)]
    if names[0] != names[1]:
        raise UsageError(f"{printable(run.source)} compares other arms than {first.source}")


def analyse(
    header: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], *, level: float = 0.95
) -> dict[str, Any]:
    """Return what samples say: times of each arm, comparisons with the first, verdicts.

    Parameters
    ----------
    header : mapping
        Of which ``arms`` counts.
    rows : iterable of mapping
        Samples; see `Run`.
    level : float
        Coverage of each interval by itself.

    Returns
    -------
    dict
        ``arms`` (best, median, spread = half the middle half, seconds),
        ``comparisons`` (ratio above 1: faster than the first arm), and
        ``trusted``, false where the same order twice (the A/A control)
        shows a difference.
    """
    kept = list(rows)
    arms = header["arms"]
    comparisons: list[dict[str, Any]] = []
    times = []
    for phase in _PHASES:
        table = _table(kept, phase)
        times += [_times(table, arm, phase) for arm in arms]
        for arm in arms[1:]:
            found = interval(paired(table, arms[0]["name"], arm["name"]), level=level)
            comparisons.append(_comparison(found, arm, arms[0], phase))
    unsound = [c for c in comparisons if c["same"] and c["shown"]]
    for entry in comparisons:
        entry["verdict"] = _verdict(entry, any(c["phase"] == entry["phase"] for c in unsound))
    return {
        "level": level,
        "launches": len({row["launch"] for row in kept}),
        "trusted": not unsound,
        "arms": [entry for entry in times if entry["samples"]],
        "comparisons": comparisons,
    }


#: By (launch, block, arm): the repetitions of each visit that count.
Table = dict[tuple[str, int, str], list[list[float]]]


def _table(rows: Sequence[Mapping[str, Any]], phase: str) -> Table:
    """Return the slowest rank's seconds of the repetitions that count."""
    visits: dict[tuple[str, int, str, int], list[float]] = {}
    for row in rows:
        if row["phase"] == phase and not row["warmup"]:
            key = (str(row["launch"]), int(row["block"]), str(row["arm"]), int(row["visit"]))
            visits.setdefault(key, []).append(float(row["max"]))
    table: Table = {}
    for (launch, block, arm, _), seconds in visits.items():
        table.setdefault((launch, block, arm), []).append(seconds)
    return table


def paired(table: Table, first: str, second: str) -> list[NDArray[np.float64]]:
    """Return log(time of first / time of second) of each whole block, by launch.

    A block's time of an arm is the geometric mean over its two visits of the
    median over a visit's repetitions: a linear drift cancels, and one slow
    repetition does not count. Blocks that were cut short are left out.
    """
    found: dict[str, list[float]] = {}
    for launch, block, arm in table:
        if arm != first:
            continue
        logs = [_log(table.get((launch, block, name), [])) for name in (first, second)]
        if np.isfinite(logs).all():
            found.setdefault(launch, []).append(logs[0] - logs[1])
    return [np.array(values) for values in found.values()]


def _log(visits: list[list[float]]) -> float:
    """Return the mean over visits of the log of the median; nan for what is not whole."""
    if len(visits) != _VISITS:
        return float("nan")
    medians = np.array([median(seconds) for seconds in visits])
    return float(np.log(medians).mean()) if (medians > 0).all() else float("nan")


def _times(table: Table, arm: Mapping[str, Any], phase: str) -> dict[str, Any]:
    """Return an arm's own times over all launches."""
    mine = [s for (_, _, name), v in table.items() if name == arm["name"] for r in v for s in r]
    entry = {"arm": arm["name"], "phase": phase, "samples": len(mine)}
    if not mine:
        return entry
    low, middle, high = np.quantile(mine, [0.25, 0.5, 0.75]).tolist()
    return {**entry, "best": min(mine), "median": middle, "spread": (high - low) / 2}


def _comparison(
    found: Interval | None, arm: Mapping[str, Any], first: Mapping[str, Any], phase: str
) -> dict[str, Any]:
    """Return a comparison as JSON has it; what no interval bounds is None."""
    entry: dict[str, Any] = {
        "arm": arm["name"],
        "against": first["name"],
        "control": arm["control"],
        "phase": phase,
        "same": arm["members"] == first["members"],
    }
    if found is None:
        nothing = dict.fromkeys(("ratio", "low", "high", "smallest"))
        return {**entry, **nothing, "blocks": 0, "launches": 0, "shown": False}
    bounded = {name: _finite(getattr(found, name)) for name in ("ratio", "low", "high", "smallest")}
    counts = {"blocks": found.blocks, "launches": found.launches}
    return {**entry, **bounded, **counts, "shown": found.shown}


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _verdict(entry: Mapping[str, Any], unsound: bool) -> str:
    """Return the comparison in words that claim no more than was measured."""
    if entry["ratio"] is None:
        return f"not enough: at least {FEWEST} whole blocks with a time above 0 are needed"
    if entry["same"]:
        if entry["shown"]:
            return "the same order twice differs from itself: these samples prove nothing"
        return "no difference shown, as it should be (the same order)"
    if not entry["shown"]:
        return "no difference shown"
    if unsound:
        return "a difference, but the same order twice shows one as well: not to be trusted"
    return "faster" if entry["ratio"] > 1 else "slower"
