"""Fat trees as ibnetdiscover finds them: hosts on leaf switches, layers above.

A leaf is a switch with hosts on it; a switch's level counts from the leaves.
Where every cable goes from one level to the next it is a fat tree, whose
switches of level k and below fall into parts (pods) that are coordinates;
where not, it is a graph of switches, and only the switch of a node counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import ParseError, printable
from placement.geometry.listed import wiring_of
from placement.geometry.network import Network
from placement.geometry.switches import seats
from placement.machine import Topology
from placement.support.arrays import components, find
from placement.topologies.bundles import bundle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placement.dumps.tables import Table
    from placement.machine import Links
    from placement.records import Dump
    from placement.support.array_types import Floats, Ints, Mask, Strs

    _Columns = tuple[Strs, Ints, Strs, Ints, Mask, Floats]

__all__ = ["locate"]

#: A host with more cables than this is a mistake in the list.
MOST_CABLES = 64


@dataclass(frozen=True, slots=True, eq=False)
class _Cables:
    """Every cable once.

    Attributes
    ----------
    names : str (s,)
        Switches, sorted.
    a, b : int64 (m,)
        Switches at the ends of cables between switches.
    gbs : float64 (m,)
    host : str (h,)
        Host of each host cable.
    at : int64 (h,)
        Its switch.
    host_gbs : float64 (h,)
    """

    names: Strs
    a: Ints
    b: Ints
    gbs: Floats
    host: Strs
    at: Ints
    host_gbs: Floats


def locate(table: Table, dumps: Sequence[Dump], given: Topology | None) -> Network:
    """Return the places of hosts on the switches of an InfiniBand fabric.

    Parameters
    ----------
    table : Table
        Hosts by name, in their final order.
    dumps : sequence of Dump
        Of fabric ``infiniband``, with links.
    given : Topology or None
        A site's, for its bandwidths.

    Returns
    -------
    Network
        Kind ``fattree`` with levels ``…, level2, leaf, node``, or ``tree``
        with ``level1, node`` where the cables make no layers.
    """
    cables = _cables(dumps)
    cabled = _attachments(table, cables)
    level = _levels(cables, np.unique(cables.at))
    layered = bool((np.abs(level[cables.a] - level[cables.b]) == 1).all())
    network = _network(cables, cabled, level, layered, _figures(cables, level, given))
    return replace(network, topology=replace(network.topology, wiring=wiring_of(dumps)))


def _cables(dumps: Sequence[Dump]) -> _Cables:
    """Return each cable once, whichever of its ends are printed."""
    names = np.unique(np.concatenate([d.routers for d in dumps if d.routers is not None]))
    rows = [_ends(d) for d in dumps]
    a, a_port, b, b_port, host, gbs = (np.concatenate([r[i] for r in rows]) for i in range(6))
    swap = host | (~host & ((b < a) | ((b == a) & (b_port < a_port))))
    low, high = np.where(swap, b, a), np.where(swap, a, b)
    port = np.where(swap, b_port, a_port)
    key = np.searchsorted(np.unique(low), low) * 2**20 + port
    once = np.sort(np.unique(key, return_index=True)[1])
    low, high, host, gbs = low[once], high[once], host[once], gbs[once]
    at = np.searchsorted(names, low)
    inner = ~host
    return _Cables(
        names=names,
        a=at[inner],
        b=np.searchsorted(names, high[inner]),
        gbs=gbs[inner],
        host=high[host],
        at=at[host],
        host_gbs=gbs[host],
    )


def _ends(dump: Dump) -> _Columns:
    """Return a, its port, b, its port, whether a is a host, and GB/s; hosts always in a."""
    links = dump.links
    assert links is not None
    assert links.host_a is not None
    assert links.host_b is not None
    turn = links.host_b
    gbs = links.bandwidth if links.bandwidth is not None else np.full(len(links), np.nan)
    return (
        np.where(turn, links.b, links.a),
        np.where(turn, links.b_port, links.a_port).astype(np.int64),
        np.where(turn, links.a, links.b),
        np.where(turn, links.a_port, links.b_port).astype(np.int64),
        links.host_a | links.host_b,
        gbs,
    )


def _attachments(table: Table, cables: _Cables) -> Ints:
    """Return int64 (n, k): the switches of each host, its first cable's first, -1 for none."""
    order = np.argsort(cables.host, kind="stable")
    hosts, start, count = np.unique(cables.host[order], return_index=True, return_counts=True)
    if count.max(initial=0) > MOST_CABLES:
        name = printable(str(hosts[np.argmax(count)]))
        raise ParseError(table.sources[0], 0, f"{name} has {count.max()} cables")
    place = find(hosts, table["name"])
    if (place < 0).any():
        row = int(np.argmax(place < 0))
        hint = "every node of a fabric hangs on a switch"
        raise table.error(row, f"{table.called(row)} has no cable in the fabric", hint)
    k = np.arange(int(count.max(initial=1)))
    index = np.minimum(start[place][:, None] + k, len(order) - 1)
    out = np.where(k < count[place][:, None], cables.at[order[index]], -1)
    first = np.searchsorted(cables.names, table["router"])
    return _first_in_front(out, first)


def _first_in_front(out: Ints, first: Ints) -> Ints:
    """Exchange each row's first entry for the one that the dump names as the node's switch."""
    where = np.argmax(out == first[:, None], axis=1)
    rows = np.arange(len(out))
    known = out[rows, where] == first
    out[rows[known], where[known]] = out[rows[known], 0]
    out[rows[known], 0] = first[known]
    return out


def _levels(cables: _Cables, leaves: Ints) -> Ints:
    """Return each switch's level: 1 at a leaf, else one more than the lowest neighbour's.

    A switch that no cable joins to the leaves stands at level 2.
    """
    level = np.zeros(len(cables.names), dtype=np.int64)
    level[leaves] = 1
    a = np.concatenate([cables.a, cables.b])
    b = np.concatenate([cables.b, cables.a])
    for step in range(1, len(level) + 1):
        new = b[(level[a] == step) & (level[b] == 0)]
        if not len(new):
            break
        level[new] = step + 1
    level[level == 0] = 2
    return level


def _parts(cables: _Cables, level: Ints) -> list[Ints]:
    """Return, for each level below the top, which part of the fabric up to it a switch is in."""
    top = int(level.max(initial=1))
    found = [np.arange(len(level))]
    for k in range(2, top):
        inside = np.maximum(level[cables.a], level[cables.b]) <= k
        found.append(components(len(level), cables.a[inside], cables.b[inside]))
    return found


def _network(
    cables: _Cables, cabled: Ints, level: Ints, layered: bool, figures: dict[str, float]
) -> Network:
    """Put coordinates, routers and links together."""
    parts = _parts(cables, level) if layered else [np.arange(len(level))]
    leaf = cabled[:, 0]
    first = np.full(len(level), len(leaf), dtype=np.int64)
    np.minimum.at(first, leaf, np.arange(len(leaf)))
    found = seats(leaf, level - 1, parts, first)
    joined = np.unique(np.concatenate([cables.a, cables.b]))
    spines = int((level[joined] == level.max()).sum()) if len(joined) else 0
    names = [*(f"level{k}" for k in range(len(parts), 1, -1)), "leaf"] if layered else ["level1"]
    topology = Topology(
        kind="fattree" if layered else "tree",
        levels=(*names, "node"),
        extents=tuple(int(v) + 1 for v in found.coords.max(axis=0, initial=0)),
        router_levels=len(parts),
        fabric="infiniband",
        bandwidth=figures,
        parameters={"spines": spines} if layered else {"dist": (1, 2)},
    )
    return Network(
        topology=topology,
        coords=found.coords,
        router=np.where(cabled >= 0, found.rank[cabled], -1).astype(np.int32),
        router_coords=found.switches,
        router_names=cables.names[found.order],
        links=_links(cables, found.rank, level, layered),
        notes=_remarks(cables, layered),
    )


def _links(cables: _Cables, rank: Ints, level: Ints, layered: bool) -> Links:
    """Return the cables between switches; class ``up<k>`` starts at level k."""
    lower = np.minimum(level[cables.a], level[cables.b])
    top = max(1, int(level.max(initial=1)) - 1)
    kinds = tuple(f"up{k}" for k in range(1, top + 1)) if layered else ("ib",)
    kind = lower - 1 if layered else np.zeros_like(lower)
    one = np.ones(len(kind), dtype=np.int64)
    return bundle(rank[cables.a], rank[cables.b], kind.astype(np.int8), kinds, one, cables.gbs)


def _figures(cables: _Cables, level: Ints, given: Topology | None) -> dict[str, float]:
    """Return the site's bandwidths, else the most common rate of the cables of each level."""
    if given is not None and given.bandwidth:
        return dict(given.bandwidth)
    lower = np.minimum(level[cables.a], level[cables.b])
    rates = {"up0": cables.host_gbs}
    rates |= {f"up{k}": cables.gbs[lower == k] for k in np.unique(lower).tolist()}
    return {name: common for name, gbs in rates.items() if (common := _most_common(gbs)) > 0}


def _most_common(gbs: Floats) -> float:
    values, counts = np.unique(gbs[~np.isnan(gbs)], return_counts=True)
    return float(values[np.argmax(counts)]) if len(values) else 0.0


def _remarks(cables: _Cables, layered: bool) -> tuple[str, ...]:
    if not layered:
        return ("the switches are no fat tree: only a node's own switch is a coordinate",)
    count = len(cables.names)
    parts = len(np.unique(components(count, cables.a, cables.b)))
    if parts == 1:
        return ()
    return (f"the fabric listed falls into {parts} parts that no cable joins",)
