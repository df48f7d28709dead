# SPDX-License-Identifier: Apache-2.0
"""Write ``xtprocadmin``: the nodes with types, states and modes."""

from __future__ import annotations

from nidmap.placement.machine import Machine
from tests.writers import nodes

_FORM = "%6s %8s %11s %8s %9s %11s"
_HEADER: tuple[str, ...] = ("NID", "(HEX)", "NODENAME", "TYPE", "STATUS", "MODE")


def write(machine: Machine) -> str:
    """Return the machine as ``xtprocadmin`` prints it.

    Parameters
    ----------
    machine : Machine
        With cnames. Where cores are known there is a column CORES behind the
        usual six; a mode that is not known is printed as ``-``.

    Returns
    -------
    str

    Raises
    ------
    UsageError
        Where a node has no Cray cname, or is planned for another job.
    """
    nodes.parts(machine, "xtprocadmin")
    nodes.refuse_planned(machine, "xtprocadmin")
    nids = machine.nid.tolist()
    columns = [
        nids,
        map(hex, nids),
        machine.cname.tolist(),
        machine.role.tolist(),
        nodes.words(machine.state, "xtprocadmin"),
        nodes.words(machine.mode, "xtprocadmin"),
    ]
    form, header = _FORM, _HEADER
    if machine.cores.any():
        columns.append(machine.cores.tolist())
        form, header = f"{_FORM} %5s", (*_HEADER, "CORES")
    return nodes.print_columns(form, columns, form % header)
