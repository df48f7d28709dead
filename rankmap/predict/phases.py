"""Phases: what of a pattern is sent at once, and what only after something else.

A pattern and an order become a few phases, each a demand on the network from
node to node and the messages it is made of. Structured patterns are never
expanded into pairs of ranks: an all-to-all is so many ranks on each node, a
stencil the grid of nodes against itself, shifted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.network.demand import Demand
    from rankmap.pattern import Pattern
    from rankmap.predict.summing import Summed

    Ints = NDArray[np.int64]
    Steps = Callable[[], Iterator[tuple[Summed, float]]]

__all__ = ["ALGORITHMS", "Job", "Phase", "algorithm_of", "phases"]

#: Ways to do an all-to-all, the default first; every other pattern sends at once.
ALGORITHMS = ("at-once", "pairwise", "ring", "bruck")


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Where the ranks are.

    Attributes
    ----------
    machine : Machine
    rows : int64 (n,)
        The job's nodes as rows of the machine, each once.
    node : int64 (ranks,)
        Node of each rank, an index of `rows`.
    counts : int64 (n,)
        Ranks of each node.
    """

    machine: Machine
    rows: Ints
    node: Ints
    counts: Ints

    def demand(self, sums: Summed) -> Demand:
        """Return messages between nodes as a demand on the network."""
        from placement.network.demand import Demand

        return Demand.pairs(
            self.machine, self.rows[sums.source], self.rows[sums.target], sums.weight
        )


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """What is sent between two points at which everyone waits.

    Attributes
    ----------
    name : str
    total : Demand
        All bytes of the phase.
    job : Job
    flows : callable
        Returns what goes from node to node, and in how many messages.
    steps : callable or None
        Yields what is sent one after the other, and how many steps each
        stands for; None where everything is sent at once.
    in_turn : float
        Messages that wait for each other: how often latency is paid.
    a_rank : float
        Messages that the busiest rank posts at once.
    a_node : float
        Messages that leave the busiest node.
    inside : float
        Bytes that the busiest node moves inside.
    a_pair : float
        Bytes that no node exceeds to any single other one.
    sent : float
        Bytes that the busiest rank sends, inside its node or not.
    shown : int
        Steps that were looked at, of `in_turn`; 0 for all.
    """

    name: str
    total: Demand
    job: Job
    flows: Callable[[], Summed]
    steps: Steps | None = None
    in_turn: float = 1.0
    a_rank: float = 0.0
    a_node: float = 0.0
    inside: float = 0.0
    a_pair: float = 0.0
    sent: float = 0.0
    shown: int = 0


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
    from rankmap.structured import Lines

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


def phases(pattern: Pattern, job: Job, size: float, algorithm: str) -> Iterator[Phase]:
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
    """
    from rankmap.structured import Lines
    from rankmap.training import Training

    if isinstance(pattern, Lines):
        from rankmap.predict import lines

        yield from lines.phases(pattern, job, size, algorithm)
    elif isinstance(pattern, Training):
        from rankmap.predict import axes

        yield from axes.phases(pattern, job, size)
    else:
        from rankmap.predict import neighbours

        yield neighbours.phase(pattern, job, size)
