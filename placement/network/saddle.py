"""The least largest load: a linear program of millions of variables, solved by its saddle point.

Each variable x[i], between 0 and cap[i], is the bytes that take the first of
two ways; the largest of all loads, linear in x, shall be least. The dual is a
price on every channel, all adding up to 1: the value of prices, each variable
taking its cheaper way, is a lower bound on every largest load. Both sides
approach each other by the primal-dual hybrid gradient method (Chambolle and
Pock, 2011) with diagonal steps (Pock and Chambolle, 2011), reflected Halpern
iteration and restarts with a primal weight (Lu and Yang, 2024; Applegate and
others, 2021). It stops when the bound proves what is asked for, so that the
gap between them is a certificate and not an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Problem", "Solution", "certify", "descend", "dot", "least_max", "refill"]

#: Least step sizes, as a share of the largest: channels and variables that hardly count.
FLOOR = 1e-2

#: Steps of the power method that finds how long a step may be.
POWER = 8

#: Rounds of `descend`, and how sharply its prices tell full channels from others.
STARTS = 8
SHARPNESS = 60

#: How much the primal weight may change at a restart, squared.
SWING = 100.0

#: In place of a 0 below a fraction line.
TINY = 1e-300

#: What is left to the steps, since the power method falls short.
SAFETY = 0.95


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


@dataclass(slots=True, eq=False)
class Solution:
    """The best that was found.

    Attributes
    ----------
    x : float64 (n,)
    worst : float
        Largest load at x.
    bound : float
        No x has a smaller largest load.
    prices : float64 (m,)
        Those that prove the bound.
    iterations : int
    """

    x: Floats
    worst: float
    bound: float
    prices: Floats
    iterations: int = 0

    @property
    def gap(self) -> float:
        """How far the largest load may be above the least possible, as a share of it."""
        return max(0.0, self.worst / self.bound - 1) if self.bound > 0 else np.inf

    def offer(self, x: Floats, worst: float) -> None:
        """Keep x if it is better."""
        if worst < self.worst:
            self.x, self.worst = x, worst

    def prove(self, prices: Floats, bound: float) -> None:
        """Keep prices if they prove more."""
        if bound > self.bound:
            self.prices, self.bound = prices, bound


@dataclass(slots=True, eq=False)
class _Point:
    """Variables and prices with what follows from them, so that points can be mixed."""

    x: Floats
    load: Floats
    prices: Floats
    price: Floats

    def mixed(self, other: _Point, share: float) -> _Point:
        """Return share · self + (1 - share) · other."""
        return _Point(*(share * a + (1 - share) * b for a, b in zip(self, other, strict=True)))

    def __iter__(self):  # type: ignore[no-untyped-def]  # four arrays in order, for zip
        return iter((self.x, self.load, self.prices, self.price))


def certify(problem: Problem, none: Floats, load: Floats) -> tuple[Floats, float]:
    """Return prices on the most loaded channels and the bound that they prove.

    Parameters
    ----------
    problem : Problem
    none : float64 (m,)
        Loads where every variable is 0.
    load : float64 (m,)
        Loads that tell which channels matter.

    Returns
    -------
    prices : float64 (m,)
    bound : float
    """
    most = float(load.max(initial=0.0))
    best = np.zeros_like(load), 0.0
    for sharpness in (1000, 100, 30):
        prices = np.exp((load / most - 1) * sharpness) if most else np.ones_like(load)
        prices /= prices.sum()
        bound = _bound(problem, none, prices, problem.price(prices))
        best = max(best, (prices, bound), key=lambda found: found[1])
    return best


def _bound(problem: Problem, none: Floats, prices: Floats, price: Floats) -> float:
    """Return the value of prices: every variable takes its cheaper way."""
    return dot(prices, none) + dot(problem.cap, np.minimum(price, 0.0))


def least_max(
    problem: Problem, none: Floats, start: Solution, tolerance: float, iterations: int
) -> Solution:
    """Return variables whose largest load is proven to be near the least.

    Parameters
    ----------
    problem : Problem
    none : float64 (m,)
        Loads where every variable is 0.
    start : Solution
        Where to begin.
    tolerance : float
        Gap at which to stop.
    iterations : int
        How many at most.

    Returns
    -------
    Solution
    """
    method = _Method(problem, none, start)
    while method.best.gap > tolerance and method.best.iterations < iterations:
        method.step()
    return method.best


def descend(problem: Problem, full: Floats) -> tuple[Floats, Floats]:
    """Return a good beginning: what the fullest channels ask for, a few times.

    From everything on the first way, `STARTS` times: what is cheaper by the
    second way at prices on the fullest channels goes there, as far as
    lessens the largest load.

    Parameters
    ----------
    problem : Problem
    full : float64 (m,)
        Loads where every variable is full.

    Returns
    -------
    x : float64 (n,)
    load : float64 (m,)
    """
    x, load = problem.cap, full
    for _ in range(STARTS):
        prices = np.exp((load / load.max() - 1) * SHARPNESS)
        there = np.where(problem.price(prices / prices.sum()) > 0, 0.0, x)
        change = problem.load(there) - load
        step = _least_on(load, change)
        if not step:
            break
        x, load = x + step * (there - x), load + step * change
    return x, load


def _least_on(load: Floats, change: Floats) -> float:
    """Return the step between 0 and 1 at which the largest of load + step · change is least.

    The largest of lines is convex, so halving finds where its slope turns.
    """
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        at = load + middle * change
        if change[int(np.argmax(at))] < 0:
            low = middle
        else:
            high = middle
    return low


class _Method:
    """State of the reflected, restarted method."""

    def __init__(self, problem: Problem, none: Floats, start: Solution) -> None:
        self.problem, self.none = problem, none
        self.best = Solution(start.x, start.worst, start.bound, start.prices)
        reach = none + problem.load(problem.cap)
        self.row = 1 / np.maximum(reach, FLOOR * reach.max())
        self.column = np.maximum(problem.weight, FLOOR * problem.weight.max())
        self.stretch = (SAFETY / self._norm()) ** 2
        self.ratio = float(np.sqrt((problem.cap * self.column).sum() / (1 / self.row).max()))
        self.at = self.anchor = self._point(start.x, start.prices)
        self.since, self.first, self.last = 0, np.inf, np.inf

    def _norm(self) -> float:
        """Return the norm of the loads' change, scaled by the steps, by the power method."""
        cap, scale = self.problem.cap, self.problem.cap / self.column
        price = np.sqrt(self.row) * self.row
        found = 1.0
        for _ in range(POWER):
            change = scale * self.problem.price(np.sqrt(self.row) * price)
            size = np.sqrt((change**2 / np.where(cap > 0, scale, 1)).sum())
            if not size:
                return 1.0
            price = np.sqrt(self.row) * (self.problem.load(change / size) - self.none)
            found = float(np.sqrt((price**2).sum()))
        return max(found, 1e-3)

    def _point(self, x: Floats, prices: Floats) -> _Point:
        return _Point(x, self.problem.load(x), prices, self.problem.price(prices))

    def step(self) -> None:
        """Go one step, keep what is better, and restart where progress calls for it."""
        now, cap = self.at, self.problem.cap
        move = self.ratio * self.stretch * cap / self.column
        x = np.clip(now.x - move * now.price, 0, cap)
        load = self.problem.load(x)
        pull = self.row / self.ratio
        prices = _on_simplex(now.prices + pull * (2 * load - now.load), pull)
        new = _Point(x, load, prices, self.problem.price(prices))
        self.best.iterations += 1
        self.best.offer(x, float(load.max()))
        self.best.prove(prices, _bound(self.problem, self.none, prices, new.price))
        residual = self._distance(new, now)
        if self._due(residual):
            self._restart(new)
            return
        self.since += 1
        self.first = residual if self.since == 1 else self.first
        self.last = residual
        share = self.since / (self.since + 1)
        self.at = new.mixed(now, 2.0).mixed(self.anchor, share)

    def _parts(self, a: _Point, b: _Point) -> tuple[float, float]:
        """Return the squared distances of the variables and of the prices, by the steps."""
        cap = self.problem.cap
        by_x = (a.x - b.x) ** 2 * self.column / np.where(cap > 0, cap, 1)
        by_prices = (a.prices - b.prices) ** 2 / self.row
        return float(by_x.sum()) / self.stretch, float(by_prices.sum())

    def _distance(self, a: _Point, b: _Point) -> float:
        x, prices = self._parts(a, b)
        return float(np.sqrt(x / self.ratio + prices * self.ratio))

    def _due(self, residual: float) -> bool:
        if not self.since:
            return False
        much = residual <= 0.2 * self.first
        turned = residual <= 0.8 * self.first and residual > self.last
        return much or turned or self.since >= 0.36 * self.best.iterations + 5

    def _restart(self, point: _Point) -> None:
        """Begin anew from here, with the primal weight that the way so far suggests."""
        x, prices = (float(np.sqrt(part)) for part in self._parts(point, self.anchor))
        if x or prices:  # where one side stands still, the other must go faster
            self.ratio *= min(SWING, max(1 / SWING, x / (prices * self.ratio or TINY))) ** 0.5
        self.at = self.anchor = point
        self.since, self.first, self.last = 0, np.inf, np.inf


def _on_simplex(wanted: Floats, pull: Floats) -> Floats:
    """Return max(0, wanted - t · pull) with the t that makes it add up to 1.

    Only entries near the top can stay above 0: t is at least the largest
    wanted / pull less 1 / pull there. From there t grows with every entry
    that falls below 0 until none does (Michelot, 1986).
    """
    ratio = wanted / pull
    top = int(np.argmax(ratio))
    kept = np.flatnonzero(ratio >= ratio[top] - 1 / pull[top])
    while True:
        level = (wanted[kept].sum() - 1) / pull[kept].sum()
        above = ratio[kept] > level
        if above.all():
            break
        kept = kept[above]
    out = np.zeros_like(wanted)
    out[kept] = wanted[kept] - level * pull[kept]
    return out


#: What share of the bytes that could go back each round tries, cheapest first.
ROUNDS = (0.0, 0.5, 0.5, 0.25, 0.25, 0.1, 0.1, 1.0)


def refill(problem: Problem, x: Floats, limit: float) -> Floats:
    """Return x with as many bytes as fit moved to the first way, no load above `limit`.

    Round by round those bytes whose first way avoids the fullest channels
    are moved, as far as the fullest allows.

    Parameters
    ----------
    problem : Problem
    x : float64 (n,)
    limit : float
        Not below the largest load at x.
    """
    load = problem.load(x)
    for share in ROUNDS:
        rest = problem.cap - x
        if not rest.any():
            break
        prices = (limit / (np.maximum(limit - load, 0) + 1e-4 * limit)) ** 2
        cost = problem.price(prices / prices.sum())
        moved = np.where(_cheapest(cost, rest, share), rest, 0.0)
        change = problem.load(x + moved) - load
        grows = change > 1e-12 * limit
        room = float((np.maximum(limit - load, 0)[grows] / change[grows]).min(initial=1.0))
        x = np.clip(x + room * moved, 0, problem.cap)
        load = load + room * change
    return x


def _cheapest(cost: Floats, rest: Floats, share: float) -> NDArray[np.bool_]:
    """Return which variables' bytes to move: a share of those left, or all that cost nothing."""
    free: NDArray[np.bool_] = cost <= 0
    if not share or share * rest.sum() <= rest[free].sum():
        return free
    order = np.argsort(cost, kind="stable")
    last = int(np.searchsorted(np.cumsum(rest[order]), share * rest.sum()))
    found: NDArray[np.bool_] = cost <= cost[order[min(last, len(order) - 1)]]
    return found
