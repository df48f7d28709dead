# SPDX-License-Identifier: Apache-2.0
"""Write ``xtdb2proc``: the processor table with places and coordinates."""

from __future__ import annotations

from nidmap.placement.machine import Machine
from tests.writers import nodes

_FORM = (
    "cpu=%d,slot=%d,cage=%d,cabinet=null,cab_position=%d,cab_row=%d,"
    "x_coord=%d,y_coord=%d,z_coord=%d,process_slots=4,process_slots_free=4,"
    "processor_status='%s',processor_type='%s',alloc_mode='%s',processor_id=%d,"
    "od_allocator_id=0,next_red_black_switch=null,processor_spec=null"
)
_COMMENT = ("#", "# Nodes of a machine, one record a line, as field1=val1,field2=val2,…", "#")


def write(machine: Machine) -> str:
    """Return the machine as ``xtdb2proc -f -`` prints it.

    Parameters
    ----------
    machine : Machine
        A Cray XC, XE or XK with cnames.

    Returns
    -------
    str

    Raises
    ------
    UsageError
        Where it is another machine, a node has no Cray cname, or is planned
        for another job.
    """
    place, xyz = nodes.places(machine, "xtdb2proc", ("aries", "gemini"))
    nodes.refuse_planned(machine, "xtdb2proc")
    state, mode = (
        [word.replace("-", "") for word in nodes.words(column, "xtdb2proc")]
        for column in (machine.state, machine.mode)
    )
    numbers = (*place[:, [4, 3, 2, 0, 1]].T.tolist(), *xyz.T.tolist())
    rest = (state, machine.role.tolist(), mode, machine.nid.tolist())
    return nodes.print_columns(_FORM, (*numbers, *rest), *_COMMENT)
