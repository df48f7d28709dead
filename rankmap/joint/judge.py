"""Judge nodes and an order together: the predictor's time, and how near other links come to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankmap.predict.asked import fitted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.network import Loads
    from rankmap.predict import Predictor
    from rankmap.predict.phases import Phase

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["Judge", "Score", "State", "canonical", "norm"]

#: The power of the mean that stands for the largest of many times: the second largest counts a
#: little, so that a step that relieves one of two equal links is seen as one.
POWER = 24.0


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


def norm(seconds: Floats) -> float:
    """Return a little more than the largest of many times (their p-norm).

    Examples
    --------
    >>> round(norm(np.array([1.0, 2.0])), 6), round(norm(np.array([2.0, 2.0])), 3)
    (2.0, 2.059)
    """
    most = float(seconds.max(initial=0.0))
    if not most or not np.isfinite(most):
        return most
    share = seconds / most
    return most * float((share[share > 0.5] ** POWER).sum() ** (1 / POWER))


class Judge:
    """Judges states by one predictor, and counts them.

    Attributes
    ----------
    asked : Predictor
    judged : int
        States looked at.
    """

    def __init__(self, asked: Predictor) -> None:
        self.asked = asked
        self.judged = 0

    def score(self, rows: Ints, slots: Ints | None = None) -> Score:
        """Return what nodes and an order are worth."""
        return self._scored(rows, slots)[0]

    def details(self, rows: Ints, slots: Ints | None = None) -> list[tuple[Phase, Loads]]:
        """Return each phase and what it puts on the channels."""
        return self._scored(rows, slots)[1]

    def both(self, rows: Ints, slots: Ints | None) -> tuple[Score, list[tuple[Phase, Loads]]]:
        """Return what `score` and `details` do, for the price of one."""
        return self._scored(rows, slots)

    def _scored(self, rows: Ints, slots: Ints | None) -> tuple[Score, list[tuple[Phase, Loads]]]:
        asked = self.asked
        self.judged += 1
        on = asked.slots(rows)
        left, pattern = asked.left(on), fitted(asked.pattern, on)
        time = soft = asked.histogram(pattern, on)
        found = []
        for phase in asked.phases(pattern, on, slots):
            loads = asked.loads(phase.total, left)
            parts = asked.parts(phase, loads, left)
            time += sum(parts)
            seconds = loads.seconds()
            most = float(seconds.max(initial=0.0))
            soft += sum(parts[1:]) + max(parts[0], parts[0] - most + norm(seconds))
            found.append((phase, loads))
        return Score(time, soft), found


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
