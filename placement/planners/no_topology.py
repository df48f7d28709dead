"""Planners that look at no topology: ``nid-order`` takes the first free nodes, ``random`` any."""

from __future__ import annotations

import numpy as np

from placement.machine import Machine
from placement.planners import free_rows, planner
from placement.request import Request
from placement.support.array_types import Ints

__all__ = ["draw_nodes", "take_first"]


@planner("nid-order")
def take_first(machine: Machine, request: Request) -> Ints:
    """Take the first free nodes in the machine's order, those to include among them.

    Parameters
    ----------
    machine : Machine
        Not looked at.
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
    >>> take_first(machine, Request(count=3, free=machine.free, include=np.array([9]))).tolist()
    [0, 1, 9]
    """
    rows, must = free_rows(request)
    return np.sort(np.concatenate([rows[must], rows[~must][: request.count - int(must.sum())]]))


@planner("random")
def draw_nodes(machine: Machine, request: Request) -> Ints:
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
    >>> len(draw_nodes(machine, Request(count=5, free=machine.free, seed=1)))
    5
    """
    rows, must = free_rows(request)
    lot = np.random.default_rng(request.seed)
    drawn = lot.choice(rows[~must], request.count - int(must.sum()), replace=False, shuffle=False)
    return np.sort(np.concatenate([rows[must], drawn]))
