# SPDX-License-Identifier: Apache-2.0
"""``lldpcli show neighbors -f json`` on each switch: Ethernet hosts, switches and cables.

lldpcli names the neighbours of one device and not the device itself, so the file has what each
switch printed under the switch's name: in one object, in a list of objects, or in one object
after the other. ``-f json`` names interfaces and chassis by their keys, in a list where there are
several; ``-f json0`` has lists of values throughout. Both forms are those of lldpd's own tests of
its output; a summary has no capabilities. The JSON of ``nv show interface`` (NVUE of Cumulus),
``show lldp neighbors | json`` (Arista's EOS, NX-OS) and ``| display json`` (Junos) is read under
the switch's name too.

The devices that were asked are the switches, but for one that announces neither to bridge nor
to route. What they see and nobody asked is a host; a switch where it bridges or routes and its
port is not called as Linux calls a host's. Firmware of network cards speaks LLDP too, without a
name: that is no host. Management ports, the switches behind them, and a host's cables that have a
tenth of what its fastest one has are no part of the fabric.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from nidmap.placement.errors import ParseError
from nidmap.placement.readers import count_lines, dump_format, split_lines
from nidmap.placement.readers.cables import Cables
from nidmap.placement.readers.lldp_shapes import Neighbour, is_device, read_neighbours
from nidmap.placement.readers.yaml_json import load_json_values
from nidmap.placement.records import Dump, Finding
from nidmap.placement.support.hosts import HostNames
from nidmap.placement.support.quantities import counted

#: Capabilities of devices that are neither hosts nor switches.
_NO_HOST = {"Telephone", "Tel", "Wlan", "Repeater", "Docsis"}

#: Names of management ports: a switch's own, hosts' own, and hosts' other ones.
_OF_SWITCH = re.compile(r"(?:eth|fxp|em|me|mgmt|vme)0?|ma\d+|management[\d/]*|oob.*", re.I | re.A)
_OF_HOST = re.compile(r"(?:.*[^a-z])?(?:oob|mgmt|ipmi|bmc|idrac|ilo)\d*", re.I | re.A)
_LINUX = re.compile(r"(?:eth|en[opsx]|em|ib|hsn|bond|mlx|p\d+p)[a-z]*\d\w*", re.A)

#: Sites' names for the controller by which a host is managed.
_CONTROLLER = re.compile(
    r"(?:idrac|ilo|bmc|ipmi|xcc|irmc|imm|cimc)(?:[-_.\d].*)?"
    r"|.*[-_.](?:idrac|ilo|bmc|ipmi|xcc|oob|mgmt)",
    re.I | re.A,
)

#: Cables below this share of a host's fastest cable do not belong to the fabric.
_SLOW = 0.1

#: Keys under which an entry of a list may have the name of the device.
_NAMES = ("name", "hostname", "host", "switch", "device")

_LLDP = re.compile(
    r'"(?:lldp"\s*:\s*[\[{]|lldpNeighbors"\s*:|TABLE_nbor(?:_detail)?"|lldp-neighbors-information")'
)
_HOW = "for each switch: ssh SWITCH lldpcli show neighbors -f json, under the switch's name"


def sniff(head: str) -> bool:
    """Tell whether the first characters look like lldpcli's JSON."""
    return head.lstrip()[:1] in ("{", "[") and _LLDP.search(head) is not None


@dump_format("lldp", "cables", sniff)
def read(text: str, source: str) -> Dump:
    """Read what lldpcli printed on the switches of a fabric.

    `text`: what lldpcli printed, under the name of each device. See
    `nidmap.placement.readers.cables.Cables.dump`. Names are cut at the first dot, as Slurm's are,
    where that tells all apart; GB/s are those of the port's operational MAU type.
    """
    printed = _printed_by_device(text, source)
    try:
        seen = {name: list(read_neighbours(body)) for name, body in printed.items()}
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        what = f"an entry does not look like lldpcli's: {error}"
        raise ParseError(source, 0, what, _HOW) from None
    fabric = _SeenFabric(seen)
    at = 0
    for device in seen:
        at = max(at, text.find(f'"{device}"', at))
        fabric.take(device, text.count("\n", 0, at) + 1)
    return fabric.dump(count_lines(split_lines(text, source)))


def _printed_by_device(text: str, source: str) -> dict[str, Any]:
    """Return lldpcli's output for each device, by the device's name."""
    values = load_json_values(text, source)
    printed: dict[str, Any] = {}
    for entry in values[0] if len(values) == 1 and isinstance(values[0], list) else values:
        for name, body in _named_devices(entry, source):
            if printed.setdefault(name, body) != body:
                raise ParseError(source, 0, f"{name} is listed twice, with different neighbours")
    return printed


def _named_devices(entry: Any, source: str) -> Iterator[tuple[str, Any]]:
    """Yield the devices in an object, and each one's neighbours."""
    if not isinstance(entry, dict):
        raise ParseError(source, 0, f"{str(entry)[:40]!r} is not what lldpcli prints", _HOW)
    if is_device(entry):
        names = [entry[key] for key in _NAMES if isinstance(entry.get(key), str)]
        if not names:
            text = "says what a device sees, but not which device it is"
            raise ParseError(source, 0, text, _HOW)
        yield names[0], {key: value for key, value in entry.items() if key not in _NAMES}
        return
    for name, body in entry.items():
        if not is_device(body):
            raise ParseError(source, 0, f"{name} is not what lldpcli prints", _HOW)
        yield name, body


class _Sight(NamedTuple):
    """A cable as reported by one device, both ends by name."""

    device: str
    interface: str
    other: str
    port: str
    gbs: float


class _SeenFabric(Cables):
    """The cables that some devices report."""

    def __init__(self, seen: dict[str, list[Neighbour]]) -> None:
        super().__init__("ethernet", _HOW, both_ends=False)
        neighbours = [neighbour for device in seen.values() for neighbour in device]
        self.nameless = sum(not neighbour.name for neighbour in neighbours)
        called = _short_names({n.name for n in neighbours} - {""}, set(seen))
        self.asked = set(seen)
        self.known: dict[str, Neighbour] = {called[n.name]: n for n in neighbours if n.name}
        sights = [
            _Sight(device, n.interface, called[n.name], n.port, n.gbs)
            for device, several in seen.items()
            for n in several
            if n.name and self.kind(called[n.name]) != "other"
        ]
        self.left_out = _find_management(sights, self.kind)
        kept = [sight for sight in sights if sight not in self.left_out]
        if not any(self.kind(x) == "host" for s in kept for x in (s.device, s.other)):
            self.left_out, kept = set(), sights  # there is only this network
        self.managing = {name for s in self.left_out for name in (s.device, s.other)}
        self.seen_by: dict[str, list[_Sight]] = {}
        for sight in kept:
            self.seen_by.setdefault(sight.device, []).append(sight)

    def kind(self, name: str) -> str:
        """Return the kind of a device: ``switch``, ``host`` or ``other``."""
        neighbour = self.known.get(name)
        if name in self.asked:
            silent = neighbour is None or neighbour.announced is None
            return "switch" if silent or (neighbour and neighbour.forwards) else "host"
        if neighbour is not None and neighbour.forwards:
            return "host" if _LINUX.fullmatch(neighbour.port) else "switch"
        words = neighbour.announced or set() if neighbour is not None else set[str]()
        return "other" if words & _NO_HOST and "Station" not in words else "host"

    def adapter(self, end: int, port: int | str) -> str:
        """Return the name of the interface; '' if the host gives only its address."""
        return "" if ":" in str(port) else str(port)

    def take(self, device: str, line: int) -> None:
        """Read the neighbours of the device named on `line`."""
        mine = self.seen_by.get(device, ())
        if mine or device not in self.managing:
            self.end(device, self.kind(device), device)
        for sight in mine:
            a, b = (self.end(x, self.kind(x), x) for x in (device, sight.other))
            self.port(line, a, sight.interface, b, sight.port, sight.gbs)

    def remarks(self) -> Iterator[Finding]:
        """Yield remarks on what may be missing, and on assumptions."""
        if self.nameless:
            text = f"neighbours without a name: {self.nameless}, left out"
            hint = "does lldpd run on every host? A card's firmware reports no name"
            yield Finding(0, "unnamed-host", text, hint, fault=False)
        if self.left_out:
            ends = sorted({f"{s.device} {s.interface}" for s in self.left_out})
            text = f"{counted(len(ends), 'cable')} of management left out ({_some(ends)})"
            yield Finding(0, "management", text, fault=False)
        unasked = {name: n for name, n in self.known.items() if name not in self.asked}
        for kind in ("switch", "host"):
            names = [n for n, seen in unasked.items() if seen.forwards and self.kind(n) == kind]
            names = [name for name in names if name in self.index]
            if names:
                plural = "es" if kind == "switch" else "s"
                text = f"{len(names)} that bridge or route, not asked ({_some(names)}), count as "
                hint = "ask switches too"
                yield Finding(0, "unasked", f"{text}{kind}{plural}", hint, fault=False)
        silent = [n for n, seen in unasked.items() if seen.announced is None and n in self.index]
        if silent:
            text = f"{len(silent)} announce no capability ({_some(silent)}): taken as hosts"
            yield Finding(0, "no-capability", text, "are they hosts?", fault=False)
        others = [name for name in unasked if self.kind(name) == "other"]
        if others:
            text = f"{counted(len(others), 'neighbour')} neither host nor switch ({_some(others)})"
            yield Finding(0, "no-host", text, "left out", fault=False)


def _some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:3]) + (" …" if len(ordered) > 3 else "")


def _find_management(sights: Sequence[_Sight], kind: Callable[[str], str]) -> set[_Sight]:
    """Return management cables, judged by port names, switches behind them, and rates."""
    managed, outer = set[_Sight](), set[str]()
    for sight in sights:
        here = _is_managed(kind(sight.device), sight.interface)
        there = _is_managed(kind(sight.other), sight.port)
        if here or there:
            managed.add(sight)
            outer |= {sight.other} if here and not there else set()
            outer |= {sight.device} if there and not here else set()
    outer = {name for name in outer if kind(name) == "switch"}
    managed |= _find_controllers(sights, kind)
    inner = [s for s in sights if s not in managed and kind(s.device) == kind(s.other) == "switch"]
    while fabric := {x for s in inner for x in (s.device, s.other) if x in outer
                     and not {s.device, s.other} <= outer}:  # fmt: skip
        outer -= fabric
    managed |= {s for s in sights if {s.device, s.other} & outer}
    managed |= _find_slow(sights, managed, kind)
    return managed


def _find_controllers(sights: Sequence[_Sight], kind: Callable[[str], str]) -> set[_Sight]:
    """Return cables of devices named like a host's controller, if hosts' are much faster."""
    ends = [(s, x) for s in sights for x in (s.device, s.other) if kind(x) == "host"]
    fastest = max((s.gbs for s, _ in ends if s.gbs > 0), default=0.0)
    return {
        sight
        for sight, name in ends
        if _CONTROLLER.fullmatch(name) and not sight.gbs > _SLOW * fastest
    }


def _is_managed(kind: str, port: str) -> bool:
    """Tell whether a port of a switch or host is a management port, by its name."""
    return (_OF_SWITCH if kind == "switch" else _OF_HOST).fullmatch(port) is not None


def _find_slow(
    sights: Sequence[_Sight], managed: set[_Sight], kind: Callable[[str], str]
) -> set[_Sight]:
    """Return hosts' cables if they have faster ones, and switches' that have no others."""
    fastest: dict[str, float] = {}
    for sight in sights:
        for name in (sight.device, sight.other) if sight.gbs > 0 else ():
            fastest[name] = max(sight.gbs, fastest.get(name, 0.0))
    most = max(fastest.values(), default=0.0)
    slow = {
        sight
        for sight in sights
        for name in (sight.device, sight.other)
        if kind(name) == "host" and sight.gbs <= _SLOW * fastest.get(name, 0.0)
    }
    left = [sight for sight in sights if sight not in slow and sight not in managed]
    in_use = {x for s in left if "host" in (kind(s.device), kind(s.other))
              for x in (s.device, s.other)}  # fmt: skip
    return slow | {
        sight
        for sight in left
        for name in (sight.device, sight.other)
        if name in fastest and name not in in_use and fastest[name] <= _SLOW * most
    }


def _short_names(names: set[str], devices: set[str]) -> dict[str, str]:
    """Return a short form of each announced name: its first label, if that is unique.

    That of a device is what it is asked by, be that longer or shorter than what it announces.
    """
    asked = HostNames([*devices])
    shorts = {name: name.partition(".")[0] for name in names}
    for name in names:
        called = asked.find(name)
        if len(called) == 1:
            shorts[name] = [*devices][called[0]]
    others = [short for short in shorts.values() if short not in devices]
    return {
        name: short if short in devices or others.count(short) == 1 else name
        for name, short in shorts.items()
    }
