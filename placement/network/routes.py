"""The channels that messages pass one after the other, where one path joins two routers."""

from __future__ import annotations

import numpy as np

from placement.machine import Machine
from placement.network import channels, next_channel
from placement.network.tree import forest_of
from placement.support.array_types import Ints

__all__ = ["walk"]


def walk(machine: Machine, a: Ints, b: Ints, routing: str) -> tuple[Ints, Ints]:
    """Return the channels between routers on the way of each message, on single paths.

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
    message, channel : int64 (z,)
        Message and row of `placement.network.channels` of each step.

    Raises
    ------
    UsageError
        Where the routing has several paths, or the table of next hops would
        be too large.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> [x.tolist() for x in walk(parse_spec("torus:4"), np.array([3]), np.array([1]), "single")]
    [[0, 0], [3, 0]]
    """
    goal, column = np.unique(b, return_inverse=True)
    table, entered = next_channel(machine, routing, goal), channels(machine, routing).target
    message, at = np.arange(len(a)), machine.router[a, 0].astype(np.int64)
    steps = [(message[:0], message[:0])]
    forest = forest_of(machine) if machine.topology.kind == "tree" else None
    while len(message):
        channel = table[at, column[message]].astype(np.int64)
        if forest is not None and forest.out is not None and len(steps) == 1:
            channel = np.where(channel >= 0, forest.out[a], channel)
        message, channel = message[channel >= 0], channel[channel >= 0]
        steps.append((message, channel))
        at = entered[channel].astype(np.int64)
    message, channel = (np.concatenate(columns) for columns in zip(*steps, strict=True))
    return message, channel
