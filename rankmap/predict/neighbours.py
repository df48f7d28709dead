"""Exchanges with few partners: stencils, rings, graphs and measured matrices.

All of them are sent at once, but a staged stencil, which goes one way along one
dimension after the other, a sweep, wave after wave, and a recording, whose steps follow each
other as they were seen to. Who sends what in which direction:

=========  ====================================================================
stencil    ``--bytes`` times the dimension's weight, both ways
sweep      ``--bytes`` to the next ranks downstream, piece by piece, from each corner
ring       ``--bytes`` to the next rank only
sends      ``--bytes`` times what each line of the list says; a permutation and a
           transposition are ``--bytes`` from each rank to one other
graph      ``--bytes`` times the edge's weight, both ways
matrix     ``--bytes`` times what the file says of that very direction
measured   the same
=========  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from placement.support.array_types import Floats, Ints
from placement.support.arrays import sample_evenly
from placement.traffic import NO_TRAFFIC, Traffic, join_traffic
from rankmap.pattern import Pattern
from rankmap.pattern.graph import DIRECTED, ORDERED, PASSES, RECORDING, STEPS, Graph
from rankmap.pattern.structured import GridPattern, Ring, Stencil
from rankmap.pattern.sweep import Sweep, waves
from rankmap.placement import Placement
from rankmap.predict import recorded
from rankmap.predict.algorithms import asked_library
from rankmap.predict.phase import Phase, Sends, Stretches
from rankmap.predict.recorded import RecordedRun
from rankmap.recording import Recording
from rankmap.recording.sequence import steps_in
from rankmap.score.traffic import pairs_of_nodes

#: Turns of an all-to-all in a recording that are looked at: of more an even sample.
MOST_TURNS = 16


def neighbour_phase(
    pattern: Pattern, placement: Placement, size: float, most_steps: int | None = None
) -> Phase:
    """Return the one phase of a pattern that is no all-to-all.

    Parameters
    ----------
    pattern : Pattern
    placement : Placement
    size : float
        ``--bytes``.
    most_steps : int or None
        Waves of a sweep that are looked at, at most; None: all.
    """
    if isinstance(pattern, Sweep):
        return _sweep_phase(pattern, placement, size, most_steps)
    nodes = len(placement.rows)
    steps = sends = None
    in_turn = passes = 1.0
    if isinstance(pattern, Graph):
        traffic, most, sent = _graph_traffic(pattern, placement, size)
        passes = in_turn = pattern.known.get(PASSES, passes)
        ordered = _ordered_phase(pattern, placement, size, traffic, most, sent)
        if ordered is not None:
            return ordered
        if STEPS in pattern.known:
            turns = _recorded_turns(
                pattern, size, placement.known_machine.topology.parameters.get("mpi", "")
            )
            steps = partial(_recorded_steps, turns, placement)
            in_turn = sum(turn.stands_for * turn.times for turn in turns)
            if all(turn.stands_for == 1 for turn in turns):
                passes = max(turns, key=lambda turn: float(turn.sent.bytes.sum())).times
                sends = partial(_recorded_sends, turns, passes)
    elif isinstance(pattern, Ring):
        on = len(placement.node_of_rank) > 1
        there = np.roll(placement.node_of_rank, -1)
        traffic = (
            Traffic.of(placement.node_of_rank, there, size).by_pair(nodes) if on else NO_TRAFFIC
        )
        most = float(on)
        sent = on * size
    else:
        directions = list(_both_ways(pattern, placement.node_of_rank, size, nodes))
        traffic, most = join_traffic(directions), _busiest_partners(pattern)
        if isinstance(pattern, Stencil) and pattern.staged:
            steps = partial(iter, [(part, 1.0) for part in directions])
            in_turn = float(len(directions))
            sends = partial(_staged_sends, pattern, len(placement.node_of_rank), size)
        sent = size * _busiest_partners(pattern, weighted=True)
    return Phase(
        "exchange",
        placement,
        traffic,
        steps=steps,
        in_turn=in_turn,
        a_rank=most,
        sent=sent,
        sends=sends,
        passes=passes,
    )


def _ordered_phase(
    pattern: Graph, placement: Placement, size: float, traffic: Traffic, most: float, sent: float
) -> Phase | None:
    """Return a recording whose ranks' order is known: wave after wave; None where it is not."""
    run: RecordedRun | None = pattern.known.get(ORDERED)
    library = asked_library("library", placement.known_machine.topology.parameters.get("mpi", ""))
    messages = run.messages(library) if run is not None and len(placement.node_of_rank) else None
    if run is None or messages is None:
        return None
    sends, waves = messages
    times = run.times(sends)
    sized = sends._replace(size=sends.size * size)

    def parts(cost: Callable[[Floats], Floats | Ints], room: int) -> Stretches:
        some = recorded.cheap_stretches(sized, waves, cost, room)
        return some._replace(stand_for=some.stand_for * times)

    return Phase(
        "exchange",
        placement,
        traffic,
        steps=partial(recorded.wave_steps, sized, waves, placement, times),
        in_turn=times * (int(waves.wave.max()) + 1),
        a_rank=most,
        sent=sent,
        stretches=parts,
    )


def _sweep_phase(pattern: Sweep, placement: Placement, size: float, most: int | None) -> Phase:
    """Return a sweep: its waves follow each other, as each message waits for others."""
    wave, source, target = waves(pattern.dims, pattern.messages)
    count = int(wave[-1]) + 1 if len(wave) else 0
    chosen, times = sample_evenly(count, most or max(1, count))
    begins = np.searchsorted(wave, np.arange(count + 1))
    node, nodes = placement.node_of_rank, len(placement.rows)

    def steps() -> Iterator[tuple[Traffic, float]]:
        for number, alike in zip(chosen, times, strict=True):
            sent = slice(begins[number - 1], begins[number])
            ends = node[source[sent]], node[target[sent]]
            yield Traffic.of(*ends, size).by_pair(nodes), alike

    sent = Traffic.of(node[source], node[target], size).by_pair(nodes)
    return Phase(
        "exchange",
        placement,
        sent,
        steps=steps,
        in_turn=float(count),
        sent=float(np.bincount(source, minlength=1).max()) * size,
        shown=0 if len(chosen) == count else len(chosen),
        dependent=True,
        sends=(lambda: Sends.of([(wave, source, target, size)])) if len(chosen) == count else None,
    )


class _RecordedTurn(NamedTuple):
    """What of a recording is sent at once.

    Attributes
    ----------
    sent : Traffic
        Between ranks, all times together.
    times : float
        How often.
    stands_for : float
        Turns like this one that were not looked at, and it.
    """

    sent: Traffic
    times: float
    stands_for: float = 1.0


def _recorded_turns(pattern: Graph, size: float, mpi: str) -> list[_RecordedTurn]:
    """Return the steps of a recording, an all-to-all as this library does it, if one is known."""
    library = asked_library("library", mpi)
    turns: list[_RecordedTurn] = []
    for step, times, place, alike in pattern.known[STEPS]:
        sent = step.sized(size)
        line = 0 if place is None else int(place.max()) + 1
        block = sent.bytes.sum() / max(1, sent.messages.sum())
        if library is None or not line or library.choose("alltoall", block, line) != "pairwise":
            turns.append(_RecordedTurn(sent, float(times), alike))
            continue
        a, b = place[sent.source], place[sent.target]
        turn = a ^ b if line & (line - 1) == 0 else (b - a) % line
        for number, stands_for in zip(*sample_evenly(line - 1, MOST_TURNS), strict=True):
            turns.append(_RecordedTurn(sent.some(turn == number), float(times), stands_for))
    return turns


def _recorded_steps(
    turns: list[_RecordedTurn], placement: Placement
) -> Iterator[tuple[Traffic, float]]:
    """Yield what goes between nodes in each step of a recording, and how many it stands for."""
    for turn in turns:
        sent = Traffic.of(turn.sent.source, turn.sent.target, turn.sent.bytes)
        yield sent.by_node(placement.node_of_rank, len(placement.rows)), turn.stands_for


def _recorded_sends(turns: list[_RecordedTurn], passes: float) -> Sends:
    """Return the messages of one pass through a recording."""
    sent = (turn.sent for turn in turns)
    return Sends.of((k, x.source, x.target, x.bytes / passes) for k, x in enumerate(sent))


def _staged_sends(pattern: Stencil, ranks: int, size: float) -> Sends:
    """Return the messages of a staged stencil: there and back along each dimension in order."""
    edges = [(np.asarray(a), np.asarray(b), weight * size)
             for a, b, weight in pairs_of_nodes(pattern, np.arange(ranks))]  # fmt: skip
    directed = [flow for a, b, sent in reversed(edges) for flow in ((a, b, sent), (b, a, sent))]
    return Sends.of((k, *flow) for k, flow in enumerate(directed))


def _both_ways(pattern: Pattern, node: Ints, size: float, nodes: int) -> Iterator[Traffic]:
    """Yield what goes between nodes, first one way along every edge, then back."""
    for a, b, weight in pairs_of_nodes(pattern, node):
        forward = Traffic.of(a, b, weight * size).by_pair(nodes)
        yield forward
        yield forward.reversed()


def _busiest_partners(pattern: Pattern, weighted: bool = False) -> float:
    """Return the messages that the busiest rank sends, or what they weigh together.

    Examples
    --------
    >>> from rankmap.pattern.structured import Stencil
    >>> _busiest_partners(Stencil((4, 4, 2))), _busiest_partners(Stencil((4, 4), reach=2))
    (5.0, 8.0)
    >>> _busiest_partners(Stencil((4, 4, 2), weights=(1.0, 2.0, 4.0)), weighted=True)
    10.0
    """
    if not isinstance(pattern, GridPattern):
        degree = np.zeros(pattern.ranks or 0)
        for edges in pattern.edges():
            weight = edges.bytes if weighted else None
            degree += np.bincount(edges.source, weight, minlength=len(degree))
            degree += np.bincount(edges.target, weight, minlength=len(degree))
        return float(degree.max(initial=0))
    where = list(zip(pattern.dims or (), pattern.periodic, strict=True))
    steps = [(offset, weight if weighted else 1.0) for offset, weight in pattern.steps()]
    steps += [(tuple(-s for s in offset), weight) for offset, weight in steps]
    return float(sum(weight * _sends_along(where, offset) for offset, weight in steps))


def _sends_along(where: list[tuple[int, bool]], offset: tuple[int, ...]) -> bool:
    """Return whether the best placed rank, in the middle of the grid, sends along an offset.

    In the middle of an extent of 2 is its first place, from where + leads on.
    """
    moves = [(extent, wraps, step) for (extent, wraps), step in zip(where, offset, strict=True)]
    open_to = all(
        not step or wraps or extent > 2 or (extent == 2 and step > 0)
        for extent, wraps, step in moves
    )
    return open_to and any(step % extent for extent, _, step in moves)


def _graph_traffic(
    pattern: Graph, placement: Placement, size: float
) -> tuple[Traffic, float, float]:
    """Return what goes between nodes, the messages of the busiest rank and the most it sends."""
    if DIRECTED in pattern.known:
        a, b, weight = directed_messages(pattern)
        most = float(np.bincount(a, minlength=1).max(initial=0))
        sent = float(np.bincount(a, weight).max(initial=0.0)) * size
        traffic = Traffic.of(a, b, weight * size).by_node(
            placement.node_of_rank, len(placement.rows)
        )
        return traffic, most, sent
    size *= _share_of_edge(pattern)
    a, b, weight = pattern.upper()  # each edge once: as much goes both ways
    ends = placement.node_of_rank[a], placement.node_of_rank[b]
    forward = Traffic.undirected(*ends, weight * size).by_pair(len(placement.rows))
    most = float(np.diff(pattern.indptr).max(initial=0))
    sent = float(np.bincount(pattern.row, pattern.weights).max(initial=0.0)) * size
    return forward + forward.reversed(), most, sent


def directed_messages(pattern: Graph) -> tuple[Ints, Ints, Floats]:
    """Return who sends how much to whom: (from, to, weight) of each message.

    A list of messages and a measured matrix whose file can be read say it; for
    any other graph an edge's weight is what goes each way (``graph:``) or both
    ways together (``matrix:``, split in halves).

    Examples
    --------
    >>> from rankmap.pattern.graph import from_edges
    >>> g = from_edges(2, np.array([0]), np.array([1]), np.array([4.0]))
    >>> [column.tolist() for column in directed_messages(g)]
    [[0, 1], [1, 0], [4.0, 4.0]]
    """
    kept = pattern.known.get(DIRECTED)
    if kept is not None:
        messages: tuple[Ints, Ints, Floats] = kept
        return messages
    return pattern.row, pattern.indices, pattern.weights * _share_of_edge(pattern)


def _share_of_edge(pattern: Graph) -> float:
    """Return what goes each way, as a share of an edge's weight."""
    return 0.5 if pattern.text.startswith(("matrix:", "measured:")) else 1.0


def remember_steps(pattern: Graph, recording: Recording) -> None:
    """Keep a recording, and what of it follows each other, with the graph made of it.

    Where all of it goes together, that is how often it does.
    """
    pattern.known[RECORDING] = recording
    if recording.order is not None:
        pattern.known[ORDERED] = RecordedRun(recording)
    steps = steps_in(recording)
    if len(steps) > 1 or any(step.place is not None for step in steps):
        pattern.known[STEPS] = [step._replace(sent=step.sent.away()) for step in steps]
    elif steps:
        pattern.known[PASSES] = float(max(1, steps[0].times))
