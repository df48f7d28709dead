# SPDX-License-Identifier: Apache-2.0
"""Routers and links of a machine, from its dump or by a named rule.

One module a kind of network says how routers are joined and what they are
called (``router_coords``, ``router_names``, ``links`` and ``wiring_text`` of a
machine); this one answers for any machine and remembers the answer, and has what
all of them count and bundle with. Routers are numbered in the order of their
coordinates (on a torus x fastest), switches above the leaves after all leaves, so
that an index means the same thing in `Machine.router`, in `Links` and here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nidmap.placement.errors import ParseError, UsageError
from nidmap.placement.machine import LISTED, Links, Machine, once
from nidmap.placement.support.array_types import Floats, Ints, Strs

#: The module that knows each kind of network; a tree is a fat tree with one parent everywhere.
_MODULES = {
    "dragonfly": "dragonfly",
    "dragonfly+": "dragonfly_plus",
    "torus": "torus",
    "fattree": "fattree",
    "tree": "fattree",
}


@once
def links(machine: Machine) -> Links:
    """Return the links between routers, as listed in a dump or else by the wiring rule.

    One row per bundle of parallel links, each pair of routers once per class.
    """
    if machine.links is not None:
        return machine.links
    bundles: Links = _kind_module(machine).links(machine)
    return bundles


@once
def router_coords(machine: Machine) -> NDArray[np.int32]:
    """Return the coordinates of all routers.

    Returns (r, topology.router_levels): -1 where a switch above the leaves has no coordinate.
    """
    if machine.router_coords is not None:
        return machine.router_coords
    coords: NDArray[np.int32] = _kind_module(machine).router_coords(machine)
    return coords


def router_count(machine: Machine) -> int:
    """Return how many routers (or switches) the machine has."""
    return len(router_coords(machine))


@once
def router_names(machine: Machine) -> Strs:
    """Return the names of all routers, from the dump or else from the coordinates."""
    if len(machine.router_names):
        return machine.router_names
    names: Strs = _kind_module(machine).router_names(machine)
    return names


@once
def wiring_text(machine: Machine) -> str:
    """Describe how the routers are connected, for display."""
    if machine.topology.wiring.startswith(LISTED):
        return machine.topology.wiring
    text: str = _kind_module(machine).wiring_text(machine)
    return text


def _kind_module(machine: Machine) -> Any:
    """Return the module for a machine's kind of network."""
    kind = machine.topology.kind
    if kind not in _MODULES:
        raise UsageError(f"unknown kind of network {kind!r}", f"choose from {', '.join(_MODULES)}")
    return import_module(f"nidmap.placement.topologies.{_MODULES[kind]}")


# --- router positions as numbers: coordinates to indices and back -----------------------

#: A torus with more positions than this is a mistake.
MAX_ROUTERS = 4_194_304


def number_coords(
    coords: NDArray[np.int32], extents: Sequence[int], first_fastest: bool = False
) -> Ints:
    """Return the index of each coordinate row in a full box.

    `coords` (n, d). `first_fastest`: True on a torus (x fastest), False row-major (last fastest).
    """
    order = range(len(extents) - 1, -1, -1) if first_fastest else range(len(extents))
    total = np.zeros(len(coords), dtype=np.int64)
    for axis in order:
        total = total * extents[axis] + coords[:, axis]
    return total


def box_coords(extents: Sequence[int], first_fastest: bool = False) -> NDArray[np.int32]:
    """Return the coordinates of every position in a box, in the order of `number_coords`."""
    sizes = tuple(extents)[::-1] if first_fastest else tuple(extents)
    rows = np.indices(sizes, dtype=np.int32).reshape(len(sizes), -1)
    return np.ascontiguousarray((rows[::-1] if first_fastest else rows).T)


def refuse_huge(extents: Sequence[int], source: str) -> None:
    """Raise ParseError if a dump's coordinates span more routers than any machine has.

    A torus has a router at every position, so one absurd coordinate would
    make it enormous.
    """
    if math.prod(extents) > MAX_ROUTERS:
        size = "x".join(map(str, extents))
        text = f"its coordinates span a torus of {size}, more than {MAX_ROUTERS} routers"
        raise ParseError(source, 0, text, "is a coordinate mistyped?")


def coords_from_nodes(machine: Machine) -> NDArray[np.int32] | None:
    """Return the router coordinates that the nodes imply; None if some are missing."""
    first = machine.router[:, 0]
    count = int(machine.router.max(initial=-1)) + 1
    out = np.full((count, machine.topology.router_levels), -1, dtype=np.int32)
    known = first >= 0
    out[first[known]] = machine.coords[known, : machine.topology.router_levels]
    return None if (out < 0).any() else out


# --- from single links to `Links`: parallel ones counted, ends in order -------------------

#: More rows than this are refused: a spec's typing error must not eat the memory.
MAX_LINKS = 20_000_000


def refuse_many(count: float, what: str) -> None:
    """Raise UsageError if `count` links would be too many to list."""
    if count > MAX_LINKS:
        raise UsageError(
            f"{what} would have {count:.0f} links", f"at most {MAX_LINKS} can be listed"
        )


def all_pairs(count: int) -> tuple[Ints, Ints]:
    """Return all pairs (i, j), i < j, of `count` items."""
    refuse_many(count * (count - 1) / 2, f"a clique of {count}")
    return np.triu_indices(count, 1)


def bundle_links(
    a: Ints, b: Ints, kind: NDArray[np.int8], kinds: Sequence[str], count: Ints, bandwidth: Floats
) -> Links:
    """Merge parallel links: one row per router pair and class, sorted by class, a, b.

    Where the links of a row are not equally fast each one's rate is kept.

    `a`, `b` (m,): router indices in any order, one row a link or a bundle. `kind` (m,): index
    into `kinds`. `count` (m,): parallel links in the row. `bandwidth` (m,): GB/s per direction of
    the whole row; NaN where unknown (a bundle with an unknown link is unknown).
    """
    low, high = np.minimum(a, b), np.maximum(a, b)
    span = int(high.max(initial=0)) + 1
    key = (kind.astype(np.int64) * span + low) * span + high
    unique, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    size = len(unique)
    rate = bandwidth / np.maximum(count, 1)
    usual = rate[first][inverse]
    alike = (rate == usual) | (np.isnan(rate) & np.isnan(usual))
    order = np.argsort(inverse, kind="stable")
    return Links(
        a=low[first].astype(np.int32),
        b=high[first].astype(np.int32),
        kind=kind[first].astype(np.int8),
        kinds=tuple(kinds),
        count=np.bincount(inverse, count, size).astype(np.int32),
        bandwidth=np.bincount(inverse, bandwidth, size).astype(np.float64),
        cable=None if alike.all() else np.repeat(rate[order], count[order]),
    )
