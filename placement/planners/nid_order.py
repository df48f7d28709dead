"""Planner ``nid-order``: the first free nodes, as a scheduler without a topology takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.planners import planner
from placement.planners._units import free_rows

if TYPE_CHECKING:
    from placement.machine import Machine
    from placement.request import Request
    from placement.support.array_types import Ints

__all__ = ["first_free"]


@planner("nid-order")
def first_free(machine: Machine, request: Request) -> Ints:
    """Take the first free nodes in the machine's order, those to include among them.

    Parameters
    ----------
    machine : Machine
    request : Request

    Returns
    -------
    int64 (count,)

    Raises
    ------
    PlanError
        Where too few nodes are free.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> from placement.request import Request
    >>> machine = parse_spec("torus:4x4")
    >>> first_free(machine, Request(count=3, free=machine.free, include=np.array([9]))).tolist()
    [0, 1, 9]
    """
    rows, must = free_rows(request)
    return np.sort(np.concatenate([rows[must], rows[~must][: request.count - int(must.sum())]]))
