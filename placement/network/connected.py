# SPDX-License-Identifier: Apache-2.0
"""Free nodes without a path to the others, which a job cannot combine with them."""

from __future__ import annotations

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.network.rails import Rails, leaves_top_out, rails_of
from nidmap.placement.support.array_types import Ints, Mask


def connected_nodes(machine: Machine, free: Mask, kept: Ints | None = None) -> tuple[Mask, str]:
    """Return the free nodes that are connected to each other, and a note on the rest.

    Of the parts that a network falls into without its missing links, the one
    with most free nodes counts, or that of the nodes which must be kept.

    `free` (n,): rows that may be chosen. `kept` (k,): rows that have to be. Returns `free` (n,).
    Returns `note`: '' where every free node is joined to all others.
    """
    rails = rails_of(machine)
    must = np.zeros(0, dtype=np.int64) if kept is None else kept
    counts = np.bincount(rails.kind[free], minlength=len(rails.member))
    counts[rails.kind[must]] += len(machine)
    left_out = free & ~_joined_kinds(machine, rails, counts)[rails.kind]
    left_out[must] = False
    names = machine.names[left_out]
    if not len(names):
        return free, ""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    pronoun = "them" if more else "it"
    note = f"{names[0]}{more} left out: no link joins {pronoun} to the other free nodes"
    return free & ~left_out, note


def _joined_kinds(machine: Machine, rails: Rails, counts: Ints) -> Mask:
    """Return kinds of nodes that are all connected to each other, the largest first."""
    cabled: Mask = np.any(rails.part[rails.member] >= 0, axis=1)
    if leaves_top_out(machine):
        return cabled
    chosen = np.zeros(len(counts), dtype=np.bool_)
    usable = (counts > 0) & cabled
    while usable.any():
        kind = int(np.argmax(np.where(usable, counts, 0)))
        chosen[kind] = True
        usable &= rails.joined(rails.member[[kind]], rails.member) & ~chosen
    return chosen
