"""Where the ranks are: on which node, which of its ranks, how many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from workloads.world import Comm, processor

__all__ = ["RankPlace", "doubling", "place", "places_of"]


@dataclass(frozen=True, slots=True)
class RankPlace:
    """Where one rank is.

    Attributes
    ----------
    node : int
        Its node, numbered by the lowest rank on each.
    local : int
        Which of the node's ranks it is, from 0.
    ranks : int
        Ranks on its node.
    nodes : int
        Nodes of the communicator.
    most : int
        Largest number of ranks on any node.
    """

    node: int
    local: int
    ranks: int
    nodes: int
    most: int


def place(comm: Comm) -> RankPlace:
    """Return where this rank is. Collective.

    Names of nodes as `workloads.world.processor` gives them; gathered on rank
    0 alone, so that a large job does not hold all of them on all ranks.
    """
    names = comm.gather(processor(comm), root=0)
    return cast("RankPlace", comm.scatter(places_of(names) if names else None, root=0))


def places_of(names: Sequence[str]) -> list[RankPlace]:
    """Return the place of each rank from the names of their nodes.

    Examples
    --------
    >>> places_of(["a", "b", "a"])[2]
    RankPlace(node=0, local=1, ranks=2, nodes=2, most=2)
    """
    counts = Counter(names)
    node, seen = {name: k for k, name in enumerate(counts)}, Counter[str]()
    most, found = max(counts.values()), []
    for name in names:
        found.append(RankPlace(node[name], seen[name], counts[name], len(counts), most))
        seen[name] += 1
    return found


def doubling(most: int) -> list[int]:
    """Return 1, 2, 4 … and the most.

    Examples
    --------
    >>> doubling(6), doubling(8)
    ([1, 2, 4, 6], [1, 2, 4, 8])
    """
    return [1 << k for k in range((most - 1).bit_length())] + [most]
