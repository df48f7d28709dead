"""How an FFT's time falls with the ranks: the model T = C p^(-gamma) of FFTK.

The paper fits it in two pieces, split where a level of the network ends
(Figure 4 of "A scheduling policy to improve 10% of communication time in
parallel FFT": gamma 0.84 up to the 60 nodes of a chassis, 0.78 beyond, T
being the time of a pair of transforms).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placement.errors import UsageError
from placement.machine import Machine
from placement.support.array_types import Floats
from placement.support.lazy import lazy

distance = lazy("rankmap.score.distance")

__all__ = ["PowerLaw", "Scaling", "fit_gamma", "levels", "student"]


#: How often the intervals hold gamma.
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """T = C p^(-gamma) through some points.

    Attributes
    ----------
    gamma : float
        1: time halves when ranks double.
    low, high : float
        Ends of gamma's interval; -inf and inf for two points, which no line misses.
    constant : float
        C in seconds, the time of one rank by the model.
    first, last : float
        Fewest and most ranks of the points.
    points : int
    """

    gamma: float
    low: float
    high: float
    constant: float
    first: float
    last: float
    points: int

    def __str__(self) -> str:
        interval = f"[{self.low:.3f}, {self.high:.3f}]" if math.isfinite(self.low) else "[?]"
        return f"gamma {self.gamma:.3f} {interval} for {self.first:g} to {self.last:g} ranks"


@dataclass(frozen=True, slots=True)
class Scaling:
    """Fits in one piece and in two.

    Attributes
    ----------
    whole : PowerLaw
    inside, beyond : PowerLaw or None
        Up to the break and above it; None where there is no break, or fewer
        than two numbers of ranks on that side of it.
    break_at : float or None
        Ranks up to which a point is inside.
    level : str
        What ends there: a name of the machine's, or ''.
    """

    whole: PowerLaw
    inside: PowerLaw | None = None
    beyond: PowerLaw | None = None
    break_at: float | None = None
    level: str = ""


def fit_gamma(
    ranks: Sequence[float],
    seconds: Sequence[float],
    *,
    break_at: float | None = None,
    level: str = "",
) -> Scaling:
    """Fit T = C p^(-gamma) to runs on different numbers of ranks.

    Least squares on the logarithms; the interval is Student's, with two
    degrees of freedom less than there are points. Points at the same number
    of ranks count each; give medians where they are repetitions of one run.

    Parameters
    ----------
    ranks : sequence of float
        Ranks (or nodes) of each run; two different numbers at least.
    seconds : sequence of float
        Its time, positive.
    break_at : float or None
        Fit in two pieces besides: up to so many ranks, and above. See `levels`.
    level : str
        What ends there, for the reader.

    Raises
    ------
    UsageError
        Too few points, or values that have no logarithm.

    Examples
    --------
    >>> ranks = [4, 8, 16, 32, 60, 128, 256, 512]
    >>> seconds = [2 * p**-0.84 if p <= 60 else 2.2 * p**-0.78 for p in ranks]
    >>> found = fit_gamma(ranks, seconds, break_at=64, level="chassis")
    >>> round(found.inside.gamma, 3), round(found.beyond.gamma, 3)
    (0.84, 0.78)
    >>> found.whole.gamma < 0.84
    True
    """
    x, y = np.asarray(ranks, dtype=np.float64), np.asarray(seconds, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise UsageError(f"{x.size} numbers of ranks for {y.size} times")
    if not (np.isfinite(x) & np.isfinite(y) & (x > 0) & (y > 0)).all():
        raise UsageError("ranks and times of a fit must be positive numbers")
    whole = _fit(x, y)
    if whole is None:
        raise UsageError("gamma needs runs on two different numbers of ranks at least")
    if break_at is None:
        return Scaling(whole)
    near = x <= break_at
    inside, beyond = (_fit(x[side], y[side]) for side in (near, ~near))
    return Scaling(whole, inside, beyond, break_at, level)


def _fit(x: Floats, y: Floats) -> PowerLaw | None:
    """Return the line through the logarithms; None for fewer than two different x."""
    if len(np.unique(x)) < 2:
        return None
    u, v = np.log(x), np.log(y)
    off = u - u.mean()
    spread = float(off @ off)
    slope = float(off @ v) / spread
    left = v - v.mean() - slope * off
    squares, freedom = float(left @ left), len(x) - 2
    width = math.inf
    if freedom:
        width = student(CONFIDENCE, freedom) * math.sqrt(squares / freedom / spread)
    return PowerLaw(
        gamma=-slope,
        low=-slope - width,
        high=-slope + width,
        constant=math.exp(float(v.mean()) - slope * float(u.mean())),
        first=float(x.min()),
        last=float(x.max()),
        points=len(x),
    )


def levels(machine: Machine, ppn: int = 1) -> dict[str, int]:
    """Return the ranks up to which a job can stay inside one block of each level of a network.

    The compute nodes of the fullest block of that level, times the ranks a
    node: where Figure 4's regions end (a chassis of Shaheen II has 55 to 60
    compute nodes).

    Parameters
    ----------
    machine : Machine
    ppn : int
        Ranks a node.

    Examples
    --------
    >>> import nidmap
    >>> levels(nidmap.load_machine("dragonfly:groups=2,chassis=6,blades=16,nodes=4"), ppn=32)
    {'blade': 128, 'chassis': 2048, 'group': 12288, 'system': 24576}
    """
    hierarchy = distance.machine_distance(machine)
    used = hierarchy.blocks[np.flatnonzero(machine.compute)]
    return {
        name: int(np.unique(column, return_counts=True)[1].max(initial=0)) * ppn
        for name, column in zip(hierarchy.names, used.T, strict=True)
    }


def student(level: float, freedom: int) -> float:
    """Return the two-sided quantile of Student's t, without scipy.

    The tail is integrated over the angle (t = sqrt(f) tan a) and halved in.

    Examples
    --------
    >>> round(student(0.95, 1), 3), round(student(0.95, 5), 3), round(student(0.99, 30), 3)
    (12.706, 2.571, 2.75)
    """
    angle = np.linspace(0.0, math.pi / 2, 200_001)
    density = np.cos(angle) ** (freedom - 1)
    inside = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    at = float(np.interp(level, inside / inside[-1], angle))
    return math.sqrt(freedom) * math.tan(at)
