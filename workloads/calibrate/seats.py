"""Which ranks sit on which of the job's nodes, and pairs of nodes by how far they lie apart."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placement.machine import Machine
    from placement.support.array_types import Ints


__all__ = ["pairs_by_level", "seats_of"]

#: Pairs of nodes of each level between which messages are timed.
PAIRS = 3

#: Distances of a torus between which messages are timed.
DISTANCES = 4


def seats_of(hosts: Sequence[str]) -> dict[str, list[int]]:
    """Return the ranks on each node.

    Parameters
    ----------
    hosts : sequence of str
        The node of each rank.

    Raises
    ------
    UsageError
        One node only, or nodes with different numbers of ranks.

    Examples
    --------
    >>> seats_of(["a", "b", "a", "b"])
    {'a': [0, 2], 'b': [1, 3]}
    """
    found: dict[str, list[int]] = {}
    for rank, host in enumerate(hosts):
        found.setdefault(host, []).append(rank)
    if len(found) < 2:
        raise UsageError(
            f"all ranks are on one node, {printable(next(iter(found), '-'))}: no link is used",
            "2 nodes are needed, 16 to 64 see most of a machine",
        )
    counts = {host: len(ranks) for host, ranks in found.items()}
    few, many = (choose(counts, key=lambda host: counts[host]) for choose in (min, max))
    if counts[few] != counts[many]:
        raise UsageError(
            f"ranks are not equal over the nodes: {counts[few]} on {printable(few)}, "
            f"{counts[many]} on {printable(many)}",
            "srun --ntasks-per-node=… starts as many on each",
        )
    return found


def pairs_by_level(
    machine: Machine, rows: Ints, ppn: int, seed: int = 0
) -> dict[str, list[tuple[int, int]]]:
    """Return pairs of nodes by the innermost level that both share.

    Parameters
    ----------
    machine : Machine
    rows : int64 (n,)
        The job's nodes.
    ppn : int
        Ranks a node: from two on there are pairs inside a node.
    seed : int

    Returns
    -------
    dict of str to list of (int, int)
        Positions in the job's list; innermost level first: ``node``, the
        topology's levels, ``beyond``; on a torus ``router`` and hops.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> machine = parse_spec("dragonfly:groups=2,chassis=1,blades=2,nodes=2")
    >>> {name: len(found) for name, found in pairs_by_level(machine, np.arange(8), 1).items()}
    {'blade': 3, 'chassis': 3, 'beyond': 3}
    """
    from rankmap.score.distance import machine_distance

    a, b = np.triu_indices(len(rows), 1)
    distance = machine_distance(machine)
    torus = distance.coords is not None
    far = (distance.hops if torus else distance.level)(rows[a], rows[b])
    names = ("node", *distance.names[:-1], "beyond")
    rng = np.random.default_rng(seed)
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    if ppn > 1:
        found["node"] = [(k, k) for k in range(min(PAIRS, len(rows)))]
    several = np.unique(far)
    if torus and len(several) > DISTANCES:
        several = several[np.linspace(0, len(several) - 1, DISTANCES).round().astype(int)]
    for apart in several.tolist():
        here = rng.permutation(np.flatnonzero(far == apart))[:PAIRS]
        hops = f"{apart} hop{'s' * (apart > 1)}" if apart else "router"
        ends = zip(a[here].tolist(), b[here].tolist(), strict=True)
        found[hops if torus else names[apart]] = list(ends)
    return dict(found)
