"""All cases and seeds together: gains, losers, how good the predictions were."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["arms_table", "rank_correlation", "summary", "text"]

Run = dict[str, Any]


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Return Spearman's rank correlation; equal values share their mean rank.

    Examples
    --------
    >>> rank_correlation([1, 2, 3, 4], [10, 20, 20, 40])
    0.9486832980505138
    >>> rank_correlation([1, 2, 3], [3, 2, 1])
    -1.0
    """
    x, y = _ranks(np.asarray(a, float)), _ranks(np.asarray(b, float))
    spread = float(x.std() * y.std())
    return float(((x - x.mean()) * (y - y.mean())).mean() / spread) if spread else float("nan")


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[where], dtype=np.float64)


def arms_table(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """Return one row an arm, with its run's case and seed; the table of links left out."""
    return [
        {"case": run["case"], "seed": run["seed"], **{k: v for k, v in arm.items() if k != "links"}}
        for run in runs
        for arm in run["arms"]
    ]


def summary(runs: Sequence[Run], strict: Iterable[str]) -> dict[str, Any]:
    """Return what all runs together say.

    Parameters
    ----------
    runs : sequence of dict
        Of `workloads.minicray.experiment.running.measured`.
    strict : iterable of str
        The cases by which predictions are judged.

    Returns
    -------
    dict
        ``gains`` by case and arm, ``predictions`` over the strict cases,
        ``links``, ``idle_cores``.
    """
    rows = _rows(runs)
    wanted = set(strict)
    judged = [r for r in rows if r["case"] in wanted and not r["control"] and r["arm"] != "slurm"]
    return {
        "gains": _gains(rows),
        "predictions": _predictions(judged),
        "links": _links(runs, wanted),
        "idle_cores": float(np.median([run["idle_cores"] for run in runs])) if runs else None,
        "controls": _controls(rows),
    }


def _rows(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """Return one row an arm; `kept` where nidmap's choice is Slurm's."""
    runs = list(runs)
    kept = {(run["case"], run["seed"]) for run in runs if run["kept"]}
    return [
        {**row, "kept": (row["case"], row["seed"]) in kept and row["arm"] == "nidmap"}
        for row in arms_table(runs)
    ]


def _gains(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    by_arm: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["arm"] != "slurm" and not row["control"]:
            by_arm[row["case"], row["arm"]].append(row)
    return [
        {
            "case": case,
            "arm": arm,
            "seeds": len(found),
            "median": float(np.median([r["ratio"] for r in found])),
            "least": float(min(r["ratio"] for r in found)),
            "most": float(max(r["ratio"] for r in found)),
            "faster": sum(_shown(r) and r["ratio"] > 1 for r in found),
            "slower": sum(_shown(r) and r["ratio"] < 1 for r in found),
            "losers": [r["seed"] for r in found if _shown(r) and r["ratio"] < 1],
            "kept": sum(r["kept"] for r in found),
            "predicted": float(np.median([r["predicted"] for r in found])),
            "whole_run": float(np.median([r["whole_run"] for r in found])),
        }
        for (case, arm), found in by_arm.items()
    ]


def _shown(row: dict[str, Any]) -> bool:
    """Tell whether an arm differs from Slurm's: one that is the same cannot."""
    return bool(row["shown"]) and not row["kept"]


def _predictions(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    if not rows:
        return {"cases": 0}
    measured = np.array([r["ratio"] for r in rows])
    predicted = np.array([r["predicted"] for r in rows])
    error, naive = np.abs(predicted / measured - 1), np.abs(1 / measured - 1)
    names = list(dict.fromkeys(r["case"] for r in rows))
    seconds = np.array([r["predicted_s"] / r["measured_s"] for r in rows])
    return {
        "cases": len(rows),
        "beyond": int(((measured > 1.15) | (measured < 1 / 1.15)).sum()),
        "correlation": {
            name: rank_correlation(
                [r["predicted"] for r in rows if r["case"] == name],
                [r["ratio"] for r in rows if r["case"] == name],
            )
            for name in names
        },
        "median_error": float(np.median(error)),
        "worst_error": float(error.max()),
        "median_error_of_always_1": float(np.median(naive)),
        "median_seconds": float(np.median(seconds)),
    }


def _links(runs: Sequence[Run], strict: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for case in dict.fromkeys(run["case"] for run in runs):
        errors = [
            abs(link["counted"] / link["predicted"] - 1)
            for run in runs
            if run["case"] == case
            for arm in run["arms"]
            for link in arm["links"]
        ]
        if errors:
            found[case] = {
                "links": len(errors),
                "median": float(np.median(errors)),
                "within_5_percent": float(np.mean(np.array(errors) <= 0.05)),
                "worst": float(max(errors)),
                "judged": case in strict,
            }
    return found


def _controls(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found = [r for r in rows if r["control"] or r["kept"]]
    return {
        "seen": len(found),
        "shown": sum(bool(r["shown"]) for r in found),
        "worst": float(max((abs(r["ratio"] - 1) for r in found), default=0.0)),
    }


def text(found: Mapping[str, Any]) -> str:
    """Return the summary for a person."""
    from placement.commands.tables import aligned

    head = ("case", "arm", "gain", "least", "most", "faster", "slower", "predicted", "whole run")
    rows = [head]
    for gain in found["gains"]:
        figures = [f"{gain[key]:.2f}" for key in ("median", "least", "most")]
        counts = [f"{gain[key]} of {gain['seeds']}" for key in ("faster", "slower")]
        more = [f"{gain[key]:.2f}" for key in ("predicted", "whole_run")]
        rows.append((gain["case"], gain["arm"], *figures, *counts, *more))
    return aligned(rows) + "\n\n" + "\n".join(_sentences(found)) + "\n"


def _sentences(found: Mapping[str, Any]) -> Iterable[str]:
    for gain in found["gains"]:
        if gain["kept"]:
            yield (
                f"{gain['case']}: nidmap keeps Slurm's nodes and order in "
                f"{gain['kept']} of {gain['seeds']}"
            )
    said = found["predictions"]
    if said["cases"]:
        yield (
            f"{said['cases']} predictions, {said['beyond']} of ratios beyond 1.15: off by "
            f"{said['median_error']:.1%} in the median, {said['worst_error']:.0%} at most; "
            f"always answering 1 is off by {said['median_error_of_always_1']:.1%}"
        )
        ranks = ", ".join(f"{name} {value:.2f}" for name, value in said["correlation"].items())
        yield f"rank correlation: {ranks}"
    for case, links in found["links"].items():
        yield (
            f"{case}: {links['links']} links, counts off by {links['median']:.1%} in the median, "
            f"{links['worst']:.1%} at most, {links['within_5_percent']:.0%} within 5 %"
        )
    control = found["controls"]
    yield (
        f"the same arm twice: {control['shown']} of {control['seen']} differ, "
        f"{control['worst']:.1%} at most"
    )
    if found["idle_cores"] is not None:
        yield f"idle meanwhile: {found['idle_cores']:.1f} cores in the median"
