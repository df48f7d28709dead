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
from rankmap.collectives import partner_in_turn
from rankmap.pattern.structured import Lines
from rankmap.placement import Placement
from rankmap.predict.phase import Phase, RankStep, Sends, between_nodes

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
    ranks = np.arange(placement.ranks).reshape(dims)
    for axis, extent in reversed(list(enumerate(dims))):
        if extent < 2:
            continue
        name = "exchange" if len(dims) == 1 else ("column", "row")[axis]
        lines = np.moveaxis(ranks, axis, -1).reshape(-1, extent)
        block = size * pattern.weight
        if algorithms[axis] == "at-once":
            yield _posted_at_once(name, placement, lines, block)
        else:
            yield _sent_in_turn(name, placement, lines, block, algorithms[axis], steps or extent)


def _posted_at_once(name: str, placement: Placement, lines: Ints, block: float) -> Phase:
    """Return the all-to-all of each row of ranks, everything posted at once."""
    count = lines.shape[1] - 1

    def sends() -> Sends:
        steps = _line_steps(lines, "ring", count)
        return Sends.of((0, step.source, step.target, block) for step in steps)

    traffic = _line_traffic(placement, lines, block)
    return Phase(name, placement, traffic, a_rank=float(count), sent=count * block, sends=sends)


def _sent_in_turn(
    name: str, placement: Placement, lines: Ints, block: float, algorithm: str, most: int
) -> Phase:
    """Return the all-to-all of each row of ranks, step by step."""
    in_blocks = list(_line_steps(lines, algorithm, most))
    steps = [step._replace(size=step.size * block) for step in in_blocks]
    exact = all(step.times == 1 for step in steps)
    traffic = _line_traffic(placement, lines, block)
    if any(step.size != 1 for step in in_blocks):
        traffic = join_traffic(sent * times for sent, times in between_nodes(steps, placement))
    return Phase(
        name,
        placement,
        traffic,
        lambda: between_nodes(steps, placement),
        in_turn=float(sum(step.times for step in steps)),
        sent=sum(step.size * step.times for step in in_blocks) * block,
        shown=0 if exact else len(steps),
        sends=(lambda: Sends.in_turn(steps)) if exact else None,
    )


def _line_traffic(placement: Placement, lines: Ints, block: float) -> Traffic:
    """Return what goes between nodes when the ranks of each row send to each other."""
    if len(lines) == 1:
        return Traffic.everyone(np.arange(len(placement.rows)), placement.counts, block)
    line = np.repeat(np.arange(len(lines)), lines.shape[1])
    return Traffic.lines(line, placement.node_of_rank[lines].ravel(), 1, block)


def _line_steps(lines: Ints, algorithm: str, most: int) -> Iterator[RankStep]:
    """Yield the steps of an all-to-all, or an even sample of them; sizes are in blocks.

    Examples
    --------
    >>> row = np.arange(4)[None]
    >>> [(s.target.tolist(), s.times) for s in _line_steps(row, "pairwise", 9)]
    [([1, 0, 3, 2], 1.0), ([2, 3, 0, 1], 1.0), ([3, 2, 1, 0], 1.0)]
    >>> [(s.target.tolist(), s.size) for s in _line_steps(np.arange(5)[None], "bruck", 9)]
    [([1, 2, 3, 4, 0], 2.0), ([2, 3, 4, 0, 1], 2.0), ([4, 0, 1, 2, 3], 1.0)]
    """
    extent = lines.shape[1]
    place = np.arange(extent)
    turns, times = sample_evenly(extent - 1, most)
    if algorithm == "bruck":
        turns = [1 << k for k in range((extent - 1).bit_length())]
        times = [1.0] * len(turns)
    for turn, stands_for in zip(turns, times, strict=True):
        partner = partner_in_turn(place, turn, extent, algorithm == "pairwise")
        blocks = float((place & turn > 0).sum()) if algorithm == "bruck" else 1.0
        yield RankStep(lines.ravel(), lines[:, partner].ravel(), blocks, stands_for)


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
