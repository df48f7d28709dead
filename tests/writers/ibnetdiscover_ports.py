# SPDX-License-Identifier: Apache-2.0
"""Write ``ibnetdiscover --ports``: a line per port, adapters first."""

from __future__ import annotations

from nidmap.placement.machine import Machine
from tests.writers.ibnetdiscover import Cable, Plug, cables_of


def write(machine: Machine) -> str:
    """Return the machine's cables as ``ibnetdiscover --ports`` prints them.

    Parameters
    ----------
    machine : Machine
        An InfiniBand fabric or a synthetic fat tree or tree.

    Returns
    -------
    str
        Every cable from both sides; a switch without any as a dark port.

    Raises
    ------
    UsageError
        Where the machine is of another kind.

    Examples
    --------
    >>> from nidmap.placement.specs import parse_spec
    >>> text = write(parse_spec("fattree:leaf=1,leaves=2,spines=1"))
    >>> print(text.splitlines()[0])
    CA     4  1 0x0002c90300000001 4x EDR - SW     1  1 0x0002c90200000001 \
( 'nid00000 HCA-1' - 'leaf0' )
    """
    adapters, switches = cables_of(machine, "ibnetdiscover-ports")
    lines = [_line(cable) for cable in adapters]
    for switch, own in switches:
        dark = f"{_end(switch._replace(port=1))} 4x SDR{'':36}'{switch.name}'"
        lines += [_line(cable) for cable in own] or [dark]
    return "\n".join((*lines, ""))


def _line(cable: Cable) -> str:
    near, far, rate = cable
    return f"{_end(near)} {' '.join(rate)} - {_end(far)} ( '{near.name}' - '{far.name}' )"


def _end(plug: Plug) -> str:
    return f"{'CA' if plug.host else 'SW'} {plug.lid:5d} {plug.port:2d} 0x{plug.guid:016x}"
