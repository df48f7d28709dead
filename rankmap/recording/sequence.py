"""What of a recording goes one after the other.

A phase of a recording is what a rank posts until it next waits, so that phases follow each
other. Where each rank has one message in flight at a time, a phase's own messages follow each
other as well: along one direction of a stencil after the other, or to one partner after the
other. Phases of different ranks that are entered equally often, as where ranks at an edge take
another way through the code, go together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankmap.recording import Messages, joined
from rankmap.recording.words import NEARLY_EQUAL, stencil_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rankmap.arrays import Ints
    from rankmap.recording import Recording

__all__ = ["MOST_STEPS", "steps_in"]

#: Steps at most: the largest, and all that is left in one more.
MOST_STEPS = 16

#: Share of all bytes from which messages are a step of their own.
LEAST_SHARE = 0.01


def steps_in(recording: Recording) -> list[Messages]:
    """Return what a program sends, step by step; all in one where nothing tells steps apart.

    Parameters
    ----------
    recording : Recording

    Returns
    -------
    list of Messages
        Together all that was recorded, each step by pair of ranks.

    Raises
    ------
    UsageError
        A collective has too many pairs to write out.

    Examples
    --------
    >>> from rankmap.recording import Messages, Phase, Recording
    >>> pairs = np.array([0, 1, 1, 0]), np.array([1, 0, 2, 2])
    >>> sent = Messages(*pairs, np.full(4, 100), np.full(4, 10))
    >>> alone = Phase("point-to-point", "app+0x1f", 20, 40, sent)
    >>> [step.target.tolist() for step in steps_in(Recording(3, 1.0, (alone,)))]
    [[1, 2], [2, 0]]
    """
    ranks = recording.ranks
    sent = [phase.messages().by_pair(ranks) for phase in recording.phases]
    least = LEAST_SHARE * sum(int(one.bytes.sum()) for one in sent)
    found: list[Messages] = []
    together: list[_Together] = []
    rest: list[Messages] = []
    for phase, one in zip(recording.phases, sent, strict=True):
        partners = np.bincount(one.source, minlength=ranks)
        if one.bytes.sum() <= least:
            rest.append(one)
        elif phase.together <= 1 and not phase.collectives and partners.max() > 1:
            found += _one_by_one(one, ranks)
        elif not any(other.joined_by(phase.calls, one) for other in together):
            together.append(_Together(phase.calls, partners, [one]))
    found += [joined(group.parts).by_pair(ranks) for group in together]
    found.sort(key=lambda one: -int(one.bytes.sum()))
    rest += found[MOST_STEPS - 1 :]
    last = joined(rest).by_pair(ranks)
    return [one for one in (*found[: MOST_STEPS - 1], last) if one.bytes.sum()]


@dataclass
class _Together:
    """Phases of different ranks that are entered equally often.

    Attributes
    ----------
    calls : int
    senders : int64 (ranks,)
        Pairs that each rank sends to.
    parts : list of Messages
    """

    calls: int
    senders: Ints
    parts: list[Messages]

    def joined_by(self, calls: int, sent: Messages) -> bool:
        """Take a phase in, unless it is entered otherwise or a rank sends in both."""
        fits = calls == self.calls and not self.senders[sent.source].any()
        if fits:
            self.parts.append(sent)
            self.senders += np.bincount(sent.source, minlength=len(self.senders))
        return fits


def _one_by_one(sent: Messages, ranks: int) -> Iterator[Messages]:
    """Yield messages that ranks send one at a time: by direction, or by how far they go."""
    grid = stencil_in(sent, ranks, NEARLY_EQUAL)
    dims = (ranks,) if grid is None else grid.dims
    here = np.array(np.unravel_index(sent.source, dims))
    there = np.array(np.unravel_index(sent.target, dims))
    way = np.ravel_multi_index(tuple((there - here) % np.array(dims)[:, None]), dims)
    ways = np.unique(way)
    if len(ways) > MOST_STEPS:  # no grid: to each rank's first partner, then to its second
        first = np.searchsorted(sent.source, sent.source)
        way = np.arange(len(way)) - first
        ways = np.unique(way)
    for one in ways:
        yield Messages(*(column[way == one] for column in sent))
