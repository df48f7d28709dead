"""Routing ``adaptive``: the best division between minimal ways and detours.

What it means here: every router pair divides its bytes between two kinds of
ways. In different groups these are the ways of ``minimal`` and those of
``valiant``, over a third group; in one group all shortest paths, and detours
over another router of it (each alike, shortest paths to it and from it: as
Valiant's routing inside the group; of two blades of an Aries chassis
green-green, black-green-black and so on, of two switches of a Slingshot group
two hops). Of all divisions one is taken whose largest relative load (bytes /
bandwidth, over the channels between routers) is least; among such, bytes stay
on minimal ways where they can. That is what UGAL (Kim, Dally, Scott and Abts,
ISCA 2008) and the adaptive routing of Aries and Slingshot aim at, with all
queues known and in balance. What it is not: there are no packets, no queues,
no back-pressure and no time. Real adaptive routing sees its own router's
queues alone and late, so it is no better than this; nor is any other division
of these ways.

It is a linear program: one share a router pair, one row a channel. Where few
router pairs exchange bytes it is solved as such, for the channels that can bind
(`placement.network.linear_program`); else by descent
(`placement.network.balancing`). Every answer comes with a lower bound and the gap
to it: at most `TOLERANCE` while the router pairs that exchange bytes are few
enough to be divided one by one (`Division.by` is ``router pairs``) and there is
time, and as stated in `Division.gap` beyond. Pairs without a third group, and
pairs alone in their group, stay on minimal ways.

Preference for minimal, exactly: where the minimal routing is within
`TOLERANCE` of the bound every share is 1. Else bytes go back to minimal ways
until the largest load is `TOLERANCE` above the bound or no more fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from placement.machine import Machine
from placement.network import dragonfly, linear_program
from placement.network.balancing import LONGER, Solution, balance, dot, even, refill
from placement.network.demand import Demand
from placement.network.dragonfly import channels
from placement.network.group_ways import Bytes, GroupWays, Ways, group_ways_of
from placement.network.model import has_spines
from placement.network.shares import PairChanges, Pairs, Variables, variables_of
from placement.support.array_types import Floats, Ints

__all__ = ["TOLERANCE", "Division", "channels", "divide", "hops", "loads", "notes"]

#: How far the largest load may be above the least possible.
TOLERANCE = 0.01

#: Numbers that the solver goes through at most, all its steps together.
WORK = 400_000_000

#: Steps of the solver at least, where bytes go back to minimal ways and where only the busiest
#: channel is sought; how much longer each is tried there until one does not hold: 3 and 30 bring a
#: shift of 100,352 nodes nearer to its bound (7 %) than 1.5 and 40 do (12 %).
LEAST_STEPS, LEAST_UNSETTLED, LONGER_UNSETTLED = 40, 30, 3.0

#: Multiplications of matrices that take as long as going through a number.
A_NUMBER = 8

FEW = "fewer than three groups: adaptive takes detours inside groups alone"

FEW_WITH_SPINES = "fewer than three groups: adaptive is the same as minimal"

#: Bytes of a GB.
GB = 1e9


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """How a demand is divided, and the proof that it can hardly be divided better.

    Attributes
    ----------
    load : float64 (c,)
        Bytes on every channel.
    worst : float
        Largest load / bandwidth of the channels, seconds.
    bound : float
        No division of the bytes has a smaller one, seconds.
    minimal : float
        Largest load / bandwidth if all bytes took minimal ways, seconds.
    minimal_share : float
        Share on minimal ways of all bytes between routers.
    by : str
        What has a share of its own: ``router pairs`` or ``group pairs``.
    steps : int
        Steps of the solver.
    enough : float
        Seconds below which nothing was to be gained.
    """

    load: Floats
    worst: float
    bound: float
    minimal: float
    minimal_share: float
    by: str
    steps: int
    enough: float

    @property
    def gap(self) -> float:
        """How far `worst` may be above the least possible, as a share of it."""
        if not self.worst:
            return 0.0
        return max(0.0, self.worst / self.bound - 1) if self.bound > 0 else math.inf

    def text(self) -> str:
        """Say in one sentence how the bytes are divided, for the reader of an output."""
        share = (
            f"adaptive: {100 * self.minimal_share:.1f} % of the bytes between routers on minimal"
        )
        if self.worst <= self.enough * (1 + 1e-9):
            return f"{share} paths, and nothing is gained by fewer: nodes' own links take longer"
        return (
            f"{share} paths, the largest load within {100 * self.gap:.2f} % of the least possible "
            f"(divided by {self.by})"
        )


class _Loads:
    """Relative loads by the bytes on minimal ways: a `placement.network.balancing.Problem`.

    Its variables are those between groups and, behind them, the router pairs
    inside groups.
    """

    def __init__(
        self, ways: GroupWays, variables: Variables, every: Bytes, inner: Floats, fixed: Floats
    ) -> None:
        self.ways, self.variables, self.every, self.inner = ways, variables, every, inner
        self.scale = 1 / (ways.groups.channels.bandwidth * GB)
        self.fixed = fixed * self.scale
        self.pairs = np.flatnonzero((inner > 0) & (ways.detour > 0))
        self.cap = np.concatenate([variables.cap, inner.reshape(-1)[self.pairs]])

    @cached_property
    def weight(self) -> Floats:
        """What a byte of each variable changes on all channels together, float64 (n,)."""
        minimal, over, inside = self._prices(np.ones_like(self.scale))
        both = Ways(*(a + b for a, b in zip(minimal, over, strict=True)))
        return self._of_variables(both, inside + self.ways.detour_price(inside))

    def split(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the variables between groups, and those inside them."""
        return x[: len(self.variables.cap)], x[len(self.variables.cap) :]

    def bytes(self, x: Floats) -> Floats:
        """Return the divided bytes on every channel."""
        between, inside = self.split(x)
        minimal, inner = self.variables.bytes(between), self.inner
        if len(self.pairs):
            over = np.zeros_like(inner)
            over.reshape(-1)[self.pairs] = self.split(self.cap)[1] - inside
            inner = inner - over + self.ways.detoured(over)
        return self.ways.load(minimal, self.every.minus(minimal), inner)

    def load(self, x: Floats) -> Floats:
        """Return load / bandwidth of every channel."""
        return self.fixed + self.bytes(x) * self.scale

    def price(self, prices: Floats) -> Floats:
        """Return what a byte costs more on the minimal ways."""
        return self._of_variables(*self._extra(prices))

    def bound(self, none: Floats, prices: Floats) -> float:
        """Return the bound that prices prove for all divisions by router pairs."""
        between, inside = self._extra(prices)
        detours = np.minimum(inside.reshape(-1)[self.pairs], 0.0)
        saved = self.variables.saved(between) + dot(self.split(self.cap)[1], detours)
        return dot(prices, none) + saved

    @cached_property
    def listed(self) -> PairChanges:
        """The variables as router pairs: of two groups, and behind them of one."""
        assert isinstance(self.variables, Pairs)
        group, s, t = np.unravel_index(self.pairs, self.inner.shape)
        own = self.ways.groups.part[group, s]
        columns = zip(self.variables.ends, (own, own, s, t), strict=True)
        return PairChanges(self.ways, *(np.concatenate(both) for both in columns))

    def rows(self, channels: Ints) -> Floats:
        """Return what all of each variable changes on channels; router pairs alone."""
        found: Floats = self.listed.on(channels) * self.scale[channels][:, None] * self.cap
        return found

    def parts(self) -> Ints:
        """Return a number for the two groups of each variable; router pairs alone."""
        g, h = self.listed.unit
        found: Ints = np.unique(g * self.ways.count + h, return_inverse=True)[1]
        return found

    def _of_variables(self, between: Ways, inside: Floats) -> Floats:
        """Return what a byte of each variable costs."""
        return np.concatenate([self.variables.price(between), inside.reshape(-1)[self.pairs]])

    def _prices(self, prices: Floats) -> tuple[Ways, Ways, Floats]:
        """Return what minimal ways, those over a third group and those inside groups cost."""
        each = prices * self.scale
        inside = self.ways.inside_price(each)
        minimal = self.ways.minimal_price(each, inside)
        return minimal, self.ways.valiant_price(minimal), inside

    def _extra(self, prices: Floats) -> tuple[Ways, Floats]:
        """Return minimal less other ways, between and inside groups: above 0 where dearer."""
        minimal, over, inside = self._prices(prices)
        between = Ways(*(a - b for a, b in zip(minimal, over, strict=True)))
        if len(self.pairs):
            inside = inside - self.ways.detour_price(inside)
        return between, inside

    @property
    def size(self) -> int:
        """Numbers that one step goes through, what matrix products take among them."""
        groups, count = self.ways.groups, self.ways.count
        inside = groups.count * groups.width**2
        products = count**2 * groups.width * (2 * groups.width + count) // A_NUMBER
        return 3 * inside + products + self.variables.size + len(groups.channels)


def notes(machine: Machine, routing: str = "adaptive") -> tuple[str, ...]:
    """Return what a reader of the loads should know.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> notes(parse_spec("dragonfly:groups=2,chassis=1,blades=2,nodes=1"))
    ('fewer than three groups: adaptive takes detours inside groups alone',)
    """
    if group_ways_of(machine).count > 2:
        return ()
    return (FEW_WITH_SPINES if has_spines(machine) else FEW,)


def loads(
    machine: Machine, demand: Demand, enough: float = 0.0, settled: bool = True
) -> tuple[Floats, str]:
    """Return the bytes on every channel, and how they are divided in a sentence.

    Parameters
    ----------
    machine : Machine
    demand : Demand
    enough : float
        Seconds that the busiest channel may take: minimal ways are kept where
        they take no longer, and nothing is gained beyond.
    settled : bool
        As for `divide`.
    """
    if enough and group_ways_of(machine).whole:
        minimal = dragonfly.loads(machine, demand, "minimal")
        if float((minimal / channels(machine).bandwidth).max(initial=0.0)) <= enough * GB:
            return minimal, "adaptive: all bytes on minimal paths, nothing is gained by others"
    found = divide(machine, demand, enough=enough, settled=settled)
    return found.load, found.text()


def divide(
    machine: Machine, demand: Demand, *, enough: float = 0.0, settled: bool = True
) -> Division:
    """Divide a demand between minimal ways and detours.

    The descent takes up to 1,000 steps on small machines, 40 for an all-to-all over all of a
    machine of 1,500 routers (30 where not `settled`). After few the division is a few per
    cent off, and `Division.gap` says how far at most. Few router pairs are divided without it.

    Parameters
    ----------
    machine : Machine
        A dragonfly.
    demand : Demand
    enough : float
        Seconds of the busiest channel below which nothing need be gained.
    settled : bool
        Whether bytes go back to minimal ways where they can: False where only the
        busiest channel matters.

    Returns
    -------
    Division

    Raises
    ------
    UsageError
        Where the links are unknown, or there are too many groups.
    NidmapError
        Where no way joins two routers that exchange bytes.

    Examples
    --------
    Four groups of one router, the links all alike: one minimal way from 0 to
    1, and two over third groups, which share nothing; about a third each, as minimal
    ways get what `TOLERANCE` allows.

    >>> import numpy as np
    >>> from placement.network.demand import Demand
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("dragonfly:groups=4,chassis=1,blades=1,nodes=1,global=1,blue=1")
    >>> found = divide(m, Demand.pairs(m, np.array([0]), np.array([1]), 3e9))
    >>> round(found.minimal, 2), round(found.worst, 1), round(found.minimal_share, 1)
    (3.0, 1.0, 0.3)
    """
    ways = group_ways_of(machine)
    peak = float(max(demand.out.max(initial=0.0), 1e-300))
    scaled = demand * (1 / peak)  # the same steps whatever the unit, and whatever the last digits
    within = replace(scaled.within, scale=_digits(scaled.within.scale))
    scaled = replace(scaled, amount=_digits(scaled.amount), within=within)
    total, inner, far = ways.bytes(scaled, ways.linked | ways.valiant)
    free = ways.linked & ways.valiant
    forced = ways.valiant & ~ways.linked
    every = total.times(free)
    fixed = far
    if not (free | ways.one).all():
        fixed = far + ways.load(total.times(~free & ~forced), total.times(forced))
    variables = variables_of(ways, scaled, every, free)
    problem = _Loads(ways, variables, every, inner, fixed)
    found, minimal = _solve_division(problem, enough / peak, settled)
    load = fixed + problem.bytes(found.x)
    inside = float(inner.sum() - np.einsum("gss->", inner))
    everything = inside + float(total.between.sum())
    over = float(total.between[forced].sum() + (problem.cap - found.x).sum())
    return Division(
        load=load * peak,
        worst=found.worst * peak,
        bound=min(found.bound, found.worst) * peak,
        minimal=minimal * peak,
        minimal_share=1 - over / everything if everything > 0 else 1.0,
        by=variables.name,
        steps=found.steps,
        enough=enough,
    )


def _digits(numbers: Floats) -> Floats:
    """Return numbers with twelve digits that count.

    Examples
    --------
    >>> _digits(np.array([0.0, 0.1 + 0.2, 2e9 / 3])).tolist()
    [0.0, 0.3, 666666666.667]
    """
    size = np.where(numbers == 0, 1.0, np.abs(numbers))
    unit = 10.0 ** (11 - np.floor(np.log10(size)))
    return np.asarray(np.round(numbers * unit) / unit)


def _solve_division(problem: _Loads, enough: float, settled: bool) -> tuple[Solution, float]:
    """Return the division, and the largest load were all on minimal ways; see `divide`."""
    full = problem.load(problem.cap)
    minimal = float(full.max(initial=0.0))
    if not minimal or not problem.cap.any():
        return Solution(problem.cap, full, minimal, np.zeros_like(full)), minimal
    none = problem.load(np.zeros_like(problem.cap))
    found = even(problem, none, full)
    if isinstance(problem.variables, Pairs) and len(problem.cap) <= linear_program.FEW:
        linear_program.solve(problem, found, none, full, TOLERANCE, enough)
    if found.worst > max(enough, found.bound * (1 + TOLERANCE)):
        least, longer = (LEAST_STEPS, LONGER) if settled else (LEAST_UNSETTLED, LONGER_UNSETTLED)
        most = found.steps + int(np.clip(WORK / problem.size, least, 1000))
        balance(problem, found, none, TOLERANCE, most, enough, longer)
        found.bound = problem.bound(none, found.prices)
    if minimal <= max(enough, found.bound * (1 + TOLERANCE)):
        found.x, found.load = problem.cap, full
    elif settled:
        refill(problem, found, max(found.worst, found.bound * (1 + TOLERANCE), enough))
    return found, minimal


def hops(machine: Machine, source: Ints, target: Ints, routing: str = "adaptive") -> Floats:
    """Return the expected channels of each class between routers, float64 (m, classes).

    On an idle network, where every byte takes minimal ways (those over a
    third group where there are no others).
    """
    ways = group_ways_of(machine)
    return ways.hops(np.asarray(source), np.asarray(target), ways.valiant & ~ways.linked)
