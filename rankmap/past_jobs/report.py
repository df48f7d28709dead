# SPDX-License-Identifier: Apache-2.0
"""Reports on many jobs: which lost how much through their placement, as text and as a picture."""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any

import numpy as np

from nidmap.placement.job_nodes import JobNodes
from nidmap.placement.records import JobRecord
from nidmap.placement.support.array_types import Floats
from nidmap.placement.support.quantities import counted, plural, unit_name
from nidmap.placement.support.tables import align_columns, csv_table
from nidmap.rankmap.compare.plots import COLOURS, picture_bytes
from nidmap.rankmap.past_jobs import Application, Verdict, application_of
from nidmap.rankmap.past_jobs.quick_cost import Span

SCHEMA = "nidmap.jobs/1"

#: A job counts that is slower than it could have been by this factor.
WORSE = 1.1

#: The varying part of names of an application's runs: a number at the end.
_RUN = re.compile(r"[\W_]*\d[\W\d_]*$")


@dataclass(frozen=True, slots=True)
class Kin:
    """Jobs of one application on the same number of nodes."""

    application: str
    nodes: int  # of each
    # jobs, worse: their number, and that of jobs placed worse than possible
    jobs: int
    worse: int
    slowdown: float  # the median
    saved: Span  # node-hours that the best placements would have saved


@dataclass(frozen=True, eq=False)
class Summary:
    """Verdicts and their totals."""

    machine: str  # its name
    job_nodes: JobNodes
    verdicts: tuple[Verdict, ...]
    applications: tuple[Application, ...] = ()
    whose: str = "the last"  # of whom the jobs are, for the sentence: ``your last``, ``the last``
    timeless: str = ""  # why no time can be predicted; '' where it can
    notes: tuple[str, ...] = ()  # assumptions and omissions

    @property
    def worse(self) -> int:
        """Number of jobs that could have been placed better, by `WORSE`."""
        return sum(verdict.slowdown.likely >= WORSE for verdict in self.verdicts)

    @cached_property
    def saved(self) -> Span:
        """Node-hours that the best placements would have saved, over all jobs."""
        return _sum_spans(self.saved_by(verdict) for verdict in self.verdicts)

    @cached_property
    def hours(self) -> float:
        """Node-hours of all jobs."""
        return sum(self.hours_of(verdict) for verdict in self.verdicts)

    def record(self, verdict: Verdict) -> JobRecord:
        """Return the record of a job."""
        return self.job_nodes.jobs[verdict.job]

    def hours_of(self, verdict: Verdict) -> float:
        """Return a job's node-hours."""
        return float(self._node_hours[verdict.job])

    @cached_property
    def _node_hours(self) -> Floats:
        return self.job_nodes.node_hours

    def saved_by(self, verdict: Verdict) -> Span:
        """Return the node-hours that a job's best placement would have saved."""
        hours = self.hours_of(verdict)
        return Span(*(share * hours for share in verdict.saved))

    def application(self, verdict: Verdict) -> str:
        """Return a job's display name: its application's, else the stem of its own."""
        job = self.record(verdict)
        name = application_of(job, self.applications).name
        return name.strip("*?") or stem_of(job.name)

    @cached_property
    def kin(self) -> tuple[Kin, ...]:
        """The jobs by application and size, those that lost most first."""
        groups: dict[tuple[str, int], list[Verdict]] = defaultdict(list)
        for verdict in self.verdicts:
            groups[self.application(verdict), verdict.nodes].append(verdict)
        all_kin = [
            Kin(
                name,
                nodes,
                len(group),
                sum(v.slowdown.likely >= WORSE for v in group),
                median(v.slowdown.likely for v in group),
                _sum_spans(self.saved_by(v) for v in group),
            )
            for (name, nodes), group in groups.items()
        ]
        all_kin.sort(key=lambda kin: (-kin.saved.likely, -kin.worse, -kin.jobs, kin.nodes))
        return tuple(all_kin)

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        jobs, worse = len(self.verdicts), self.worse
        of = f"of {self.whose} {counted(jobs, 'job')}"
        some, none = f"{worse} {of} were", f"none {of} was"
        if jobs == 1:
            some, none = f"{self.whose} job was", f"{self.whose} job was not"
        elif worse == 1:
            some = f"1 {of} was"
        than = f"{WORSE - 1:.0%} worse than {'they' if worse > 1 else 'it'} could have been"
        than = than.replace("%", " %")
        if not worse:
            return f"{none} placed {than}"
        sat = f"{some} placed at least {than}"
        first = self.kin[0]
        where = f"above all {first.application} on {counted(first.nodes, 'node')}"
        if self.timeless:
            return f"{sat} by distance (node-hours unknown: {self.timeless}), {where}"
        return f"{sat}; {_span_text(self.saved)}, {where}"

    def document(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {
            "schema": SCHEMA,
            "machine": self.machine,
            "sentence": self.sentence,
            "jobs_judged": len(self.verdicts),
            "jobs_worse": self.worse,
            "node_hours": round(self.hours, 3),
            "saved_node_hours": None if self.timeless else _round_span(self.saved),
            "applications": [
                {
                    "application": kin.application, "nodes": kin.nodes, "jobs": kin.jobs,
                    "worse": kin.worse, "slowdown": round(kin.slowdown, 4),
                    "saved_node_hours": None if self.timeless else _round_span(kin.saved),
                }
                for kin in self.kin
            ],
            "jobs": [self.row(verdict) for verdict in self.verdicts],
            "notes": list(self.notes),
        }  # fmt: skip

    def row(self, verdict: Verdict) -> dict[str, Any]:
        """Return one job as JSON."""
        job = self.record(verdict)
        end = float(self.job_nodes.end[verdict.job])
        return {
            "id": job.id, "name": job.name, "user": job.user, "partition": job.partition,
            "state": job.state,
            "start": None if job.start != job.start else job.start,
            "end": end if end < float("inf") else None,
            "application": self.application(verdict),
            "nodes": verdict.nodes, "touches": verdict.touches, "spread": verdict.spread,
            "free": verdict.free, "patterns": list(verdict.patterns), "ppn": verdict.ppn,
            "slowdown": _round_span(verdict.slowdown), "best": verdict.best,
            "node_hours": round(self.hours_of(verdict), 3),
            "saved_node_hours": None if self.timeless else _round_span(self.saved_by(verdict)),
        }  # fmt: skip


def stem_of(name: str) -> str:
    """Return the common part of the names of an application's jobs."""
    return _RUN.sub("", name) or name or "(no name)"


def _sum_spans(spans: Iterator[Span]) -> Span:
    """Add spans, lower and upper ends separately; unknown summands stay unknown."""
    return Span(*map(sum, zip(*spans, strict=True), (0.0,) * 3))


def _round_span(span: Span) -> dict[str, float]:
    return {name: round(value, 4) for name, value in span._asdict().items()}


def hours_text(hours: float) -> str:
    """Format node-hours."""
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.1f}" if hours >= 1 else f"{hours:.1g}"


def _span_text(span: Span) -> str:
    ends = f"({hours_text(span.low)} to {hours_text(span.high)})"
    return f"{hours_text(span.likely)} node-hours {ends}"


def ratio_text(span: Span) -> str:
    """Format a slowdown with its range."""
    low, likely, high = (f"{value:.2f}".rstrip("0").rstrip(".") for value in span)
    return likely if low == high else f"{likely} ({low} to {high})"


#: Rows of each table in text.
_MOST = 10
#: Applications that have a colour of their own; the others share grey.
_NAMED = 6

_KIN = ("application", "nodes", "jobs", "worse", "slowdown", "node-hours", "at least", "at most")


def as_text(summary: Summary) -> str:
    """Return the summary, the applications, the jobs that lost most, and the assumptions."""
    lines = [summary.sentence, ""]
    lines.append(align_columns([_KIN, *_kin_cells(summary)[:_MOST]]))
    rows = [_job_cells(summary, verdict) for verdict in _worst_placed(summary)[:_MOST]]
    if rows:
        table: list[list[object]] = [list(rows[0]), *(list(row.values()) for row in rows)]
        lines.append(align_columns(table, left=(0, 1, 2)))
    lines += [f"note: {note}" for note in summary.notes]
    return "\n".join(lines) + "\n"


def as_csv(summary: Summary) -> str:
    """Return one row per job with unrounded figures: seconds since 1970, node-hours."""
    rows = []
    for verdict in summary.verdicts:
        row = summary.row(verdict)
        touches, slow, saved = (row.pop(k) for k in ("touches", "slowdown", "saved_node_hours"))
        row["patterns"] = " ".join(row["patterns"])
        row |= {f"slowdown_{end}": value for end, value in slow.items()}
        row |= {f"saved_{end}": value for end, value in (saved or {}).items()}
        rows.append(row | touches)
    return csv_table([rows[0] if rows else ["id"], *(row.values() for row in rows)])


def _kin_cells(summary: Summary) -> list[Sequence[object]]:
    """Return the applications as cells; without node-hours if no time can be predicted."""
    return [
        (
            kin.application, kin.nodes, kin.jobs, kin.worse, f"{kin.slowdown:.2f}",
            *(("-",) * 3 if summary.timeless else map(hours_text, (
                kin.saved.likely, kin.saved.low, kin.saved.high))),
        )
        for kin in summary.kin
    ]  # fmt: skip


def _worst_placed(summary: Summary) -> list[Verdict]:
    """Return the jobs that could have been placed better, those that lost most first."""
    slowed = [v for v in summary.verdicts if v.slowdown.likely > 1]
    return sorted(slowed, key=lambda v: (-summary.saved_by(v).likely, -v.slowdown.likely))


def _job_cells(summary: Summary, verdict: Verdict) -> dict[str, object]:
    """Return a job's cells by column heading, with its outermost and innermost units."""
    job, levels = summary.record(verdict), list(verdict.touches)
    return {
        "job": job.id, "name": job.name[:24], "user": job.user[:16], "nodes": verdict.nodes,
        **{plural(unit_name(level)): verdict.touches[level] for level in levels[:1] + levels[-1:]},
        "spread": f"{verdict.spread:.2f}", "free": verdict.free,
        "slowdown": ratio_text(verdict.slowdown),
        "node-hours": "-" if summary.timeless else hours_text(summary.saved_by(verdict).likely),
    }  # fmt: skip


def draw(summary: Summary, form: str) -> bytes:
    """Draw a summary as ``svg`` or ``png``."""
    return picture_bytes(form, lambda new: _draw_figure(summary, new), {"text.parse_math": False})


def _draw_figure(summary: Summary, figure: Any) -> Any:
    drawn = figure(figsize=(9, 5.6), layout="constrained")
    drawn.suptitle(textwrap.fill(summary.sentence, 90), fontsize=11, fontweight="bold")
    axes = drawn.add_subplot()
    names = [summary.application(verdict) for verdict in summary.verdicts]
    shown = list(dict.fromkeys(kin.application for kin in summary.kin))[:_NAMED]
    nodes = np.array([verdict.nodes for verdict in summary.verdicts], dtype=float)
    slow = np.array([verdict.slowdown.likely for verdict in summary.verdicts], dtype=float)
    hours = np.array([summary.hours_of(verdict) for verdict in summary.verdicts], dtype=float)
    area = 12 + 150 * np.sqrt(hours / max(hours.max(initial=0.0), 1e-300))
    other = np.array([name not in shown for name in names], dtype=bool)
    for mask, colour, label in (
        (other, "#999999", "others"),
        *(
            (np.array([name == wanted for name in names], dtype=bool), colour, wanted)
            for wanted, colour in zip(shown, COLOURS.values(), strict=False)
        ),
    ):
        if mask.any():
            dots: dict[str, Any] = {"color": colour, "label": label[:30], "alpha": 0.55}
            axes.scatter(nodes[mask], slow[mask], s=area[mask], linewidths=0, **dots)
    axes.axhline(WORSE, color="black", linewidth=0.8, linestyle=":")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(0.97, max(1.5, float(slow.max(initial=1.0))) * 1.1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    for set_formatter in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        set_formatter(lambda value, _: f"{value:.3g} x")
    axes.set_xlabel("nodes of the job (area of a dot: its node-hours)")
    axes.set_ylabel("communication against the best placement then free")
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8, markerscale=0.6)
    return drawn
