"""Intervals for paired ratios, and when a measurement may stop: a studentised bootstrap.

The paired value of a block is the logarithm of one arm's time over the
other's. Blocks of one launch share its conditions (nodes' clocks, daemons,
neighbours' traffic), so a resample draws launches first and blocks within
each. Plain percentiles of such resamples hold too little: simulated with
known truth, 2 launches of 10 blocks that differ as much as blocks do, they
hold it in 67 % of cases instead of 95. Studentised (bootstrap-t, symmetric;
Hall 1988, Davison and Hinkley 1997, 5.2 and 3.8) they hold it in 93 to 98 %
for 1 to 10 launches, normal, heavy-tailed and skewed noise.

Who looks at the 95 % interval after every block and stops at the first one that
leaves out 1 finds a difference where there is none in one case out of seven,
not in one out of twenty. So all intervals that are looked at are made wider,
by the same factor at every look (Pocock 1977; repeated confidence intervals,
Jennison and Turnbull 1989), until all of them together hold the truth as often
as is asked for. Then it does not matter at which look one stops, or why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from placement.support.array_types import Floats

__all__ = ["FEWEST", "FIRST_LOOK", "Interval", "interval", "looks", "nominal_level"]

#: Fewest blocks over all launches for which an interval is given.
FEWEST = 6

#: Logarithm of a factor beyond which an end of an interval is none.
_BOUNDED = math.log(1000.0)

#: Part of the blocks that is left out at each end.
_TRIM = 0.2

#: Normal quantile of 80 %: how often the smallest effect that is stated would be seen.
_POWER = 0.8416212335729143


#: Blocks before which nothing is decided: a bootstrap of fewer has no tails.
FIRST_LOOK = 8

#: A next look comes after so many more blocks as a part of those that there are.
_PART = 8

#: Random walks that the width is found with; its level is then known to 0.1 points.
_WALKS = 40_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A ratio of times and what is known about it.

    Attributes
    ----------
    ratio : float
        Geometric mean over launches of the blocks' ratios.
    low, high : float
        Ends of the interval; 0 and inf where the samples do not bound it.
    level : float
        How often such an interval holds the truth.
    smallest : float
        Smallest ratio above 1 that this noise lets one see, 4 times out of 5.
    blocks, launches : int

    Examples
    --------
    >>> found = interval([np.log([1.10, 1.12, 1.09, 1.11, 1.10, 1.12, 1.11, 1.10])])
    >>> found.shown, round(found.ratio, 2)
    (True, 1.11)
    """

    ratio: float
    low: float
    high: float
    level: float
    smallest: float
    blocks: int
    launches: int

    @property
    def shown(self) -> bool:
        """Whether a difference is shown: 1 lies outside."""
        return not self.low <= 1.0 <= self.high


def interval(
    launches: Sequence[Floats],
    *,
    level: float = 0.95,
    resamples: int = 4000,
    seed: int = 0,
) -> Interval | None:
    """Return the interval of the mean over launches of paired log ratios.

    Parameters
    ----------
    launches : sequence of float64 (blocks,)
        Log ratios of each launch's blocks; launches without one are left out.
    level : float
        Coverage.
    resamples : int
    seed : int

    Returns
    -------
    Interval or None
        None where there are fewer than `FEWEST` blocks.

    Raises
    ------
    ValueError
        Where a value is not finite.
    """
    kept = [np.asarray(values, dtype=np.float64) for values in launches if len(values)]
    blocks = sum(len(values) for values in kept)
    if blocks < FEWEST:
        return None
    if not all(np.isfinite(values).all() for values in kept):
        raise ValueError("a ratio is not finite")
    centre, error = _estimate(kept)
    width = _quantile(kept, centre, level, resamples, seed) * error if error else 0.0
    power = width + _POWER * error
    return Interval(
        ratio=math.exp(centre),
        low=_exp(centre - width),
        high=_exp(centre + width),
        level=level,
        smallest=_exp(power),
        blocks=blocks,
        launches=len(kept),
    )


def _exp(value: float) -> float:
    """Return the exponential; 0 or infinite for a factor that says the noise bounds nothing."""
    if abs(value) < _BOUNDED:
        return math.exp(value)
    return 0.0 if value < 0 else math.inf


def _trimmed_mean(values: Floats) -> tuple[Floats, Floats]:
    """Return the trimmed mean along the last axis, and its standard error.

    A fifth of the values at each end is left out of the mean and set to the
    nearest value that is in it for the error (Tukey and McLaughlin 1963): a
    block that another job's burst has spoilt does not decide.
    """
    n = values.shape[-1]
    cut = int(_TRIM * n)
    ranked = np.sort(values, axis=-1)
    mean = ranked[..., cut : n - cut].mean(axis=-1)
    near = np.clip(ranked, ranked[..., cut, None], ranked[..., n - cut - 1, None])
    spread = near.std(axis=-1, ddof=1) if n > 1 else np.zeros_like(mean)
    return mean, spread / ((n - 2 * cut) / n * math.sqrt(n))


def _estimate(launches: Sequence[Floats]) -> tuple[float, float]:
    """Return the mean of the launches' trimmed means, and its standard error."""
    if len(launches) == 1:
        mean, error = _trimmed_mean(launches[0])
        return float(mean), float(error)
    means = np.array([_trimmed_mean(values)[0] for values in launches])
    return float(means.mean()), float(means.std(ddof=1) / math.sqrt(len(means)))


def _quantile(
    launches: Sequence[Floats], centre: float, level: float, resamples: int, seed: int
) -> float:
    """Return the resamples' quantile of |estimate - centre| / standard error."""
    rng = np.random.default_rng(seed)
    count = len(launches)
    drawn = rng.integers(0, count, (resamples, count))
    means, errors = np.empty((resamples, count)), np.empty((resamples, count))
    for k, values in enumerate(launches):
        here = drawn == k
        again = values[rng.integers(0, len(values), (int(here.sum()), len(values)))]
        means[here], errors[here] = _trimmed_mean(again)
    error = errors[:, 0] if count == 1 else means.std(axis=1, ddof=1) / math.sqrt(count)
    off = np.abs(means.mean(axis=1) - centre)
    with np.errstate(divide="ignore", invalid="ignore"):
        studentised = np.where(error > 0, off / error, np.where(off > 0, np.inf, 0.0))
    return float(np.quantile(studentised, level, method="higher"))


# --- stopping early --------------------------------------------------------------------


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
