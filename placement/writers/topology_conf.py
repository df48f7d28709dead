"""Write Slurm's ``topology.conf``: a tree, blocks or rings."""

from __future__ import annotations

from placement.errors import UsageError
from placement.machine import Machine
from placement.writers.slurm_tables import switch_rows

__all__ = ["write"]

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
