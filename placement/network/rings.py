"""Loads on rings, many at once: what traffic along one axis of a torus puts on its links.

A ring of E positions has a channel from each position p to p+1 (direction +)
and one to p-1 (direction -), both known by the position that they leave. The
shorter way is taken; exactly half the ring goes to +. So + serves 1 … E // 2
steps and - serves 1 … (E - 1) // 2.
"""

from __future__ import annotations

import numpy as np

from placement.support.array_types import Floats, Ints

__all__ = ["product_loads", "ring_steps"]


def ring_steps(start: Ints, target: Ints, extent: int) -> tuple[Ints, Ints]:
    """Return how many steps each way takes in direction + and in direction -; one is 0.

    Parameters
    ----------
    start, target : int (m,)
        Positions on the ring.
    extent : int
        Positions that the ring has.

    Examples
    --------
    >>> import numpy as np
    >>> [way.tolist() for way in ring_steps(np.array([0, 3, 0]), np.array([2, 0, 3]), 4)]
    [[2, 1, 0], [0, 0, 1]]
    """
    ahead = (target - start) % extent
    plus = 2 * ahead <= extent
    return np.where(plus, ahead, 0), np.where(plus, 0, (extent - ahead) % extent)


def product_loads(senders: Floats, receivers: Floats) -> Floats:
    """Return the loads of rings on which i sends senders[i] x receivers[j] to every j.

    Parameters
    ----------
    senders, receivers : float64 (lines, extent)
        Weights of the positions of each ring.

    Returns
    -------
    float64 (2, lines, extent)
        Loads of the + channels and of the - channels by the position that
        they leave. Exact where the weights are whole numbers whose products
        add up to less than 2**53.

    Examples
    --------
    >>> import numpy as np
    >>> product_loads(np.ones((1, 4)), np.ones((1, 4))).tolist()
    [[[3.0, 3.0, 3.0, 3.0]], [[1.0, 1.0, 1.0, 1.0]]]
    """
    extent = senders.shape[1]
    plus = _one_way(senders, receivers, extent // 2)
    minus = _one_way(senders[:, ::-1], receivers[:, ::-1], (extent - 1) // 2)
    minus = minus[:, ::-1]
    return np.stack([plus, minus])


def _one_way(senders: Floats, receivers: Floats, most: int) -> Floats:
    """Return the loads of the + channels when those up to `most` steps ahead are served.

    Channel p carries, from each s in (p - most, p], what goes to (p, s + most].
    With C the running sum of the receivers along the unrolled ring that is
    sum over s of senders[s] (C[s + most] - C[p]): two windows of running sums.
    """
    extent = senders.shape[1]
    if not most:
        return np.zeros_like(senders)
    unrolled = np.tile(senders, 2)
    reach = _running_sums(np.tile(receivers, 3))[:, 1:]  # [i]: all up to and with position i
    place = np.arange(extent, 2 * extent)
    ahead = _window_sums(unrolled * reach[:, most : most + 2 * extent], place, most)
    window = _window_sums(unrolled, place, most)
    load: Floats = np.maximum(ahead - reach[:, place] * window, 0.0)
    return load


def _running_sums(values: Floats) -> Floats:
    """Return running sums along each row, a 0 first."""
    out = np.zeros((values.shape[0], values.shape[1] + 1))
    np.cumsum(values, axis=1, out=out[:, 1:])
    return out


def _window_sums(values: Floats, end: Ints, length: int) -> Floats:
    """Return the sum of the `length` values up to and with each of the places `end`."""
    total = _running_sums(values)
    window: Floats = total[:, end + 1] - total[:, end + 1 - length]
    return window
