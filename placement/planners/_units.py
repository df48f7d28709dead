"""What planners share: the units nodes sit in (groups, chassis, blades …), who fits where."""

from __future__ import annotations

import numpy as np

from placement.errors import UsageError
from placement.machine import Machine
from placement.request import Request
from placement.support.array_types import Ints, Mask

__all__ = ["free_rows", "nested_units"]


def free_rows(request: Request) -> tuple[Ints, Mask]:
    """Return the free rows in the machine's order, and which of them must be taken.

    Raises
    ------
    PlanError
        Where fewer are free than wanted.
    UsageError
        Where more are included than wanted.
    """
    rows = request.rows()
    must = np.isin(rows, request.include)
    if int(must.sum()) > request.count:
        raise UsageError(f"{int(must.sum())} nodes are included, but only {request.count} wanted")
    return rows, must


def nested_units(machine: Machine, rows: Ints) -> list[Ints]:
    """Return the number of the unit that each row sits in, level by level above the node.

    Parameters
    ----------
    machine : Machine
    rows : int64 (k,)

    Returns
    -------
    list of int64 (k,)
        Outermost level first. A unit is known by all coordinates down to its
        level (a chassis of one group is not that of another), and numbered
        from 0 in the order of the coordinates, absent ones left out.

    Examples
    --------
    >>> import numpy as np
    >>> from placement.specs import parse_spec
    >>> machine = parse_spec("dragonfly:groups=2,chassis=2,blades=2,nodes=1")
    >>> [level.tolist() for level in nested_units(machine, np.array([0, 3, 4, 5]))]
    [[0, 0, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]]
    """
    coords = machine.coords[rows]
    extents = machine.topology.extents
    levels, unit = [], np.zeros(len(rows), dtype=np.int64)
    for axis, extent in enumerate(extents[:-1]):
        place = unit * (extent + 1) + coords[:, axis] + 1  # -1 is a place not known
        unit = np.unique(place, return_inverse=True)[1].astype(np.int64)
        levels.append(unit)
    return levels
