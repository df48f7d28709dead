"""Write Slurm's ``topology.conf``: a tree, blocks or rings.

A topology file says where nodes are, not in what state: nodes that are down
are written like others, and service nodes are on no switch that Slurm knows.
"""

from __future__ import annotations

from placement.errors import UsageError
from placement.machine import Machine, Switches
from placement.nodelist import NodeList
from placement.readers.slurm_switches import Declared
from placement.scheduler.switches import members, slurm_switches
from placement.support.array_types import Strs

__all__ = ["fold_names", "switch_rows", "write"]

_WORDS = {"tree": "SwitchName", "block": "BlockName", "ring": "RingName"}


def write(machine: Machine) -> str:
    """Return the machine's switches as a ``topology.conf``.

    Parameters
    ----------
    machine : Machine
        With Slurm's own switches, or any other: then the tree is that of its
        coordinates (a leaf a blade, a leaf module or a Slingshot switch).

    Returns
    -------
    str

    Raises
    ------
    UsageError
        Where its switches are a torus or flat, which this file cannot say.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> print(write(parse_spec("tree:2x2")), end="")
    SwitchName=level1-0 Nodes=nid[00000-00001]
    SwitchName=level1-1 Nodes=nid[00002-00003]
    SwitchName=root Switches=level1-[0-1]
    """
    kind = "tree" if machine.switches is None else machine.switches.kind
    if kind not in _WORDS:
        raise UsageError(f"topology.conf cannot say {kind}", "topology-yaml can")
    switches, rows = switch_rows(machine, "topology-conf")
    lines = []
    for row in rows:
        nodes = f" Nodes={row.nodes}" if row.nodes else ""
        children = f" Switches={row.children}" if row.children else ""
        lines.append(f"{_WORDS[kind]}={row.name}{nodes}{children}")
    if switches.block_sizes:
        lines.append("BlockSizes=" + ",".join(map(str, switches.block_sizes)))
    return "\n".join((*lines, ""))


def switch_rows(machine: Machine, name: str) -> tuple[Switches, list[Declared]]:
    """Return the switches that Slurm sees, in their order.

    Parameters
    ----------
    machine : Machine
        Its own switches where it was read with some, else those that follow
        from its coordinates.
    name : str
        Format, for the message.

    Raises
    ------
    UsageError
        Where there is none.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> _, rows = switch_rows(parse_spec("tree:2x2"), "topology-conf")
    >>> [(r.name, r.nodes, r.children) for r in rows][1:]
    [('level1-1', 'nid[00002-00003]', ''), ('root', '', 'level1-[0-1]')]
    """
    switches = slurm_switches(machine)
    if not switches.names:
        raise UsageError(f"{name} lists switches, and this machine has none that Slurm knows")
    children: list[list[str]] = [[] for _ in switches.names]
    for child, parent in zip(switches.names, switches.parent.tolist(), strict=True):
        if parent >= 0:
            children[parent].append(child)
    nodes = [fold_names(machine.names[rows]) for rows in members(switches)]
    folded = [NodeList(names).fold() for names in children]
    columns = (switches.names, nodes, folded, switches.level.tolist())
    return switches, [Declared(*row[:3], level=row[3]) for row in zip(*columns, strict=True)]


def fold_names(names: Strs) -> str:
    """Return node names as one folded list, in their order."""
    return NodeList(names.tolist()).fold()
