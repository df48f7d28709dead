"""Write ``ibnetdiscover``: a paragraph for each adapter and each switch."""

from __future__ import annotations

from collections.abc import Iterator

from placement.machine import Machine
from placement.writers.infiniband import Cable, Plug, cables_of

__all__ = ["write"]

_MOST_PORTS = 40


def write(machine: Machine) -> str:
    """Return the machine's cables as ``ibnetdiscover`` prints them.

    Parameters
    ----------
    machine : Machine
        An InfiniBand fabric or a synthetic fat tree or tree.

    Returns
    -------
    str
        Adapters before switches, so that the hosts keep their order.

    Raises
    ------
    UsageError
        Where the machine is of another kind.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> text = write(parse_spec("fattree:leaf=1,leaves=2,spines=1"))
    >>> [line for line in text.splitlines() if line.startswith("Switch")][0].split()[:5]
    ['Switch', '40', '"S-0002c90200000001"', '#', '"leaf0"']
    """
    adapters, switches = cables_of(machine, "ibnetdiscover")
    lines = ["#", "# Topology file: written by nidmap", "#"]
    for cable in adapters:
        lines += _adapter(cable)
    for switch, own in switches:
        lines += _switch(switch, own)
    return "\n".join((*lines, ""))


def _adapter(cable: Cable) -> Iterator[str]:
    near, far, rate = cable
    yield from ("", "vendid=0x2c9", "devid=0x1017", f"caguid=0x{near.guid:x}")
    yield f'Ca\t1 "H-{near.guid:016x}"\t\t# "{near.name}"'
    here = f'[{near.port}]({near.guid:x}) \t"S-{far.guid:016x}"[{far.port}]'
    yield f'{here}\t\t# lid {near.lid} lmc 0 "{far.name}" lid {far.lid} {"".join(rate)}'


def _switch(switch: Plug, own: list[Cable]) -> Iterator[str]:
    guid, ports = switch.guid, max(_MOST_PORTS, len(own))
    yield from ("", "vendid=0x2c9", "devid=0xd2f0", f"switchguid=0x{guid:x}({guid:x})")
    told = f'# "{switch.name}" base port 0 lid {switch.lid} lmc 0'
    yield f'Switch\t{ports} "S-{guid:016x}"\t\t{told}'
    for near, far, rate in own:
        letter, ca = ("H", f"({far.guid:x}) ") if far.host else ("S", "")
        here = f'[{near.port}]\t"{letter}-{far.guid:016x}"[{far.port}]{ca}'
        yield f'{here}\t\t# "{far.name}" lid {far.lid} {"".join(rate)}'
