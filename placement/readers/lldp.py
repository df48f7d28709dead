"""``lldpcli show neighbors -f json`` of each switch: hosts, switches and cables of Ethernet.

lldpcli names the neighbours of one device and not the device itself, so the file is one object
with what each switch printed under the switch's name. ``-f json`` names interfaces and chassis
by their keys, in a list where there are several; ``-f json0`` has lists of values throughout.
Both forms are those of lldpd's own tests of its output.

The devices that were asked are the switches, but for one that announces neither to bridge nor
to route; what they see and nobody asked is a host. Firmware of network cards speaks LLDP too,
without a name: that is no host.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from nidmap.placement.errors import ParseError
from nidmap.placement.readers import count_lines, dump_format, split_lines
from nidmap.placement.readers.cables import Cables
from nidmap.placement.readers.yaml_json import load_json
from nidmap.placement.records import Dump, Finding

#: Capabilities of what passes on the traffic of others.
_FORWARDING = {"Bridge", "Router"}

_LLDP = re.compile(r'"lldp"\s*:\s*[\[{]')
_RATE = re.compile(r"(\d+)(G?)(?:ig)?base", re.IGNORECASE)
_HOW = "for each switch: ssh SWITCH lldpcli show neighbors -f json, under the switch's name"


class _Neighbour(NamedTuple):
    """A device that another one sees."""

    interface: str
    name: str
    port: str
    capabilities: set[str]
    gbs: float


def sniff(head: str) -> bool:
    """Say whether the first characters look like lldpcli's JSON.

    Examples
    --------
    >>> sniff('{"leaf1": {"lldp": {"interface": {"swp1": {')
    True
    """
    return head.lstrip()[:1] == "{" and _LLDP.search(head) is not None


@dump_format("lldp", "cables", sniff)
def read(text: str, source: str) -> Dump:
    """Read what lldpcli printed on the switches of a fabric.

    Parameters
    ----------
    text : str
        An object with lldpcli's by the name of each device.
    source : str
        File name, for errors.

    Returns
    -------
    Dump
        See `Cables.dump`. Names are cut at the first dot, as Slurm's are, where that tells all
        apart; GB/s are those of the port's operational MAU type.

    Raises
    ------
    ParseError
        Where it is not JSON or not of this form.

    Examples
    --------
    >>> text = ('{"leaf1": {"lldp": {"interface": {"swp1": {"chassis": {"n1.hpc": {"id": {}}},'
    ...         ' "port": {"id": {"type": "ifname", "value": "eth0"}}}}}}}')
    >>> dump = read(text, "fabric.json")
    >>> dump.nodes.name.tolist(), dump.nodes.router.tolist(), dump.links.a_port.tolist()
    (['n1'], ['leaf1'], ['swp1'])
    """
    root = load_json(text, source)
    if not isinstance(root, dict) or "lldp" in root:
        raise ParseError(source, 0, "says what a device sees, but not which device it is", _HOW)
    try:
        seen = {device: list(_read_neighbours(root[device]["lldp"])) for device in root}
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        what = f"an entry is not as lldpcli prints it: {error}"
        raise ParseError(source, 0, what, _HOW) from None
    fabric = _SeenFabric(seen)
    at = 0
    for device in seen:
        at = max(at, text.find(f'"{device}"', at))
        fabric.take(device, text.count("\n", 0, at) + 1)
    return fabric.dump(count_lines(split_lines(text, source)))


class _SeenFabric(Cables):
    """The cables that some devices see."""

    def __init__(self, seen: dict[str, list[_Neighbour]]) -> None:
        super().__init__("ethernet", _HOW, both_ends=False)
        self.seen = seen
        neighbours = [neighbour for device in seen.values() for neighbour in device]
        self.nameless = sum(not neighbour.name for neighbour in neighbours)
        self.announced = {neighbour.name: neighbour.capabilities for neighbour in neighbours}
        self.called = _short_names({*self.announced} - {""}, set(seen))
        self.announced = {self.called.get(n, n): words for n, words in self.announced.items()}

    def device(self, name: str) -> int:
        """Return the number of a device."""
        words = self.announced.get(name, _FORWARDING)
        switch = name in self.seen and bool(words & _FORWARDING)
        return self.end(name, "switch" if switch else "host", name)

    def take(self, device: str, line: int) -> None:
        """Take what one device sees; its name stands on `line`."""
        number = self.device(device)
        for neighbour in self.seen[device]:
            if neighbour.name:
                other = self.device(self.called[neighbour.name])
                self.port(line, number, neighbour.interface, other, neighbour.port, neighbour.gbs)

    def remarks(self) -> Iterator[Finding]:
        """Say what may be missing: neighbours without a name, switches that nobody asked."""
        if self.nameless:
            text = f"neighbours without a name: {self.nameless}, left out"
            hint = "does lldpd run on every host? A card's firmware reports no name"
            yield Finding(0, "unnamed-host", text, hint, fault=False)
        unasked = sorted(
            name
            for name, words in self.announced.items()
            if name and name not in self.seen and words & _FORWARDING
        )
        if unasked:
            some = ", ".join(unasked[:3]) + (" …" if len(unasked) > 3 else "")
            text = f"{len(unasked)} that bridge or route, not asked ({some}), count as hosts"
            yield Finding(0, "unasked", text, "are they switches? Then ask them too", fault=False)


def _short_names(names: set[str], devices: set[str]) -> dict[str, str]:
    """Return a short form of each announced name: its first label, where no other has that."""
    shorts = {name: name if name in devices else name.partition(".")[0] for name in names}
    others = [short for short in shorts.values() if short not in devices]
    return {
        name: short if short in devices or others.count(short) == 1 else name
        for name, short in shorts.items()
    }


def _read_neighbours(lldp: Any) -> Iterator[_Neighbour]:
    """Yield what one device sees."""
    for part in _as_list(lldp):
        for interface, body in _named_objects(part.get("interface"), "chassis"):
            [(name, chassis)] = list(_named_objects(body["chassis"], "id"))[:1]
            port = _as_list(body["port"])[0]
            named = [_plain_text(x) for x in _as_list(port["id"]) if x.get("type") == "ifname"]
            enabled = [c for c in _as_list(chassis.get("capability")) if c.get("enabled") is True]
            yield _Neighbour(
                interface,
                name,
                next(iter(named), "") or _plain_text(port.get("descr")) or _plain_text(port["id"]),
                {str(c.get("type")) for c in enabled},
                _mau_bandwidth(port),
            )


def _as_list(value: Any) -> list[Any]:
    """Return values that stand in a list, or one alone."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _named_objects(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Yield objects with their names: those of json0, which have `key`, say theirs inside."""
    for item in _as_list(value):
        if key in item:
            yield _plain_text(item.get("name")), item
        else:
            yield from item.items()


def _plain_text(value: Any) -> str:
    """Return a text that stands alone, as ``value``, or in a list."""
    first = next(iter(_as_list(value)), "")
    word = first.get("value", "") if isinstance(first, dict) else first
    if not isinstance(word, str):
        raise TypeError(f"{word!r} is not a word")
    return word


def _mau_bandwidth(port: dict[str, Any]) -> float:
    """Return GB/s a direction by the operational MAU type (``100GbaseCR4 - …``), NaN for none."""
    for negotiated in _as_list(port.get("auto-negotiation")):
        rate = _RATE.match(_plain_text(negotiated.get("current")))
        if rate and len(rate[1]) < 7:
            return int(rate[1]) / (8 if rate[2] else 8000)
    return math.nan
