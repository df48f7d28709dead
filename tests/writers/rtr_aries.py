# SPDX-License-Identifier: Apache-2.0
"""Write ``rtr --interconnect`` of an XC: 48 tiles a router."""

from __future__ import annotations

import numpy as np

from nidmap.placement.machine import Machine
from tests.writers.rtr import deal, network_of

_COLOURS = ("green", "black", "blue")
_NETWORK = 40  # tiles l00 to l47; l50 to l57 lead to the nodes
_TILES = 48


def write(machine: Machine) -> str:
    """Return the links of a machine as ``rtr --interconnect`` prints them.

    Parameters
    ----------
    machine : Machine
        A Cray XC with a link list of its own. Its nodes are not in the
        format. Tiles are dealt in the order green, black, blue, and by the
        router at the other end.

    Returns
    -------
    str

    Raises
    ------
    UsageError
        Where it is another machine, no dump lists its links, or a router has
        more than 40.
    """
    routers, coords, links = network_of(machine, "aries", _COLOURS, _NETWORK)
    colour = np.array([_COLOURS.index(kind) for kind in links.kinds], dtype=np.int64)
    row = np.repeat(np.arange(len(links)), links.count)
    a, b = links.a[row].astype(np.int64), links.b[row].astype(np.int64)
    kind = colour[links.kind[row]]
    tile_a, tile_b = deal(a, b, kind, kind)
    places = [f"({g}:{c}:{s})" for g, c, s in coords.tolist()]
    names = [
        f"{name}l{tile:02o}{place}"
        for name, place in zip(routers, places, strict=True)
        for tile in range(_TILES)
    ]
    unused = ["blue -> unused"] * _NETWORK + ["ptile -> processor"] * (_TILES - _NETWORK)
    sees = unused * len(routers)
    ends = zip((a * _TILES + tile_a).tolist(), (b * _TILES + tile_b).tolist(), strict=True)
    for (here, there), k in zip(ends, kind.tolist(), strict=True):
        sees[here] = f"{_COLOURS[k]} -> {names[there]}"
        sees[there] = f"{_COLOURS[k]} -> {names[here]}"
    rows = (f"{name} {what}" for name, what in zip(names, sees, strict=True))
    return "\n".join((*rows, ""))
