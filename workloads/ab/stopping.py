"""When a measurement may stop early, and how wide its intervals must be for that.

Who looks at the 95 % interval after every block and stops at the first one that
leaves out 1 finds a difference where there is none in one case out of seven,
not in one out of twenty. So all intervals that are looked at are made wider,
by the same factor at every look (Pocock 1977; repeated confidence intervals,
Jennison and Turnbull 1989), until all of them together hold the truth as often
as is asked for. Then it does not matter at which look one stops, or why.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

__all__ = ["FIRST_LOOK", "looks", "nominal_level"]

#: Blocks before which nothing is decided: a bootstrap of fewer has no tails.
FIRST_LOOK = 8

#: A next look comes after so many more blocks as a part of those that there are.
_PART = 8

#: Random walks that the width is found with; its level is then known to 0.1 points.
_WALKS = 40_000


def looks(blocks: int) -> tuple[int, ...]:
    """Return after how many blocks a measurement of so many blocks is looked at.

    Examples
    --------
    >>> looks(12), looks(6)
    ((8, 9, 10, 11, 12), (6,))
    >>> looks(30)
    (8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 27, 30)
    """
    found = [min(FIRST_LOOK, blocks)]
    while found[-1] < blocks:
        found.append(min(blocks, found[-1] + max(1, found[-1] // _PART)))
    return tuple(found)


@cache
def nominal_level(at: tuple[int, ...], level: float = 0.95) -> float:
    """Return the level of each interval, so that those of all looks hold the truth together.

    The sum over blocks is a random walk: its largest distance from the truth
    in standard errors, over all looks, has the quantile that each interval
    must be wide.

    Parameters
    ----------
    at : tuple of int
        Blocks at each look; see `looks`.
    level : float
        How often all intervals together hold the truth.

    Examples
    --------
    >>> nominal_level((12,))
    0.95
    >>> round(nominal_level((8, 9, 10, 11, 12)), 3)
    0.976
    """
    if len(at) < 2:
        return level
    rng = np.random.default_rng(0)
    steps = np.sqrt(np.diff((0, *at)))
    walk = np.cumsum(rng.standard_normal((_WALKS, len(at))) * steps, axis=1)
    farthest = np.abs(walk / np.sqrt(at)).max(axis=1)
    return math.erf(float(np.quantile(farthest, level)) / math.sqrt(2))
