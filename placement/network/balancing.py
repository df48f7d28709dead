"""The least largest load: bytes divided between two ways each, until no channel can be relieved.

Each variable x[i], between 0 and cap[i], is the bytes that take the first of
two ways; the largest of all loads, which are linear in x, shall be least. In
place of the largest stands its softmax, log(sum(exp(k · load))) / k, which is
smooth and at most log(channels) / k above it. Its slope is a price on every
channel, all adding up to 1, and it is descended by Nesterov's accelerated
gradient method (Nesterov, "Smooth minimization of non-smooth functions", 2005;
Beck and Teboulle, 2009), k growing as the solution gets near.

The same prices prove how near it is: at any prices that add up to 1 the value
where every variable takes its cheaper way is a lower bound on every largest
load. So the gap between both is a certificate and not an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from placement.support.array_types import Floats, Ints

__all__ = ["LONGER", "Problem", "Solution", "balance", "dot", "even", "refill"]

#: The search, tuned on all-to-alls and shifts of 216 and 512 of 6,174 nodes, together and
#: scattered: how sharp the softmax is at first (its k times the largest load), how much sharper it
#: gets, after how many steps that together brought less than which share, and how much longer a
#: step is tried after one that held.
SHARPNESS, SHARPER, STAGE, PROGRESS, LONGER = 30.0, 3.0, 40, 0.01, 1.5

#: How much of the tolerance the softmax may be above the largest load at its sharpest.
SHARPEST = 0.25

#: The shares of all variables alike of which the best is where the search begins.
ALIKE = tuple(k / 50 for k in range(50, -1, -1))

#: Least weight of a variable for the length of its steps, as a share of the largest weight.
FLOOR = 1e-2

#: What share of the bytes that could go back each round of `refill` tries, cheapest first.
ROUNDS = (0.0, 0.5, 0.5, 0.25, 0.25, 0.1, 0.1, 1.0)


def dot(a: Floats, b: Floats) -> float:
    """Return the inner product on one core: BLAS would start threads for it.

    Examples
    --------
    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float(np.einsum("i,i->", a, b))


class Problem(Protocol):
    """Loads that depend on variables, and their transpose."""

    @property
    def cap(self) -> Floats:
        """Largest value of each variable, float64 (n,), at least 0."""

    @property
    def weight(self) -> Floats:
        """What a byte of each variable changes on all channels together, float64 (n,)."""

    def load(self, x: Floats) -> Floats:
        """Return the relative load of every channel, float64 (m,)."""

    def price(self, prices: Floats) -> Floats:
        """Return what a byte of each variable costs more by the first way, float64 (n,)."""

    def rows(self, channels: Ints) -> Floats:
        """Return what all of each variable changes on channels, float64 (len(channels), n)."""

    def parts(self) -> Ints:
        """Return a part 0, 1, … for each variable, of those that are much alike, int64 (n,)."""


@dataclass(slots=True, eq=False)
class Solution:
    """The best that was found.

    Attributes
    ----------
    x : float64 (n,)
    load : float64 (m,)
        Loads at x.
    bound : float
        No x has a smaller largest load.
    prices : float64 (m,)
        Those that prove the bound.
    steps : int
    """

    x: Floats
    load: Floats
    bound: float
    prices: Floats
    steps: int = 0

    @property
    def worst(self) -> float:
        """The largest load at x."""
        return float(self.load.max(initial=0.0))

    def improve(self, x: Floats, load: Floats) -> None:
        """Keep another x if its largest load is less."""
        if float(load.max()) < self.worst:
            self.x, self.load = x, load

    def prove(self, prices: Floats, bound: float) -> None:
        """Keep prices if they prove more."""
        if bound > self.bound:
            self.prices, self.bound = prices.copy(), bound


def balance(
    problem: Problem,
    best: Solution,
    none: Floats,
    tolerance: float,
    steps: int,
    enough: float = 0.0,
    longer: float = LONGER,
) -> None:
    """Make the largest load of a solution nearly the least.

    Parameters
    ----------
    problem : Problem
    best : Solution
        Where the search begins.
    none : float64 (m,)
        Loads where nothing takes the first way.
    tolerance : float
        Proven gap at which to stop.
    steps : int
        How many at most.
    enough : float
        A largest load that need not become less.
    longer : float
        How much longer a step is tried after one that held, until the first that does not.
    """
    sharpest = np.log(len(none)) / (SHARPEST * tolerance)
    method = _Descent(problem, best, none, longer)
    while best.worst > max(enough, best.bound * (1 + tolerance)) and best.steps < steps:
        if method.sharpness < sharpest and method.stalls():
            method.sharpen()
        elif not method.step() and method.sharpness >= sharpest:
            break


def even(problem: Problem, none: Floats, full: Floats) -> Solution:
    """Return the best of those divisions that are alike for all variables.

    Parameters
    ----------
    problem : Problem
    none, full : float64 (m,)
        Loads where nothing, and where everything takes the first way.
    """
    worst = [float((none + share * (full - none)).max()) for share in ALIKE]
    share = ALIKE[int(np.argmin(worst))]
    return Solution(share * problem.cap, none + share * (full - none), 0.0, np.zeros_like(none))


class _Descent:
    """The accelerated method: the last point, and the one ahead where the slope is taken.

    Attributes
    ----------
    best : Solution
        What is kept up to date.
    steps : int
        Since the softmax was made sharper.
    """

    def __init__(self, problem: Problem, best: Solution, none: Floats, longer: float) -> None:
        self.problem, self.best, self.none, self.longer = problem, best, none, longer
        self.x, self.load = best.x, best.load
        weight = np.maximum(problem.weight, FLOOR * problem.weight.max())
        self.scale = problem.cap / weight
        self.per_scale = np.where(self.scale > 0, weight, 0.0) / np.maximum(problem.cap, 1e-300)
        self.mean, self.mean_slope, self.many = np.zeros_like(none), np.zeros_like(best.x), 0.0
        self.sharpness, self.length = SHARPNESS / SHARPER, SHARPER / SHARPNESS
        self.sharpen()

    def sharpen(self) -> None:
        """Go on with a sharper softmax."""
        self.sharpness *= SHARPER
        self.length /= SHARPER
        self.k, self.steps = self.sharpness / self.best.worst, 0
        self._rest()
        self.before = self.value

    def stalls(self) -> bool:
        """Return whether a softmax of this sharpness brings little more."""
        if not self.steps or self.steps % STAGE:
            return False
        gain, self.before = self.before - self.value, self.value
        return gain < PROGRESS * self.value

    def _rest(self) -> None:
        """Go on from the last point without momentum."""
        self.ahead, self.ahead_load, self.momentum = self.x, self.load, 1.0
        self.value = self._softmax(self.load)[0]

    def _softmax(self, load: Floats) -> tuple[float, Floats]:
        """Return the softmax of loads, and its slope."""
        most = float(load.max())
        each = np.exp((load - most) * self.k)
        total = float(each.sum())
        return most + float(np.log(total)) / self.k, each / total

    def step(self) -> bool:
        """Go one step, keep what is better or proves more, and return whether anything moved."""
        value, prices = self._softmax(self.ahead_load)
        slope = self.problem.price(prices)
        self._prove(prices, slope)
        x, load, new = self._moved(value, slope)
        moved = not np.array_equal(x, self.ahead)
        self.best.improve(x, load)
        self.length *= self.longer
        self.steps += 1
        if new > self.value:
            self._rest()
            return moved
        after = (1 + (1 + 4 * self.momentum**2) ** 0.5) / 2
        share = (self.momentum - 1) / after
        self.ahead = x + share * (x - self.x)
        self.ahead_load = load + share * (load - self.load)
        self.x, self.load, self.value, self.momentum = x, load, new, after
        return moved

    def _prove(self, prices: Floats, slope: Floats) -> None:
        """Keep prices if they, or their mean so far, prove more.

        The later, the more a step's prices count in the mean (Nesterov, 2005): it proves
        much more than any of them where they waver. Slopes are linear in prices.
        """
        self.many += self.momentum
        self.mean += self.momentum / self.many * (prices - self.mean)
        self.mean_slope += self.momentum / self.many * (slope - self.mean_slope)
        for p, dearer in ((prices, slope), (self.mean, self.mean_slope)):
            cheaper = np.minimum(dearer, 0.0)  # every variable takes its cheaper way
            self.best.prove(p, dot(p, self.none) + dot(self.problem.cap, cheaper))

    def _moved(self, value: float, slope: Floats) -> tuple[Floats, Floats, float]:
        """Return the next point, its loads and softmax: as far as the slope tells the truth."""
        while True:
            self.best.steps += 1
            x = np.clip(self.ahead - self.length * self.scale * slope, 0, self.problem.cap)
            load = self.problem.load(x)
            new, change = self._softmax(load)[0], x - self.ahead
            bent = dot(change * change, self.per_scale) / (2 * self.length)
            if new <= value + dot(slope, change) + bent + 1e-12 * value:
                return x, load, new
            self.length, self.longer = self.length / 2, LONGER


def refill(problem: Problem, found: Solution, limit: float) -> None:
    """Move as many bytes of a solution as fit to the first way, no load above `limit`.

    Round by round those bytes whose first way avoids the fullest channels
    are moved, as far as the fullest allows.

    Parameters
    ----------
    problem : Problem
    found : Solution
    limit : float
        Not below its largest load.
    """
    x, load = found.x, found.load
    for share in ROUNDS:
        rest = problem.cap - x
        if not rest.any():
            break
        prices = (limit / (np.maximum(limit - load, 0) + 1e-4 * limit)) ** 2
        cost = problem.price(prices / prices.sum())
        order = np.argsort(cost, kind="stable")
        last = int(np.searchsorted(np.cumsum(rest[order]), share * rest.sum()))
        most = max(0.0, cost[order[min(last, len(order) - 1)]]) if share else 0.0
        moved = np.where(cost <= most, rest, 0.0)
        change = problem.load(x + moved) - load
        grows = change > 1e-12 * limit
        room = float((np.maximum(limit - load, 0)[grows] / change[grows]).min(initial=1.0))
        x = np.clip(x + room * moved, 0, problem.cap)
        load = load + room * change
    found.x, found.load = x, load
