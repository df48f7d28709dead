"""Planner ``random``: nodes drawn by lot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.planners import planner
from placement.planners._units import free_rows

if TYPE_CHECKING:
    from placement.machine import Machine
    from placement.request import Request
    from placement.support.array_types import Ints

__all__ = ["draw"]


@planner("random")
def draw(machine: Machine, request: Request) -> Ints:
    """Draw nodes by lot: every set of free nodes is equally likely.

    Parameters
    ----------
    machine : Machine
        Not looked at.
    request : Request
        `seed` decides the lot; the same seed on the same free nodes draws the same.

    Returns
    -------
    int64 (count,)
        Rows in the machine's order: the nodes are random, their order is not,
        so that a comparison shows what the choice alone costs.

    Raises
    ------
    PlanError
        Where too few nodes are free.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> from placement.request import Request
    >>> machine = parse_spec("torus:4x4")
    >>> len(draw(machine, Request(count=5, free=machine.free, seed=1)))
    5
    """
    rows, must = free_rows(request)
    lot = np.random.default_rng(request.seed)
    drawn = lot.choice(rows[~must], request.count - int(must.sum()), replace=False, shuffle=False)
    return np.sort(np.concatenate([rows[must], drawn]))
