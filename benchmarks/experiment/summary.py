# SPDX-License-Identifier: Apache-2.0
"""All cases and seeds together: gains, losses, accuracy of the predictions."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike

Run = dict[str, Any]


def rank_correlation(a: ArrayLike, b: ArrayLike) -> float:
    """Return Spearman's rank correlation; ties share their mean rank; NaN if all are equal.

    Examples
    --------
    >>> round(rank_correlation([1, 2, 3, 4], [10, 20, 20, 40]), 4)
    0.9487
    """
    import pandas as pd

    return float(pd.Series(a).rank().corr(pd.Series(b).rank()))


def arms_table(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """Return one row per arm, with its run's case and seed but without the links."""
    return [
        {"case": run["case"], "seed": run["seed"], **arm, "nodes": " ".join(arm["nodes"])}
        for run in runs
        for arm in ({k: v for k, v in one.items() if k != "links"} for one in run["arms"])
    ]


def summary(runs: Sequence[Run], strict: Iterable[str]) -> dict[str, Any]:
    """Summarise all runs.

    Parameters
    ----------
    runs : sequence of dict
        Of `benchmarks.experiment.running.measure_case`.
    strict : iterable of str
        The cases by which predictions are judged.

    Returns
    -------
    dict
        ``gains`` by case and arm, ``predictions`` over the strict cases,
        ``links``, ``idle_cores``.
    """
    kept = {(run["case"], run["seed"]) for run in runs if run["kept"]}
    rows = arms_table(runs)
    for row in rows:  # an arm that is Slurm's own choice cannot differ from it
        row["kept"] = row["arm"] == "nidmap" and (row["case"], row["seed"]) in kept
        row["differs"] = bool(row["shown"]) and not row["kept"]
    compared = [row for row in rows if row["arm"] != "slurm" and not row["control"]]
    by_arm: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in compared:
        by_arm[row["case"], row["arm"]].append(row)
    wanted = set(strict)
    same = [row for row in rows if row["control"] or row["kept"]]
    return {
        "gains": [_gain(case, arm, found) for (case, arm), found in by_arm.items()],
        "predictions": _predictions([row for row in compared if row["case"] in wanted]),
        "links": _links(runs, wanted),
        "idle_cores": float(np.median([run["idle_cores"] for run in runs])) if runs else None,
        "controls": {
            "seen": len(same),
            "shown": sum(bool(row["shown"]) for row in same),
            "worst": max((abs(row["ratio"] - 1.0) for row in same), default=0.0),
        },
    }


def _gain(case: str, arm: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return an arm's gain in a case over all seeds."""
    ratio, predicted, whole = (
        np.array([row[name] for row in rows], float) for name in ("ratio", "predicted", "whole_run")
    )
    losers = [row["seed"] for row in rows if row["differs"] and row["ratio"] < 1]
    return {
        "case": case,
        "arm": arm,
        "seeds": len(rows),
        "median": float(np.median(ratio)),
        "least": float(ratio.min()),
        "most": float(ratio.max()),
        "faster": sum(row["differs"] and row["ratio"] > 1 for row in rows),
        "slower": len(losers),
        "losers": losers,
        "kept": sum(row["kept"] for row in rows),
        "predicted": float(np.median(predicted)),
        "whole_run": float(np.median(whole)),
    }


def _predictions(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the accuracy of the predictions, overall and by case."""
    if not rows:
        return {"cases": 0}
    case, measured, predicted = (
        np.array([row[name] for row in rows]) for name in ("case", "ratio", "predicted")
    )
    error = np.abs(predicted / measured - 1)
    seconds = [row["predicted_s"] / row["measured_s"] for row in rows]
    return {
        "cases": len(rows),
        "beyond": int(((measured > 1.15) | (measured < 1 / 1.15)).sum()),
        "correlation": {
            name: rank_correlation(predicted[case == name], measured[case == name])
            for name in dict.fromkeys(case.tolist())
        },
        "median_error": float(np.median(error)),
        "worst_error": float(error.max()),
        "median_error_of_always_1": float(np.median(np.abs(1 / measured - 1))),
        "median_seconds": float(np.median(seconds)),
    }


def _links(runs: Sequence[Run], strict: set[str]) -> dict[str, Any]:
    """Return the deviation of the links' counts, by case."""
    errors: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        links = [link for arm in run["arms"] for link in arm["links"]]
        errors[run["case"]] += [abs(x["counted"] / x["predicted"] - 1) for x in links]
    return {
        case: {
            "links": len(found),
            "median": float(np.median(found)),
            "within_5_percent": float(np.mean(np.array(found) <= 0.05)),
            "worst": max(found),
            "judged": case in strict,
        }
        for case, found in errors.items()
        if found
    }


def text(found: Mapping[str, Any]) -> str:
    """Return the summary as text."""
    from nidmap.placement.support.tables import align_columns

    head = ("case", "arm", "gain", "least", "most", "faster", "slower", "predicted", "whole run")
    rows = [head]
    for gain in found["gains"]:
        figures = [f"{gain[key]:.2f}" for key in ("median", "least", "most")]
        counts = [f"{gain[key]} of {gain['seeds']}" for key in ("faster", "slower")]
        more = [f"{gain[key]:.2f}" for key in ("predicted", "whole_run")]
        rows.append((gain["case"], gain["arm"], *figures, *counts, *more))
    return align_columns(rows) + "\n\n" + "\n".join(_sentences(found)) + "\n"


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
