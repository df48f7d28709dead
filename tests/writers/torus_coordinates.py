# SPDX-License-Identifier: Apache-2.0
"""Write a torus coordinate file: ``nid cname type x y z`` a line."""

from __future__ import annotations

from nidmap.placement.machine import Machine
from tests.writers import nodes

_FORM = "%d %s %s %d %d %d"


def write(machine: Machine) -> str:
    """Return the machine as a torus coordinate file.

    Parameters
    ----------
    machine : Machine
        A Cray XE or XK with cnames; all nodes up.

    Returns
    -------
    str

    Raises
    ------
    UsageError
        Where it is another machine, a node has no Cray cname, or is not up.
    """
    _, xyz = nodes.places(machine, "torus-coordinates", ("gemini",))
    nodes.refuse_states(machine, "torus-coordinates")
    columns = (machine.nid, machine.cname, machine.role, *xyz.T)
    return nodes.print_columns(_FORM, (c.tolist() for c in columns))
