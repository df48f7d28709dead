"""Write ``ibnetdiscover``: a paragraph for each adapter and each switch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.writers.infiniband import Cables, Plug, cables_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placement.machine import Machine

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
    cables = cables_of(machine, "ibnetdiscover")
    lines = ["#", "# Topology file: written by nidmap", "#"]
    for near, far, rate in cables.cables:
        if near.host:
            lines += _adapter(cables, near, far, rate)
    for number, own in enumerate(cables.of_switches()):
        lines += _switch(cables, Plug(False, number, 0), own)
    return "\n".join((*lines, ""))


def _adapter(cables: Cables, near: Plug, far: Plug, rate: tuple[str, str]) -> Iterator[str]:
    guid = f"{near.guid:016x}"
    yield from ("", "vendid=0x2c9", "devid=0x1017", f"caguid=0x{near.guid:x}")
    yield f'Ca\t1 "H-{guid}"\t\t# "{cables.description(near)}"'
    yield (
        f'[{near.port}]({near.guid:x}) \t"S-{far.guid:016x}"[{far.port}]\t\t'
        f'# lid {cables.lid(near)} lmc 0 "{cables.description(far)}" '
        f"lid {cables.lid(far)} {''.join(rate)}"
    )


def _switch(
    cables: Cables, switch: Plug, own: list[tuple[Plug, Plug, tuple[str, str]]]
) -> Iterator[str]:
    ports = max(_MOST_PORTS, len(own))
    yield from ("", "vendid=0x2c9", "devid=0xd2f0")
    yield f"switchguid=0x{switch.guid:x}({switch.guid:x})"
    yield (
        f'Switch\t{ports} "S-{switch.guid:016x}"\t\t# "{cables.description(switch)}" '
        f"base port 0 lid {cables.lid(switch)} lmc 0"
    )
    for near, far, rate in own:
        letter, guid = ("H", f"({far.guid:x}) ") if far.host else ("S", "")
        yield (
            f'[{near.port}]\t"{letter}-{far.guid:016x}"[{far.port}]{guid}\t\t'
            f'# "{cables.description(far)}" lid {cables.lid(far)} {"".join(rate)}'
        )
