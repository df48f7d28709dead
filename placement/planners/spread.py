"""Planner ``spread``: as evenly as can be over groups, then chassis, then blades."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.planners import planner
from placement.planners._units import even_order, free_rows, nested

if TYPE_CHECKING:
    from placement.machine import Machine
    from placement.request import Request
    from placement.support.array_types import Ints

__all__ = ["spread"]


@planner("spread")
def spread(machine: Machine, request: Request) -> Ints:
    """Spread a job as evenly as can be over the machine.

    The shares of the outermost units (groups; x planes of a torus; leaves of
    a two-level fat tree) differ by one node at most, save where a unit has not
    as many free nodes; among the choices for which that holds the shares of
    the next level (chassis; y lines; …) are evened out in the same way, and so
    on down to blades, routers or leaves.

    Parameters
    ----------
    machine : Machine
    request : Request

    Returns
    -------
    int64 (count,)
        Rows in the machine's order.

    Raises
    ------
    PlanError
        Where too few nodes are free.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> from placement.request import Request
    >>> machine = parse_spec("dragonfly:groups=2,chassis=2,blades=2,nodes=2")
    >>> spread(machine, Request(count=4, free=machine.free)).tolist()
    [0, 4, 8, 12]
    """
    rows, must = free_rows(request)
    order = even_order(nested(machine, rows), must)
    return np.sort(rows[order[: request.count]])
