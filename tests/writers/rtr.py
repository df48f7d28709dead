# SPDX-License-Identifier: Apache-2.0
"""Tiles for the links of a machine: what the writers of link lists share.

A machine knows bundles (how many links two routers have), not tiles. Tiles
are dealt here in a fixed order, so that the same machine always gives the
same list, and a list that is read back gives the same bundles.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from nidmap.placement.errors import UsageError, printable
from nidmap.placement.machine import Links, Machine
from nidmap.placement.support.array_types import Ints, Ints32
from nidmap.placement.support.arrays import rank_within
from nidmap.placement.topologies import router_coords, router_names
from tests.writers.nodes import kind_of


def network_of(
    machine: Machine, fabric: str, kinds: Sequence[str], tiles: int
) -> tuple[list[str], Ints32, Links]:
    """Return the routers of a Cray and their links, as far as a link list can name them.

    Parameters
    ----------
    machine : Machine
    fabric : str
        ``aries`` or ``gemini``.
    kinds : sequence of str
        The classes of links that the format knows.
    tiles : int
        Network tiles a router.

    Returns
    -------
    names : list of str
        cnames of the routers.
    coords : int32 (r, 3)
    links : Links
        The machine's own.

    Raises
    ------
    UsageError
        Where the machine is of another kind, its routers have no cnames or coordinates, it
        has no links of its own, or the format cannot express them.
    """
    name = f"rtr-{fabric}"
    if machine.topology.fabric != fabric:
        raise UsageError(f"{name} is for {fabric} machines; this is {kind_of(machine)}")
    names = router_names(machine).tolist()
    form = re.compile(rf"c[0-9]+-[0-9]+c[0-2]s[0-9]+{'a0' if fabric == 'aries' else 'g[01]'}")
    for router in names:
        if not form.fullmatch(router):
            shown = printable(router, 40)
            raise UsageError(f"{name} needs the cnames of routers, but one is called {shown}")
    coords = router_coords(machine)
    if (coords < 0).any():
        unknown = names[int(coords.min(1).argmin())]
        raise UsageError(f"{name} needs the coordinates of {unknown}")
    links = machine.links
    if links is None:
        hint = "add a link list: -m DUMP -m LIST"
        raise UsageError(f"{name} needs links, and no dump lists this machine's", hint)
    other = sorted(set(links.kinds) - set(kinds))
    if other:
        raise UsageError(f"{name} has no links of class {', '.join(other)}")
    used = np.bincount(np.concatenate((links.a, links.b)), np.tile(links.count, 2))
    if used.max(initial=0) > tiles:
        most = f"{int(used.max())} links, it can have {tiles}"
        raise UsageError(f"{name}: router {int(used.argmax())} has {most}")
    return names, coords, links


def deal(a: Ints, b: Ints, sort: Ints, back: Ints) -> Ints:
    """Deal tiles to both ends of links.

    Parameters
    ----------
    a, b : int (m,)
        Routers.
    sort : int (m,)
        Links of a router get their tiles by this first, then by the other
        router; seen from `a`.
    back : int (m,)
        The same seen from `b`.

    Returns
    -------
    int64 (2, m)
        Number of the tile, counted from 0 at each router, at `a` and at `b`.

    Examples
    --------
    >>> import numpy as np
    >>> deal(np.array([0, 0]), np.array([2, 1]), np.array([0, 0]), np.array([0, 0])).tolist()
    [[1, 0], [0, 0]]
    """
    router, other = np.concatenate((a, b)), np.concatenate((b, a))
    return rank_within(router, np.concatenate((sort, back)), other).reshape(2, -1)
