"""Node sets by leaf module: inside one leaf, and across two, at equal N.

All sets hold the job's first node, so that its rank 0 sees every measurement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from placement.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placement.machine import Machine

__all__ = ["PAPER", "NodeSet", "leaves", "node_sets"]

#: The paper's numbers of nodes.
PAPER = (1, 3, 9, 18, 36)


@dataclass(frozen=True, slots=True)
class NodeSet:
    """Some of a job's nodes.

    Attributes
    ----------
    name : str
        ``one leaf``, ``two leaves``, ``3 leaves`` …, or ``any`` where leaves
        are not known.
    nodes : tuple of int
        Indices of the job's nodes.
    """

    name: str
    nodes: tuple[int, ...]


def leaves(machine: Machine, names: Sequence[str]) -> list[int]:
    """Return the leaf switch of each node of a job.

    Raises
    ------
    ParseError
        Where the machine does not know a node.
    UsageError
        Where a node hangs on no switch.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> leaves(parse_spec("fattree:leaf=2,leaves=2,spines=1"), ["nid00003", "nid00000"])
    [1, 0]
    """
    from placement.lookup import rows_of
    from placement.scheduler.switches import slurm_switches

    rows = rows_of(machine, names, "the job's nodes")
    found: list[int] = slurm_switches(machine).leaf_of[rows].tolist()
    for name, leaf in zip(names, found, strict=True):
        if leaf < 0:
            raise UsageError(f"node {name} hangs on no leaf switch of {machine.name}")
    return found


def node_sets(leaf: Sequence[int] | None, counts: Sequence[int]) -> list[NodeSet]:
    """Return the sets of each size, those of equal size side by side.

    Parameters
    ----------
    leaf : sequence of int or None
        Leaf of each of the job's nodes, the first being that of its rank 0;
        None where that is not known.
    counts : sequence of int
        N of each.

    Raises
    ------
    UsageError
        Where the job has fewer nodes.

    Examples
    --------
    >>> for one in node_sets([0, 0, 0, 1, 1, 1], (1, 2, 4)):
    ...     print(one.name, one.nodes)
    one leaf (0,)
    one leaf (0, 1)
    two leaves (0, 3)
    two leaves (0, 1, 3, 4)
    """
    if leaf is None:
        return [NodeSet("any", tuple(range(count))) for count in counts]
    groups: dict[int, list[int]] = {}
    for node, where in enumerate(leaf):
        groups.setdefault(where, []).append(node)
    home = groups.pop(leaf[0])
    others = sorted(groups.values(), key=len, reverse=True)
    found: list[NodeSet] = []
    for count in counts:
        if not 1 <= count <= len(leaf):
            raise UsageError(f"{count} nodes were asked for, the job has {len(leaf)}")
        inside = NodeSet("one leaf", tuple(home[:count])) if len(home) >= count else None
        found += [one for one in (inside, _across(home, others, count)) if one is not None]
    return found


def _across(home: list[int], others: list[list[int]], count: int) -> NodeSet | None:
    """Return nodes of the fewest leaves from two on, as even as their sizes let it be."""
    for number in range(2, len(others) + 2):
        groups = [home, *others[: number - 1]]
        if count < number or sum(map(len, groups)) < count:
            continue
        share = [1] * number
        while sum(share) < count:
            open_ = [k for k in range(number) if share[k] < len(groups[k])]
            share[min(open_, key=lambda k: share[k])] += 1
        nodes = [n for group, s in zip(groups, share, strict=True) for n in group[:s]]
        return NodeSet("two leaves" if number == 2 else f"{number} leaves", tuple(nodes))
    return None
