# SPDX-License-Identifier: Apache-2.0
"""Write ``meshcoords``: the nodes with their cores and coordinates."""

from __future__ import annotations

from nidmap.placement.machine import Machine
from tests.writers import nodes

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
    _, xyz = nodes.places(machine, "meshcoords", ("aries", "gemini"))
    nodes.refuse_states(machine, "meshcoords")
    columns = (machine.nid, machine.cname, machine.role, machine.cores, *xyz.T)
    header = _FORM % ("NID", "NODENAME", "TYPE", "CORES", "X", "Y", "Z")
    return nodes.print_columns(_FORM, (c.tolist() for c in columns), header)
