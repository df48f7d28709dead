"""All-to-alls along the lines of a process grid: at once, pairwise, ring, Bruck.

==========  ====================================================================
at-once     everything is posted at once (MPI's linear and scattered algorithms)
pairwise    step i: rank r exchanges with r XOR i where a line's ranks are a power
            of two, else it sends to r + i (MPICH's and Open MPI's pairwise)
ring        step i: rank r sends to r + i (the name that STAR-MPI and SimGrid use)
bruck       round k: rank r sends to r + 2^k all blocks whose distance has bit k:
            fewest messages, more bytes
==========  ====================================================================

All lines of one direction of a grid do the same step at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placement.support.array_types import Ints
from placement.support.arrays import sample_evenly
from placement.traffic import Traffic, join_traffic
from rankmap.pattern.structured import Lines
from rankmap.placement import Placement
from rankmap.predict.phase import Phase, Sends, Steps

Step = tuple[Ints, float, float]

#: us that looking at all steps of a stepwise algorithm may take; of more an even sample is looked
#: at, at least so many.
MOST_US, LEAST_STEPS = 3e5, 6

#: us that a step takes for each channel of the network, about, where a routing takes long.
US_A_CHANNEL = {"single": 1.0, "adaptive": 0.45}


def phases(
    pattern: Lines,
    placement: Placement,
    size: float,
    algorithms: list[str],
    steps: int | None = None,
) -> Iterator[Phase]:
    """Yield the all-to-all of each direction of the grid, rows (the last dimension) first.

    Parameters
    ----------
    pattern : Lines
    placement : Placement
    size : float
    algorithms : list of str
        Of each dimension.
    steps : int or None
        Steps that are looked at, at most; None: all.
    """
    dims = pattern.dims or ()
    part = size * pattern.weight
    for axis in reversed(range(len(dims))):
        if dims[axis] < 2:
            continue
        table = _LineTable(placement, dims, axis, part)
        algorithm = algorithms[axis]
        name = "exchange" if len(dims) == 1 else ("column", "row")[axis]
        if algorithm == "at-once":
            yield table.at_once(name)
        elif algorithm == "bruck":
            yield table.in_steps(name, list(_bruck_rounds(dims[axis])))
        else:
            yield table.in_steps(
                name, _sample_steps(dims[axis], algorithm == "pairwise", steps or dims[axis])
            )


class _LineTable:
    """The nodes of the ranks of each line, and how many ranks of a line each node has."""

    def __init__(self, placement: Placement, dims: tuple[int, ...], axis: int, part: float) -> None:
        self.placement = placement
        self.part = part
        self.extent = dims[axis]
        ranks = np.arange(len(placement.node_of_rank)).reshape(dims)
        self.ranks = np.moveaxis(ranks, axis, -1).reshape(-1, self.extent)
        self.nodes = placement.node_of_rank[self.ranks]
        if len(placement.node_of_rank) == self.extent:
            self.lines = Traffic.everyone(np.arange(len(placement.rows)), placement.counts, part)
        else:
            line = np.repeat(np.arange(len(self.nodes)), self.extent)
            self.lines = Traffic.lines(line, self.nodes.ravel(), 1, part)

    def at_once(self, name: str) -> Phase:
        """Return the exchange with everything posted at once."""
        return Phase(
            name,
            self.placement,
            self.lines,
            a_rank=self.extent - 1.0,
            sent=(self.extent - 1) * self.part,
            sends=lambda: self._sends(
                _sample_steps(self.extent, False, self.extent), together=True
            ),
        )

    def in_steps(self, name: str, steps: list[Step]) -> Phase:
        """Return the exchange as steps: (partner of each place in a line, blocks, times)."""
        exact = all(times == 1 for _, _, times in steps)
        doubled = any(blocks != 1 for _, blocks, _ in steps)
        walk: Steps = lambda: self._walk(steps)  # noqa: E731 - a name for the type checker
        moved = sum(blocks * times for _, blocks, times in steps)
        return Phase(
            name,
            self.placement,
            join_traffic(step * times for step, times in walk()) if doubled else self.lines,
            walk,
            in_turn=float(sum(times for _, _, times in steps)),
            sent=moved * self.part,
            shown=0 if exact else len(steps),
            sends=(lambda: self._sends(steps)) if exact else None,
        )

    def _walk(self, steps: list[Step]) -> Iterator[tuple[Traffic, float]]:
        """Yield what is sent in each step."""
        source, nodes = self.nodes.ravel(), len(self.placement.rows)
        for partner, blocks, times in steps:
            target = self.nodes[:, partner].ravel()
            yield Traffic.of(source, target, blocks * self.part).by_pair(nodes), times

    def _sends(self, steps: list[Step], together: bool = False) -> Sends:
        """Return what each rank sends in each step, or in one."""
        messages = [
            (0 if together else k, self.ranks, self.ranks[:, partner], blocks * self.part)
            for k, (partner, blocks, _) in enumerate(steps)
        ]
        return Sends.of(messages)


def most_steps(channels: int, ranks: int, routing: str) -> int:
    """Return how many steps of an all-to-all are looked at, by what one takes, about.

    Parameters
    ----------
    channels, ranks : int
    routing : str

    Examples
    --------
    >>> most_steps(3072, 512, "minimal"), most_steps(24576, 512, "single")
    (364, 12)
    """
    us = 300 + US_A_CHANNEL.get(routing, 0.15) * channels + 0.12 * ranks
    return max(LEAST_STEPS, int(MOST_US / us))


def _sample_steps(extent: int, exchange: bool, most: int) -> list[Step]:
    """Return the steps 1 … extent-1, or an even sample of them, each with its partners.

    Examples
    --------
    >>> [(partner.tolist(), times) for partner, _, times in _sample_steps(4, True, 9)]
    [([1, 0, 3, 2], 1.0), ([2, 3, 0, 1], 1.0), ([3, 2, 1, 0], 1.0)]
    """
    place = np.arange(extent)
    exchange = exchange and extent & (extent - 1) == 0
    chosen, times = sample_evenly(extent - 1, most)
    return [
        (place ^ s if exchange else (place + s) % extent, 1.0, t)
        for s, t in zip(chosen, times, strict=True)
    ]


def _bruck_rounds(extent: int) -> Iterator[Step]:
    """Yield the rounds of Bruck's algorithm: partner, blocks sent, 1.

    Examples
    --------
    >>> [(partner.tolist(), blocks) for partner, blocks, _ in _bruck_rounds(5)]
    [([1, 2, 3, 4, 0], 2.0), ([2, 3, 4, 0, 1], 2.0), ([4, 0, 1, 2, 3], 1.0)]
    """
    place = np.arange(extent)
    distance = 1
    while distance < extent:
        yield (place + distance) % extent, float((place & distance > 0).sum()), 1.0
        distance *= 2
