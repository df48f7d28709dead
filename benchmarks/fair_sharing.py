# SPDX-License-Identifier: Apache-2.0
"""Max-min fair sharing over time: when each of many simultaneously started flows ends.

`Loads` tells when the busiest channel is done; that is the time of the whole
where its flows keep it busy. Here channels are shared as fluid simulators do:
at any moment no flow can have more without another that has no more getting
less (progressive filling; Bertsekas and Gallager, Data Networks, 6.5.2), and
when a flow ends the others share anew. On all-to-alls and stencils on tori
and fat trees the last end equals the bound of the busiest channel, so this is
for those who ask when single flows end. It checks a prediction: it is exact,
and takes seconds for some thousands of flows of different sizes.
"""

from __future__ import annotations

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.machine import Machine
from nidmap.placement.network.channel_loads import injection_bandwidth
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.arrays import add_by_key
from nidmap.placement.support.quantities import GB

#: Flows whose ends differ by less than this part of the step end together.
TOGETHER = 1e-9


def fair_ends(
    machine: Machine,
    a: Ints,
    b: Ints,
    size: Floats | float,
    routing: str = "single",
    *,
    many: Floats | float = 1.0,
    bandwidth: Floats | None = None,
) -> Floats:
    """Return when simultaneously started messages between nodes end, on single paths.

    Parameters
    ----------
    machine : Machine
        A torus or a fat tree with its own routing, any other with ``single``.
    a, b : int (m,)
        Rows of the machine; a message to oneself takes no time.
    size : float64 (m,) or float
        Bytes of each.
    routing : str
        One of `nidmap.placement.network.SINGLE_PATH`.
    many : float64 (m,) or float
        How many such messages there are.
    bandwidth : float64 (c,) or None
        GB/s of the channels, then of each node's injection and ejection; None
        takes the machine's.

    Returns
    -------
    float64 (m,)
        Seconds.

    Raises
    ------
    UsageError
        Where the routing has several paths, the table of next hops would be
        too large, or a channel on the way has no bandwidth.

    Examples
    --------
    >>> import numpy as np
    >>> from nidmap.placement.specs import parse_spec
    >>> m = parse_spec("torus:4,bw=1")
    >>> fair_ends(m, np.array([0, 1]), np.array([2, 2]), 1e9).tolist()
    [2.0, 2.0]
    """
    from nidmap.placement.network import channels
    from nidmap.placement.network.routes import walk_paths

    a, b = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
    message, channel = walk_paths(machine, a, b, routing)
    inner, every = len(channels(machine, routing)), np.arange(len(a))
    message = np.concatenate([message, every, every])
    channel = np.concatenate([channel, inner + a, inner + len(machine) + b])
    if bandwidth is None:
        own = injection_bandwidth(machine)
        bandwidth = np.concatenate([channels(machine, routing).bandwidth, own, own])
    each = np.where(a == b, 0.0, np.broadcast_to(np.asarray(size, dtype=np.float64), a.shape))
    return share_fairly(each, np.broadcast_to(many, a.shape), message, channel, bandwidth)


def share_fairly(
    size: Floats, many: Floats, flow: Ints, channel: Ints, bandwidth: Floats
) -> Floats:
    """Return when flows end that start at 0 and share channels max-min fairly.

    Parameters
    ----------
    size : float64 (f,)
        Bytes of each flow.
    many : float64 (f,)
        How many such flows there are.
    flow, channel : int64 (z,)
        The channels of each flow.
    bandwidth : float64 (c,)
        GB/s of each channel; inf where unlimited.

    Returns
    -------
    float64 (f,)
        Seconds; 0 where nothing limits a flow.

    Raises
    ------
    UsageError
        Where a flow has to cross a channel without bandwidth.

    Examples
    --------
    Two flows share a channel of 1 GB/s; the shorter one ends first, and the
    other has the channel for itself from then on.

    >>> import numpy as np
    >>> a = np.array
    >>> share_fairly(a([1e9, 3e9]), np.ones(2), a([0, 1]), a([0, 0]), np.ones(1)).tolist()
    [2.0, 4.0]
    """
    limited = np.isfinite(bandwidth[channel]) & (size[flow] > 0)
    flow, channel = flow[limited], channel[limited]
    if (bandwidth[channel] <= 0).any():
        raise UsageError("a flow crosses a channel without bandwidth")
    left, ends, now = size.astype(np.float64), np.zeros(len(size)), 0.0
    while len(flow):
        rate = _rates(flow, channel, many, bandwidth * GB)
        going = np.unique(flow)
        lasts = left[going] / rate[going]
        step = float(lasts.min())
        now += step
        left -= rate * step
        done = going[lasts <= step * (1 + TOGETHER)]
        ends[done], left[done] = now, 0.0
        kept = left[flow] > 0
        flow, channel = flow[kept], channel[kept]
    return ends


def _rates(flow: Ints, channel: Ints, many: Floats, capacity: Floats) -> Floats:
    """Return the bytes per second of each flow.

    A channel is settled when no flow on it is held lower elsewhere, and so
    are its flows; all that can be are settled in the same round.
    """
    rate, room = np.zeros(len(many)), capacity.copy()
    while len(flow):
        load = add_by_key(channel, many[flow], len(room))
        level = np.maximum(room[channel], 0.0) / load[channel]
        least = np.full(len(many), np.inf)
        np.minimum.at(least, flow, level)
        held = np.zeros(len(room), dtype=np.bool_)
        held[channel[least[flow] < level * (1 - 1e-12)]] = True
        settled = np.zeros(len(many), dtype=np.bool_)
        settled[flow[~held[channel]]] = True
        rate[settled] = least[settled]
        gone = settled[flow]
        room -= add_by_key(channel[gone], (many * rate)[flow[gone]], len(room))
        flow, channel = flow[~gone], channel[~gone]
    return rate
