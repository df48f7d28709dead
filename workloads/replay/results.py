# SPDX-License-Identifier: Apache-2.0
"""The figures of a replay: for all jobs, by size, application and user."""

from __future__ import annotations

from typing import Any

import numpy as np

from nidmap.placement.support.array_types import Floats, Mask, Strs
from nidmap.workloads.replay.engine import Outcome
from nidmap.workloads.replay.trace import Trace

#: Shortest run time in a bounded slowdown, seconds (Feitelson and Rudolph 1998).
BOUND = 10.0

#: Fewest jobs of a group that is reported, and most groups of a kind.
_FEW, _MOST = 10, 12

#: Measures of a group of jobs; `wait` … in minutes.
MEASURES = (
    "jobs", "wait_median", "wait_mean", "wait_95", "turnaround_mean", "bounded_slowdown",
    "node_hours", "slowdown",
)  # fmt: skip


def summarize(trace: Trace, outcome: Outcome, up: int) -> dict[str, Any]:
    """Return the figures of a replay."""
    span = float(trace.submit[-1]) or 1.0
    begun = np.minimum(outcome.start, span)
    used = float((trace.nodes * (np.minimum(outcome.end, span) - begun)).sum())
    broken = outcome.broken[outcome.moment <= span]
    return {
        "all": measure(trace, outcome, np.ones(len(trace), dtype=bool)),
        "groups": {
            kind: {label: measure(trace, outcome, labels == label) for label in _common(labels)}
            for kind, labels in group_labels(trace).items()
        },
        "utilisation": used / (span * up),
        "fragmentation": float(broken.mean()) if len(broken) else 0.0,
        "past_limit": outcome.past_limit,
        "makespan_hours": float(outcome.end.max()) / 3600,
    }


def measure(trace: Trace, outcome: Outcome, mask: Mask) -> dict[str, float]:
    """Return the `MEASURES` of some jobs."""
    submit, nodes = trace.submit[mask], trace.nodes[mask]
    start, end = outcome.start[mask], outcome.end[mask]
    wait, run = start - submit, end - start
    several = nodes > 1
    figures = (
        len(wait), *np.percentile(wait, [50]) / 60, wait.mean() / 60,
        *np.percentile(wait, [95]) / 60, (end - submit).mean() / 60,
        bounded_slowdown(wait, run).mean(), (nodes * run).sum() / 3600,
        outcome.slowdown[mask][several].mean() if several.any() else 1.0,
    )  # fmt: skip
    return dict(zip(MEASURES, map(float, figures), strict=True))


def bounded_slowdown(wait: Floats, run: Floats) -> Floats:
    """Return turnaround over run time, where run times below `BOUND` count as `BOUND`."""
    return np.maximum(1.0, (wait + run) / np.maximum(run, BOUND))


def group_labels(trace: Trace) -> dict[str, Strs]:
    """Return the group of each job, by kind of group."""
    exponent = np.floor(np.log2(trace.nodes)).astype(int)
    sizes = np.array([_size_label(k) for k in range(int(exponent.max()) + 1)])
    return {"size": sizes[exponent], "application": trace.name, "user": trace.user}


def _size_label(exponent: int) -> str:
    low, high = 2**exponent, 2 ** (exponent + 1) - 1
    return "1 node" if not exponent else f"{low}-{high} nodes"


def _common(labels: Strs) -> list[str]:
    """Return the most frequent labels, those of too few jobs left out."""
    names, counts = np.unique(labels, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_MOST]
    return [str(names[k]) for k in order if names[k] and counts[k] >= _FEW]
