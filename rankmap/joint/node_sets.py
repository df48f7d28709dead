"""Node sets to start from: what the planners choose, and families between packed and spread.

The planners' own answers come first. Between
"as packed" and "as spread as can be" lies a family for each level of the
machine: the job spread evenly over the k freest groups (chassis, leaves …).
On tori it is boxes (`rankmap.joint.torus_boxes`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from placement import planners
from placement.errors import PlanError, UsageError
from placement.plan import counted
from placement.planners._units import nested
from rankmap.joint.tuning import TUNING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placement.machine import Machine
    from placement.request import Request
    from placement.support.array_types import Ints


__all__ = ["default", "levels", "planned"]


def default(machine: Machine, request: Request) -> Ints | None:
    """Return what the scheduler would take by itself; None where it would take nothing."""
    try:
        return planners.find(request.baseline.strategy)(machine, request)
    except PlanError:
        return None


def planned(machine: Machine, request: Request) -> Iterator[tuple[str, Ints]]:
    """Yield the name and the nodes of every planner that applies."""
    wanted = [(name, request) for name in planners.BUNDLED]
    wanted += [("blades", replace(request, per_blade=most)) for most in (2, 1)]
    for name, changed in wanted:
        try:
            yield name, planners.find(name)(machine, changed)
        except (PlanError, UsageError):
            continue  # does not apply to this machine, or has too few nodes of its kind


def levels(machine: Machine, request: Request) -> Iterator[tuple[str, Ints]]:
    """Yield the job spread over the k freest units of each level, for several k.

    Examples
    --------
    >>> from placement.request import Request
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("dragonfly:groups=4,chassis=1,blades=2,nodes=2")
    >>> found = dict(levels(m, Request(count=4, free=m.free)))
    >>> found["1 group"].tolist(), found["2 groups"].tolist()
    ([0, 1, 2, 3], [0, 2, 4, 6])
    """
    rows = request.rows()
    words = machine.topology.levels
    for depth, unit in enumerate(nested(machine, rows)):
        size = np.bincount(unit)
        must = np.isin(rows, request.include)
        forced = np.bincount(unit[must], minlength=len(size)) > 0
        freest = np.lexsort((-size, ~forced))
        for k in _counts(np.cumsum(size[freest]), request.count, int(forced.sum())):
            within = np.isin(unit, freest[:k])
            yield counted(k, words[depth]), _spread(machine, request, rows[within])


def _counts(room: Ints, count: int, least: int) -> list[int]:
    """Return numbers of units to try: the fewest that hold the job, all, and some between.

    Examples
    --------
    >>> _counts(np.array([4, 8, 12, 16]), 6, 0)
    [2, 3, 4]
    """
    low = max(1, least, int(np.searchsorted(room, count)) + 1)
    high = min(len(room), count)
    if high < low:
        return []
    if high - low < TUNING.counts:
        return list(range(low, high + 1))
    return list(dict.fromkeys(np.geomspace(low, high, TUNING.counts).round().astype(int).tolist()))


def _spread(machine: Machine, request: Request, rows: Ints) -> Ints:
    """Return the job spread evenly over some of the free rows."""
    free = np.zeros(len(machine), dtype=bool)
    free[rows] = True
    return planners.find("spread")(machine, replace(request, free=free))
