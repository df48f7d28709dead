# SPDX-License-Identifier: Apache-2.0
"""The jobs of a site as they were submitted, in columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    def joined(cls, blocks: Sequence[Columns]) -> Columns:
        """Return several blocks of jobs as one."""
        parts: list[Any] = [np.concatenate(column) for column in zip(*blocks, strict=True)]
        return cls(*parts) if parts else cls.of_rows(())

    def take(self, which: Mask | Ints) -> Columns:
        """Return some of the jobs, in the given order."""
        parts: list[Any] = [column[which] for column in self]
        return Columns(*parts)


def clean_trace(columns: Columns, source: str, remarks: Sequence[str] = ()) -> Trace:
    """Return the jobs that can be replayed, by submission; count all others in remarks."""
    notes = list(remarks)
    submit = np.where(np.isnan(columns.submit), columns.start, columns.submit)
    kept = np.ones(len(submit), dtype=bool)
    for missing, known in (
        ("time of submission", submit >= 0), ("run time", columns.run >= 0),
        ("number of nodes", columns.nodes > 0),
    ):  # fmt: skip
        if number := int((kept & ~known).sum()):
            notes.append(f"{counted(number, 'job')} left out: no {missing}")
        kept &= known
    if not kept.any():
        raise ParseError(source, 0, "has no job that can be replayed", "; ".join(notes))
    columns, submit = columns.take(kept), submit[kept]
    order = np.argsort(submit, kind="stable")
    late, without = np.diff(submit) < 0, np.isnan(columns.submit)
    columns, submit = columns.take(order), submit[order]
    run, limit = columns.run, columns.limit
    unlimited, longer = ~(limit > 0), (limit > 0) & (run > limit)
    for jobs, words in (
        (late, "out of order: sorted by submission"),
        (without, "without a time of submission: its start is taken"),
        (unlimited, "without a time limit: the run time is taken"),
        (longer, "ran past the limit: the run time is taken"),
    ):
        notes += [f"{counted(int(jobs.sum()), 'job')} {words}"] if jobs.any() else []
    limit = np.where(unlimited | longer, run, limit)
    nodes = np.maximum(1, np.ceil(columns.nodes)).astype(np.int64)
    parts = submit - submit[0], run, limit, nodes, columns.user, columns.name, columns.ids
    return Trace(source, *parts, tuple(notes))


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
