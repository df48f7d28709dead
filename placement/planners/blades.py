"""Planner ``blades``: directly connected blades, one position in all groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.errors import PlanError, UsageError
from placement.planners import planner
from placement.planners._units import free_rows, needs
from placement.support.arrays import rank_within

if TYPE_CHECKING:
    from placement.machine import Machine
    from placement.request import Request
    from placement.support.array_types import Ints, Mask


__all__ = ["blades", "column_places", "refuse_short", "turns"]


@planner("blades")
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

    Parameters
    ----------
    machine : Machine
        A dragonfly; on Slingshot a column is one switch position.
    request : Request
        `per_blade` 1 is the paper's own experiment: 216 nodes are 12 blades in
        each of 18 groups. Included nodes are taken first of their blade, and
        may be more than `per_blade`.

    Returns
    -------
    int64 (count,)
        Rows in the order column, then first, second … node of each blade,
        then group: groups vary fastest.

    Raises
    ------
    PlanError
        Where too few nodes are free, or too few with `per_blade` a blade.
    UsageError
        Where the machine is no dragonfly, or `per_blade` is below 1.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> from placement.request import Request
    >>> machine = parse_spec("dragonfly:groups=3,chassis=2,blades=2,nodes=2")
    >>> blades(machine, Request(count=7, free=machine.free)).tolist()
    [0, 8, 16, 1, 9, 17, 2]
    """
    needs(machine, "dragonfly", "blades", "compact, spread, hilbert, morton and random")
    rows, must = free_rows(request)
    column, slot, group = column_places(machine, rows, must, request.per_blade)
    within = (slot < request.per_blade) | must
    refuse_short(request, len(rows), int(within.sum()))
    turn = turns(machine, column[within], must[within], request.count)[column]
    order = np.lexsort((group, slot, turn))
    order = order[within[order]]
    others = order[~must[order]][: request.count - int(must.sum())]
    taken = must.copy()
    taken[others] = True
    return rows[order[taken[order]]]


def column_places(
    machine: Machine, rows: Ints, must: Mask, per_blade: int
) -> tuple[Ints, Ints, Ints]:
    """Return where rows of a dragonfly sit.

    Parameters
    ----------
    machine : Machine
    rows : int64 (k,)
    must : bool (k,)
        Those that count first on their blade.
    per_blade : int
        Only looked at: it must make sense.

    Returns
    -------
    column, slot, group : int64 (k,)
        Position in the group (chassis-major), rank among the rows of the same
        blade, and group.

    Raises
    ------
    UsageError
        Where `per_blade` is below 1.
    """
    if per_blade < 1:
        raise UsageError(f"{per_blade} nodes a blade: at least 1 is needed")
    coords = machine.coords[rows].astype(np.int64)
    column = np.zeros(len(rows), dtype=np.int64)
    for axis in range(1, coords.shape[1] - 1):
        column = column * machine.topology.extents[axis] + coords[:, axis]
    group = coords[:, 0]
    blade = group * _columns(machine) + column
    return column, rank_within(blade, ~must, coords[:, -1]), group


def _columns(machine: Machine) -> int:
    return int(np.prod(machine.topology.extents[1:-1]))


def turns(machine: Machine, column: Ints, must: Mask, count: int) -> Ints:
    """Return the turn of every column.

    Parameters
    ----------
    machine : Machine
    column : int64 (k,)
        Columns of the nodes that may be taken.
    must : bool (k,)
        Those that are taken in any case.
    count : int
        Nodes wanted, those included; at most k.

    Returns
    -------
    int64 (columns,)
        0 for the first column, then its chassis round, then the next chassis.
    """
    blades = machine.topology.extents[-2]
    size = _columns(machine)
    room = np.bincount(column, minlength=size).reshape(-1, blades)
    forced = np.bincount(column[must], minlength=size).reshape(-1, blades).sum(axis=1)
    slices = _slices_from_each(room.sum(axis=1) - forced, forced, count)
    start, first = divmod(int(np.argmax(np.where(slices == slices.min(), room.T, -1).T)), blades)
    c, b = np.divmod(np.arange(size), blades)
    c = (c - start) % len(room)
    b = np.where(c == 0, (b - first) % blades, b)
    return c * blades + b


def _slices_from_each(room: Ints, forced: Ints, count: int) -> Ints:
    """Return how many slices a job touches that starts in each of them.

    Parameters
    ----------
    room : int64 (chassis,)
        Nodes that may be taken of each slice besides those that must.
    forced : int64 (chassis,)
        Nodes of each slice that must be taken.
    count : int
        Nodes wanted in all.
    """
    touched = np.empty(len(room), dtype=np.int64)
    for start in range(len(room)):
        turned = np.roll(room, -start)
        before = np.cumsum(turned) - turned
        reached = (before < count - forced.sum()) & (turned > 0)
        touched[start] = np.count_nonzero(reached | (np.roll(forced, -start) > 0))
    return touched


def refuse_short(request: Request, free: int, reach: int) -> None:
    """Refuse a job for which too few nodes are left with `per_blade` a blade.

    Raises
    ------
    PlanError
    """
    if reach < request.count:
        raise PlanError(
            f"{request.count} nodes wanted, and with {request.per_blade} a blade only {reach} "
            f"of {free} free nodes can be taken: {request.count - reach} missing",
            "take more with --per-blade, or strategy compact, spread or hilbert",
        )
