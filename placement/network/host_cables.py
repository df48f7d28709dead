# SPDX-License-Identifier: Apache-2.0
"""Nodes whose cables are slower than those of others: who they are, and plans without them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.network.channel_loads import slowest_attachment
from nidmap.placement.nodelist import NodeList
from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.placement.support.quantities import counted

#: Nodes that are named in a sentence, folded; more are counted.
MOST_NAMED = 64


def with_fast_cables(machine: Machine, free: Mask, count: int, must: Ints) -> tuple[Mask, str]:
    """Return the free nodes with the fastest cables, as many rates of them as are needed.

    `free` (n,). `count`: nodes wanted. `must` (k,): rows that are taken whatever their cables
    are. Returns `free` (n,). Returns `note`: which are left out, '' for none.
    """
    if machine.attachment_gbs is None:
        return free, ""
    gbs = slowest_attachment(machine)
    others = free.copy()
    others[must] = False
    wanted = count - len(must)
    ranked = np.sort(gbs[others])[::-1]
    least = ranked[wanted - 1] if 0 < wanted <= len(ranked) else 0.0
    slow = others & (gbs < least)
    if not slow.any():
        return free, ""
    fast = ranked[0]
    named = _name_nodes(machine, slow)
    note = f"{named} left out: {_rates(gbs[slow])} GB/s a cable, others have {fast:g}"
    return free & ~slow, note


def say_slow_cables(machine: Machine) -> Iterator[str]:
    """Yield a sentence on the nodes of each rate that is not the commonest."""
    if machine.attachment_gbs is None:
        return
    rates = machine.attachment_gbs[(machine.router >= 0) & (machine.attachment_gbs > 0)]
    values, counts = np.unique(rates, return_counts=True)
    usual = values[len(counts) - 1 - np.argmax(counts[::-1])]
    for gbs, cables in zip(values.tolist(), counts.tolist(), strict=True):
        if gbs != usual:
            nodes = (machine.attachment_gbs == gbs).any(axis=1)
            word = "a cable" if cables == 1 else counted(cables, "cable")
            yield (f"{_name_nodes(machine, nodes)}: {word} of {gbs:g} GB/s, most have {usual:g}")


def _name_nodes(machine: Machine, nodes: Mask) -> str:
    names = machine.names[nodes]
    if len(names) > MOST_NAMED:
        return f"{names[0]} and {len(names) - 1} more nodes"
    return NodeList(names.tolist()).fold()


def _rates(gbs: Floats) -> str:
    low, high = float(gbs.min()), float(gbs.max())
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
