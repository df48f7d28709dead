"""Planners ``hilbert`` and ``morton``: the tightest stretch of a space-filling curve."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from placement.curves import hilbert_key, morton_key
from placement.machine import Machine
from placement.planners import Request, free_rows, planner
from placement.support.array_types import Ints, Mask
from placement.topologies import number_coords

if TYPE_CHECKING:
    Key = Callable[[NDArray[np.int32], tuple[int, ...]], Ints]


@planner("hilbert")
def hilbert(machine: Machine, request: Request) -> Ints:
    """Take the tightest stretch of free nodes on the Hilbert curve through the machine.

    The curve runs through (x, y, z) on a torus, the nodes of a router
    together; through (group, chassis, blade, node) on a dragonfly, (group,
    switch, node) on Slingshot; along the leaves on trees and fat trees. Of all
    stretches of as many free nodes as wanted it takes the one that spans the
    fewest places of the curve, busy and absent ones counted; of several the
    first.

    On a dragonfly a level is only the same or different: group 3 is no nearer
    to group 4 than to group 9. What the curve means there is that nodes near
    each other on it share most of their coordinates, and that the differing
    ones take few values: a stretch of n nodes lies in about n^(1/4) groups,
    as many chassis of each, and so on, a small copy of the whole dragonfly.

    Parameters
    ----------
    machine : Machine
    request : Request
        Included nodes belong to the set whose span is made least.

    Returns
    -------
    int64 (count,)
        Rows in the order of the curve.

    Raises
    ------
    PlanError
        Where too few nodes are free.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> from placement.planners import Request
    >>> machine = parse_spec("torus:4x4")
    >>> hilbert(machine, Request(count=4, free=machine.free)).tolist()
    [0, 1, 5, 4]
    """
    return _take_along(machine, request, hilbert_key)


@planner("morton")
def morton(machine: Machine, request: Request) -> Ints:
    """Take the tightest stretch of free nodes on the Morton curve through the machine.

    As `hilbert`, on the Morton curve (Z order): simpler, with jumps.

    Parameters
    ----------
    machine : Machine
    request : Request

    Returns
    -------
    int64 (count,)
        Rows in the order of the curve.

    Raises
    ------
    PlanError
        Where too few nodes are free.
    """
    return _take_along(machine, request, morton_key)


def _take_along(machine: Machine, request: Request, key: Key) -> Ints:
    rows, must = free_rows(request)
    place = curve_positions(machine, rows, key)
    order = np.argsort(place, kind="stable")
    taken = _tightest_window(place[order], must[order], request.count)
    return rows[order[taken]]


def curve_positions(machine: Machine, rows: Ints, key: Key) -> Ints:
    """Return the positions of rows along a curve through the machine.

    Parameters
    ----------
    machine : Machine
    rows : int64 (k,)
    key : callable
        `placement.curves.hilbert_key` or `morton_key`.

    Returns
    -------
    int64 (k,)
    """
    coords = machine.coords[rows]
    extents = machine.topology.extents
    kind = machine.topology.kind
    if kind.startswith("dragonfly"):
        return key(coords, extents)
    if kind == "torus":
        return key(coords[:, :-1], extents[:-1]) * extents[-1] + coords[:, -1]
    return number_coords(coords, extents)


def _tightest_window(place: Ints, must: Mask, count: int) -> Ints:
    """Return which of the sorted places to take: least span with what must be in, then first.

    What need not be in is one run among its like: of runs that give the same
    span and start with what must be in, the one least long itself.
    """
    fixed, others = np.flatnonzero(must), np.flatnonzero(~must)
    more = count - len(fixed)
    if more == 0:
        return fixed
    low = place[others[: len(others) - more + 1]]
    high = place[others[more - 1 :]]
    start = np.minimum(low, place[fixed].min(initial=place[-1]))
    end = np.maximum(high, place[fixed].max(initial=0))
    first = int(np.lexsort((high - low, start, end - start))[0])
    return np.sort(np.concatenate([fixed, others[first : first + more]]))
