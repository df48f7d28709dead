# SPDX-License-Identifier: Apache-2.0
"""Write the JSON of HPE CSM's System Layout Service."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nidmap.placement.errors import UsageError, printable
from nidmap.placement.machine import Machine
from nidmap.placement.support.array_types import Ints, Ints32
from tests.writers import nodes

_XNAME = re.compile(r"x(\d{1,4})c([0-7])s(\d{1,3})b(\d{1,3})n(\d{1,3})", re.ASCII)
_PORTS = 16  # NICs that a switch of an EX chassis serves


def write(machine: Machine) -> str:
    """Return the machine's nodes and switches as SLS lists its hardware.

    Parameters
    ----------
    machine : Machine
        With xnames. Switches are written where the machine has other ones
        than one for every sixteen NICs of a chassis.

    Returns
    -------
    str
        JSON, one piece of hardware a line.

    Raises
    ------
    UsageError
        Where a node has no xname, or is down or promised: SLS lists what is
        there, not in what state it is.
    """
    places = _places(machine)
    nodes.refuse_states(machine, "sls")
    lines = [*_nodes(machine), *_switches(machine, places)]
    return '{"Hardware": {\n' + ",\n".join(lines) + '\n},\n"Networks": {}}\n'


def _places(machine: Machine) -> Ints:
    """Return cabinet, chassis, slot, board and node of every xname."""
    found = [_XNAME.fullmatch(name) for name in machine.cname.tolist()]
    if not all(found):
        row = next(i for i, match in enumerate(found) if not match)
        named = machine.cname[row]
        what = f"is called {printable(str(named))}" if named else "has no xname"
        raise UsageError(f"sls lists nodes by xname, but {machine.names[row]} {what}")
    return np.array([[int(g) for g in match.groups()] for match in found if match])


def _nodes(machine: Machine) -> Iterator[str]:
    mountain = machine.topology.fabric == "slingshot"
    columns = (machine.cname, machine.names, machine.nid, machine.role)
    for xname, name, nid, role in zip(*(column.tolist() for column in columns), strict=True):
        extra: dict[str, Any] = {"NID": nid} if nid >= 0 else {}
        extra["Role"] = "Compute" if role == "compute" else "Application"
        extra |= {"Aliases": [name]} if name != xname else {}
        yield _entry(xname, xname.rpartition("n")[0], ("node", "Node"), mountain, extra)


def _entry(
    xname: str, parent: str, kind: tuple[str, str], mountain: bool, extra: dict[str, Any]
) -> str:
    entry = {"Parent": parent, "Xname": xname, "Type": f"comptype_{kind[0]}"}
    entry |= {"Class": "Mountain" if mountain else "River", "TypeString": kind[1]}
    return f"{json.dumps(xname)}: {json.dumps({**entry, 'ExtraProperties': extra})}"


def _switches(machine: Machine, places: Ints) -> Iterator[str]:
    """Yield the switches, none where they are what a reader assumes anyway."""
    for (cabinet, chassis), count in sorted(_counts(machine, places).items()):
        for slot in range(count):
            module = f"x{cabinet}c{chassis}r{slot}"
            yield _entry(f"{module}b0", module, ("rtr_bmc", "RouterBMC"), True, {})


def _counts(machine: Machine, places: Ints) -> dict[tuple[int, int], int]:
    """Return the switches of each chassis, {} where they are one for sixteen NICs.

    A chassis' nodes divide evenly over its switches, in order, so that its
    first node sits on its first switch; chassis without nodes take what is
    left between two that have some.
    """
    topology = machine.topology
    if topology.kind != "dragonfly" or topology.levels[1] != "switch":
        return {}
    sizes = topology.parameters.get("switches") or (topology.extents[1],) * topology.extents[0]
    nics = int(topology.parameters.get("nics", 1))
    counts: dict[tuple[int, int], int] = {}
    assumed: dict[tuple[int, int], int] = {}
    for group in range(topology.extents[0]):
        rows = np.flatnonzero(machine.coords[:, 0] == group)
        if len(rows):
            some = _of_group(machine.coords[rows, 1], places[rows], int(sizes[group]))
            counts |= some
            keys = [(int(c), int(h)) for c, h in places[rows, :2]]
            assumed |= {key: -(-keys.count(key) * nics // _PORTS) for key in set(keys)}
    return {} if counts == assumed else counts


def _of_group(switch: Ints32, places: Ints, size: int) -> dict[tuple[int, int], int]:
    """Return the switches of each chassis of one group."""
    key = places[:, 0] * 8 + places[:, 1]
    chassis = np.unique(key)
    first = [int(switch[key == c].min()) for c in chassis]
    counts: dict[tuple[int, int], int] = {}
    if first[0] > 0:
        _fill(counts, range(int(chassis[0]) // 8 * 8, int(chassis[0])), first[0])
    for i, one in enumerate(chassis.tolist()):
        end = first[i + 1] if i + 1 < len(first) else size
        own = switch[key == one] - first[i]
        order = np.lexsort(places[key == one].T[::-1])
        count = _fitting(own[order], max(end - first[i], 1))
        counts[divmod(one, 8)] = count
        after = range(one + 1, int(chassis[i + 1]) if i + 1 < len(first) else one // 8 * 8 + 8)
        _fill(counts, [c for c in after if c // 8 == one // 8], end - first[i] - count)
    return counts


def _fitting(own: Ints32, most: int) -> int:
    """Return the most switches that, evenly divided, put each node where it is."""
    rank = np.arange(len(own))
    for count in range(most, int(own.max()), -1):
        if (rank * count // len(own) == own).all():
            return count
    return most


def _fill(counts: dict[tuple[int, int], int], free: Sequence[int], left: int) -> None:
    """Give what is left to the first free chassis."""
    if left > 0 and len(free):
        counts[divmod(free[0], 8)] = left
