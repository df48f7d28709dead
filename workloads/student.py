"""Student's t without scipy, which a measurement should not have to load."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["student"]


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
