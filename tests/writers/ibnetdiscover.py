# SPDX-License-Identifier: Apache-2.0
"""Write ``ibnetdiscover``: a paragraph for each adapter and each switch.

Port numbers, GUIDs and LIDs are not part of a machine; they are made up,
always the same way. Each attachment of a host is an adapter of its own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nidmap.placement.errors import UsageError, printable
from nidmap.placement.machine import Machine
from nidmap.placement.readers.ibnetdiscover import RATES, WIDTHS
from nidmap.placement.topologies import links, router_names
from tests.writers.nodes import kind_of

Rate = tuple[str, str]

_WIDE = sorted(WIDTHS, key=lambda w: (w != "4x", WIDTHS[w]))
_WORDS = {lanes * gbits / 8: (w, r) for r, gbits in RATES.items() for w, lanes in WIDTHS.items()}
_WORDS |= {WIDTHS[w] * RATES[r] / 8: (w, r) for w in reversed(_WIDE) for r in RATES}
_UNKNOWN = ("4x", "???")
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
    >>> from nidmap.placement.specs import parse_spec
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


class Plug(NamedTuple):
    """One side of a cable.

    Attributes
    ----------
    host : bool
    thing : int
        Number of the adapter or the switch.
    port : int
    name : str
        Description of the adapter or the switch.
    lid : int
        Switches first, then adapters.
    """

    host: bool
    thing: int
    port: int
    name: str
    lid: int

    @property
    def guid(self) -> int:
        """GUID of the adapter or switch, made up under Mellanox's prefix."""
        return (0x0002C90300000000 if self.host else 0x0002C90200000000) + self.thing + 1


class Cable(NamedTuple):
    """Both sides of a cable, its width and its rate."""

    near: Plug
    far: Plug
    rate: Rate


def cables_of(machine: Machine, name: str) -> tuple[list[Cable], list[tuple[Plug, list[Cable]]]]:
    """Return the cables of a fat tree or another graph of switches.

    Parameters
    ----------
    machine : Machine
    name : str
        Format, for the message.

    Returns
    -------
    adapters : list of Cable
        Of each adapter, those of a host one after another.
    switches : list of (Plug, list of Cable)
        Each switch (port 0) and its cables by port.

    Raises
    ------
    UsageError
        Where the machine is not an InfiniBand fabric, or a name is not one that
        a description can hold.
    """
    shape = machine.topology
    trees = shape.kind in ("fattree", "tree") and not shape.fabric
    if not trees and shape.fabric != "infiniband":
        raise UsageError(f"{name} is for InfiniBand; this is {kind_of(machine)}")
    switches = [_check_name(str(s), name) for s in router_names(machine).tolist()]
    own: list[list[Cable]] = [[] for _ in switches]

    def plug(switch: int) -> Plug:
        return Plug(False, switch, len(own[switch]) + 1, switches[switch], 1 + switch)

    adapters: list[Cable] = []
    figures = shape.bandwidth
    rate = _words(figures.get("up0", figures.get("injection", math.nan)))
    for host, row in zip(machine.names.tolist(), machine.router.tolist(), strict=True):
        for k, switch in enumerate(r for r in row if r >= 0):
            number, description = len(adapters), f"{_check_name(host, name)} HCA-{k + 1}"
            near = Plug(True, number, 1, description, 1 + number + len(switches))
            adapters.append(Cable(near, plug(switch), rate))
            own[switch].append(Cable(plug(switch), near, rate))
    for a, b, words in _switch_cables(machine):
        near, far = plug(a), plug(b)
        own[a].append(Cable(near, far, words))
        own[b].append(Cable(far, near, words))
    return adapters, [(plug(k)._replace(port=0), own[k]) for k in range(len(switches))]


def _switch_cables(machine: Machine) -> Iterator[tuple[int, int, Rate]]:
    """Yield every cable between switches, bundles taken apart."""
    found = links(machine)
    ends = (np.repeat(end, found.count).tolist() for end in (found.a, found.b))
    yield from zip(*ends, map(_words, found.rates().tolist()), strict=True)


@functools.cache
def _words(gbs: float) -> Rate:
    """Return width and rate for GB/s, an unknown rate where ibnetdiscover has no words for it."""
    if math.isnan(gbs):
        return _UNKNOWN
    near = min(_WORDS, key=lambda value: abs(value - gbs))
    return _WORDS[near] if math.isclose(near, gbs, rel_tol=1e-9) else _UNKNOWN


def _check_name(text: str, name: str) -> str:
    if not text.isprintable() or set(text) & set("\"'") or text != text.strip() or not text:
        raise UsageError(f"{name} cannot write the name '{printable(text, 40)}'")
    return text
