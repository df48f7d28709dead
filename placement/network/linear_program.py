"""The least largest load of few variables, exactly: a linear program, channel by channel.

Of many thousand channels few bind. So the program is solved for some channels alone, by an
interior point method (Wright, "Primal-Dual Interior-Point Methods", 1997): its optimum is a
lower bound for all channels. Then those that are fuller than it join, until there are none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from placement.network.balancing import Problem
from placement.support import arrays

if TYPE_CHECKING:
    from placement.network.balancing import Solution
    from placement.support.array_types import Floats, Ints


__all__ = ["FEW", "Listed", "least_largest", "solve"]

#: Variables up to which a step of the descent would take longer than the program.
FEW = 2000

#: Channels that join at most, in the first round and in each other one.
FIRST, MORE = 120, 60

#: Rounds, and steps of a round, at most.
ROUNDS, STEPS = 40, 60

#: How much of the complementarity a step aims to leave, and how far it goes towards the border.
CENTRE, FAR = 0.1, 0.98


class Listed(Problem, Protocol):
    """A problem that knows what each variable does to single channels."""

    def rows(self, channels: Ints) -> Floats:
        """Return what all of each variable changes on channels, float64 (len(channels), n)."""


def solve(
    problem: Listed,
    best: Solution,
    none: Floats,
    full: Floats,
    tolerance: float,
    enough: float = 0.0,
) -> None:
    """Make the largest load of a solution the least, as `placement.network.balancing.balance` does.

    Parameters
    ----------
    problem : Listed
    best : Solution
        Where the search begins.
    none, full : float64 (m,)
        Loads where nothing, and where everything takes the first way.
    tolerance : float
        Proven gap at which to stop.
    enough : float
        A largest load that need not become less.
    """
    used, change = np.zeros(0, dtype=np.int64), np.zeros((0, len(problem.cap)))
    looked, most = np.maximum(np.maximum(none, full), problem.load(best.x)), FIRST
    for _ in range(ROUNDS):
        if best.worst <= max(enough, best.bound * (1 + tolerance)):
            break
        fuller = np.setdiff1d(np.flatnonzero(looked > max(best.bound, enough)), used)
        new = fuller[np.argsort(-looked[fuller], kind="stable")[:most]]
        if not len(new):
            break
        used, change = np.append(used, new), np.concatenate([change, problem.rows(new)])
        share, prices, bound, steps = least_largest(none[used], change, tolerance / 4, enough)
        every = np.zeros(len(none))
        every[used] = prices
        best.prove(every, bound)
        best.steps += steps
        looked, most = problem.load(share * problem.cap), MORE
        if float(looked.max()) < best.worst:
            best.x, best.worst = share * problem.cap, float(looked.max())


def least_largest(
    none: Floats, change: Floats, tolerance: float, enough: float = 0.0
) -> tuple[Floats, Floats, float, int]:
    """Return the shares 0 … 1 that make the largest of ``none + change @ share`` least.

    Parameters
    ----------
    none : float64 (m,)
        Loads, at least one above 0.
    change : float64 (m, n)
    tolerance : float
        Proven gap at which to stop.
    enough : float
        A largest load that need not become less.

    Returns
    -------
    share : float64 (n,)
    prices : float64 (m,)
        At least 0, adding up to 1: they prove the bound.
    bound : float
        No shares have a smaller largest load.
    steps : int

    Examples
    --------
    Two ways for one message, the second with twice the bandwidth: a third takes the first.

    >>> share, prices, bound, _ = least_largest(
    ...     np.array([0.0, 1.5]), np.array([[3.0], [-1.5]]), 1e-6)
    >>> round(float(share[0]), 4), round(bound, 4), prices.round(3).tolist()
    (0.3333, 1.0, [0.333, 0.667])
    """
    m, n = change.shape
    share = np.full(n, 0.5)
    load = none + change @ share
    size = float(load.max())
    none, change, load, enough = none / size, change / size, load / size, enough / size
    top, prices, low, high = 1.1, np.full(m, 1 / m), np.full(n, 1 / n), np.full(n, 1 / n)
    best, bound, proof, found = np.inf, 0.0, prices, share
    step = 0
    while step < STEPS:
        cheaper = np.minimum(prices @ change, 0.0).sum()
        proven = float(prices @ none + cheaper) / float(prices.sum())
        if proven > bound:
            bound, proof = proven, prices / prices.sum()
        if float(load.max()) < best:
            best, found = float(load.max()), share
        if best <= max(enough, bound * (1 + tolerance)):
            break
        step += 1
        room, rest = top - load, 1 - share
        centre = CENTRE * float(prices @ room + low @ share + high @ rest) / (m + 2 * n)
        stiff = prices / room
        matrix = arrays.product(change.T * stiff, change)
        matrix[np.diag_indices(n)] += low / share + high / rest
        wanted = centre / share - centre / rest - (centre / room) @ change
        each, weight = stiff @ change, float(stiff.sum())
        both = arrays.solve(matrix, np.column_stack([wanted, each])).T
        above = float((centre / room).sum()) - 1
        up = (above + float(each @ both[0])) / (weight - float(each @ both[1]))
        moved = both[0] + up * both[1]
        filled = change @ moved
        dearer = centre / room - prices - stiff * (up - filled)
        lower = (centre - low * moved) / share - low
        higher = (centre + high * moved) / rest - high
        far = _length((room, up - filled), (share, moved), (rest, -moved))
        share, top, load = share + far * moved, top + far * up, load + far * filled
        far = _length((prices, dearer), (low, lower), (high, higher))
        prices = prices + far * dearer
        low, high = low + far * lower, high + far * higher
    return found, proof, bound * size, step


def _length(*lines: tuple[Floats, Floats]) -> float:
    """Return how far along these directions all numbers stay above 0: 1 at most."""
    return min(1.0, *(FAR / max(FAR, float((-way / at).max(initial=0.0))) for at, way in lines))
