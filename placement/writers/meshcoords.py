"""Write ``meshcoords``: the nodes with their cores and coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.writers import nodes

if TYPE_CHECKING:
    from placement.machine import Machine

__all__ = ["write"]

_FORM = "%5s  %-12s %-10s %-5s %3s %3s %3s"


def write(machine: Machine) -> str:
    """Return the machine as ``meshcoords`` prints it.

    Parameters
    ----------
    machine : Machine
        A Cray XC, XE or XK with cnames; all nodes up.

    Returns
    -------
    str

    Raises
    ------
    UsageError
        Where it is another machine, a node has no Cray cname, or is not up.
    """
    nodes.parts(machine, "meshcoords")
    xyz = nodes.coordinates(machine, "meshcoords", ("aries", "gemini"))
    nodes.refuse_states(machine, "meshcoords")
    columns = (machine.nid, machine.cname, machine.role, machine.cores, *xyz.T)
    rows = [_FORM % row for row in zip(*(c.tolist() for c in columns), strict=True)]
    header = _FORM % ("NID", "NODENAME", "TYPE", "CORES", "X", "Y", "Z")
    return "\n".join((header, *rows, ""))
