"""Few free nodes: every step from a placement is looked at, and the best one taken.

A step puts a free node in the place of a chosen one, or exchanges the nodes
of two places. With the routes in a table (`rankmap.joint.table`) the time
after each of all steps is a few products of small arrays, so the descent is
repeated from many starts and from disturbed copies of the best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement.network.sums import product
from rankmap.joint.judge import POWER
from rankmap.predict.asked import fitted
from rankmap.predict.terms import messages_s

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from rankmap.joint.table import Table
    from rankmap.predict import Predictor
    from rankmap.predict.phases import Phase

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["Small", "Traffic"]

#: A link that comes this near to the busiest, as a share of its time, is looked at in every step.
HOT = 0.5

#: Multiplications that take as long as all the calls that look at a phase once.
CALLS = 300_000

#: Multiplications that take as long as looking up what a byte between two places takes of a link.
GATHERED = 8

#: Multiplications of looking at steps once, beyond which only some places are looked at.
AT_ONCE = 4_000_000

#: Looks at some places that win nothing, one after the other, before a descent ends.
LOOKS = 3

#: A step must win more than this share.
LEAST = 1e-9


class Traffic(NamedTuple):
    """What a phase's places exchange, whatever nodes they are.

    Attributes
    ----------
    bytes : float64 (n, n)
    floor : float
        Seconds below which the exchange does not come: memory inside nodes.
    fixed : float
        Seconds of latency and messages that do not depend on the nodes.
    a_hop : float
        Seconds that a channel on the way of every byte adds.
    """

    bytes: Floats
    floor: float
    fixed: float
    a_hop: float


def traffic(asked: Predictor, rows: Ints, slots: Ints | None) -> list[Traffic]:
    """Return what the places of an order exchange, phase by phase."""
    on = asked.slots(rows)
    pattern = fitted(asked.pattern, on)
    return [_traffic(asked, phase) for phase in asked.phases(pattern, on, slots)]


def _traffic(asked: Predictor, phase: Phase) -> Traffic:
    nodes = len(phase.job.rows)
    sums = phase.flows()
    table = np.zeros((nodes, nodes))
    np.add.at(table, (sums.source, sums.target), sums.weight)
    known, total = asked.constants, table.sum()
    memory = known.memory_gbs
    waits = phase.in_turn if phase.a_node else 0.0
    return Traffic(
        table,
        max(phase.inside / (memory * 1e9) if memory else 0.0, asked._sent(phase.sent)),
        waits * known.mpi_us * 1e-6 + messages_s(phase, known),
        waits * known.hop_ns * 1e-9 / total if total else 0.0,
    )


@dataclass(slots=True)
class _Steps:
    """The time after every step from a placement."""

    replace: Floats
    swap: Floats


class Small:
    """Placements of a job's places on few nodes.

    Parameters
    ----------
    table : Table
    traffic : list of Traffic
        One for each phase.
    kept : bool (f,)
        Nodes of the table that must be part of the answer.
    swaps : bool
        Whether exchanging two places can change anything.
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        table: Table,
        traffic: list[Traffic],
        kept: NDArray[np.bool_],
        swaps: bool,
        rng: np.random.Generator,
    ) -> None:
        self.rng = rng
        self.table, self.traffic, self.kept, self.swaps = table, traffic, kept, swaps
        self.back = np.ascontiguousarray(table.seconds.swapaxes(0, 1))
        self.hot = np.zeros(table.seconds.shape[2], dtype=bool)
        self._forward, self._backward = table.seconds[:, :, :0], table.seconds[:, :, :0]
        self._last: dict[bytes, list[tuple[Traffic, Floats, float]]] = {}

    def time(self, at: Ints) -> float:
        """Return the seconds of a placement: place i on node ``at[i]`` of the table."""
        return sum(
            max(one.floor, float(load.max(initial=0.0))) + one.fixed + one.a_hop * hops
            for one, load, hops in self._loads(at)
        )

    def soft(self, at: Ints) -> float:
        """Return the same with links that are nearly as busy counted too."""
        return sum(
            max(one.floor, float(_norm(load[None])[0])) + one.fixed + one.a_hop * hops
            for one, load, hops in self._loads(at)
        )

    def _loads(self, at: Ints) -> list[tuple[Traffic, Floats, float]]:
        """Return the load of every link and the hops of each phase; the last two are kept."""
        key = at.tobytes()
        if key not in self._last:
            if len(self._last) > 1:
                del self._last[next(iter(self._last))]
            self._last[key] = self._added(at)
        return self._last[key]

    def _added(self, at: Ints) -> list[tuple[Traffic, Floats, float]]:
        pairs = self.table.seconds[at[:, None], at[None, :]]
        hops = self.table.hops[at[:, None], at[None, :]]
        flat = pairs.reshape(len(at) ** 2, -1)
        return [
            (one, product(one.bytes.reshape(1, -1), flat)[0], float((one.bytes * hops).sum()))
            for one in self.traffic
        ]

    def descend(self, at: Ints, going: Callable[[int], bool]) -> Ints:
        """Return the placement from which no step wins any more.

        Parameters
        ----------
        at : int64 (n,)
            Node of each place.
        going : callable
            Is told the work of each round; False ends the descent.
        """
        now = self.soft(at)
        self._heat(at)
        lost = 0
        while going(self.work(len(at))):
            places = self._looked_at(at)
            step = self._best(at, places)
            after = np.inf if step is None else self.soft(step)
            if step is not None and after < now * (1 - LEAST):
                at, now, lost = step, after, 0
                self._heat(at)
            elif step is None or not self._heat(step):
                lost += 1
                if len(places) == len(at) or lost == LOOKS:
                    return at
        return at

    def work(self, places: int) -> int:
        """Return the multiplications of looking at steps once, about, and what calls cost."""
        some = self._width(places)
        each = 2 * (len(self.kept) + 2 * places) * some * places * (8 + int(self.hot.sum()))
        gathered = GATHERED * places**2 * self.table.seconds.shape[2]
        return int(max(1, len(self.traffic)) * (each + CALLS) + gathered)

    def _width(self, places: int) -> int:
        """Return how many places are looked at at once: all, where that is little work."""
        a_place = len(self.traffic) * (len(self.kept) + 2 * places) * places * (8 + self.hot.sum())
        return int(min(places, max(3, AT_ONCE // max(1, int(a_place)))))

    def _looked_at(self, at: Ints) -> Ints:
        """Return the places whose steps are looked at: those that feed the busiest links most.

        Half of them; the others are drawn by lot.
        """
        width = self._width(len(at))
        if width == len(at):
            return np.arange(len(at))
        bill = np.zeros(len(at))
        for one, load, _ in self._loads(at):
            price = (load / max(1e-300, load.max(initial=0.0))) ** (POWER - 1)
            paid = self.table.seconds[at[:, None], at[None, :]] @ price
            bill += (one.bytes * paid).sum(axis=1) + (one.bytes * paid).sum(axis=0)
        first = np.argsort(-bill * self.rng.uniform(0.8, 1.0, len(at)))[: (width + 1) // 2]
        rest = np.setdiff1d(np.arange(len(at)), first)
        return np.concatenate([first, self.rng.permutation(rest)[: width - len(first)]])

    def _heat(self, at: Ints) -> bool:
        """Look at the links that are busy here from now on; return whether there are new ones."""
        hot = self.hot.copy()
        for _, load, _ in self._loads(at):
            hot |= load > HOT * load.max(initial=0.0)
        grown = bool((hot & ~self.hot).any())
        if grown:
            self.hot = hot
            self._forward = np.ascontiguousarray(self.table.seconds[:, :, hot])
            self._backward = np.ascontiguousarray(self.back[:, :, hot])
        return grown

    def _best(self, at: Ints, places: Ints) -> Ints | None:
        """Return the placement after the best step of some places; None where there is no step."""
        steps = self._steps(at, places)
        best = [float(x.min(initial=np.inf)) for x in (steps.replace, steps.swap)]
        if not np.isfinite(min(best)):
            return None
        out = at.copy()
        if best[0] <= best[1]:
            node, some = np.unravel_index(int(np.argmin(steps.replace)), steps.replace.shape)
            out[places[some]] = node
        else:
            some, other = np.unravel_index(int(np.argmin(steps.swap)), steps.swap.shape)
            pair = [int(places[some]), int(other)]
            out[pair] = at[pair[::-1]]
        return out

    def _steps(self, at: Ints, places: Ints) -> _Steps:
        """Return the time after replacing places (f, p), and exchanging them (p, n); inf: none."""
        count = len(self.kept)
        replace, swap = np.zeros((count, len(places))), np.zeros((len(places), len(at)))
        for one in self.traffic:
            after, crossed = self._one(one, at, places)
            replace += after
            swap += crossed
        taken = np.zeros(count, dtype=bool)
        taken[at] = True
        replace[taken] = np.inf
        replace[:, self.kept[at[places]]] = np.inf
        swap[np.arange(len(places)), places] = np.inf
        if not self.swaps:
            swap[:] = np.inf
        return _Steps(replace, swap)

    def _one(self, one: Traffic, at: Ints, places: Ints) -> tuple[Floats, Floats]:
        """Return the seconds of a phase after every replacement and exchange."""
        forward, backward = self._forward[:, at], self._backward[:, at]
        sent, got = one.bytes[places], one.bytes.T[places]
        bill = product(sent[None], forward) + product(got[None], backward)  # [x, p]: place p on x
        hop = self.table.hops[:, at] @ sent.T + self.table.hops.T[:, at] @ got.T
        some = np.arange(len(places))
        own, own_hop = bill[at[places], some], hop[at[places], some]
        load = self._hot_load(one, at)
        hops = float((one.bytes * self.table.hops[at[:, None], at[None, :]]).sum())
        replace = self._seconds(one, _norm(load + bill - own), hops + hop - own_hop)
        if not self.swaps:
            return replace, np.zeros((len(places), len(at)))
        # Exchanged with place j on node y: p's bill on y, j's on p's node, and what they exchange
        # with each other, which both bills count before and neither does after.
        ends = at[places]
        there = _everyone(one.bytes, forward[ends], backward[ends])
        here = self._now(one, at)
        both = (one.bytes + one.bytes.T)[places]
        between = self._forward[ends[:, None], at] + self._backward[ends[:, None], at]
        change = bill[at].swapaxes(0, 1) + there - own[:, None] - here[None, :]
        change += both[..., None] * between
        hop_there = self.table.hops[ends][:, at] @ one.bytes.T
        hop_there += self.table.hops.T[ends][:, at] @ one.bytes
        way = self.table.hops[at[:, None], at[None, :]]
        hop_here = (one.bytes * way).sum(axis=1) + (one.bytes * way).sum(axis=0)
        hop_between = both * (way[places] + way.T[places])
        hop_change = hop[at].T + hop_there - own_hop[:, None] - hop_here[None, :] + hop_between
        return replace, self._seconds(one, _norm(load + change), hops + hop_change)

    def _hot_load(self, one: Traffic, at: Ints) -> Floats:
        flat = self._forward[at[:, None], at[None, :]].reshape(len(at) ** 2, -1)
        return np.asarray(product(one.bytes.reshape(1, -1), flat)[0])

    def _now(self, one: Traffic, at: Ints) -> Floats:
        """Return the bill of every place where it is, (n, links)."""
        ends = at[:, None], at[None, :]
        both = one.bytes[..., None] * self._forward[ends]
        both += one.bytes.T[..., None] * self._backward[ends]
        return np.asarray(both.sum(axis=1))

    def _seconds(self, one: Traffic, load: Floats, hops: Floats) -> Floats:
        return np.maximum(one.floor, load) + one.fixed + one.a_hop * hops


def _everyone(sent: Floats, forward: Floats, backward: Floats) -> Floats:
    """Return the bill of every place on some nodes, (nodes, n, links)."""
    return np.asarray(product(sent[None], forward) + product(sent.T[None], backward))


def _norm(load: Floats) -> Floats:
    """Return `rankmap.joint.judge.norm` of the last axis."""
    most = np.maximum(load.max(axis=-1, initial=0.0), 0.0)
    share = load / np.where(most > 0, most, 1.0)[..., None]
    np.maximum(share, 0.0, out=share)
    eighth = share**2
    eighth *= eighth
    eighth *= eighth
    return np.asarray(most * (eighth * eighth * eighth).sum(axis=-1) ** (1 / POWER))
