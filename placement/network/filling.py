"""The compiled kernel of `placement.network.maxmin`: progressive filling until all flows end.

Importing numba costs a quarter of a second and the first call compiles (the
result is cached on disk where that can be written), so only many flows come
here. One function, because numba's cache asks only whether this file changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["fill"]


def _fill(  # noqa: C901  # one compiled loop nest: numba inlines it, and its cache wants one function
    size: Floats,
    first: Ints,
    channel: Ints,
    share: Floats,
    many: Floats,
    capacity: Floats,
    start: Ints,
    flow: Ints,
    weight: Floats,
    together: float,
) -> Any:
    """Return when each flow ends; its steps are first[f] … first[f+1]-1.

    Channels wait in a heap by the rate that they could give. That rate only
    grows while others are settled, so a key that is out of date is put right
    when it comes to the top. `start`, `flow` and `weight` list the flows
    of each channel and their share times their number.
    """
    flows, channels = len(size), len(capacity)
    left, ends = size.copy(), np.zeros(flows)
    alive = np.ones(flows, dtype=np.bool_)
    held = np.zeros(flows, dtype=np.bool_)
    rate = np.zeros(flows)
    length = start[1:] - start[:-1]
    room, load = np.empty(channels), np.empty(channels)
    waiting = np.empty(channels, dtype=np.int64)
    key, heap = np.empty(channels), np.empty(channels, dtype=np.int64)
    now, remaining = 0.0, flows
    while remaining:
        count = 0
        for c in range(channels):
            total, kept = 0.0, start[c]
            for i in range(start[c], start[c] + length[c]):
                f = flow[i]
                if alive[f]:  # those that ended leave the list
                    flow[kept], weight[kept] = f, weight[i]
                    total += weight[i]
                    kept += 1
            length[c] = kept - start[c]
            waiting[c], load[c], room[c] = length[c], total, capacity[c]
            if length[c]:
                key[c] = room[c] / total
                i = count
                count += 1
                while i and key[heap[(i - 1) // 2]] > key[c]:
                    heap[i] = heap[(i - 1) // 2]
                    i = (i - 1) // 2
                heap[i] = c
        held[:] = False
        while count:
            c = heap[0]
            fresh = max(room[c], 0.0) / load[c] if waiting[c] and load[c] > 0 else np.inf
            if not waiting[c]:
                count -= 1
                sink = heap[count]
            else:
                sink = c
            if waiting[c] and fresh <= key[c] * (1 + 1e-12):
                for i in range(start[c], start[c] + length[c]):
                    f = flow[i]
                    if held[f]:
                        continue
                    held[f] = True
                    rate[f] = fresh
                    for j in range(first[f], first[f + 1]):
                        room[channel[j]] -= share[j] * many[f] * fresh
                        load[channel[j]] -= share[j] * many[f]
                        waiting[channel[j]] -= 1
                count -= 1
                sink = heap[count]
            elif waiting[c]:
                key[c] = fresh
            if count:  # let `sink` sink from the top
                i = 0
                while True:
                    low = 2 * i + 1
                    if low + 1 < count and key[heap[low + 1]] < key[heap[low]]:
                        low += 1
                    if low >= count or key[heap[low]] >= key[sink]:
                        break
                    heap[i] = heap[low]
                    i = low
                heap[i] = sink
        step = np.inf
        for f in range(flows):
            if alive[f]:
                step = min(step, left[f] / rate[f])
        now += step
        for f in range(flows):
            if alive[f]:
                done = left[f] <= step * rate[f] * (1 + together)
                left[f] -= rate[f] * step
                if done:
                    alive[f] = False
                    ends[f] = now
                    remaining -= 1
    return ends


_COMPILED: list[Any] = []


def fill(*arguments: Any) -> Floats | None:
    """Return when each flow ends (see `_fill`), compiled at the first call; None without numba."""
    if not _COMPILED:
        try:
            from numba import njit
        except ImportError:
            return None

        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False}
        try:
            _COMPILED.append(njit(cache=True, **options)(_fill))
        except RuntimeError:  # no place to write a cache to: compiled anew in each process
            _COMPILED.append(njit(**options)(_fill))
    found: Floats = _COMPILED[0](*arguments)
    return found
