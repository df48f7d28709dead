# SPDX-License-Identifier: Apache-2.0
"""Write ``rtr --system-map``: nodes, their Geminis and coordinates."""

from __future__ import annotations

from nidmap.placement.machine import Machine
from tests.writers import nodes

_FORM = "%-6s %-8s %-14s %-14s %4s %4s %4s"


def write(machine: Machine) -> str:
    """Return the machine as ``rtr --system-map`` prints it.

    Parameters
    ----------
    machine : Machine
        A Cray XE or XK with cnames; all nodes compute nodes and up.

    Returns
    -------
    str

    Raises
    ------
    UsageError
        Where it is another machine, a node has no Cray cname, is a service
        node, or is not up.
    """
    place, xyz = nodes.places(machine, "system-map", ("gemini",))
    nodes.refuse_roles(machine, "system-map")
    nodes.refuse_states(machine, "system-map")
    nids = machine.nid.tolist()
    gemini = [f"c{c}-{r}c{h}s{s}g{n // 2}" for c, r, h, s, n in place.tolist()]
    columns = (nids, map(hex, nids), machine.cname.tolist(), gemini, *xyz.T.tolist())
    header = (_FORM % ("nid", "hex", "node", "gemini", "x", "y", "z"), "-" * 60)
    return nodes.print_columns(_FORM, columns, *header)
