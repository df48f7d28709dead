# SPDX-License-Identifier: Apache-2.0
"""The jobs of a site as they were submitted, in columns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from nidmap.placement.errors import ParseError, UsageError
from nidmap.placement.support.array_types import Floats, Ints, Mask, Strs
from nidmap.placement.support.quantities import counted


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Jobs in the order of their submission."""

    source: str
    submit: Floats  # (n,) seconds since the first submission
    run: Floats  # (n,) seconds that each job ran
    limit: Floats  # (n,) seconds that it asked for, at least those that it ran
    nodes: Ints  # (n,)
    # user, name: (n,) '' if not in the trace
    user: Strs
    name: Strs
    ids: Strs  # (n,)
    remarks: tuple[str, ...] = ()  # what was left out or assumed, and for how many jobs

    def __len__(self) -> int:
        return len(self.submit)

    def take(self, mask: Mask, *remarks: str) -> Trace:
        """Return some of the jobs, with more remarks."""
        columns = ("submit", "run", "limit", "nodes", "user", "name", "ids")
        parts = {column: getattr(self, column)[mask] for column in columns}
        return replace(self, **parts, remarks=(*self.remarks, *filter(None, remarks)))


class Columns(NamedTuple):
    """What a reader found, job by job, as in the trace; NaN where it says nothing."""

    # ids, user, name: (n,)
    ids: Strs
    # submit, start, run, limit: (n,) seconds; the first two on any one clock
    submit: Floats
    start: Floats
    run: Floats
    limit: Floats
    nodes: Floats  # (n,)
    user: Strs
    name: Strs

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[Any]]) -> Columns:
        """Return job rows as columns."""
        parts = list(zip(*rows, strict=True)) or [()] * 8
        texts = [np.array(parts[k], dtype=str) for k in (0, 6, 7)]
        numbers: list[Any] = [np.array(parts[k], dtype=np.float64) for k in range(1, 6)]
        return cls(texts[0], *numbers, *texts[1:])

    @classmethod
    def joined(cls, blocks: Iterable[Columns]) -> Columns:
        """Return several blocks joined."""
        parts: list[Any] = [np.concatenate(column) for column in zip(*blocks, strict=True)]
        return cls(*parts) if parts else cls.of_rows(())

    def take(self, which: Mask | Ints) -> Columns:
        """Return some of the jobs, in the given order."""
        parts: list[Any] = [column[which] for column in self]
        return Columns(*parts)

    def replayable(self, left_out: Counter[str]) -> Columns:
        """Return the jobs that can be replayed; all others are counted by reason."""
        reasons = {
            "no time of submission": ~(
                np.where(np.isnan(self.submit), self.start, self.submit) >= 0
            ),
            "no run time": ~(self.run >= 0),
            "no number of nodes": ~(self.nodes > 0),
        }
        kept = np.ones(len(self.run), dtype=bool)
        for reason, bad in reasons.items():
            left_out[reason] += int((bad & kept).sum())
            kept &= ~bad
        return self.take(kept)


def clean_trace(
    columns: Columns, source: str, remarks: Sequence[str] = (), left_out: Counter[str] | None = None
) -> Trace:
    """Return the jobs that can be replayed, by submission; count all others in remarks.

    `left_out`: jobs that a reader has left out already.
    """
    left_out = Counter() if left_out is None else left_out
    columns = columns.replayable(left_out)
    counts = ((counted(number, "job"), reason) for reason, number in left_out.items() if number)
    notes = [*remarks, *(f"{jobs} left out: {reason}" for jobs, reason in counts)]
    submit = np.where(np.isnan(columns.submit), columns.start, columns.submit)
    if not len(submit):
        raise ParseError(source, 0, "has no job that can be replayed", "; ".join(notes))
    if late := int((np.diff(submit) < 0).sum()):
        notes.append(f"{counted(late, 'job')} out of order: sorted by submission")
    if without := int(np.isnan(columns.submit).sum()):
        notes.append(f"{counted(without, 'job')} without a time of submission: its start is taken")
    order = np.argsort(submit, kind="stable")
    columns, submit = columns.take(order), submit[order]
    limit, more = _limits(columns)
    nodes = np.maximum(1, np.ceil(columns.nodes)).astype(np.int64)
    parts = submit - submit[0], columns.run, limit, nodes, columns.user, columns.name, columns.ids
    return Trace(source, *parts, (*notes, *more))


def _limits(columns: Columns) -> tuple[Floats, list[str]]:
    """Return the time limits, none shorter than the job ran, and remarks."""
    limit, run, notes = columns.limit, columns.run, []
    missing = ~(limit > 0)
    if number := int(missing.sum()):
        notes.append(f"{counted(number, 'job')} without a time limit: the run time is taken")
    if number := int((~missing & (run > limit)).sum()):
        notes.append(f"{counted(number, 'job')} ran past the limit: the run time is taken")
    return np.where(missing | (run > limit), run, limit), notes


def fit_trace(trace: Trace, nodes: int, scale: float = 1.0, days: float = math.inf) -> Trace:
    """Return the jobs that fit on a machine, with their sizes scaled."""
    sizes = np.ceil(np.round(trace.nodes * scale, 9)).astype(np.int64)
    words = f"all job sizes multiplied by {scale:.4g}" if scale != 1 else ""
    trace = replace(trace, nodes=np.maximum(1, sizes))
    early = trace.submit <= days * 86400
    trace = trace.take(early, words, f"only the first {days:g} days" if not early.all() else "")
    small = trace.nodes <= nodes
    large = len(trace) - int(small.sum())
    words = f"{counted(large, 'job')} left out: larger than the {nodes} nodes that are up"
    if not small.any():
        raise UsageError(
            f"{trace.source}: no job fits on {nodes} nodes", "make jobs smaller with --scale"
        )
    return trace.take(small, words if large else "")
