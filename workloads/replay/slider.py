# SPDX-License-Identifier: Apache-2.0
"""The part of the page that plays replays: which job was where at the time of a slider."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from nidmap.placement.planners import nested_units
from nidmap.placement.support.array_types import Ints
from nidmap.placement.support.quantities import counted, unit_name
from nidmap.workloads.replay.engine import Outcome
from nidmap.workloads.replay.study import Study
from nidmap.workloads.replay.trace import Trace

#: Most moments and jobs of a slider: the page has a few megabytes.
_MOMENTS, _JOBS = 2000, 10_000

_SCRIPT = Path(__file__).parent / "slider.js"


def slider_html(study: Study, trace: Trace, kept: dict[str, Outcome], most: int = _JOBS) -> str:
    """Return a slider with a picture for each policy, its data and script."""
    unit = nested_units(study.machine, np.arange(len(study.machine)))[0]
    ends = [float(outcome.end.max()) for outcome in kept.values()]
    whole = len(trace) <= most
    last = max(ends) if whole else float(trace.submit[most])  # later, jobs would be missing
    interval = max(1, -int(-last // _MOMENTS))
    moments = np.arange(max(1, -int(-last // interval))) * interval
    replays = [_played(trace, outcome, unit, moments, most) for outcome in kept.values()]
    data = {
        "interval": interval,
        "level": unit_name(study.machine.topology.levels[0]),
        "sizes": np.bincount(unit[study.up], minlength=int(unit.max()) + 1).tolist(),
        "ids": trace.ids[:most].tolist(),
        "replays": replays,
    }
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    said = f"A moment every {interval:,} s, {counted(len(moments), 'moment')}"
    said += "" if whole else f"; the first {most:,} of {len(trace):,} jobs"
    pictures = [f'<figure><figcaption><b>{escape(policy)}</b>: <span></span></figcaption>'
                '<svg preserveAspectRatio="none" role="img"></svg></figure>'
                for policy in kept]  # fmt: skip
    return f"""<div id="slider"><p><button type="button">Play</button>
<input type="range" min="0" max="{len(moments) - 1}" value="0" aria-label="Time in the trace">
<output></output></p>{"".join(pictures)}
<p class="notes">A row is a {escape(data["level"])}, a colour a job, grey free. {said}.</p></div>
<script type="application/json" id="played">{text}</script>
<script>{_SCRIPT.read_text(encoding="utf-8")}</script>"""


def _played(trace: Trace, outcome: Outcome, unit: Ints, moments: Ints, most: int) -> dict[str, Any]:
    """Return how many jobs run and wait at each moment, and the jobs that run at any.

    A job is a list: number, first moment at which it runs, first at which it has ended, then
    pairs of a unit and its nodes there.
    """
    submitted, begun, ended = (
        np.searchsorted(np.sort(times), moments, "right")
        for times in (trace.submit, outcome.start, outcome.end)
    )
    spans = np.searchsorted(moments, (outcome.start[:most], outcome.end[:most])).T.tolist()
    jobs = []
    for job, (first, after) in enumerate(spans):
        if first < after:
            where = np.unique(unit[outcome.of(job)], return_counts=True)
            jobs.append([job, first, after, *np.column_stack(where).ravel().tolist()])
    counts = {"running": begun - ended, "waiting": submitted - begun}
    return {name: count.tolist() for name, count in counts.items()} | {"jobs": jobs}
