# SPDX-License-Identifier: Apache-2.0
"""A recording in words: its phases, and the name of its pattern if it has one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from nidmap.placement.support.quantities import counted, size_text
from nidmap.placement.traffic import Traffic, join_traffic
from nidmap.rankmap.pattern.structured import Stencil, points
from nidmap.rankmap.recognition.shapes import (
    NEARLY_EQUAL,
    grid_lines,
    lines_in,
    stencil_in,
    sweep_in,
)
from nidmap.rankmap.recording import EVENTS, RecordedPhase, Recording

#: Phases whose share of all bytes is below this are counted and not listed.
_LISTED = 0.001

#: Minimum share of the bytes for a name to describe the whole recording.
_MOST = 0.8


def describe(recording: Recording) -> str:
    r"""Return a recording as lines of text."""
    sent, total, to_themselves = _sent_away(recording)
    total_bytes = int(total.bytes.sum())
    lines = [
        f"{counted(recording.ranks, 'rank')}, {recording.seconds:.3g} s:"
        f" {size_text(total_bytes)} in {int(total.messages.sum()):,} messages between"
        f" {len(total.source):,} sender-receiver pairs, {counted(len(recording.phases), 'phase')}"
        + (f"; {size_text(to_themselves)} more from ranks to themselves" if to_themselves else "")
    ]
    if recording.exchange_s:
        share = f"{recording.work_s / recording.exchange_s:.0%}"
        lines.append(
            f"  {recording.exchange_s:.3g} s from the first message to the last, at most {share} of"
            " them outside MPI"
        )
    sizes = [int(traffic.bytes.sum()) for traffic in sent]
    for phase, size in zip(recording.phases, sizes, strict=True):
        if size >= _LISTED * total_bytes:
            share = f"{100 * size / total_bytes:.3g} %" if total_bytes else ""
            words = phase_words(phase, recording.ranks)
            lines.append(f"  {share:>6}  {size_text(size)}  {words}  ({phase.site})")
    named = named_pattern(recording)
    together = _staged_stencils(recording), _shared_stencil(recording)
    lines += [f"  {words}" for words in (*together, named and f"by name: {named}") if words]
    small = sum(size < _LISTED * total_bytes for size in sizes)
    if small:
        lines.append(f"  {small} more with less than 0.1 % of the bytes each")
    notes = (*recording.notes, *kept_words(recording))
    return "\n".join([*lines, *(f"note: {note}" for note in notes)])


def kept_words(recording: Recording) -> Iterator[str]:
    """Yield what was not recorded of the run: outside a window, the order of events, tags."""
    if recording.window:
        yield f"only a part of the run was counted: --window {recording.window}"
    order, single = recording.order, ordered_share(recording)
    if order is None:
        why = "a window by time" if recording.window else "several threads, or an older recording"
        yield f"the order of messages was not kept ({why}); bytes, messages and calls are complete"
        return
    if order.tags is None:
        yield "tags were not kept (an older recording): messages may be paired wrongly"
    if single < 1 and not order.whole:
        yield (
            f"the order of the first {single:.0%} of the messages was kept;"
            " bytes, messages and calls are of the whole run"
        )


def ordered_share(recording: Recording) -> float:
    """Return the share of a recording's messages whose order was recorded."""
    order = recording.order
    if order is None:
        return 0.0
    posted = (order.events[order.numbers, 0] == EVENTS.index("send")).sum()
    single = [phase.sent for phase in recording.phases if phase.kind == "point-to-point"]
    messages = sum(int(sent.messages.sum()) for sent in single)
    return min(1.0, float(posted) / messages) if messages else 1.0


def _sent_away(recording: Recording) -> tuple[list[Traffic], Traffic, int]:
    """Return the messages to other ranks, by phase and by pair, and the bytes sent to self.

    What ranks send to themselves costs no network anything.
    """
    messages = [phase.messages() for phase in recording.phases]
    sent = [traffic.away() for traffic in messages]
    all_bytes, away = (sum(int(t.bytes.sum()) for t in part) for part in (messages, sent))
    return sent, join_traffic(sent).by_pair(recording.ranks), all_bytes - away


def phase_words(phase: RecordedPhase, ranks: int) -> str:
    """Return the description of a phase."""
    if phase.collectives:
        return _collective_words(phase, ranks)
    if phase.kind not in ("point-to-point", "one-sided"):
        size = "" if phase.kind == "barrier" else ", its size by rank"
        lines = lines_in(phase.sent, ranks)[0] if phase.kind == "alltoall" else ""
        where = f" on {lines}" if lines else ""
        return f"{phase.kind}{where}{size}, {_times_words(phase.calls)}"
    if waves := sweep_in(phase, ranks):
        grid = "x".join(map(str, waves.dims))
        return f"sweep over a {grid} grid, from each corner in turn, {_step_words(phase.calls)}"
    exact = stencil_in(phase.sent, ranks)
    stencil = exact or stencil_in(phase.sent, ranks, NEARLY_EQUAL)
    how = "in flight together" if phase.together > 1 else "one after the other"
    if stencil:
        sizes = "" if exact else ", not quite equal in size"
        return f"{_stencil_words(stencil)}{sizes}, {how}, {_step_words(phase.calls)}"
    partners = np.bincount(phase.sent.by_pair(ranks).source, minlength=1)
    least, most = int(partners[partners > 0].min(initial=0)), int(partners.max())
    to = counted(most, "partner") if least in (0, most) else f"{least} to {most} partners"
    what = "one-sided accesses" if phase.kind == "one-sided" else "messages"
    return f"{what} to {to} per rank, {how}, {_step_words(phase.calls)}"


def _collective_words(phase: RecordedPhase, ranks: int) -> str:
    calls = max(int(c.calls.max()) for c in phase.collectives)
    size = max(int((c.bytes // np.maximum(c.calls, 1)).max()) for c in phase.collectives)
    sizes = sorted({len(c.members) for c in phase.collectives})
    where = grid_lines(phase.collectives, ranks)
    if not where and sizes == [ranks]:
        where = f"all {ranks} ranks"
    if not where:
        sizes_text = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        groups = len({c.members.tobytes() for c in phase.collectives})
        where = f"{counted(groups, 'communicator')} of {sizes_text} ranks"
    return f"{phase.kind} of {size_text(size)} on {where}, {_times_words(calls)}"


def _staged_stencils(recording: Recording) -> str:
    """Return stencils that are exchanged one dimension after another; '' for none.

    Their phases are single messages, as often each, and none alone is a stencil.
    """
    ranks = recording.ranks
    single: dict[int, list[RecordedPhase]] = {}
    for phase in recording.phases:
        one_by_one = phase.kind == "point-to-point" and phase.together <= 1
        if one_by_one and not stencil_in(phase.sent, ranks):
            single.setdefault(phase.calls, []).append(phase)
    sentences = []
    for calls, phases in single.items():
        # Chains of Sendrecv have a call site for each direction: only together are they a stencil.
        stencil = stencil_in(join_traffic(phase.sent for phase in phases), ranks)
        if stencil and len(phases) > 1:
            what = f"{_stencil_words(stencil)}, staged by direction"
            phases_text = f"{len(phases)} of these, with {_step_words(calls)} each"
            sentences.append(f"{phases_text}, are a {what}")
    return "; ".join(sentences)


def _shared_stencil(recording: Recording) -> str:
    """Return the stencil whose ranks post from different places in the code; '' for none."""
    ranks = recording.ranks
    parts = [
        phase
        for phase in recording.phases
        # Not all ranks post from this place: red-black orders, or borders that have code of their
        # own.
        if phase.kind == "point-to-point" and len(np.unique(phase.sent.source)) < ranks
    ]
    stencil = stencil_in(join_traffic(part.sent for part in parts), ranks, math.inf)
    if stencil is None or len(parts) < 2:
        return ""
    near = points(len(stencil.dims), stencil.reach) - 1
    what = f"{_stencil_words(stencil)}, up to {near} neighbours per rank"
    return f"{len(parts)} of these, each of some ranks, together form a {what}"


def named_pattern(recording: Recording) -> str:
    """Return the options that name the pattern with most bytes; '' if it has no name."""
    most = _MOST * sum(int(phase.messages().bytes.sum()) for phase in recording.phases)
    named = _named_sweep(recording, most) or _named_stencil(recording, most)
    return named or _named_transposes(recording, most)


def _named_sweep(recording: Recording, most: float) -> str:
    """Return the sweep that carries most bytes, with the size of its messages."""
    for phase in recording.phases:
        waves = sweep_in(phase, recording.ranks)
        if waves is not None and phase.sent.bytes.sum() >= most:
            size = phase.sent.bytes.sum() / phase.sent.messages.sum()
            return f"--pattern {waves.spec} --bytes {size:.3g}"
    return ""


def _named_transposes(recording: Recording, most: float) -> str:
    """Return the all-to-alls on the rows and columns of one process grid."""
    phases = [phase for phase in recording.phases if phase.kind == "alltoall"]
    called = [collective for phase in phases for collective in phase.collectives]
    lines = grid_lines(called, recording.ranks)
    alltoall_bytes = sum(int(phase.messages().bytes.sum()) for phase in phases)
    if " and " not in lines or alltoall_bytes < most:
        return ""
    # The mean block of a pair, over all calls.
    block = sum(int(collective.bytes.sum()) for collective in called) / sum(
        int(collective.calls.sum()) for collective in called
    )
    return f"--pattern fft:{lines.split()[-2]} --bytes {block:.3g}"


def _named_stencil(recording: Recording, most: float) -> str:
    ranks = recording.ranks
    point_to_point = [
        p for p in recording.phases if p.kind == "point-to-point" and len(p.sent.source)
    ]
    phases = [
        p for p in point_to_point if stencil_in(p.sent, ranks, NEARLY_EQUAL)
    ] or point_to_point
    sent = join_traffic(p.sent for p in phases).by_pair(ranks)
    stencil = stencil_in(sent, ranks, NEARLY_EQUAL)
    if not stencil or stencil.reach > 1 or sent.bytes.sum() < most:
        return ""
    ends = np.unravel_index(sent.source, stencil.dims), np.unravel_index(sent.target, stencil.dims)
    # Along which dimension a message goes: the one in which its ends differ (stencils of reach 1
    # alone get here).
    along = np.not_equal(*map(np.array, ends))
    size = [sent.bytes[row].sum() / sent.messages[row].sum() for row in along]
    weights = tuple(float(f"{mean / min(size):.3g}") for mean in size)
    # Messages per step: at most one means direction by direction (`staged`).
    together = sum(int(p.sent.messages.sum()) for p in phases) / sum(p.steps for p in phases)
    equal = set(weights) == {1.0}
    named = replace(stencil, weights=() if equal else weights, staged=together <= 1)
    return f"--pattern {named.spec} --bytes {min(size):.3g}"


def _stencil_words(stencil: Stencil) -> str:
    grid = "x".join(str(extent) for extent in stencil.dims)
    count = points(len(stencil.dims), stencil.reach)
    return f"{count}-point stencil {grid}{', periodic' if stencil.wrap else ''}"


def _step_words(count: int) -> str:
    return f"{count:,} step{'s' * (count != 1)}"


def _times_words(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def document(recording: Recording) -> dict[str, Any]:
    """Return a recording's figures as JSON holds them (schema ``nidmap.pattern/1``)."""
    sent, total, to_themselves = _sent_away(recording)
    return {
        "schema": "nidmap.pattern/1",
        "ranks": recording.ranks,
        "bytes": int(total.bytes.sum()),
        "bytes_to_themselves": to_themselves,
        "messages": int(total.messages.sum()),
        "pairs": len(total.source),
        "seconds": recording.seconds,
        "exchange_seconds": recording.exchange_s,
        "work_seconds": recording.work_s,
        "program": recording.program,
        "window": recording.window,
        "order": {
            "share": round(ordered_share(recording), 4),
            "tags": recording.order is not None and recording.order.tags is not None,
        },
        "phases": [
            {
                "kind": phase.kind,
                "site": phase.site,
                "calls": phase.calls,
                "bytes": int(traffic.bytes.sum()),
                "messages": int(traffic.messages.sum()),
                "pairs": len(traffic.by_pair(recording.ranks).source),
                "together": round(phase.together, 3),
                "communicators": len({c.members.tobytes() for c in phase.collectives}),
                "words": phase_words(phase, recording.ranks),
            }
            for phase, traffic in zip(recording.phases, sent, strict=True)
        ],
        "notes": list(recording.notes),
    }
