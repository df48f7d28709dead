# SPDX-License-Identifier: Apache-2.0
"""Write what ``scontrol show topology`` prints of a tree, blocks or rings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.exports import fold_names, switch_rows
from nidmap.placement.machine import Machine, Switches
from nidmap.placement.nodelist import NodeList
from nidmap.placement.readers.slurm_switches import Declared
from nidmap.placement.support.array_types import Ints
from nidmap.placement.switch_tree import members


def write(machine: Machine) -> str:
    """Return the machine's switches as ``scontrol show topology`` prints them.

    Parameters
    ----------
    machine : Machine
        With Slurm's own switches, or any other: then the tree is that of its
        coordinates.

    Returns
    -------
    str
        Every link speed is 1, which Slurm takes where none is given.

    Raises
    ------
    UsageError
        Where its switches are a torus, whose places scontrol does not print,
        or flat.

    Examples
    --------
    >>> from nidmap.placement.specs import parse_spec
    >>> print(write(parse_spec("tree:2x1")), end="")
    SwitchName=level1-0 Level=0 LinkSpeed=1 Nodes=nid[00000-00001]
    """
    kind = "tree" if machine.switches is None else machine.switches.kind
    if kind not in ("tree", "block", "ring"):
        raise UsageError(f"scontrol show topology cannot say {kind}", "topology-yaml can")
    switches, rows = switch_rows(machine, "scontrol-topology")
    if kind == "tree":
        lines = list(_tree(machine, switches, rows))
    elif kind == "block":
        lines = [*_blocks(switches, rows), *_aggregate_blocks(machine, switches)]
    else:
        lines = [
            f"RingName={row.name}{_nodes(row.nodes)} RingSize={NodeList.length_of(row.nodes)}"
            for row in rows
        ]
    return "\n".join((*lines, ""))


def _tree(machine: Machine, switches: Switches, rows: list[Declared]) -> Iterator[str]:
    for row, below in zip(rows, rows_below(switches), strict=True):
        nodes = row.nodes or (fold_names(machine.names[below]) if len(below) else "")
        children = f" Switches={row.children}" if row.children else ""
        yield f"SwitchName={row.name} Level={row.level} LinkSpeed=1{_nodes(nodes)}{children}"


def _blocks(switches: Switches, rows: list[Declared]) -> Iterator[str]:
    size = f" BlockSize={switches.block_sizes[0]}" if switches.block_sizes else ""
    for index, row in enumerate(rows):
        yield f"BlockName={row.name} BlockIndex={index}{_nodes(row.nodes)}{size}"


def _aggregate_blocks(machine: Machine, switches: Switches) -> Iterator[str]:
    """Yield the blocks that the higher sizes make: runs of a power of two of base blocks."""
    count = len(switches.names)
    below = rows_below(switches)
    index = count
    for smaller, size in zip(switches.block_sizes, switches.block_sizes[1:], strict=False):
        per = max(size // switches.block_sizes[0], 1)
        for first in range(0, count, per):
            rest = count - first
            if first and per > rest and smaller // switches.block_sizes[0] >= rest:
                continue  # as Slurm: the size below covers what is left
            some = range(first, min(first + per, count))
            name = NodeList([switches.names[i] for i in some]).fold()
            nodes = fold_names(machine.names[[row for i in some for row in below[i].tolist()]])
            yield f"AggregatedBlock={name} BlockIndex={index}{_nodes(nodes)} BlockSize={size}"
            index += 1


def _nodes(folded: str) -> str:
    return f" Nodes={folded}" if folded else ""


def rows_below(switches: Switches) -> list[Ints]:
    """Return the rows of all nodes below each switch, ascending.

    Examples
    --------
    >>> from nidmap.placement.specs import parse_spec
    >>> from nidmap.placement.switch_tree import slurm_switches
    >>> [r.tolist() for r in rows_below(slurm_switches(parse_spec("tree:2x2")))]
    [[0, 1], [2, 3], [0, 1, 2, 3]]
    """
    found = members(switches)
    for switch in np.argsort(switches.level, kind="stable").tolist():
        parent = int(switches.parent[switch])
        if parent >= 0:
            found[parent] = np.concatenate([found[parent], found[switch]])
    return [np.sort(rows) for rows in found]
