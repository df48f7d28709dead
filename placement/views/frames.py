"""A machine as pandas table and as networkx graph, for users.

Hot paths never come here: they read the columns of `Machine` and the arrays
of `placement.topologies.links`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import printable
from placement.machine import Machine
from placement.support.lazy import lazy
from placement.topologies import links, router_coords, router_names, wiring_text

if TYPE_CHECKING:
    import networkx
    import pandas
else:
    networkx, pandas = lazy("networkx"), lazy("pandas")

__all__ = ["attachment_class", "injection", "to_networkx", "to_pandas"]

#: Columns of a node, in the order in which they are shown.
COLUMNS = (
    "nid", "cname", "role", "state", "mode", "sockets", "cores",
    "memory_mb", "nics", "gpus", "features", "planned",
)  # fmt: skip


def to_pandas(machine: Machine) -> pandas.DataFrame:
    """Return one row a node, the coordinates as columns by their level's name.

    Parameters
    ----------
    machine : Machine

    Returns
    -------
    pandas.DataFrame
        Indexed by node name; columns nid, cname, one a level (the last is
        called ``node``), role, state, mode, sockets, cores, memory_mb, nics,
        gpus, features, planned, free, router (the first one's name), and
        weight where Slurm's node weights are known.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> table = to_pandas(parse_spec("torus:2x2,nodes=2"))
    >>> print(*table.loc["nid00003", ["x", "y", "node", "router"]])
    1 0 1 x1y0
    """
    columns: dict[str, Any] = {"nid": machine.nid, "cname": machine.cname.astype(object)}
    for place, level in enumerate(machine.topology.levels):
        columns[level] = machine.coords[:, place]
    for name in COLUMNS[2:]:
        values = getattr(machine, name)
        columns[name] = values.astype(object) if values.dtype.kind == "U" else values
    columns["free"] = machine.free
    routers = np.append(router_names(machine), "").astype(object)  # behind the last: none, -1
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
    """Return GB/s a direction of one node-to-router link; NaN where unlimited or unknown.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> injection(parse_spec("fattree:leaf=2,leaves=2,spines=1,bw=3.5"))
    3.5
    """
    figures = machine.topology.bandwidth
    for name in (attachment_class(machine), "injection", "up"):
        if name in figures:
            return float(figures[name])
    return math.nan


def to_networkx(machine: Machine) -> networkx.Graph[str]:
    """Return nodes and routers as one undirected graph.

    Parameters
    ----------
    machine : Machine

    Returns
    -------
    networkx.Graph
        Nodes of the machine under their names with ``kind`` ``node`` and the
        columns of `to_pandas`; routers under theirs with ``kind`` ``router``,
        ``index`` and coordinates. Every edge has ``class`` (``green``, ``x``,
        ``injection`` …), ``count`` (parallel links) and ``bandwidth`` (GB/s a
        direction of all of them; left out where it is unknown or unlimited).
        A pair of routers that two classes join has the sums, and the classes
        with a ``+`` between. The graph itself says ``name``, ``topology``,
        ``wiring`` and ``site``.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> graph = to_networkx(parse_spec("torus:3x1,bw=5"))
    >>> graph.edges["x0y0", "x1y0"]
    {'class': 'x', 'count': 1, 'bandwidth': 5.0}
    """
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
    cable_class, cable_gbs = attachment_class(machine), injection(machine)
    for name, row in zip(machine.names.tolist(), machine.router.tolist(), strict=True):
        for router, count in sorted(Counter(r for r in row if r >= 0).items()):
            yield name, routers[router], cable_class, count, cable_gbs * count


def graph_routers(machine: Machine) -> list[str]:
    """Return the routers' names, ``router:`` before all where one is also a node's name.

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
    """Return the attributes of an edge; a bandwidth that is unknown or unlimited is left out."""
    known = {"bandwidth": bandwidth} if math.isfinite(bandwidth) else {}
    return {"class": kind, "count": count, **known}
