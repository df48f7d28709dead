# SPDX-License-Identifier: Apache-2.0
"""LLDP neighbours of a device, in the JSON of lldpcli, NVUE, Arista EOS, NX-OS or Junos."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

#: Capabilities of devices that forward others' traffic.
FORWARDING = {"Bridge", "Router"}

_RATE = re.compile(r"(\d+)(G?)(?:ig)?base", re.IGNORECASE)
_SPEED = re.compile(r"(\d{1,6}(?:\.\d+)?)\s*([MGT])(?:b(?:ps|it/s)?)?", re.ASCII | re.IGNORECASE)
_GIGABYTES = {"M": 1 / 8000, "G": 1 / 8, "T": 1000 / 8}
#: NX-OS's letters for capabilities.
_LETTERS = {"B": "Bridge", "R": "Router", "T": "Telephone", "W": "Wlan", "P": "Repeater",
            "C": "Docsis", "S": "Station"}  # fmt: skip


class Neighbour(NamedTuple):
    """A device seen by another, and the kind that it announces; None if it announces none."""

    interface: str
    name: str
    port: str
    announced: set[str] | None
    gbs: float

    @property
    def forwards(self) -> bool:
        """Whether it announces itself as a bridge or router."""
        return bool((self.announced or set()) & FORWARDING)


def is_device(body: Any) -> bool:
    """Tell whether an object lists one device's neighbours."""
    return isinstance(body, dict) and any(is_shape(body) for is_shape, _ in _SHAPES)


def read_neighbours(body: dict[str, Any]) -> Iterator[Neighbour]:
    """Yield the neighbours of one device."""
    return next(read for is_shape, read in _SHAPES if is_shape(body))(body)


# --- lldpcli ---------------------------------------------------------------------------------


def _is_lldpcli(body: dict[str, Any]) -> bool:
    return "lldp" in body and not _is_interface(body)


def _read_lldpcli(body: dict[str, Any]) -> Iterator[Neighbour]:
    for part in _as_list(body["lldp"]):
        for interface, cell in _named_objects(part.get("interface"), "chassis"):
            [(name, chassis)] = list(_named_objects(cell["chassis"], "id"))[:1]
            port = _as_list(cell["port"])[0]
            named = [_plain_text(x) for x in _as_list(port["id"]) if x.get("type") == "ifname"]
            words = _as_list(chassis.get("capability"))
            enabled = {str(word.get("type")) for word in words if _is_on(word.get("enabled"))}
            yield Neighbour(
                interface,
                name,
                next(iter(named), "") or _plain_text(port.get("descr")) or _plain_text(port["id"]),
                enabled if words else None,
                _mau_bandwidth(port),
            )


def _is_on(value: Any) -> bool:
    return value is True or value == "on"


def _as_list(value: Any) -> list[Any]:
    """Return a value as a list, whether it was one or a single value."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _named_objects(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Yield objects with their names; json0 keeps names inside, under `key`."""
    for item in _as_list(value):
        if key in item:
            yield _plain_text(item.get("name")), item
        else:
            yield from item.items()


def _plain_text(value: Any) -> str:
    """Return a text, whether plain, in ``value`` or ``data``, or in a list."""
    first = next(iter(_as_list(value)), "")
    word = first.get("value", first.get("data", "")) if isinstance(first, dict) else first
    if not isinstance(word, str):
        raise TypeError(f"{word!r} is not a word")
    return word


def _mau_bandwidth(port: dict[str, Any]) -> float:
    """Return GB/s per direction for an operational MAU type (``100GbaseCR4 - …``); NaN for none."""
    for negotiated in _as_list(port.get("auto-negotiation")):
        rate = _RATE.match(_plain_text(negotiated.get("current")))
        if rate and len(rate[1]) < 7:
            return int(rate[1]) / (8 if rate[2] else 8000)
    return math.nan


# --- NVUE: nv show interface lldp -o json ----------------------------------------------------


def _is_interface(value: Any) -> bool:
    """Tell whether an object is an interface of NVUE, with its neighbours."""
    lldp = value.get("lldp") if isinstance(value, dict) else None
    return isinstance(lldp, dict) and "neighbor" in lldp


def _is_nvue(body: dict[str, Any]) -> bool:
    return any(map(_is_interface, body.values()))


def _read_nvue(body: dict[str, Any]) -> Iterator[Neighbour]:
    for interface, cell in body.items():
        rate = _speed((cell.get("link") or {}).get("speed"))
        for name, seen in ((cell.get("lldp") or {}).get("neighbor") or {}).items():
            chassis, port = seen.get("chassis") or {}, seen.get("port") or {}
            words = chassis.get("capability") or {}
            enabled = {word.removeprefix("is-").title() for word in words if _is_on(words[word])}
            where = port.get("name") or port.get("description") or port.get("port-id") or ""
            known = chassis.get("system-name") or name
            yield Neighbour(interface, known, str(where), enabled if words else None, rate)


def _speed(text: Any) -> float:
    """Return GB/s per direction for a speed such as ``100G``; NaN for none."""
    match = _SPEED.fullmatch(str(text))
    return float(match[1]) * _GIGABYTES[match[2].upper()] if match else math.nan


# --- Arista: show lldp neighbors | json ------------------------------------------------------


def _read_arista(body: dict[str, Any]) -> Iterator[Neighbour]:
    rows = body["lldpNeighbors"]
    if isinstance(rows, list):
        for row in rows:
            yield Neighbour(row["port"], row["neighborDevice"], row["neighborPort"], None, math.nan)
        return
    for interface, cell in rows.items():
        for seen in cell["lldpNeighborInfo"]:
            words = seen.get("systemCapabilities") or {}
            enabled = {_capital(word) for word in words if words[word] is True}
            about = seen.get("neighborInterfaceInfo") or {}
            port = about.get("interfaceId_v2") or str(about.get("interfaceId", "")).strip('"')
            name = seen.get("systemName") or ""
            yield Neighbour(interface, name, port, enabled if words else None, math.nan)


def _capital(word: str) -> str:
    """Return a capability under lldpcli's name: ``stationOnly`` is Station."""
    return word[:1].upper() + word[1:].removesuffix("Only")


# --- NX-OS: show lldp neighbors | json -------------------------------------------------------

_TABLES = {"TABLE_nbor": "ROW_nbor", "TABLE_nbor_detail": "ROW_nbor_detail"}


def _read_nxos(body: dict[str, Any]) -> Iterator[Neighbour]:
    for table, row_key in _TABLES.items():
        for row in _as_list((body.get(table) or {}).get(row_key)):
            letters = row.get("enabled_capability", row.get("capability"))
            announced = None
            if isinstance(letters, str) and "not advertised" not in letters:
                announced = {_LETTERS[letter] for letter in letters if letter in _LETTERS}
            name = row.get("sys_name") or row.get("chassis_id") or ""
            name = "" if name == "not advertised" else name
            yield Neighbour(row["l_port_id"], name, row["port_id"], announced, math.nan)


# --- Junos: show lldp neighbors | display json -----------------------------------------------

_JUNOS = "lldp-neighbors-information"


def _read_junos(body: dict[str, Any]) -> Iterator[Neighbour]:
    for part in _as_list(body[_JUNOS]):
        for row in _as_list(part.get("lldp-neighbor-information")):
            cells = (
                _plain_text(row.get(f"lldp-{a}", row.get(f"lldp-{b}")))
                for a, b in (
                    ("local-port-id", "local-interface"),
                    ("remote-system-name", "remote-system-name"),
                    ("remote-port-id", "remote-port-description"),
                )
            )
            interface, name, port = cells
            yield Neighbour(interface, name, port, None, math.nan)


_SHAPES: tuple[
    tuple[Callable[[dict[str, Any]], bool], Callable[[dict[str, Any]], Iterator[Neighbour]]], ...
] = (
    (lambda body: "lldpNeighbors" in body, _read_arista),
    (lambda body: bool(_TABLES.keys() & body.keys()), _read_nxos),
    (lambda body: _JUNOS in body, _read_junos),
    (_is_lldpcli, _read_lldpcli),
    (_is_nvue, _read_nvue),
)
