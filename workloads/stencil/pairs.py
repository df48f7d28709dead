"""Pairs of ranks at each level of node and network: who is how far from rank 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placement.machine import Machine

__all__ = ["levels", "partners", "socket"]


def socket() -> int:
    """Return the socket that this process is bound to, -1 where it may run on several."""
    import os

    found = set()
    for core in os.sched_getaffinity(0):
        try:
            path = f"/sys/devices/system/cpu/cpu{core}/topology/physical_package_id"
            with open(path, encoding="ascii") as stream:
                found.add(int(stream.read()))
        except (OSError, ValueError):
            return -1
    return found.pop() if len(found) == 1 else -1


def levels(
    hosts: Sequence[str], sockets: Sequence[int], machine: Machine | None = None
) -> list[str]:
    """Return the level at which each rank meets rank 0.

    ``socket`` and ``node`` inside a node (Figure 6's UMA and NUMA; ``node``
    also where the sockets are not known), then the machine's own levels
    (``blade``, ``chassis``, ``group``, ``system``; on a torus the hops);
    without a machine ``network``.

    Parameters
    ----------
    hosts : sequence of str
        Node of each rank.
    sockets : sequence of int
        Socket of each rank, -1 where that is not known.
    machine : Machine or None

    Raises
    ------
    ParseError
        A host that the machine does not have.

    Examples
    --------
    >>> levels(["a", "a", "b"], [0, 1, 0])
    ['self', 'node', 'network']
    >>> import nidmap
    >>> tree = nidmap.load_machine("tree:2x2x2")
    >>> levels([f"nid0000{k}" for k in (0, 0, 1, 2, 4)], [0] * 5, tree)
    ['self', 'socket', 'level1', 'level2', 'system']
    """
    near = ["socket" if socket == sockets[0] != -1 else "node" for socket in sockets]
    found = [
        near[rank] if hosts[rank] == hosts[0] else level
        for rank, level in enumerate(_network_levels(hosts, machine))
    ]
    return ["self", *found[1:]]


def _network_levels(hosts: Sequence[str], machine: Machine | None) -> list[str]:
    """Return the level of the network at which each rank's node meets rank 0's."""
    if machine is None:
        return ["network"] * len(hosts)
    from placement.lookup import rows_of
    from rankmap.score.distance import machine_distance

    names, at = np.unique(hosts, return_inverse=True)
    rows = rows_of(machine, names.tolist(), "the job's nodes")[at]
    distance = machine_distance(machine)
    first = np.full(len(rows), rows[0])
    if distance.coords is not None:
        return [f"{hops} hop{'s' * (hops != 1)}" for hops in distance.hops(first, rows).tolist()]
    words = ("node", *distance.names)
    return [words[level] for level in distance.level(first, rows).tolist()]


def partners(found: Sequence[str], most: int) -> list[tuple[str, int]]:
    """Return ranks to be timed against rank 0: up to so many a level, nearest levels first.

    Examples
    --------
    >>> partners(["self", "node", "node", "network"], 1)
    [('node', 1), ('network', 3)]
    """
    chosen: list[tuple[str, int]] = []
    for level in dict.fromkeys(found):
        ranks = [rank for rank, name in enumerate(found) if name == level]
        step = max(1, len(ranks) // most)
        chosen += [(level, rank) for rank in ranks[::step][:most] if level != "self"]
    return sorted(chosen, key=lambda entry: (_depth(entry[0]), entry[1]))


def _depth(level: str) -> tuple[int, str]:
    order = ("socket", "node", "blade", "switch", "leaf", "chassis", "group", "network", "system")
    if level in order:
        return 10 * order.index(level), level
    digits = "".join(c for c in level if c.isdigit())
    return 15 + int(digits or 0), level
