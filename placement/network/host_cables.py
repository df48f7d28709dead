# SPDX-License-Identifier: Apache-2.0
"""Cables slower than others: their owners, and plans that avoid those nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.network.channel_loads import slowest_attachment
from nidmap.placement.nodelist import NodeList
from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.placement.support.arrays import connected_components
from nidmap.placement.support.quantities import counted
from nidmap.placement.topologies import links, router_count, router_names

#: Nodes that are named in a sentence, folded; more are counted.
MOST_NAMED = 64
#: Pairs of switches that are named in a sentence.
MOST_LISTED = 4
#: Fabrics whose dumps state a rate for each cable.
_CABLED = ("infiniband", "ethernet")


def with_fast_cables(machine: Machine, free: Mask, count: int, must: Ints) -> tuple[Mask, str]:
    """Return the free nodes with the fastest cables, using as few rates as suffice.

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
    """Yield a sentence on the nodes of each rate other than the most common of their network."""
    if machine.attachment_gbs is None:
        return
    cables = links(machine)
    ends = cables.a.astype(np.int64), cables.b.astype(np.int64)
    part = connected_components(router_count(machine), *ends)
    known = (machine.router >= 0) & (machine.attachment_gbs > 0)
    network = np.where(known, part[machine.router], -1)
    for number in np.unique(network[known]).tolist():
        gbs_here = np.where(network == number, machine.attachment_gbs, np.nan)
        values, counts, usual = _count_rates(gbs_here[network == number])
        for gbs, count in zip(values, counts, strict=True):
            if gbs != usual:
                named = _name_nodes(machine, (gbs_here == gbs).any(axis=1))
                yield f"{named}: {_cables(count)} of {gbs:g} GB/s, most have {usual:g}"


def say_slow_links(machine: Machine) -> Iterator[str]:
    """Yield a sentence on the inter-switch cables of each class that are slower than most."""
    if machine.topology.fabric not in _CABLED or machine.links is None:
        return
    cables, names = machine.links, router_names(machine)
    rates, bundle = cables.rates(), np.repeat(np.arange(len(cables)), cables.count)
    for kind, word in enumerate(cables.kinds):
        mine = (cables.kind[bundle] == kind) & (rates > 0)
        values, counts, usual = _count_rates(rates[mine])
        for gbs, count in zip(values, counts, strict=True):
            if gbs < usual:
                rows = np.unique(bundle[mine & (rates == gbs)])[: MOST_LISTED + 1].tolist()
                pairs = [f"{names[cables.a[k]]}-{names[cables.b[k]]}" for k in rows]
                some = ", ".join(pairs[:MOST_LISTED]) + (" …" if len(pairs) > MOST_LISTED else "")
                yield f"{some}: {_cables(count)} of {gbs:g} GB/s, most {word} have {usual:g}"


def _count_rates(rates: Floats) -> tuple[list[float], list[int], float]:
    """Return the rates, the cables of each, and the most common, the fastest in a tie."""
    values, counts = np.unique(rates, return_counts=True)
    usual = values[len(counts) - 1 - np.argmax(counts[::-1])] if len(values) else 0.0
    return values.tolist(), counts.tolist(), float(usual)


def _cables(count: int) -> str:
    return "a cable" if count == 1 else counted(count, "cable")


def _name_nodes(machine: Machine, nodes: Mask) -> str:
    names = machine.names[nodes]
    if len(names) > MOST_NAMED:
        return f"{names[0]} and {len(names) - 1} more nodes"
    return NodeList(names.tolist()).fold()


def _rates(gbs: Floats) -> str:
    low, high = float(gbs.min()), float(gbs.max())
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
