"""Max-min fair sharing in time: when each of many flows ends that all start at once.

`Loads` tells when the busiest channel is done; that is the time of the whole
where its flows keep it busy. Here channels are shared as fluid simulators do:
at any moment no flow can have more without another that has no more getting
less (progressive filling; Bertsekas and Gallager, Data Networks, 6.5.2), and
when a flow ends the others share anew. On all-to-alls and stencils on tori
and fat trees the last end equals the bound of the busiest channel, so this is
for those who ask when single flows end.

Flows with the same path and size are one with a multiplicity. Every channel
whose own flows can all have no more elsewhere is settled in the same round,
so a sharing takes a few rounds over all steps, not one a channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement.errors import UsageError
from placement.network.arrays import summed
from placement.network.model import GB, injection_bandwidth

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Finish", "Paths", "fair", "finish", "paths"]

#: Flows whose ends differ by less than this part of the step end together.
TOGETHER = 1e-9


#: Steps of flows that are not worth the compiled kernel.
FEW = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """The channels of every flow, one row a (flow, channel), sorted by flow (z rows).

    Attributes
    ----------
    flow : int64 (z,)
    channel : int64 (z,)
    share : float64 (z,)
        The part of the flow that takes the channel: 1 on a single path.
    """

    flow: Ints
    channel: Ints
    share: Floats


class Finish(NamedTuple):
    """When flows end.

    Attributes
    ----------
    seconds : float64 (f,)
        Of each flow; 0 where nothing limits it.
    makespan : float
        The last of them.
    """

    seconds: Floats
    makespan: float


def finish(size: Floats, paths: Paths, bandwidth: Floats) -> Finish:
    """Return when each flow ends that starts at 0 and shares channels max-min fairly.

    Parameters
    ----------
    size : float64 (f,)
        Bytes.
    paths : Paths
    bandwidth : float64 (c,)
        GB/s of each channel; inf where unlimited.

    Returns
    -------
    Finish

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
    >>> shared = Paths(a([0, 1]), a([0, 0]), np.ones(2))
    >>> finish(a([1e9, 3e9]), shared, np.ones(1)).seconds.tolist()
    [2.0, 4.0]
    """
    size = np.asarray(size, dtype=np.float64)
    limited = np.isfinite(bandwidth[paths.channel]) & (paths.share > 0)
    limited &= size[paths.flow] > 0
    flow, channel, share = paths.flow[limited], paths.channel[limited], paths.share[limited]
    if (bandwidth[channel] <= 0).any():
        raise UsageError("a flow crosses a channel without bandwidth")
    kind, first, many = _alike(size, flow, channel, share)
    kept = np.isin(flow, first)
    rank = np.full(len(size), -1, dtype=np.int64)
    rank[first] = np.arange(len(first))
    state = _Sharing(rank[flow[kept]], channel[kept], share[kept], many, bandwidth * GB)
    ends = state.compiled(size[first]) if len(state.flow) > FEW else None
    ends = _in_time(size[first], state) if ends is None else ends
    seconds = np.zeros(len(size))
    busy = kind >= 0
    seconds[busy] = ends[kind[busy]]
    return Finish(seconds, float(seconds.max(initial=0.0)))


def fair(
    machine: Machine, a: Ints, b: Ints, amount: Floats | float, routing: str = "single"
) -> Finish:
    """Return when messages between nodes end that all start at once, on single paths.

    Parameters
    ----------
    machine : Machine
        A torus or a fat tree with its own routing, any other with ``single``.
    a, b : int (m,)
        Rows of the machine; a message to oneself takes no time.
    amount : float64 (m,) or float
        Bytes of each.
    routing : str
        One of `placement.network.SINGLE_PATH`.

    Returns
    -------
    Finish

    Raises
    ------
    UsageError
        Where the routing has several paths, or the machine is so large that
        its table of next hops is refused.

    Examples
    --------
    >>> import numpy as np
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("torus:4,bw=1")
    >>> fair(m, np.array([0, 1]), np.array([2, 2]), 1e9).seconds.tolist()
    [2.0, 2.0]
    """
    from placement.network import channels

    a, b = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
    gbs, own = channels(machine, routing).bandwidth, injection_bandwidth(machine)
    size = np.where(a == b, 0.0, np.broadcast_to(np.asarray(amount, dtype=np.float64), a.shape))
    return finish(size, paths(machine, a, b, routing), np.concatenate([gbs, own, own]))


def paths(machine: Machine, a: Ints, b: Ints, routing: str = "single") -> Paths:
    """Return the channels of messages on single paths, the nodes' own links among them.

    A node with several links to switches sends by its first.

    Parameters
    ----------
    machine : Machine
    a, b : int64 (m,)
        Rows of the machine.
    routing : str
        One of `placement.network.SINGLE_PATH`.

    Returns
    -------
    Paths
        Channels as in `placement.network.channels`, then one injection link
        a node, then one ejection link a node.

    Raises
    ------
    UsageError
        As for `fair`.

    Examples
    --------
    >>> import numpy as np
    >>> from placement.specs import parse_spec
    >>> found = paths(parse_spec("torus:4"), np.array([3]), np.array([1]))
    >>> found.flow.tolist(), found.channel.tolist()
    ([0, 0, 0, 0], [11, 13, 3, 0])
    """
    from placement.network import channels, next_channel

    table, found = next_channel(machine, routing), channels(machine, routing)
    nodes, every = len(machine), np.arange(len(a))
    steps = [(every, len(found) + a), (every, len(found) + nodes + b)]
    flow, at = every, machine.router[a, 0].astype(np.int64)
    while len(flow):
        channel = table[at, b[flow]].astype(np.int64)
        flow, channel = flow[channel >= 0], channel[channel >= 0]
        steps.append((flow, channel))
        at = found.target[channel].astype(np.int64)
    flow, channel = (np.concatenate([step[i] for step in steps]) for i in (0, 1))
    order = np.argsort(flow, kind="stable")
    return Paths(flow[order], channel[order], np.ones(len(order)))


def _alike(size: Floats, flow: Ints, channel: Ints, share: Floats) -> tuple[Ints, Ints, Floats]:
    """Return the kind of each flow (-1: unlimited), the first flow of each kind, how many it has.

    Flows are of a kind when size and path are the same. Paths are compared
    by two sums of random weights of their channels.
    """
    rng = np.random.default_rng(0)
    weight = rng.random((2, int(channel.max(initial=0)) + 1))
    marks = np.stack([summed(flow, row[channel] * share, len(size)) for row in weight] + [size])
    some = np.flatnonzero(np.bincount(flow, minlength=len(size)))
    order = some[np.lexsort(marks[:, some])]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (marks[:, order[1:]] != marks[:, order[:-1]]).any(axis=0)
    kind = np.full(len(size), -1, dtype=np.int64)
    kind[order] = np.cumsum(new) - 1
    return kind, order[new], np.bincount(kind[order], minlength=int(new.sum())).astype(np.float64)


class _Sharing:
    """Kinds of flows on channels; kinds leave it when they end."""

    def __init__(
        self, flow: Ints, channel: Ints, share: Floats, many: Floats, capacity: Floats
    ) -> None:
        order = np.argsort(flow, kind="stable")
        used, at = np.unique(channel[order], return_inverse=True)
        self.flow, self.channel, self.share = flow[order], at, share[order]
        self.many, self.capacity = many, capacity[used]
        self.alive = np.ones(len(many), dtype=np.bool_)

    def end(self, flows: Ints) -> None:
        """Take flows out."""
        self.alive[flows] = False
        kept = self.alive[self.flow]
        if kept.sum() < 0.8 * len(kept):  # not at every event: it copies all
            self.flow, self.channel = self.flow[kept], self.channel[kept]
            self.share = self.share[kept]

    def compiled(self, size: Floats) -> Floats | None:
        """Return when each kind of flow ends, by the compiled kernel; None where it cannot be."""
        from placement.network.filling import fill

        first = np.searchsorted(self.flow, np.arange(len(size) + 1))
        by_channel = np.argsort(self.channel, kind="stable")
        start = np.searchsorted(self.channel[by_channel], np.arange(len(self.capacity) + 1))
        flow, weight = self.flow[by_channel], (self.share * self.many[self.flow])[by_channel]
        lists = (start, flow, weight)
        return fill(
            size, first, self.channel, self.share, self.many, self.capacity, *lists, TOGETHER
        )

    def rates(self) -> Floats:
        """Return bytes a second of each kind of flow, 0 of those that ended."""
        rate = np.zeros(len(self.many))
        left = self.capacity.copy()
        kept = self.alive[self.flow]
        flow, channel, share = self.flow[kept], self.channel[kept], self.share[kept]
        while len(flow):
            load = summed(channel, share * self.many[flow], len(left))
            busy = load > 0
            level = np.full(len(left), np.inf)
            level[busy] = np.maximum(left[busy], 0.0) / load[busy]
            settled, least = _settled(flow, channel, level)
            rate[flow[settled]] = least[settled]
            gone = settled
            used = share[gone] * self.many[flow[gone]] * rate[flow[gone]]
            left -= summed(channel[gone], used, len(left))
            flow, channel, share = flow[~gone], channel[~gone], share[~gone]
        return rate


def _settled(flow: Ints, channel: Ints, level: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Return which rows are of flows that can have no more, and the level of each row's flow.

    A channel is settled when no flow on it is held lower elsewhere; so are
    its flows.
    """
    first = np.flatnonzero(np.diff(flow, prepend=-1))
    length = np.diff(first, append=len(flow))
    own = level[channel]
    least = np.repeat(np.minimum.reduceat(own, first), length)
    held = np.zeros(len(level), dtype=np.bool_)
    held[channel[least < own * (1 - 1e-12)]] = True  # a flow on it has less elsewhere
    tight = ~held[channel]
    done = np.repeat(np.logical_or.reduceat(tight, first), length)
    return done, least


def _in_time(size: Floats, state: _Sharing) -> Floats:
    """Return when each kind of flow ends."""
    left, ends, now = size.copy(), np.zeros(len(size)), 0.0
    while state.alive.any():
        rate = state.rates()
        going = np.flatnonzero(state.alive)
        lasts = left[going] / rate[going]
        step = float(lasts.min())
        done = going[lasts <= step * (1 + TOGETHER)]
        now += step
        left[going] -= rate[going] * step
        ends[done] = now
        state.end(done)
    return ends
