# SPDX-License-Identifier: Apache-2.0
"""The report on a study: each policy against the first, who loses, and where replays disagree.

A policy differs from the first if it does so in the same direction in every pair of replays with
the same communication share and seed; a range is over these pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from nidmap.placement.support.quantities import counted
from nidmap.placement.support.tables import align_columns
from nidmap.rankmap.past_jobs.quick_cost import Span
from nidmap.workloads.replay.policies import describe_policies
from nidmap.workloads.replay.study import Case, Study

SCHEMA = "nidmap.replay/1"

#: Smaller changes count as none: a share of the node-hours, minutes.
_ALIKE_SHARE, _ALIKE_MINUTES = 0.002, 0.1

#: How many losing groups are named for each policy.
_NAMED = 3

Summaries = Mapping[Case, Mapping[str, Any]]


class Range(Span):
    """A figure over all shares and seeds: least, median, most."""

    @classmethod
    def of(cls, values: list[float]) -> Range:
        """Return the range of figures."""
        return cls(min(values), float(np.median(values)), max(values))

    def agrees(self, alike: float) -> bool:
        """Return whether all figures are on the same side of 0, by more than `alike`."""
        return self.low > alike or self.high < -alike

    def text(self, form: str = "{:.1f}") -> str:
        """Return the range as text."""
        low, likely, high = (form.format(value) for value in self)
        return likely if low == high else f"{likely} ({low} to {high})"


class Loss(NamedTuple):
    """A group of jobs that finishes later under a policy, in every pair of replays."""

    # kind, label: ``size``, ``512-1023 nodes``
    kind: str
    label: str
    jobs: int
    minutes: Range  # by which its jobs finish later on average
    share: float  # of their turnaround under the first policy


#: Columns of the table of policies: head, where the figure is, its factor and format.
_TABLE: tuple[tuple[str, tuple[str, ...], float, str], ...] = (
    ("wait median", ("all", "wait_median"), 1, "{:.1f}"),
    ("mean", ("all", "wait_mean"), 1, "{:.1f}"),
    ("95 %", ("all", "wait_95"), 1, "{:.1f}"),
    ("bounded slowdown", ("all", "bounded_slowdown"), 1, "{:.1f}"),
    ("node-hours", ("all", "node_hours"), 1, "{:,.0f}"),
    ("slowed by", ("all", "slowdown"), 1, "{:.2f}"),
    ("utilisation %", ("utilisation",), 100, "{:.1f}"),
    ("fragmentation", ("fragmentation",), 1, "{:.2f}"),
)


class Report:
    """What the replays of a study show together."""

    def __init__(self, study: Study, summaries: Summaries, notes: tuple[str, ...] = ()) -> None:
        self.study, self.summaries = study, summaries
        self.policies = tuple(dict.fromkeys(case.policy for case in summaries))
        self.first = self.policies[0]
        self.notes = (*study.traces[0].remarks, *notes, *self._conditions())

    def _conditions(self) -> Iterator[str]:
        rules, study = self.study.rules, self.study
        tested = f"bf_max_job_test {rules.tested}, bf_resolution {rules.resolution:g} s"
        backfill = f"{rules.backfill} backfill at every event, {tested}"
        yield f"first come, first served; {'no backfill' if rules.backfill == 'none' else backfill}"
        yield "a job's run time in the trace is taken as its time alone on the best nodes"
        shares = dict.fromkeys(f"{100 * case.share:g}" for case in self.summaries)
        least, *_, most = sorted(shares, key=float) * 2
        words = least if least == most else f"{least} to {most}"
        yield f"unless known, jobs communicate {words} % of the time, in a stencil or an all-to-all"
        yield f"unless known, {counted(study.ppn, 'rank')} per node; jobs take whole nodes"
        past = max(int(summary["past_limit"]) for summary in self.summaries.values())
        if past:
            yield f"up to {counted(past, 'job')}, slowed down, ran past the limit; none was killed"

    def over(self, policy: str, *path: str) -> Range:
        """Return a policy's figure over all shares and seeds."""
        return Range.of([_dig(s, path) for c, s in self.summaries.items() if c.policy == policy])

    def change(self, policy: str, *path: str, relative: bool = False) -> Range | None:
        """Return how a figure differs from the first policy's, pair by pair; None without pairs."""
        changes = []
        for case, summary in self.summaries.items():
            other = self.summaries.get(case._replace(policy=self.first))
            if case.policy != policy or other is None:
                continue
            try:
                here, there = _dig(summary, path), _dig(other, path)
            except KeyError:
                return None
            changes.append((here - there) / there if relative and there else here - there)
        return Range.of(changes) if changes else None

    def losses(self, policy: str) -> list[Loss]:
        """Return the groups that finish later in every pair, those that lose most first."""
        losses = []
        sample = next(iter(self.summaries.values()))
        for kind, groups in sample["groups"].items():
            for label, figures in groups.items():
                path = ("groups", kind, label, "turnaround_mean")
                minutes = self.change(policy, *path)
                share = self.change(policy, *path, relative=True)
                if minutes and share and minutes.low > _ALIKE_MINUTES:
                    jobs = int(figures["jobs"])
                    losses.append(Loss(kind, label, jobs, minutes, share.likely))
        return sorted(losses, key=lambda loss: -loss.share)

    def verdict(self, policy: str) -> str:
        """Say in one sentence what a policy changes for all jobs together."""
        hours, done, wait, late = (
            self.change(policy, "all", key, relative=not k) or Range(0, 0, 0)
            for k, key in enumerate(("node_hours", "turnaround_mean", "wait_median", "wait_95"))
        )
        used = _change_text("node-hours", hours, _ALIKE_SHARE, "%", "fewer", "more")
        waits = f"median wait {wait.text('{:+.1f}')} min, 95th {late.text('{:+.1f}')} min"
        time = _change_text("mean turnaround", done, _ALIKE_MINUTES, "min", "shorter", "longer")
        return f"{policy}: {used}; {waits}; {time}"

    def loser_text(self, policy: str) -> str:
        """Name who loses."""
        losses = self.losses(policy)
        if not losses:
            return f"{policy}: no group of jobs finishes later in every replay"
        texts = [f"{_group_text(loss)} {loss.minutes.text()} min (+{100 * loss.share:.0f} %)"
                 for loss in losses[:_NAMED]]  # fmt: skip
        more = len(losses) - len(texts)
        texts += [f"{counted(more, 'more group')}"] if more else []
        return f"{policy}: {'; '.join(texts)}"

    def sentence(self) -> str:
        """Say who loses most and under which policy, or that nobody does."""
        losses = [(loss, policy) for policy in self.policies[1:] for loss in self.losses(policy)]
        if not losses:
            return f"compared with {self.first}, no group of jobs finishes later in every replay"
        loss, policy = max(losses, key=lambda pair: pair[0].share)
        later = f"finish {loss.minutes.text()} min later than under {self.first}"
        return f"who loses most: {_group_text(loss)} under {policy} {later}"

    def text(self) -> str:
        """Return the report as text."""
        study, trace = self.study, self.study.traces[0]
        days = float(trace.submit[-1]) / 86400
        what = f"{counted(len(trace), 'job')} in {days:.1f} days on {study.machine.name}"
        replays = counted(len(self.summaries), "replay")
        head = f"{what} ({int(study.up.sum()):,} nodes up), {replays}"
        what = "waits in minutes; slowed by: communication of multi-node jobs\n"
        lines = [head, self.sentence(), "", align_columns(self.rows()) + what]
        lines += [self.verdict(policy) for policy in self.policies[1:]]
        lines += ["", "who finishes later:"] if len(self.policies) > 1 else []
        lines += [self.loser_text(policy) for policy in self.policies[1:]]
        words = describe_policies(self.policies)
        lines += ["", *(f"{name}: {text}" for name, text in words.items())]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines) + "\n"

    def groups(self, kind: str) -> list[str]:
        """Return the groups of a kind."""
        return list(next(iter(self.summaries.values()))["groups"][kind])

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table of policies: heads, then one row each."""
        return [("policy", *(head for head, *_ in _TABLE)), *map(self._row, self.policies)]

    def _row(self, policy: str) -> tuple[str, ...]:
        figures = ((self.over(policy, *path), times, form) for _, path, times, form in _TABLE)
        return policy, *(Range(*(times * v for v in x)).text(form) for x, times, form in figures)

    def document(self) -> dict[str, Any]:
        """Return the report for JSON."""
        return {
            "schema": SCHEMA,
            "machine": self.study.machine.name,
            "nodes": int(self.study.up.sum()),
            "trace": self.study.traces[0].source,
            "jobs": len(self.study.traces[0]),
            "sentence": self.sentence(),
            "policies": [self._policy_document(policy) for policy in self.policies],
            "replays": [case._asdict() | dict(s) for case, s in self.summaries.items()],
            "notes": list(self.notes),
        }

    def _policy_document(self, policy: str) -> dict[str, Any]:
        document: dict[str, Any] = {"policy": policy}
        document |= {path[-1]: self.over(policy, *path)._asdict() for _, path, *_ in _TABLE}
        if policy != self.first:
            losses = [loss._asdict() | {"minutes": loss.minutes._asdict()}
                      for loss in self.losses(policy)]  # fmt: skip
            document |= {"against": self.first, "verdict": self.verdict(policy), "losers": losses}
        return document


def _dig(summary: Mapping[str, Any], path: tuple[str, ...]) -> float:
    value: Any = summary
    for key in path:
        value = value[key]
    return float(value)


def _group_text(loss: Loss) -> str:
    kind = "on" if loss.kind == "size" else f"of {loss.kind}"
    kind = "of" if loss.label.startswith(loss.kind) else kind  # user7 of an SWF trace
    return f"the {loss.jobs:,} jobs {kind} {loss.label}"


def _change_text(what: str, change: Range, alike: float, unit: str, less: str, more: str) -> str:
    """Say how a figure changes, or that the replays disagree; shares as percent."""
    if max(abs(change.low), abs(change.high)) <= alike:
        return f"{what} unchanged"
    scaled = [value * (100 if unit == "%" else 1) for value in change]
    if not change.agrees(alike):
        return f"{what}: replays disagree, {Range(*scaled).text('{:+.1f}')} {unit}"
    size = Range(*sorted(map(abs, scaled))).text()
    return f"{size} {unit} {less if change.high < 0 else more} {what}"
