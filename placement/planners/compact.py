"""Planner ``compact``: fewest groups, then chassis, then blades; on a torus fewest hops."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from placement.curves import hilbert_key
from placement.planners import planner
from placement.planners._ball import nearest_together
from placement.planners._fewest import Nest, fewest, largest
from placement.planners._units import free_rows, nested
from placement.planners.curve import curve_positions

if TYPE_CHECKING:
    from placement.machine import Machine
    from placement.request import Request
    from placement.support.array_types import Ints, Mask


__all__ = ["compact"]

#: Levels above the node that are minimised together.
TOGETHER = 3


@planner("compact")
def compact(machine: Machine, request: Request) -> Ints:
    """Take nodes in the fewest groups, then the fewest chassis, then the fewest blades.

    On a dragonfly no choice of free nodes touches fewer groups; none that
    touches as few groups touches fewer chassis; none that touches as few of
    both fewer blades. On Slingshot the levels are group and switch, on trees
    and fat trees the switches from the outermost level in (as Slurm's tree
    plugin, which first looks for the lowest switch that holds the job). So it
    was in every case that was held against all choices; levels deeper than
    the three outermost above the node are minimised inside what these chose.

    On a torus it takes nodes that are few hops from each other: those nearest
    to a router, for the router about which the mean number of hops between
    the nodes is least. All routers are tried on tori of up to 512, which
    gives at most twice the least mean possible (S. O. Krumke et al., "Compact
    location problems", Theor. Comput. Sci. 181, 1997; M. A. Bender et al.,
    "Communication-aware processor allocation for supercomputers",
    Algorithmica 50, 2008); on larger ones those about which most nodes are free.

    Parameters
    ----------
    machine : Machine
    request : Request
        Included nodes, and what they sit in, count among the fewest.

    Returns
    -------
    int64 (count,)
        Rows in the machine's order; on a torus along the Hilbert curve.

    Raises
    ------
    PlanError
        Where too few nodes are free.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> from placement.request import Request
    >>> machine = parse_spec("dragonfly:groups=2,chassis=2,blades=2,nodes=2")
    >>> free = machine.free.copy()
    >>> free[[0, 4]] = False
    >>> compact(machine, Request(count=4, free=free)).tolist()
    [8, 9, 10, 11]
    """
    rows, must = free_rows(request)
    if machine.topology.kind == "torus":
        chosen = nearest_together(machine, rows, must, request.count)
        return chosen[np.argsort(curve_positions(machine, chosen, hilbert_key), kind="stable")]
    levels = nested(machine, rows)
    inside = _chosen(levels, must, request.count)
    return np.sort(rows[_whole_units(levels[-1], must, inside)[: request.count]])


def _chosen(levels: list[Ints], must: Mask, count: int) -> Mask:
    """Return the members in the fewest units."""
    together = levels[:TOGETHER]
    parents = [_above(inner, outer) for outer, inner in pairwise(together)]
    units = fewest(Nest(parents, *_held(together[-1], must)), count)
    inside = np.isin(together[-1], units)
    for level in levels[TOGETHER:]:
        size, forced = _held(np.where(inside, level + 1, 0), must)
        size[0] = 0  # all that is outside
        inside &= np.isin(level + 1, largest(size, forced, count))
    return inside


def _above(inner: Ints, outer: Ints) -> Ints:
    """Return the unit above each unit of the inner level."""
    above = np.zeros(int(inner.max()) + 1, dtype=np.int64)
    above[inner] = outer
    return above


def _held(level: Ints, must: Mask) -> tuple[Ints, Mask]:
    """Return how many members each unit holds, and which holds one that must be taken."""
    return np.bincount(level), np.bincount(level, weights=must) > 0


def _whole_units(level: Ints, must: Mask, inside: Mask) -> Ints:
    """Return the members inside, what must be taken first, then unit by unit, the fullest first."""
    members = np.flatnonzero(inside)
    size, forced = _held(level[members], must[members])
    unit = level[members]
    order = np.lexsort((unit, -size[unit], ~forced[unit], ~must[members]))
    return members[order]
