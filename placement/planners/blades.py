"""Planner ``blades``: directly connected blades, one position in all groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.errors import PlanError, UsageError
from placement.planners import planner
from placement.planners._units import free_rows, needs, rank_within

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.request import Request

    Ints = NDArray[np.int64]

__all__ = ["blades", "column_places", "refuse_short", "turns"]


@planner("blades")
def blades(machine: Machine, request: Request) -> NDArray[np.int64]:
    """Take one blade position across all groups, then the next positions.

    The job placement of S. A. Aseeri, A. G. Chatterjee, M. K. Verma and D. E.
    Keyes, "A scheduling policy to improve 10% of communication time in
    parallel FFT", section IV-E: blade n of chassis m of all groups is joined
    directly to its like (as far as the machine's wiring does so; `blades-linked`
    goes by the links). A column is one (chassis, blade) position in all
    groups. The first is the one with most free nodes, the first of several.
    When it is used up the job grows to the next blade of that chassis (after
    the last the first) until the chassis is used up, then to the next chassis
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
    order = np.lexsort((group, slot, turns(machine, column)))
    within = (slot < request.per_blade) | must
    order = order[within[order]]
    refuse_short(request, len(rows), len(order))
    others = order[~must[order]][: request.count - int(must.sum())]
    taken = must.copy()
    taken[others] = True
    return rows[order[taken[order]]]


def column_places(
    machine: Machine, rows: Ints, must: NDArray[np.bool_], per_blade: int
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


def turns(machine: Machine, column: Ints) -> Ints:
    """Return the turn of each free node's column.

    Parameters
    ----------
    machine : Machine
    column : int64 (k,)
        Columns of all free nodes.

    Returns
    -------
    int64 (k,)
        0 for the column with most of them, then its chassis round, then the next chassis.
    """
    free = np.bincount(column, minlength=_columns(machine))
    blades = machine.topology.extents[-2]
    start, first = divmod(int(np.argmax(free)), blades)
    c, b = np.divmod(np.arange(len(free)), blades)
    c = (c - start) % (len(free) // blades)
    b = np.where(c == 0, (b - first) % blades, b)
    return (c * blades + b)[column]


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
