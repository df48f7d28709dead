# SPDX-License-Identifier: Apache-2.0
"""Recognises recorded messages as stencils, sweeps and lines of a process grid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nidmap.placement.traffic import Traffic
from nidmap.rankmap.pattern.graph import from_edges, stencil_of
from nidmap.rankmap.pattern.structured import Stencil
from nidmap.rankmap.pattern.sweep import Sweep
from nidmap.rankmap.recording import RecordedCollective, RecordedPhase

#: Permitted inequality of messages along one dimension, for programs that divide atoms or cells.
NEARLY_EQUAL = 2.0


def stencil_in(messages: Traffic, ranks: int, factor: float = 1.0) -> Stencil | None:
    """Return the stencil that messages form, whatever their counts; None if they form none.

    `factor`: how many times the bytes of the least between neighbours along one dimension the
    most may be, as real programs divide their work; 1: each gets back what it sends, exactly.
    """
    pairs = messages.by_pair(ranks)
    there = (pairs.source != pairs.target) & (pairs.bytes > 0)
    a, b, size = pairs.source[there], pairs.target[there], pairs.bytes[there]
    back = np.lexsort((a, b))
    if not all(np.array_equal(x, y[back]) for x, y in ((a, b), (b, a))):
        return None
    once, exact = a < b, np.array_equal(size, size[back])
    if factor == 1:
        return stencil_of(from_edges(ranks, a[once], b[once], size[once] * 1.0)) if exact else None
    stencil = stencil_of(from_edges(ranks, a[once], b[once], np.ones(once.sum())))
    if stencil is None:
        return None
    along = np.unravel_index(a, stencil.dims) != np.array(np.unravel_index(b, stencil.dims))
    for dimensions in np.unique(along, axis=1).T:
        sizes = size[(along == dimensions[:, None]).all(axis=0)]
        if sizes.max() > factor * sizes.min():
            return None
    return stencil


def sweep_in(phase: RecordedPhase, ranks: int) -> Sweep | None:
    """Return the sweep that a phase forms, with its `messages`; None if it forms none.

    A halo is a stencil too, but there a rank sends to all of its neighbours before it waits, in
    a sweep to those downstream: a rank has four such steps, one from each corner, for two messages
    to each neighbour, and the last rank of each wave has none (or names no receiver).
    """
    stencil = stencil_in(phase.sent, ranks)
    messages = phase.sent.by_pair(ranks).messages
    if stencil is None or len(stencil.dims) != 2 or stencil.wrap or stencil.reach > 1:
        return None
    from_corner = int(messages[0]) // 2
    alike = (messages == 2 * from_corner).all()
    last = {4 * from_corner * (ranks - 1), 4 * from_corner * ranks if ranks > 4 else 0}
    if not alike or phase.collectives or phase.calls > 4 * from_corner or phase.steps not in last:
        return None
    return Sweep(stencil.dims)


def lines_in(sent: Traffic, ranks: int) -> tuple[str, list[Traffic]]:
    """Return the lines of a process grid whose ranks all send to each other, and what these send.

    Rows first; '' and nothing where there are no such lines.
    """
    pairs = sent.away().by_pair(ranks)
    a, b = pairs.source, pairs.target
    for rows in range(2, ranks // 2 + 1):
        columns = ranks // rows
        lines = (
            ("rows", a // columns == b // columns, rows, columns),
            ("columns", a % columns == b % columns, columns, rows),
        )
        full = [line for line in lines if line[1].sum() == ranks * (line[3] - 1)]
        if rows * columns == ranks and full and sum(line[1].sum() for line in full) == len(a):
            words = " and ".join(f"the {count} {what}" for what, _, count, _ in full)
            return f"{words} of a {rows}x{columns} grid", [pairs.some(line[1]) for line in full]
    return "", []


def grid_lines(collectives: Sequence[RecordedCollective], ranks: int) -> str:
    """Return which lines of a process grid a phase's communicators are; '' for none."""
    lines = {tuple(c.members.tolist()) for c in collectives}
    sizes = {len(c.members) for c in collectives}
    by_size = [[c for c in collectives if len(c.members) == n] for n in sizes]
    parts = [grid_lines(same_size, ranks) for same_size in by_size] if len(sizes) == 2 else []
    if len(parts) == 2 and all(parts):
        across, down = sorted(parts, key=lambda part: "columns" in part)
        if across.split()[-2:] == down.split()[-2:]:
            return f"{across.partition(' of ')[0]} and {down.removeprefix('the ')}"
    count, size = len(lines), len(min(lines, default=()))
    if count < 2 or count * size != ranks:
        return ""
    if lines == {tuple(range(size * i, size * i + size)) for i in range(count)}:
        return f"the {count} rows of a {count}x{size} grid"
    columns = {tuple(range(i, ranks, count)) for i in range(count)}
    return f"the {count} columns of a {size}x{count} grid" if lines == columns else ""
