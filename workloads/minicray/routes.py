"""Route tables: the one next hop of the predictor's routing ``single``, or all that are as near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.network.model import Channels

__all__ = ["Table", "equal", "single"]

#: What a hop between groups counts of hops within one: `shortest` takes as few of them as it can.
_GLOBAL = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Next channels by router and destination.

    Attributes
    ----------
    first : int64 (routers * nodes + 1,)
        Where the entries of (router, node) begin in `channel`.
    channel : int64
        Channels, the alternatives of one entry side by side.
    nodes : int
    """

    first: NDArray[np.int64]
    channel: NDArray[np.int64]
    nodes: int

    @property
    def routers(self) -> int:
        """Number of routers."""
        return (len(self.first) - 1) // self.nodes

    def next(self, router: int, node: int) -> list[int]:
        """Return the channels towards a node; none at its own router."""
        at = router * self.nodes + node
        return [int(c) for c in self.channel[self.first[at] : self.first[at + 1]]]


def single(machine: Machine, channels: Channels, rows: NDArray[np.int64]) -> Table:
    """Return the table of the predictor's routing ``single``.

    Parameters
    ----------
    machine : Machine
    channels : Channels
        Of routing ``single``.
    rows : int64 (k,)
        The nodes that are destinations.
    """
    from placement.network import next_channel

    found = next_channel(machine)[:, rows]
    there = found >= 0
    return Table(_starts(there.ravel()), found[there].astype(np.int64), len(rows))


def equal(machine: Machine, channels: Channels, rows: NDArray[np.int64]) -> Table:
    """Return the table of all next channels on shortest paths.

    Shortest: fewest hops between groups first, then fewest hops, which is the
    measure of the predictor's routing ``shortest`` on dragonflies.

    Parameters
    ----------
    machine, channels, rows
        As for `single`.

    Examples
    --------
    >>> import nidmap
    >>> from placement.network import channels
    >>> m = nidmap.load_machine("torus:3x3")
    >>> table = equal(m, channels(m, "single"), np.arange(9))
    >>> len(table.next(0, 1)), len(table.next(0, 4)), table.next(4, 4)
    (1, 2, [])
    """
    from placement.topologies import router_count

    own = machine.router[rows, 0].astype(np.int64)
    cost = _costs(channels)
    far = _distances(channels, cost, router_count(machine), own)
    source, target = channels.source.astype(np.int64), channels.target.astype(np.int64)
    node, channel = np.nonzero(far[:, target] + cost == far[:, source])
    key = source[channel] * len(rows) + node
    order = np.argsort(key, kind="stable")
    counts = np.bincount(key, minlength=router_count(machine) * len(rows))
    return Table(np.append(0, np.cumsum(counts)), channel[order], len(rows))


def _costs(channels: Channels) -> NDArray[np.int64]:
    far = np.array([kind in ("blue", "global") for kind in channels.kinds], dtype=bool)
    return np.where(far[channels.kind], _GLOBAL, 1).astype(np.int64)


def _distances(
    channels: Channels, cost: NDArray[np.int64], routers: int, goal: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the cost from each router to the routers of some nodes, int64 (nodes, routers)."""
    far = np.full((len(goal), routers), np.iinfo(np.int64).max // 4)
    far[np.arange(len(goal)), goal] = 0
    for _ in range(routers):
        nearer = far.copy()
        np.minimum.at(nearer.T, channels.source, (far[:, channels.target] + cost).T)
        if np.array_equal(nearer, far):
            break
        far = nearer
    return far


def _starts(there: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.append(0, np.cumsum(there)).astype(np.int64)
