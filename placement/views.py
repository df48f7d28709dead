# SPDX-License-Identifier: Apache-2.0
"""Views of a machine: pandas table, networkx graph, the figures of ``machine show``.

Hot paths never come here: they read the columns of `Machine` and the arrays
of `nidmap.placement.topologies.links`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from nidmap.placement.errors import printable
from nidmap.placement.machine import Machine
from nidmap.placement.support.array_types import Floats
from nidmap.placement.topologies import (
    links,
    number_coords,
    router_coords,
    router_count,
    router_names,
    wiring_text,
)

if TYPE_CHECKING:
    import networkx
    import pandas

#: Columns of a node, in the order in which they are shown.
COLUMNS = (
    "nid", "cname", "role", "state", "mode", "sockets", "cores",
    "memory_mb", "nics", "gpus", "features", "planned",
)  # fmt: skip


def to_pandas(machine: Machine) -> pandas.DataFrame:
    """Return one row per node, the coordinates as columns named after their levels.

    Indexed by node name; columns nid, cname, one per level (the last is called ``node``), role,
    state, mode, sockets, cores, memory_mb, nics, gpus, features, planned, free, router (the first
    one's name), and weight where Slurm's node weights are known.
    """
    import pandas

    columns: dict[str, Any] = {"nid": machine.nid, "cname": machine.cname.astype(object)}
    for place, level in enumerate(machine.topology.levels):
        columns[level] = machine.coords[:, place]
    for name in COLUMNS[2:]:
        values = getattr(machine, name)
        columns[name] = values.astype(object) if values.dtype.kind == "U" else values
    columns["free"] = machine.free
    routers = np.append(router_names(machine), "").astype(object)  # after the last: none, -1
    columns["router"] = routers[machine.router[:, 0]]
    if machine.weight is not None:
        columns["weight"] = machine.weight
    index = pandas.Index(machine.names.astype(object), name="name")
    return pandas.DataFrame(columns, index=index)


def attachment_class(machine: Machine) -> str:
    """Return the class of the links between nodes and routers.

    ``injection`` (and ``ejection`` the other way) where a router's ports to
    nodes are a class of their own; ``up0`` (and ``down0``) in trees, where
    they are the lowest level of links.
    """
    return "up0" if machine.topology.kind in ("fattree", "tree") else "injection"


def injection(machine: Machine) -> float:
    """Return GB/s per direction of one node-to-router link; NaN if unlimited or unknown."""
    figures = machine.topology.bandwidth
    for name in (attachment_class(machine), "injection", "up"):
        if name in figures:
            return float(figures[name])
    return math.nan


def to_networkx(machine: Machine) -> networkx.Graph[str]:
    """Return nodes and routers as one undirected graph.

    Nodes of the machine under their names with ``kind`` ``node`` and the columns of `to_pandas`;
    routers under theirs with ``kind`` ``router``, ``index`` and coordinates. Every edge has
    ``class`` (``green``, ``x``, ``injection`` …), ``count`` (parallel links) and ``bandwidth``
    (GB/s per direction of all of them; left out where it is unknown or unlimited). A pair of
    routers that two classes join has the sums, and the classes with a ``+`` between. The graph
    itself says ``name``, ``topology``, ``wiring`` and ``site``.
    """
    import networkx

    topology = machine.topology
    graph: networkx.Graph[str] = networkx.Graph(
        name=printable(machine.name, 500),
        topology=topology.kind,
        wiring=printable(wiring_text(machine), 500),
        site=machine.site,
    )
    routers = graph_routers(machine)
    for index, (name, row) in enumerate(zip(routers, router_coords(machine).tolist(), strict=True)):
        # a switch above the leaves has fewer coordinates
        places = {w: x for w, x in zip(topology.levels, row, strict=False) if x >= 0}
        graph.add_node(name, kind="router", index=index, **places)
    graph.add_nodes_from(_node_rows(machine))
    for edge in edges(machine):
        _add_edge(graph, *edge)
    return graph


def edges(machine: Machine) -> Iterator[tuple[str, str, str, int, float]]:
    """Yield every bundle and every attachment: both names, class, links, GB/s."""
    bundles = links(machine)
    routers = graph_routers(machine)
    columns = (bundles.a, bundles.b, bundles.kind, bundles.count, bundles.bandwidth)
    for a, b, kind, count, gbs in zip(*(column.tolist() for column in columns), strict=True):
        yield routers[a], routers[b], bundles.kinds[kind], count, gbs
    cable_class = attachment_class(machine)
    rows = zip(machine.names.tolist(), machine.router.tolist(), attachment_rates(machine).tolist(),
               strict=True)  # fmt: skip
    for name, row, gbs in rows:
        cables: dict[int, list[float]] = {}
        for router, rate in zip(row, gbs, strict=True):
            cables.setdefault(router, []).append(rate)
        for router in sorted(cables.keys() - {-1}):
            rates = cables[router]
            yield name, routers[router], cable_class, len(rates), sum(rates)


def attachment_rates(machine: Machine) -> Floats:
    """Return GB/s per direction of each attachment, float64 (n, k); NaN: unlimited or unknown."""
    usual = np.full(machine.router.shape, injection(machine))
    stated = machine.attachment_gbs
    return usual if stated is None else np.where(np.isnan(stated), usual, stated)


def graph_routers(machine: Machine) -> list[str]:
    """Return the routers' names, all prefixed ``router:`` if one is also a node's name.

    An InfiniBand switch is called what others wrote into it: control
    characters are escaped.
    """
    names = [printable(name, 200) for name in router_names(machine).tolist()]
    if set(names) & set(machine.names.tolist()):
        return [f"router:{name}" for name in names]
    return names


def _node_rows(machine: Machine) -> Iterator[tuple[str, dict[str, Any]]]:
    columns = dict(zip(machine.topology.levels, machine.coords.T, strict=True))
    columns |= {name: getattr(machine, name) for name in COLUMNS}
    if machine.weight is not None:
        columns["weight"] = machine.weight
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    for name, row in zip(machine.names.tolist(), rows, strict=True):
        yield name, {"kind": "node", **dict(zip(columns, row, strict=True))}


def _add_edge(
    graph: networkx.Graph[str], a: str, b: str, kind: str, count: int, bandwidth: float
) -> None:
    old = graph.get_edge_data(a, b)
    if old is not None:
        kind = old["class"] if old["class"] == kind else f"{old['class']}+{kind}"
        count += old["count"]
        bandwidth += old.get("bandwidth", math.nan)
        graph.remove_edge(a, b)
    graph.add_edge(a, b, **edge_data(kind, count, bandwidth))


def edge_data(kind: str, count: int, bandwidth: float) -> dict[str, Any]:
    """Return an edge's attributes, leaving out unknown or unlimited bandwidth."""
    known = {"bandwidth": bandwidth} if math.isfinite(bandwidth) else {}
    return {"class": kind, "count": count, **known}


# --- what ``machine show`` prints ----------------------------------------------------------

#: A node's contents.
HARDWARE = ("sockets", "cores", "memory_mb", "nics", "gpus", "features")


def summarise(machine: Machine) -> dict[str, Any]:
    """Return the key figures of a machine.

    ``name``, ``kind``, ``fabric``, ``site``, ``scheduler``, ``sources``, ``wiring`` (in words),
    ``levels`` (each with its extent and how many are present), ``nodes`` (total, compute,
    service, free, and by role and state), ``count_holes`` (by level; empty where a level has no
    fixed size), ``routers``, ``links`` (by class), ``attachments`` (``most`` a node, on how many
    ``routers``, GB/s of the usual one, of the slowest and the fastest, of all), ``hardware``
    (kinds of compute node), ``inside`` (what is known of the inside of some, in words),
    ``switches`` and ``notes``.
    """
    topology = machine.topology
    return {
        "name": machine.name,
        "kind": topology.kind,
        "fabric": topology.fabric,
        "site": machine.site,
        "scheduler": machine.scheduler,
        "sources": list(machine.sources),
        "wiring": wiring_text(machine),
        "levels": _level_rows(machine),
        "nodes": _node_figures(machine),
        "holes": count_holes(machine),
        "routers": router_count(machine),
        "links": _link_rows(machine),
        "attachments": _attachment_figures(machine),
        "hardware": _hardware_rows(machine),
        "inside": [f"{inside.sentence()} ({inside.source})" for inside in machine.hardware],
        "switches": _switch_figures(machine),
        "notes": list(machine.notes),
    }


def _count_present(machine: Machine, depth: int) -> int:
    """Return how many distinct positions the nodes occupy in the first `depth` levels."""
    keys = number_coords(machine.coords[:, :depth], machine.topology.extents[:depth])
    return len(np.unique(keys, return_index=True)[0])


def _level_rows(machine: Machine) -> list[dict[str, Any]]:
    topology = machine.topology
    axes = topology.router_levels if topology.kind == "torus" else 0  # axes are not nested
    present = [
        len(np.unique(machine.coords[:, k])) if k < axes else _count_present(machine, k + 1)
        for k in range(len(topology.levels))
    ]
    names = ("level", "extent", "present")
    rows = zip(topology.levels, topology.extents, present, strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def count_holes(machine: Machine) -> dict[str, int]:
    """Count the empty positions at each level within the occupied units one level up.

    Only where every place could hold something: an XC's dragonfly and tori.
    """
    topology = machine.topology
    if topology.kind == "torus":
        routers = _count_present(machine, topology.router_levels)
        counts = {
            "router": math.prod(topology.extents[:-1]) - routers,
            "node": routers * topology.extents[-1] - len(machine),
        }
    elif topology.kind == "dragonfly" and topology.router_levels == 3:
        counts = {
            level: _count_present(machine, depth) * topology.extents[depth]
            - _count_present(machine, depth + 1)
            for depth, level in enumerate(topology.levels)
        }
    else:
        counts = {}
    return {level: count for level, count in counts.items() if count}


def _node_figures(machine: Machine) -> dict[str, Any]:
    roles = sorted(set(machine.role.tolist()))
    return {
        "total": len(machine),
        "compute": int(machine.compute.sum()),
        "service": int((machine.role == "service").sum()),
        "free": int(machine.free.sum()),
        "states": {
            role: dict(sorted(Counter(machine.state[machine.role == role].tolist()).items()))
            for role in roles
        },
    }


def _link_rows(machine: Machine) -> list[dict[str, Any]]:
    bundles = links(machine)
    rates, rows = bundles.rates(), []
    of_link = np.repeat(bundles.kind, bundles.count)
    for index, kind in enumerate(bundles.kinds):
        mine = bundles.kind == index
        count, gbs = bundles.count[mine], bundles.bandwidth[mine]
        link_gbs = rates[(of_link == index) & np.isfinite(rates)]
        rows.append(
            {
                "class": kind,
                "router_pairs": int(mine.sum()),
                "links": int(count.sum()),
                "gbs": [_round_figure(link_gbs.min()), _round_figure(link_gbs.max())]
                if len(link_gbs)
                else None,
                "gbs_total": _round_figure(gbs.sum()) if len(gbs) else None,
            }
        )
    return rows


def _round_figure(value: float) -> float | None:
    return round(float(value), 6) if math.isfinite(value) else None


def _attachment_figures(machine: Machine) -> dict[str, Any]:
    attached = machine.router >= 0
    rates = attachment_rates(machine)[attached]
    rates = rates[np.isfinite(rates)]
    return {
        "class": attachment_class(machine),
        "links": int(attached.sum()),
        "most": int(attached.sum(axis=1).max(initial=0)),
        "routers": len(np.unique(machine.router[attached])),
        "gbs": _round_figure(injection(machine)),
        "gbs_range": [_round_figure(rates.min()), _round_figure(rates.max())]
        if len(rates)
        else None,
        "gbs_total": _round_figure(rates.sum()) if len(rates) else None,
    }


def _hardware_rows(machine: Machine) -> list[dict[str, Any]]:
    """Return the kinds of compute node, most frequent first; [] if nothing is known."""
    columns = [getattr(machine, name)[machine.compute].tolist() for name in HARDWARE]
    kinds = sorted(
        Counter(zip(*columns, strict=True)).items(), key=lambda kind: (-kind[1], kind[0])
    )
    return [
        {"nodes": count, **dict(zip(HARDWARE, kind, strict=True))}
        for kind, count in kinds
        if any(kind)
    ]


def _switch_figures(machine: Machine) -> dict[str, Any] | None:
    tree = machine.switches
    if tree is None:
        return None
    return {
        "kind": tree.kind,
        "leaves": int((tree.level == 0).sum()),
        "levels": int(tree.level.max(initial=-1)) + 1,
        "roots": int((tree.parent < 0).sum()),
        "nodes_on_none": int((tree.leaf_of < 0).sum()),
        "block_sizes": list(tree.block_sizes),
    }
