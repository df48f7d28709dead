# SPDX-License-Identifier: Apache-2.0
"""The channels that messages pass in sequence, if there is one path between two routers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.network import SINGLE_PATH, channels, next_channel, torus, trees
from nidmap.placement.network.shortest_paths import follow_messages
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.arrays import add_by_key
from nidmap.placement.support.quantities import GB
from nidmap.placement.traffic import Traffic


def walk_paths(machine: Machine, a: Ints, b: Ints, routing: str) -> tuple[Ints, Ints]:
    """Return the channels between routers on each message's path, for single paths.

    A node with several links to switches sends by its first.

    `a`, `b` (m,): rows of the machine. `routing`: one of `nidmap.placement.network.SINGLE_PATH`.
    Returns `message, channel` (z,): message and row of `nidmap.placement.network.channels` of
    each step.
    """
    kind, passed = machine.topology.kind, None
    if kind == "torus" and routing in SINGLE_PATH:
        passed = torus.passed_channels(machine, a, b)
    elif kind in ("fattree", "tree") and routing in SINGLE_PATH:
        passed = trees.passed_channels(machine, a, b)
    if passed is not None:  # no table of next hops is needed
        return passed
    goal, column = np.unique(b, return_inverse=True)
    table, links = next_channel(machine, routing, goal), channels(machine, routing)
    start = machine.router[a, 0].astype(np.int64)
    message, channel, _ = follow_messages(links, table, start, column)
    return message, channel


#: Messages listed at most, beyond which the loads of all links take less time and memory.
_LISTED = 1 << 17


def busiest_link_s(
    machine: Machine, rows: Ints, steps: Sequence[Traffic], gbs: Floats, node_gbs: Floats
) -> Floats | None:
    """Return the busiest link's seconds in each of some steps, message by message.

    The loads of all links of a large torus take longer than those that a small job uses.

    `rows` (n,): the job's nodes. `steps`: between the job's nodes. `gbs` (c,): of the channels.
    `node_gbs` (nodes,): of the machine's nodes' own links. Returns (steps,): None where messages
    are not listed or too many, on other networks than tori, and where some of their rings fall
    into parts.
    """
    single = machine.topology.kind == "torus" and machine.router.shape[1] == 1
    if not single or any(len(traffic.all_to_alls) for traffic in steps):
        return None
    if sum(map(len, steps)) > _LISTED:
        return None
    flows = [traffic.away() for traffic in steps]
    step = np.repeat(np.arange(len(flows)), [len(traffic) for traffic in flows])
    source, target, sent = (
        np.concatenate([getattr(traffic, name) for traffic in flows])
        for name in ("source", "target", "bytes")
    )
    passed = torus.passed_channels(machine, rows[source], rows[target])
    if passed is None:
        return None
    message, channel = passed
    used, link = np.unique(channel, return_inverse=True)
    busiest = np.zeros(len(flows))
    for of_step, end, amount, wire in (
        (step, source, sent, node_gbs[rows]),
        (step, target, sent, node_gbs[rows]),
        (step[message], link, sent[message], gbs[used]),
    ):
        load = add_by_key(of_step * len(wire) + end, amount, len(flows) * len(wire))
        seconds = load.reshape(len(flows), -1) / (wire * GB)
        np.maximum(busiest, seconds.max(axis=1, initial=0.0), out=busiest)
    return busiest
