"""Write ``ibnetdiscover --ports``: a line a port, adapters first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.writers.infiniband import Cables, Plug, cables_of

if TYPE_CHECKING:
    from placement.machine import Machine

__all__ = ["write"]


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
    >>> from placement.specs import parse_spec
    >>> text = write(parse_spec("fattree:leaf=1,leaves=2,spines=1"))
    >>> print(text.splitlines()[0])
    CA     4  1 0x0002c90300000001 4x EDR - SW     1  1 0x0002c90200000001 \
( 'nid00000 HCA-1' - 'leaf0' )
    """
    cables = cables_of(machine, "ibnetdiscover-ports")
    hosts = [c for c in cables.cables if c[0].host]
    lines = [_line(cables, near, far, rate) for near, far, rate in hosts]
    for number, own in enumerate(cables.of_switches()):
        lines += [_line(cables, near, far, rate) for near, far, rate in own]
        if not own:
            dark = _end(cables, Plug(False, number, 1))
            lines.append(f"{dark} 4x SDR{'':36}'{cables.switches[number]}'")
    return "\n".join((*lines, ""))


def _line(cables: Cables, near: Plug, far: Plug, rate: tuple[str, str]) -> str:
    names = f"( '{cables.description(near)}' - '{cables.description(far)}' )"
    return f"{_end(cables, near)} {' '.join(rate)} - {_end(cables, far)} {names}"


def _end(cables: Cables, plug: Plug) -> str:
    kind = "CA" if plug.host else "SW"
    return f"{kind} {cables.lid(plug):5d} {plug.port:2d} 0x{plug.guid:016x}"
