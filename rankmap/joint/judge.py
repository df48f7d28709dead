"""Judge nodes and an order together: the predictor's time, and how near other links come to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from placement.network import Loads
from placement.support.array_types import Floats, Ints
from rankmap.joint import work
from rankmap.predict import Predictor
from rankmap.predict.phase import Phase
from rankmap.predict.summing import Summed

Sent = tuple["Exchange", Loads]


__all__ = ["Exchange", "Judge", "Score", "State", "canonical", "exchanges", "move_nodes", "norm"]

#: The power of the mean that stands for the largest of many times: of two links, one with nine
#: tenths of the other's load counts as a twelfth of it, one with half of it as nothing.
POWER = 24


class State(NamedTuple):
    """A job's nodes and where its ranks are on them.

    Attributes
    ----------
    rows : int64 (n,)
        Rows of the machine; the node at place i has the i-th slots.
    slots : int64 (ranks,) or None
        Slot of each rank; None: rank r on slot r.
    name : str
        Where it comes from, for a person.
    """

    rows: Ints
    slots: Ints | None
    name: str


class Score(NamedTuple):
    """What a state is worth.

    Attributes
    ----------
    time : float
        Seconds, as `Predictor.time`.
    soft : float
        The same with every link counted a little, not the busiest alone: at
        least `time`; what a search descends.
    """

    time: float
    soft: float


def norm(seconds: Floats) -> Floats:
    """Return a little more than the largest of many times along the last axis: their p-norm.

    The second largest counts a little, so that a step that relieves one of
    two equal links is seen to win.

    Examples
    --------
    >>> norm(np.array([[1.0, 2.0], [2.0, 2.0]])).round(6).tolist()
    [2.0, 2.058604]
    """
    most = np.maximum(seconds.max(axis=-1, initial=0.0), 0.0)
    share = seconds / np.where(most > 0, most, 1.0)[..., None]
    np.maximum(share, 0.0, out=share)  # what rounding leaves of a difference may be below 0
    eighth = share**2
    eighth *= eighth
    eighth *= eighth
    return np.asarray(most * (eighth * eighth * eighth).sum(axis=-1) ** (1 / POWER))


class Exchange(NamedTuple):
    """What is sent at the same time: a phase, or one step of it.

    Attributes
    ----------
    phase : Phase
    flows : callable
        Returns what goes from node to node.
    sent : float
        Bytes as `Phase.sent`, of this exchange alone.
    times : float
        Steps that it stands for.
    """

    phase: Phase
    flows: Callable[[], Summed]
    sent: float
    times: float


def exchanges(phase: Phase) -> Iterator[Exchange]:
    """Yield what is sent at the same time in a phase, one after the other."""
    if phase.steps is None:
        yield Exchange(phase, phase.flows, phase.sent, 1.0)
        return
    for sums, times in phase.steps():
        sent = sums.message(len(phase.job.node))
        yield Exchange(phase, lambda sums=sums: sums, sent, times)  # type: ignore[misc]


class Judge:
    """Judges states by one predictor, and counts them.

    Attributes
    ----------
    asked : Predictor
    judged : int
        States looked at.
    us : float
        What judging a state takes, about: a number that no clock decides.
    """

    def __init__(self, asked: Predictor, rows: Ints) -> None:
        self.asked = asked
        self.judged = 0
        self.us = work.judging(asked, rows)

    def score(self, rows: Ints, slots: Ints | None) -> tuple[Score, list[Sent]]:
        """Return what nodes and an order are worth, and what is sent with its loads."""
        asked = self.asked
        self.judged += 1
        on = asked.slots(rows)
        left, time, extra = asked.left(on), asked.histogram(on), 0.0
        found = []
        for phase in asked.phases(on, slots):
            loads = asked.loads(phase.total, left)
            time += sum(asked.parts(phase, loads, left))
            for one in exchanges(phase):
                if phase.steps is not None:
                    loads = asked.loads(phase.job.demand(one.flows()), left)
                seconds = loads.seconds()
                extra += one.times * float(norm(seconds) - seconds.max(initial=0.0))
                found.append((one, loads))
        return Score(time, time + extra), found


def canonical(state: State, ppn: int | None) -> State:
    """Return the same placement with its nodes listed by their lowest rank.

    Where all nodes have as many ranks the places are alike, so the order of
    the nodes can say most of the order of the ranks: with one rank a node
    all of it.

    Parameters
    ----------
    state : State
    ppn : int or None
        Ranks of every node; None where they differ: nothing is changed.

    Examples
    --------
    >>> found = canonical(State(np.array([7, 8]), np.array([1, 0]), "a"), 1)
    >>> found.rows.tolist(), found.slots
    ([8, 7], None)
    """
    if state.slots is None or ppn is None:
        return state
    node = state.slots // ppn
    lowest = np.full(len(state.rows), len(node))
    np.minimum.at(lowest, node, np.arange(len(node)))
    order = np.argsort(lowest)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    ranks = np.argsort(place[node], kind="stable")
    slots = np.empty_like(ranks)
    slots[ranks] = np.arange(len(ranks))
    plain = bool((slots == np.arange(len(slots))).all())
    return State(state.rows[order], None if plain else slots, state.name)


def move_nodes(rows: Ints, moves: list[tuple[int, int]]) -> Ints:
    """Return the nodes of all places after some steps.

    Parameters
    ----------
    rows : int64 (n,)
    moves : list of (int, int)
        A place and its new node, or -1 - another place to exchange nodes with.

    Examples
    --------
    >>> move_nodes(np.array([7, 8, 9]), [(0, 4), (1, -1 - 2)]).tolist()
    [4, 9, 8]
    """
    out = rows.copy()
    for place, to in moves:
        if to >= 0:
            out[place] = to
        else:
            out[place], out[-1 - to] = out[-1 - to], out[place]
    return out
