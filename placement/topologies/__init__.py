"""Routers and links of a machine: the dump's own, or by a named rule.

One module a kind of network says how routers are joined and what they are
called (``router_coords``, ``router_names``, ``links`` and ``wiring_text`` of a
machine); this one answers for any machine and remembers the answer. Routers
are numbered in the order of their coordinates (on a torus x fastest),
switches above the leaves after all leaves, so that an index means the same
thing in `Machine.router`, in `Links` and here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from placement.errors import UsageError
from placement.machine import LISTED, Links, Machine, once
from placement.support.array_types import Strs
from placement.support.lazy import lazy

__all__ = ["links", "router_coords", "router_count", "router_names", "wiring_text"]

#: The module that knows each kind of network; a tree is a fat tree with one parent everywhere.
_MODULES = {
    "dragonfly": "dragonfly",
    "dragonfly+": "dragonfly_plus",
    "torus": "torus",
    "fattree": "fattree",
    "tree": "fattree",
}
KINDS = {kind: lazy(f"placement.topologies.{name}") for kind, name in _MODULES.items()}


@once
def links(machine: Machine) -> Links:
    """Return the links between routers: as a dump lists them, else by the wiring rule.

    Parameters
    ----------
    machine : Machine

    Returns
    -------
    Links
        One row a bundle of parallel links, each pair of routers once a class.

    Raises
    ------
    UsageError
        Where the wiring rule is unknown or cannot be applied to this machine.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> found = links(parse_spec("torus:4x4,bw=5"))
    >>> len(found), found.kinds
    (32, ('x', 'y'))
    """
    if machine.links is not None:
        return machine.links
    bundles: Links = _kind_module(machine).links(machine)
    return bundles


@once
def router_coords(machine: Machine) -> NDArray[np.int32]:
    """Return the coordinates of all routers.

    Returns
    -------
    int32 (r, topology.router_levels)
        -1 where a switch above the leaves has no coordinate.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> router_coords(parse_spec("torus:2x2")).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
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
    """Return the names of all routers: the dump's own, else made from the coordinates.

    Returns
    -------
    str (r,)

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> router_names(parse_spec("fattree:leaf=2,leaves=2,spines=1")).tolist()
    ['leaf0', 'leaf1', 'spine0']
    """
    if len(machine.router_names):
        return machine.router_names
    names: Strs = _kind_module(machine).router_names(machine)
    return names


@once
def wiring_text(machine: Machine) -> str:
    """Say how the routers are joined, for the reader of an output.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> wiring_text(parse_spec("dragonfly:groups=2,chassis=1,blades=4,nodes=1,global=6"))
    'consecutive, 6 links a group pair'
    >>> wiring_text(parse_spec("torus:4x4"))
    'rings along x, y'
    """
    if machine.topology.wiring.startswith(LISTED):
        return machine.topology.wiring
    text: str = _kind_module(machine).wiring_text(machine)
    return text


def _kind_module(machine: Machine) -> Any:
    """Return the module that knows a machine's kind of network."""
    kind = machine.topology.kind
    if kind not in KINDS:
        raise UsageError(f"no network of kind {kind!r}", f"there are {', '.join(KINDS)}")
    return KINDS[kind]
