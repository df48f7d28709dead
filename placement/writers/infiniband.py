"""What the two InfiniBand writers share: cables with ports, rates in words.

Port numbers, GUIDs and LIDs are not part of a machine; they are made up,
always the same way. Each attachment of a host is an adapter of its own.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placement.errors import UsageError, printable
from placement.readers.infiniband import RATES, WIDTHS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from placement.machine import Links, Machine

__all__ = ["Cables", "Plug", "cables_of"]

_WIDE = sorted(WIDTHS, key=lambda w: (w != "4x", WIDTHS[w]))
_WORDS = {lanes * gbits / 8: (w, r) for r, gbits in RATES.items() for w, lanes in WIDTHS.items()}
_WORDS |= {WIDTHS[w] * RATES[r] / 8: (w, r) for w in reversed(_WIDE) for r in RATES}
_UNKNOWN = ("4x", "???")


@dataclass(frozen=True, slots=True)
class Plug:
    """One side of a cable.

    Attributes
    ----------
    host : bool
    thing : int
        Number of the adapter or the switch.
    port : int
    """

    host: bool
    thing: int
    port: int

    @property
    def guid(self) -> int:
        """GUID of the adapter or switch, made up under Mellanox's prefix."""
        return (0x0002C90300000000 if self.host else 0x0002C90200000000) + self.thing + 1


@dataclass(frozen=True, slots=True)
class Cables:
    """All that a fabric print lists.

    Attributes
    ----------
    adapters : list of str
        Description of each adapter, those of a host one after another.
    switches : list of str
    cables : list of (Plug, Plug, (str, str))
        Both sides, width and rate; host cables first, in the order of the
        adapters, which have one each.
    """

    adapters: list[str]
    switches: list[str]
    cables: list[tuple[Plug, Plug, tuple[str, str]]]

    def of_switches(self) -> list[list[tuple[Plug, Plug, tuple[str, str]]]]:
        """Return the cables of each switch, its own side first, by port."""
        found: list[list[tuple[Plug, Plug, tuple[str, str]]]] = [[] for _ in self.switches]
        for a, b, rate in self.cables:
            for near, far in ((a, b), (b, a)):
                if not near.host:
                    found[near.thing].append((near, far, rate))
        return found

    def description(self, plug: Plug) -> str:
        """Return what the thing at one side is called."""
        return self.adapters[plug.thing] if plug.host else self.switches[plug.thing]

    def lid(self, plug: Plug) -> int:
        """Return a LID: switches first, then adapters."""
        return 1 + plug.thing + (len(self.switches) if plug.host else 0)


def cables_of(machine: Machine, name: str) -> Cables:
    """Return the cables of a fat tree or another graph of switches.

    Parameters
    ----------
    machine : Machine
    name : str
        Format, for the message.

    Raises
    ------
    UsageError
        Where the machine is no InfiniBand fabric, or a name is not one that
        a description can hold.
    """
    from placement.topologies import links, router_names

    shape = machine.topology
    if shape.kind not in ("fattree", "tree") or shape.fabric not in ("infiniband", ""):
        what = shape.fabric or "synthetic"
        raise UsageError(f"{name} is for InfiniBand; this is a {shape.kind} ({what})")
    switches = [_checked(str(s), name) for s in router_names(machine).tolist()]
    adapters: list[str] = []
    cables: list[tuple[Plug, Plug, tuple[str, str]]] = []
    used = [0] * len(switches)
    figures = shape.bandwidth
    rate = _words(figures.get("up0", figures.get("injection", math.nan)))
    for host, row in zip(machine.names.tolist(), machine.router.tolist(), strict=True):
        for k, switch in enumerate(r for r in row if r >= 0):
            near = Plug(True, len(adapters), 1)
            adapters.append(f"{_checked(host, name)} HCA-{k + 1}")
            cables.append((near, _next_port(used, switch), rate))
    for a, b, words in _switch_cables(links(machine), figures):
        cables.append((_next_port(used, a), _next_port(used, b), words))
    return Cables(adapters, switches, cables)


def _next_port(used: list[int], switch: int) -> Plug:
    used[switch] += 1
    return Plug(False, switch, used[switch])


def _switch_cables(
    found: Links, figures: Mapping[str, float]
) -> Iterator[tuple[int, int, tuple[str, str]]]:
    """Yield every cable between switches, bundles taken apart."""
    for a, b, kind, count, gbs in zip(
        found.a.tolist(),
        found.b.tolist(),
        found.kind.tolist(),
        found.count.tolist(),
        found.bandwidth.tolist(),
        strict=True,
    ):
        for words in _shares(count, gbs, figures.get(found.kinds[kind], 0.0)):
            yield a, b, words


def _shares(count: int, total: float, usual: float) -> list[tuple[str, str]]:
    """Return the rates of a bundle's cables: all alike where that adds up, else of two kinds.

    A bundle keeps the sum of its cables only; where they differ, as many as
    possible run at the rate that is `usual` between these switches.
    """
    alike = _words(total / count)
    if alike != _UNKNOWN or math.isnan(total):
        return [alike] * count
    for rate in sorted(_WORDS, key=lambda r: (not math.isclose(r, usual), r)):
        for many in range(count - 1, 0, -1):
            other = _words((total - many * rate) / (count - many))
            if other != _UNKNOWN:
                return [_WORDS[rate]] * many + [other] * (count - many)
    return [_UNKNOWN] * count


@functools.cache
def _words(gbs: float) -> tuple[str, str]:
    """Return width and rate for GB/s, an unknown rate where ibnetdiscover has no words for it."""
    if math.isnan(gbs):
        return _UNKNOWN
    near = min(_WORDS, key=lambda value: abs(value - gbs))
    return _WORDS[near] if math.isclose(near, gbs, rel_tol=1e-9) else _UNKNOWN


def _checked(text: str, name: str) -> str:
    if not text.isprintable() or set(text) & set("\"'") or text != text.strip() or not text:
        raise UsageError(f"{name} cannot write the name '{printable(text, 40)}'")
    return text
