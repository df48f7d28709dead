"""Phases: what of a pattern is sent at once, and what only after something else.

A pattern and an order become a few phases, each a demand on the network from
node to node and the messages it is made of. Structured patterns are never
expanded into pairs of ranks: an all-to-all is so many ranks on each node, a
stencil the grid of nodes against itself, shifted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.errors import UsageError, printable
from rankmap.predict import axes, lines, neighbours

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rankmap.pattern import Pattern
    from rankmap.predict.phase import Job, Phase

__all__ = ["ALGORITHMS", "algorithm_of", "phases"]

#: Ways to do an all-to-all, the default first; every other pattern sends at once.
ALGORITHMS = ("at-once", "pairwise", "ring", "bruck")


def algorithm_of(pattern: Pattern, wanted: str = "") -> str:
    """Return the algorithm by which a pattern's messages are sent.

    Parameters
    ----------
    pattern : Pattern
    wanted : str
        One of `ALGORITHMS`; '' for the default.

    Raises
    ------
    UsageError
        No such algorithm, or one for an all-to-all where there is none.

    Examples
    --------
    >>> from rankmap.pattern import parse_pattern
    >>> algorithm_of(parse_pattern("alltoall"), "bruck")
    'bruck'
    """
    from rankmap.pattern.structured import Lines

    if wanted and wanted not in ALGORITHMS:
        raise UsageError(
            f"no algorithm '{printable(wanted, 40)}'", f"there are {', '.join(ALGORITHMS)}"
        )
    chosen = wanted or ALGORITHMS[0]
    if chosen != ALGORITHMS[0] and not isinstance(pattern, Lines):
        raise UsageError(
            f"algorithm {chosen} is one of an all-to-all, {pattern.spec} has none",
            f"only {ALGORITHMS[0]} applies",
        )
    return chosen


def phases(
    pattern: Pattern, job: Job, size: float, algorithm: str, steps: int | None = None
) -> Iterator[Phase]:
    """Yield the phases of a pattern, which follow each other.

    Parameters
    ----------
    pattern : Pattern
        Fitted to the ranks.
    job : Job
    size : float
        ``--bytes``.
    algorithm : str
        As `algorithm_of` returns it.
    steps : int or None
        Steps of an algorithm that are looked at, at most; None: as many as
        take less than a second.
    """
    from rankmap.pattern.structured import Lines
    from rankmap.pattern.training import Training

    if isinstance(pattern, Lines):
        yield from lines.phases(pattern, job, size, algorithm, steps)
    elif isinstance(pattern, Training):
        yield from axes.phases(pattern, job, size)
    else:
        yield neighbours.phase(pattern, job, size)
