# SPDX-License-Identifier: Apache-2.0
"""Planners ``blades`` and ``blades-linked``: blades with direct links between groups.

``blades`` takes one position in all groups, ``blades-linked`` what the machine's own links join.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nidmap.placement.errors import PlanError, UsageError
from nidmap.placement.machine import Machine
from nidmap.placement.planners import Request, free_rows, planner
from nidmap.placement.support.array_types import Ints, Mask
from nidmap.placement.support.arrays import rank_within
from nidmap.placement.topologies import links, router_coords

#: Total number of blades placed over all trials: small jobs get many starts, large ones few.
TRIALS = 6_000


@planner("blades", kinds=("dragonfly",))
def blades(machine: Machine, request: Request) -> Ints:
    """Take one blade position across all groups, then the next positions.

    The job placement of S. A. Aseeri, A. G. Chatterjee, M. K. Verma and D. E.
    Keyes, "A scheduling policy to improve 10% of communication time in
    parallel FFT", section IV-E: blade n of chassis m of all groups is joined
    directly to its like (as far as the machine's wiring does so; `blades-linked`
    goes by the links). A column is one (chassis, blade) position in all
    groups, a slice (section IV-E: 288 blades, 1,152 nodes) one chassis
    position. The job starts in the slice from which it needs the fewest, at
    the column of which most nodes can be taken, the first of several. When
    that is used up the job grows to the next blade of that chassis (after the
    last the first) until the chassis is used up, then to the next chassis
    from its first blade on. Of every blade at most `per_blade` nodes are
    taken, its first free ones.

    `machine`: a dragonfly; on Slingshot a column is one switch position. `request`: `per_blade` 1
    is the paper's own experiment: 216 nodes are 12 blades in each of 18 groups. Included nodes
    are taken first of their blade, and may be more than `per_blade`. Returns (count,): rows in
    the order column, then first, second … node of each blade, then group: groups vary fastest.
    """
    free = _free_places(machine, request)
    order = np.lexsort((free.group, free.slot, free.turn))
    order = order[free.usable[order]]
    others = order[~free.must[order]][: request.count - int(free.must.sum())]
    taken = free.must.copy()
    taken[others] = True
    return free.rows[order[taken[order]]]


class _FreePlaces(NamedTuple):
    """The positions of a dragonfly's free nodes, and which of them the job may have."""

    rows: Ints  # (k,)
    must: Mask  # (k,), those that are taken in any case
    # slot, group: (k,), rank among the rows of the same blade, those that must be taken first, and
    # group
    slot: Ints
    group: Ints
    turn: Ints  # (k,), the turn of its column
    usable: Mask  # (k,), at most `per_blade` of each blade, and those that must be taken


def _free_places(machine: Machine, request: Request) -> _FreePlaces:
    """Return the positions of the free nodes, refusing requests outside the strategy's scope."""
    rows, must = free_rows(request)
    if request.per_blade < 1:
        raise UsageError(f"{request.per_blade} nodes per blade: at least 1 is needed")
    coords = machine.coords[rows].astype(np.int64)
    column = np.zeros(len(rows), dtype=np.int64)
    for axis in range(1, coords.shape[1] - 1):
        column = column * machine.topology.extents[axis] + coords[:, axis]
    group = coords[:, 0]
    blade = group * _column_count(machine) + column
    slot = rank_within(blade, ~must, coords[:, -1])
    usable = (slot < request.per_blade) | must
    reach = int(usable.sum())
    if reach < request.count:
        raise PlanError(
            f"{request.count} nodes wanted, and with {request.per_blade} per blade only {reach} "
            f"of {len(rows)} free nodes can be taken: {request.count - reach} missing",
            "use a larger --per-blade, or strategy compact, spread or hilbert",
        )
    turn = _order_columns(machine, column[usable], must[usable], request.count)[column]
    return _FreePlaces(rows, must, slot, group, turn, usable)


def _column_count(machine: Machine) -> int:
    return int(np.prod(machine.topology.extents[1:-1]))


def _order_columns(machine: Machine, column: Ints, must: Mask, count: int) -> Ints:
    """Return the rank of every column in the order in which columns are taken.

    `column` (k,): columns of the nodes that may be taken. `must` (k,): those that are taken in
    any case. `count`: nodes wanted, those included; at most k. Returns (columns,): 0 for the
    first column, then its chassis round, then the next chassis.
    """
    blades = machine.topology.extents[-2]
    size = _column_count(machine)
    room = np.bincount(column, minlength=size).reshape(-1, blades)
    forced = np.bincount(column[must], minlength=size).reshape(-1, blades).sum(axis=1)
    slices = _slices_from_each(room.sum(axis=1) - forced, forced, count)
    start, first = divmod(int(np.argmax(np.where(slices == slices.min(), room.T, -1).T)), blades)
    c, b = np.divmod(np.arange(size), blades)
    c = (c - start) % len(room)
    b = np.where(c == 0, (b - first) % blades, b)
    return c * blades + b


def _slices_from_each(room: Ints, forced: Ints, count: int) -> Ints:
    """Return, for each possible first slice, how many slices the job touches from there.

    `room` (chassis,): nodes that may be taken of each slice besides those that must. `forced`
    (chassis,): nodes of each slice that must be taken. `count`: nodes wanted in all.
    """
    touched = np.empty(len(room), dtype=np.int64)
    for start in range(len(room)):
        turned = np.roll(room, -start)
        before = np.cumsum(turned) - turned
        reached = (before < count - forced.sum()) & (turned > 0)
        touched[start] = np.count_nonzero(reached | (np.roll(forced, -start) > 0))
    return touched


@dataclass(frozen=True, slots=True)
class Joined:
    """The direct links between groups in a set of nodes."""

    blades: int  # blades (switches) with nodes of the set
    pairs: int  # pairs of these blades with a link between them
    groups: int  # groups with nodes of the set
    group_pairs: int  # pairs of these groups with a link between blades of the set


def count_joined(machine: Machine, rows: Ints) -> Joined:
    """Count the direct links between groups within a set of nodes.

    `machine`: a dragonfly. `rows` (k,): for a node of several NICs its first router counts.
    """
    a, b, group = _links_between(machine)
    chosen = np.zeros(len(group), dtype=bool)
    chosen[machine.router[rows, 0]] = True
    both = chosen[a] & chosen[b]
    g, h = group[a[both]].astype(np.int64), group[b[both]].astype(np.int64)
    key = np.minimum(g, h) * (int(group.max(initial=0)) + 1) + np.maximum(g, h)
    return Joined(
        blades=int(chosen.sum()),
        pairs=int(both.sum()),
        groups=len(np.unique(group[chosen])),
        group_pairs=len(np.unique(key)),
    )


def _links_between(
    machine: Machine,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return both ends of the links between groups, and the group of every router."""
    cables = links(machine)
    group = router_coords(machine)[:, 0]
    apart = group[cables.a] != group[cables.b]
    return cables.a[apart], cables.b[apart], group


@planner("blades-linked", kinds=("dragonfly",), links=True)
def blades_linked(machine: Machine, request: Request) -> Ints:
    """Take blades with direct links between groups, as many linked pairs as possible.

    `blades` believes that a blade position is joined to its like in all
    groups; on the machines whose links are known it is not (on Edison and
    Theta a blade reaches two other groups at most). This planner goes by the
    links, listed by a dump or made by the wiring rule, and looks for the set
    of blades with most pairs joined directly between groups. That is the
    densest subgraph of given size, for which no fast exact way is known: sets
    are grown blade by blade from several starts, always by the blade joined
    to most of those there. On small machines the set found has been held
    against the best of all.

    `machine`: a dragonfly. `request`: `per_blade` as for `blades`. The blades of included nodes
    are in the set. Returns (count,): rows in the order of `blades`: column, then first, second …
    node of each blade, then group.
    """
    free = _free_places(machine, request)
    router = machine.router[free.rows, 0]
    place = _BladeSearch(machine, free, request.count).best()[router]
    taken = np.lexsort((free.slot, place, ~free.must, ~free.usable))[: request.count]
    order = np.lexsort((free.group[taken], free.slot[taken], free.turn[taken]))
    return free.rows[taken[order]]


class _BladeSearch:
    """The search for a set of blades (routers).

    `free`: the routers of those that must be taken are in the set. `count`: nodes wanted.
    """

    def __init__(self, machine: Machine, free: _FreePlaces, count: int) -> None:
        a, b, group = _links_between(machine)
        router = machine.router[free.rows, 0]
        #: Nodes that may be taken of each router.
        self.room = np.bincount(router[free.usable], minlength=len(group))
        usable = (self.room[a] > 0) & (self.room[b] > 0)
        tail = np.concatenate([a[usable], b[usable]])
        head = np.concatenate([b[usable], a[usable]]).astype(np.int64)
        degree = np.bincount(tail, minlength=len(group))
        #: Routers joined to router i: near[start[i]:start[i + 1]].
        self.start = np.concatenate([[0], np.cumsum(degree)])
        self.near = head[np.argsort(tail, kind="stable")]
        turn = np.zeros(len(group), dtype=np.int64)
        turn[router[free.usable]] = free.turn[free.usable]
        #: Tie-breakers between routers: most nodes, most links, earliest column.
        self.rank = np.argsort(np.lexsort((turn, -degree, -self.room)))
        self.forced, self.count = np.unique(router[free.must]), count

    def best(self) -> Ints:
        """Return each router's rank in the best set found; a large number if not in it.

        The routers with most links inside come first, so that a surplus of
        nodes is left on those with fewest.
        """
        sets = map(self._grow, self._firsts().tolist())
        chosen = max(sets, key=lambda chosen: int(self._inside(chosen)[chosen].sum()))
        return np.argsort(np.lexsort((self.rank, -self._inside(chosen), ~chosen)))

    def _firsts(self) -> Ints:
        """Return the routers to start trials from, evenly sampled from the ranking."""
        order = np.argsort(self.rank)[: int((self.room > 0).sum())]
        needed = int(np.searchsorted(np.cumsum(self.room[order]), self.count)) + 1
        trials = max(1, min(len(order), TRIALS // needed))
        return order[np.arange(trials) * len(order) // trials]

    def _grow(self, first: int) -> Mask:
        """Grow a set from `first` and the required routers, adding the best-connected each time."""
        chosen = np.zeros(len(self.room), dtype=bool)
        score = -self.rank - np.where(self.room > 0, 0, 1 << 40)
        waiting, have = [first, *self.forced.tolist()], 0
        while waiting or have < self.count:
            router = waiting.pop() if waiting else int(np.argmax(score))
            if not chosen[router]:
                chosen[router] = True
                score[router] -= 1 << 50
                score[self.near[self.start[router] : self.start[router + 1]]] += len(score)
                have += int(self.room[router])
        return chosen

    def _inside(self, chosen: Mask) -> Ints:
        """Return, for each router, the number of routers in the set that it is linked to."""
        total = np.concatenate([[0], np.cumsum(chosen[self.near])])
        return np.asarray(total[self.start[1:]] - total[self.start[:-1]])
