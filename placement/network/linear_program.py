"""The least largest load of few variables, exactly: a linear program, channel by channel.

Of many thousand channels few bind. So the program is solved for some channels alone, by an
interior point method (Wright, "Primal-Dual Interior-Point Methods", 1997): its optimum is a
lower bound for all channels. Then those that are fuller than it join, until there are none.

Of many variables most are alike: those between the same two groups begin as one part, with one
share for all. The prices of the channels say which of its variables would rather take the one
way and which the other: by that a part becomes two, until all variables for themselves, each by
its cheaper way, are hardly better.
"""

from __future__ import annotations

import numpy as np

from placement.network.balancing import Problem, Solution
from placement.support import arrays
from placement.support.array_types import Floats

__all__ = ["FEW", "least_largest", "solve"]

#: Variables up to which the descent would take longer than the program, and up to which each is
#: a part by itself from the beginning.
FEW, ALONE = 5000, 400

#: Channels that join at most, in the first round and in each other one.
FIRST, MORE = 120, 60

#: Rounds, and steps of a round, at most; and multiplications that are too many for another round.
ROUNDS, STEPS, WORK = 40, 60, 4_000_000_000

#: How much of the complementarity a step aims to leave, and how far it goes towards the border.
CENTRE, FAR = 0.1, 0.98


def solve(
    problem: Problem,
    best: Solution,
    none: Floats,
    full: Floats,
    tolerance: float,
    enough: float = 0.0,
) -> None:
    """Make the largest load of a solution the least, as `placement.network.balancing.balance` does.

    Parameters
    ----------
    problem : Problem
    best : Solution
        Where the search begins.
    none, full : float64 (m,)
        Loads where nothing, and where everything takes the first way.
    tolerance : float
        Proven gap at which to stop.
    enough : float
        A largest load that need not become less.
    """
    part = np.arange(len(problem.cap)) if len(problem.cap) <= ALONE else problem.parts()
    used, change = np.zeros(0, dtype=np.int64), np.zeros((0, len(problem.cap)))
    looked, most = np.maximum(np.maximum(none, full), best.load), FIRST
    least, work = 0.0, 0
    for _ in range(ROUNDS):
        if best.worst <= max(enough, best.bound * (1 + tolerance)) or work > WORK:
            break
        fuller = np.setdiff1d(np.flatnonzero(looked > max(least, enough)), used)
        new = fuller[np.argsort(-looked[fuller], kind="stable")[:most]]
        used, change = np.append(used, new), np.concatenate([change, problem.rows(new)])
        together = np.array([np.bincount(part, row) for row in change])
        share, prices, least, steps = least_largest(none[used], together, tolerance / 4, enough)
        every = np.zeros(len(none))
        every[used] = prices
        dearer = prices @ change
        best.prove(every, float(prices @ none[used] + np.minimum(dearer, 0.0).sum()))
        best.steps += steps
        looked, most = problem.load(share[part] * problem.cap), MORE
        best.improve(share[part] * problem.cap, looked)
        if float(looked.max()) <= max(enough, least * (1 + tolerance / 2)):
            part = np.unique(2 * part + (dearer > 0), return_inverse=True)[1]
        work += steps * min(together.shape) ** 2 * max(together.shape)


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
        if not min(room.min(), rest.min(), share.min()) > 0:
            break  # nearer to the border than numbers are
        centre = CENTRE * float(prices @ room + low @ share + high @ rest) / (m + 2 * n)
        stiff = prices / room
        wanted = centre / share - centre / rest - (centre / room) @ change
        each, weight = stiff @ change, float(stiff.sum())
        try:
            both = _solve_normal(
                change, stiff, low / share + high / rest, np.stack([wanted, each], 1)
            ).T
        except np.linalg.LinAlgError:
            break  # the same
        above = float((centre / room).sum()) - 1
        up = (above + float(each @ both[0])) / (weight - float(each @ both[1]))
        moved = both[0] + up * both[1]
        if not np.isfinite(moved).all():
            break
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


def _solve_normal(change: Floats, stiff: Floats, own: Floats, wanted: Floats) -> Floats:
    """Return y of ``(change.T @ diag(stiff) @ change + diag(own)) @ y = wanted``.

    Where channels are fewer than variables by the matrix of channels (Woodbury's identity).
    """
    if len(own) <= len(stiff):
        matrix = arrays.product(change.T * stiff, change)
        matrix[np.diag_indices(len(own))] += own
        return arrays.solve(matrix, wanted)
    eased = wanted / own[:, None]
    matrix = arrays.product(change / own, change.T)
    matrix[np.diag_indices(len(stiff))] += 1 / stiff
    back = arrays.solve(matrix, arrays.product(change, eased))
    return eased - arrays.product(change.T, back) / own[:, None]


def _length(*lines: tuple[Floats, Floats]) -> float:
    """Return how far along these directions all numbers stay above 0: 1 at most."""
    return min(1.0, *(FAR / max(FAR, float((-way / at).max(initial=0.0))) for at, way in lines))
