"""Free nodes that no path joins to the others: a job cannot have them beside the rest."""

from __future__ import annotations

import numpy as np

from placement.machine import Machine
from placement.support.array_types import Ints, Mask
from placement.support.arrays import components

__all__ = ["connected_nodes"]


def connected_nodes(machine: Machine, free: Mask, kept: Ints | None = None) -> tuple[Mask, str]:
    """Return the free nodes that links join to each other, and a note on those left out.

    Of the parts that a network falls into without its missing links, the one
    with most free nodes counts, or that of the nodes which must be kept.

    Parameters
    ----------
    machine : Machine
    free : bool (n,)
        Rows that may be chosen.
    kept : int64 (k,) or None
        Rows that have to be.

    Returns
    -------
    free : bool (n,)
    note : str
        '' where every free node is joined to all others.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("torus:4x4")
    >>> connected_nodes(m, m.free)[1]
    ''
    """
    part = machine.once("network parts", lambda: _parts(machine))
    rows = np.flatnonzero(free)
    if not len(rows) or (part[rows[0]] >= 0 and (part[rows] == part[rows[0]]).all()):
        return free, ""
    must = np.zeros(0, dtype=np.int64) if kept is None else kept
    parts = part[must if len(must) else rows]
    left_out = free & (part != np.argmax(np.bincount(parts[parts >= 0], minlength=1)))
    left_out[must] = False
    names = machine.names[left_out]
    if not len(names):
        return free, ""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    it = "them" if more else "it"
    note = f"{names[0]}{more} left out: no link joins {it} to the other free nodes"
    return free & ~left_out, note


def _parts(machine: Machine) -> Ints:
    """Return the part of the network that each node is on, -1 where it is on none or on several."""
    from placement.network import channels, tree
    from placement.topologies import router_count

    if machine.topology.kind == "tree" and tree.joined_above(machine):
        return np.zeros(len(machine), dtype=np.int64)
    found = channels(machine)
    ends = found.source.astype(np.int64), found.target.astype(np.int64)
    label = components(router_count(machine), *ends)
    at = np.where(machine.router >= 0, label[machine.router], -1)
    first = at.max(axis=1, initial=-1)
    return np.where(((at == first[:, None]) | (at < 0)).all(axis=1), first, -1)
