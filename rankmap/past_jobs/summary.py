"""What became of many jobs: who sat how much worse than they could have, and what that cost."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any

from placement.accounting.seats import Seats
from placement.records import JobRecord
from placement.support.array_types import Floats
from placement.support.quantities import counted
from rankmap.past_jobs.applications import Application, application_of
from rankmap.past_jobs.judging import Verdict
from rankmap.past_jobs.quick_cost import Span

__all__ = ["WORSE", "Kin", "Summary", "hours_text", "ratio_text"]

SCHEMA = "nidmap.jobs/1"

#: A job counts that is slower than it could have been by this factor.
WORSE = 1.1

#: What is different in the names of an application's runs: a number at the end.
_RUN = re.compile(r"[\W_]*\d[\W\d_]*$")


@dataclass(frozen=True, slots=True)
class Kin:
    """Jobs of one application on as many nodes.

    Attributes
    ----------
    application : str
    nodes : int
        Of each.
    jobs, worse : int
        How many there are, and how many sat worse than they could have.
    slowdown : float
        The median.
    saved : Span
        Node-hours that the best placements would have saved.
    """

    application: str
    nodes: int
    jobs: int
    worse: int
    slowdown: float
    saved: Span


@dataclass(frozen=True, eq=False)
class Summary:
    """Verdicts with what they add up to.

    Attributes
    ----------
    machine : str
        Its name.
    seats : Seats
    verdicts : tuple of Verdict
    applications : tuple of Application
    whose : str
        Of whom the jobs are, for the sentence: ``your last``, ``the last``.
    timeless : str
        Why no time can be told; '' where it can.
    notes : tuple of str
        What was assumed and left out.
    """

    machine: str
    seats: Seats
    verdicts: tuple[Verdict, ...]
    applications: tuple[Application, ...] = ()
    whose: str = "the last"
    timeless: str = ""
    notes: tuple[str, ...] = ()

    @property
    def worse(self) -> int:
        """How many sat worse than they could have, by `WORSE`."""
        return sum(verdict.slowdown.likely >= WORSE for verdict in self.verdicts)

    @cached_property
    def saved(self) -> Span:
        """Node-hours that the best placements would have saved, all jobs together."""
        return _sum_spans(self.saved_by(verdict) for verdict in self.verdicts)

    @cached_property
    def hours(self) -> float:
        """Node-hours of all these jobs."""
        return sum(self.hours_of(verdict) for verdict in self.verdicts)

    def record(self, verdict: Verdict) -> JobRecord:
        """Return what is known of a job."""
        return self.seats.jobs[verdict.job]

    def hours_of(self, verdict: Verdict) -> float:
        """Return a job's node-hours."""
        return float(self._node_hours[verdict.job])

    @cached_property
    def _node_hours(self) -> Floats:
        return self.seats.node_hours

    def saved_by(self, verdict: Verdict) -> Span:
        """Return the node-hours that a job's best placement would have saved."""
        hours = self.hours_of(verdict)
        return Span(*(share * hours for share in verdict.saved))

    def application(self, verdict: Verdict) -> str:
        """Return what a job is called by: its application's name, else the word of its own."""
        job = self.record(verdict)
        name = application_of(job, self.applications).name
        return name.strip("*?") or stem_of(job.name)

    @cached_property
    def kin(self) -> tuple[Kin, ...]:
        """The jobs by application and size, those first that lost most."""
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
        most = sorted(
            all_kin, key=lambda kin: (-kin.saved.likely, -kin.worse, -kin.jobs, kin.nodes)
        )
        return tuple(most)

    @property
    def sentence(self) -> str:
        """What comes of it, in one sentence."""
        jobs, worse = len(self.verdicts), self.worse
        of = f"of {self.whose} {counted(jobs, 'job')}"
        if not worse:
            return f"{of} none sat {WORSE - 1:.0%} worse than it could have".replace("%", " %")
        they = "they" if worse > 1 else "it"
        sat = f"{of} {worse} sat at least {WORSE - 1:.0%} worse than {they} could have"
        sat = sat.replace("%", " %")
        first = self.kin[0]
        where = f"above all {first.application} on {counted(first.nodes, 'node')}"
        if self.timeless:
            return f"{sat} by distance (no node-hours are told: {self.timeless}), {where}"
        return f"{sat}; {_span_text(self.saved)}, {where}"

    def document(self) -> dict[str, Any]:
        """Return everything as JSON takes it."""
        return {
            "schema": SCHEMA,
            "machine": self.machine,
            "sentence": self.sentence,
            "jobs_judged": len(self.verdicts),
            "jobs_worse": self.worse,
            "node_hours": round(self.hours, 3),
            "saved_node_hours": None if self.timeless else _rounded(self.saved),
            "applications": [
                {
                    "application": kin.application, "nodes": kin.nodes, "jobs": kin.jobs,
                    "worse": kin.worse, "slowdown": round(kin.slowdown, 4),
                    "saved_node_hours": None if self.timeless else _rounded(kin.saved),
                }
                for kin in self.kin
            ],
            "jobs": [self.row(verdict) for verdict in self.verdicts],
            "notes": list(self.notes),
        }  # fmt: skip

    def row(self, verdict: Verdict) -> dict[str, Any]:
        """Return one job as JSON takes it."""
        job = self.record(verdict)
        end = float(self.seats.end[verdict.job])
        return {
            "id": job.id, "name": job.name, "user": job.user, "partition": job.partition,
            "state": job.state,
            "start": None if job.start != job.start else job.start,
            "end": end if end < float("inf") else None,
            "application": self.application(verdict),
            "nodes": verdict.nodes, "touches": verdict.touches, "spread": verdict.spread,
            "free": verdict.free, "patterns": list(verdict.patterns),
            "slowdown": _rounded(verdict.slowdown), "best": verdict.best,
            "searched": verdict.searched,
            "node_hours": round(self.hours_of(verdict), 3),
            "saved_node_hours": None if self.timeless else _rounded(self.saved_by(verdict)),
        }  # fmt: skip


def stem_of(name: str) -> str:
    """Return what the names of an application's jobs have in common.

    Examples
    --------
    >>> stem_of("lammps-7"), stem_of("cp2k_run12"), stem_of("12"), stem_of("")
    ('lammps', 'cp2k_run', '12', '(no name)')
    """
    return _RUN.sub("", name) or name or "(no name)"


def _sum_spans(spans: Iterator[Span]) -> Span:
    """Return the sum, end by end: what is not known is not known of all alike."""
    low = likely = high = 0.0
    for span in spans:
        low, likely, high = low + span.low, likely + span.likely, high + span.high
    return Span(low, likely, high)


def _rounded(span: Span) -> dict[str, float]:
    return {name: round(value, 4) for name, value in span._asdict().items()}


def hours_text(hours: float) -> str:
    """Return node-hours for a person.

    Examples
    --------
    >>> hours_text(1243.7), hours_text(4.26), hours_text(0.0312)
    ('1,244', '4.3', '0.03')
    """
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.1f}" if hours >= 1 else f"{hours:.1g}"


def _span_text(span: Span) -> str:
    ends = f"({hours_text(span.low)} to {hours_text(span.high)})"
    return f"{hours_text(span.likely)} node-hours {ends}"


def ratio_text(span: Span) -> str:
    """Return a slowdown with its range for a person.

    Examples
    --------
    >>> ratio_text(Span(1.0, 1.25, 2.0)), ratio_text(Span(1.0, 1.0, 1.0))
    ('1.25 (1 to 2)', '1')
    """
    low, likely, high = (f"{value:.2f}".rstrip("0").rstrip(".") for value in span)
    return likely if low == high else f"{likely} ({low} to {high})"
