"""Few free nodes: every step from a placement is looked at, and the best one taken.

A step puts a free node in the place of a chosen one, or exchanges the nodes of
two places. With at most a few dozen free nodes all routes between them fit into
a table, whatever the routing. Loads are linear in the bytes, so the time of any
choice and order of these nodes, and what each single step changes, are products
of small arrays: thousands of placements a second instead of a few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placement.network import Demand
from placement.support.array_types import Floats, Ints, Mask
from placement.support.arrays import product
from rankmap.joint import work
from rankmap.joint.budget import TUNING
from rankmap.joint.judge import POWER, Score, State, exchanges, move_nodes, norm
from rankmap.predict import Predictor
from rankmap.predict.summing import Summed

__all__ = ["ExactSteps", "RouteTable", "Traffic", "route_table", "traffic"]

#: Bytes that are sent along each route to see where they go.
GB = 1e9


@dataclass(frozen=True, slots=True, eq=False)
class RouteTable:
    """Routes between f nodes.

    Attributes
    ----------
    rows : int64 (f,)
        Rows of the machine.
    seconds : float64 (f, f, c)
        What a byte from node a to node b takes of each channel that any of
        them uses, in seconds; last come each node's injection and ejection.
    hops : float64 (f, f)
        Channels that it passes.
    """

    rows: Ints
    seconds: Floats
    hops: Floats


def route_table(asked: Predictor, rows: Ints) -> RouteTable:
    """Return the table of the routes between some nodes under the predictor's routing.

    Examples
    --------
    >>> import nidmap
    >>> from rankmap.predict import Predictor
    >>> m = nidmap.load_machine("torus:4,bw=1")
    >>> found = route_table(Predictor(m, "alltoall", 1, 1.0), np.array([0, 1, 3]))
    >>> found.hops.tolist()
    [[0.0, 1.0, 1.0], [1.0, 0.0, 2.0], [1.0, 2.0, 0.0]]
    """
    used, load = _routes(asked, rows)
    left = asked.left(asked.slots(rows[:1]))
    gbs = (asked.channels if left is None else left).bandwidth[used]
    counts = np.isfinite(gbs)
    hops = load.sum(axis=2)
    seconds = _different(load[:, :, counts] / (gbs[counts] * GB))
    return RouteTable(rows, np.concatenate([seconds, _own(asked, rows)], axis=2), hops)


def _routes(asked: Predictor, rows: Ints) -> tuple[Ints, Floats]:
    """Return the channels that are used, and what a byte puts on each, (f, f, channels)."""
    from placement.network.routes import routes

    found = routes(asked.machine, rows, asked.routing)
    if found is not None:
        return found
    load = _pair_routes(asked, rows)
    used = np.flatnonzero(load.any(axis=(0, 1)))
    return used, load[:, :, used]


def _pair_routes(asked: Predictor, rows: Ints) -> Floats:
    """Return the same by sending a byte between every two nodes, over all channels.

    Nodes of the same router have the same routes, but where the routing
    looks at the destination's number.
    """
    machine = asked.machine
    single = machine.router.shape[1] == 1 and machine.topology.kind != "fattree"
    alike = machine.router[rows, 0] if single else rows
    _, first, kind = np.unique(alike, return_index=True, return_inverse=True)
    some = np.zeros((len(first), len(first), len(asked.channels)))
    for i, a in enumerate(rows[first].tolist()):
        for j, b in enumerate(rows[first].tolist()):
            if i != j:
                one = Demand.pairs(machine, np.array([a]), np.array([b]), 1.0)
                some[i, j] = asked.loads(one, None).load
    return np.asarray(some[kind[:, None], kind[None, :]])


def _different(seconds: Floats) -> Floats:
    """Return each column once: links that all routes take alike, as those of a group pair, are."""
    if not seconds.size:
        return seconds
    flat = seconds.reshape(-1, seconds.shape[2])
    scale = flat.max(axis=0, initial=0.0)
    scale[scale == 0] = 1.0
    code = np.round(flat / scale, 9)
    weight = np.random.default_rng(1).random((2, len(flat)))
    key = np.vstack([np.round(weight @ code, 7), scale])
    _, first = np.unique(key, axis=1, return_index=True)
    return seconds[:, :, np.sort(first)]


def _own(asked: Predictor, rows: Ints) -> Floats:
    """Return the share of a byte in each node's injection and ejection, (f, f, 2f)."""
    count = len(rows)
    each = 1.0 / (asked.injection[rows] * GB)
    out = np.zeros((count, count, 2 * count))
    index = np.arange(count)
    out[index, :, index] = each[:, None]
    out[:, index, count + index] = each[None, :]
    out[index, index] = 0.0
    return out


class Traffic(NamedTuple):
    """What places send at the same time, whatever nodes they are.

    Attributes
    ----------
    bytes : float64 (n, n)
    floor : float
        Seconds below which it does not come: memory inside nodes, what a rank can send.
    times : float
        Steps of an algorithm that it stands for.
    """

    bytes: Floats
    floor: float
    times: float


def traffic(asked: Predictor, rows: Ints, slots: Ints | None) -> tuple[list[Traffic], Floats]:
    """Return what the places of an order send, and the seconds that a hop between two adds.

    Returns
    -------
    list of Traffic
    float64 (n, n)
        Latency: seconds a channel on the way from place to place.
    """
    on = asked.slots(rows)
    found: list[Traffic] = []
    delay = np.zeros((len(rows), len(rows)))
    for phase in asked.phases(on, slots):
        gbs = asked.constants.memory_gbs
        inside = phase.inside / (gbs * GB) if gbs else 0.0
        if phase.steps:
            inside /= phase.in_turn or 1.0  # 0: all of it stays inside nodes
        for one in exchanges(phase):
            floor = max(inside, asked.process_s(one.sent))
            found.append(Traffic(_table(one.flows(), len(rows)), floor, one.times))
        table = _table(phase.flows(), len(rows))
        if phase.a_node and table.any():
            delay += phase.in_turn * asked.constants.hop_ns * 1e-9 / table.sum() * table
    return found, delay


def _table(sums: Summed, nodes: int) -> Floats:
    out = np.zeros((nodes, nodes))
    np.add.at(out, (sums.source, sums.target), sums.weight)
    return out


class ExactSteps:
    """Descends over placements on few nodes.

    Parameters
    ----------
    asked : Predictor
    table : RouteTable
    must : bool (f,)
        Nodes of the table that must be part of the answer.
    swaps : bool
        Whether exchanging two places can change anything.
    rng : numpy.random.Generator
    spend : callable
        Is told the us of each round; False ends a descent.
    """

    def __init__(
        self,
        asked: Predictor,
        table: RouteTable,
        must: Mask,
        swaps: bool,
        rng: np.random.Generator,
        spend: Callable[[float], bool],
    ) -> None:
        self.asked, self.table, self.must, self.swaps = asked, table, must, swaps
        self.rng, self.spend = rng, spend
        self.hot = np.zeros(table.seconds.shape[2], dtype=bool)
        self.near = table.seconds[:, :, :0]  # what the hot links are, of those of the table
        self.far = table.hops[:, :, None]
        self.known: dict[bytes, tuple[list[Traffic], Floats]] = {}
        self.traffic: list[Traffic] = []
        self.delay = np.zeros((0, 0))

    def descend(self, state: State) -> tuple[State, Score | None]:
        """Return the state from which no step wins any more; the predictor has not judged it."""
        key = b"" if state.slots is None else state.slots.tobytes()
        if key not in self.known:
            self.known[key] = traffic(self.asked, state.rows, state.slots)
        self.traffic, self.delay = self.known[key]
        at = np.searchsorted(self.table.rows, state.rows)
        now, lost = self._heat(at)[0], 0
        while lost < TUNING.looks and self.spend(self._us(len(at))):
            places, before, news = self._looked_at(at), now, False
            for move in self._moves(at, places, now * (1 - TUNING.won_exactly)):
                step = move_nodes(at, [move])
                if len(set(step.tolist())) < len(step):
                    continue  # another place has taken that node by now
                after, grown = self._heat(step)
                news = news or grown
                if after < now * (1 - TUNING.won_exactly):
                    at, now = step, after
            if now == before and not news:
                lost += TUNING.looks if len(places) == len(at) else 1
            else:
                lost = 0
        return State(self.table.rows[at], state.slots, state.name), None

    def _heat(self, at: Ints) -> tuple[float, bool]:
        """Return the time of a placement, its busy links counted a little, and whether any is new.

        Those that are busy here are looked at from now on.
        """
        hot, total = self.hot.copy(), 0.0
        for one, load in zip(self.traffic, self._loads(at), strict=True):
            hot |= load > TUNING.busy * load.max(initial=0.0)
            total += one.times * max(one.floor, float(norm(load)))
        total += float((self.delay * self.table.hops[at[:, None], at]).sum())
        grown = bool((hot & ~self.hot).any())
        if grown:
            self.hot, self.near = hot, np.ascontiguousarray(self.table.seconds[:, :, hot])
        return total, grown

    def _loads(self, at: Ints) -> list[Floats]:
        """Return the seconds on every link of the table, for what is sent at the same time."""
        flat = self.table.seconds[at[:, None], at].reshape(len(at) ** 2, -1)
        return [product(one.bytes.reshape(1, -1), flat)[0] for one in self.traffic]

    def _a_place(self, places: int) -> int:
        """Return the multiplications of looking at the steps of one place."""
        links = 8 + int(self.hot.sum())
        return len(self.traffic) * (len(self.must) + 2 * places) * places * links

    def _us(self, places: int) -> float:
        """Return the us of looking at steps once, about."""
        looks = 2 * self._a_place(places) * self._width(places)
        gathered = places**2 * self.table.seconds.shape[2]
        return work.every_step(looks, len(self.traffic), gathered)

    def _width(self, places: int) -> int:
        """Return how many places are looked at at once: all, where that is little work."""
        return min(places, max(3, int(TUNING.at_once) // max(1, self._a_place(places))))

    def _looked_at(self, at: Ints) -> Ints:
        """Return the places whose steps are looked at: those that feed the busiest links most.

        Half of them; the others are drawn by lot.
        """
        width = self._width(len(at))
        if width == len(at):
            return np.arange(len(at))
        bill, ways = np.zeros(len(at)), self.table.seconds[at[:, None], at]
        for one, load in zip(self.traffic, self._loads(at), strict=True):
            price = (load / max(1e-300, load.max(initial=0.0))) ** (POWER - 1)
            paid = one.times * one.bytes * (ways @ price)
            bill += paid.sum(axis=1) + paid.sum(axis=0)
        first = np.argsort(-bill * self.rng.uniform(0.8, 1.0, len(at)))[: (width + 1) // 2]
        rest = np.setdiff1d(np.arange(len(at)), first)
        return np.concatenate([first, self.rng.permutation(rest)[: width - len(first)]])

    def _moves(self, at: Ints, places: Ints, below: float) -> list[tuple[int, int]]:
        """Return the best step of each of some places, the best first: few, and only good ones.

        A step is (place, node), or (place, -1 - other place).
        """
        replace, swap = self._after(at, places)
        replace[at] = np.inf
        replace[:, self.must[at[places]]] = np.inf
        swap[np.arange(len(places)), places] = np.inf
        after = np.concatenate([replace.T, swap], axis=1)
        best, nodes = after.argmin(axis=1), len(self.must)
        time = after.min(axis=1)
        first = [k for k in np.argsort(time, kind="stable").tolist() if time[k] < below]
        to = np.where(best < nodes, best, nodes - 1 - best)
        return [(int(places[k]), int(to[k])) for k in first[: TUNING.moves]]

    def _after(self, at: Ints, places: Ints) -> tuple[Floats, Floats]:
        """Return the time after replacing places, (f, p), and after exchanging them, (p, n)."""
        replace = np.zeros((len(self.must), len(places)))
        swap = np.full((len(places), len(at)), 0.0 if self.swaps else np.inf)
        for one in self.traffic:
            changed = _step_changes(one.bytes, self.near, at, places, self.swaps)
            for total, load in zip((replace, swap), changed, strict=False):
                total += one.times * np.maximum(one.floor, norm(load))
        if self.delay.any():
            changed = _step_changes(self.delay, self.far, at, places, self.swaps)
            for total, load in zip((replace, swap), changed, strict=False):
                total += load[..., 0]
        return replace, swap


def _step_changes(sent: Floats, cost: Floats, at: Ints, places: Ints, swaps: bool) -> list[Floats]:
    """Return what is added up on each link after every step of some places.

    Parameters
    ----------
    sent : float64 (n, n)
        What goes from place to place.
    cost : float64 (f, f, c)
        What a unit from node to node adds to each link.
    at : int64 (n,)
        Node of each place.
    places : int64 (p,)
    swaps : bool
        Whether places are exchanged too.

    Returns
    -------
    list of float64 (f, p, c) and (p, n, c)
        After place p is put on node f; after places p and n change nodes.
    """
    back = cost.swapaxes(0, 1)
    forward, backward, here = cost[:, at], back[:, at], cost[at[:, None], at]
    some, ends = np.arange(len(places)), at[places]
    # [f, p]: what place p's messages add on node f, all others where they are
    bill = product(sent[places][None], forward) + product(sent.T[places][None], backward)
    own = bill[ends, some]
    load = (sent[..., None] * here).sum(axis=(0, 1))
    found = [load + bill - own]
    if swaps:
        # p's bill on j's node, j's on p's, and what they exchange with each other, which both
        # bills count before and neither does after.
        there = product(sent[None], forward[ends]) + product(sent.T[None], backward[ends])
        now = (sent[..., None] * here).sum(axis=1) + (sent[..., None] * here).sum(axis=0)
        both = (sent + sent.T)[places]
        between = both[..., None] * (cost[ends[:, None], at] + back[ends[:, None], at])
        change = bill[at].swapaxes(0, 1) + there - own[:, None] - now[None, :] + between
        found.append(load + change)
    return found
