# SPDX-License-Identifier: Apache-2.0
"""Exports of a machine for other programs: graphs, tables, Slurm's own files.

A topology file says where nodes are, not in what state: nodes that are down
are written like others, and service nodes are on no switch that Slurm knows.
What is written reads back as the same switches.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from nidmap.placement.errors import UsageError
from nidmap.placement.machine import Machine, Switches
from nidmap.placement.nodelist import NodeList
from nidmap.placement.readers.slurm_switches import Declared
from nidmap.placement.support.array_types import Strs
from nidmap.placement.support.tables import csv_table, harmless_cell
from nidmap.placement.switch_tree import members, slurm_switches
from nidmap.placement.topologies import router_coords
from nidmap.placement.views import edge_data, edges, graph_routers, to_networkx, to_pandas

_WORDS = {"tree": "SwitchName", "block": "BlockName", "ring": "RingName"}


def topology_conf(machine: Machine) -> str:
    """Return the machine's switches as a ``topology.conf``.

    `machine`: with Slurm's own switches, or any other: then the tree is that of its coordinates
    (a leaf a blade, a leaf module or a Slingshot switch).
    """
    kind = "tree" if machine.switches is None else machine.switches.kind
    if kind not in _WORDS:
        raise UsageError(f"topology.conf cannot describe {kind}", "topology-yaml can")
    switches, rows = switch_rows(machine, "topology-conf")
    lines = []
    for row in rows:
        nodes = f" Nodes={row.nodes}" if row.nodes else ""
        children = f" Switches={row.children}" if row.children else ""
        lines.append(f"{_WORDS[kind]}={row.name}{nodes}{children}")
    if switches.block_sizes:
        lines.append("BlockSizes=" + ",".join(map(str, switches.block_sizes)))
    return "\n".join((*lines, ""))


def switch_rows(machine: Machine, name: str) -> tuple[Switches, list[Declared]]:
    """Return the switches that Slurm sees, in their order.

    `machine`: its own switches where it was read with some, else those that follow from its
    coordinates. `name`: format, for the message.
    """
    switches = slurm_switches(machine)
    if not switches.names:
        raise UsageError(f"{name} lists switches, but this machine has none that Slurm knows")
    children: list[list[str]] = [[] for _ in switches.names]
    for child, parent in zip(switches.names, switches.parent.tolist(), strict=True):
        if parent >= 0:
            children[parent].append(child)
    nodes = [fold_names(machine.names[rows]) for rows in members(switches)]
    folded = [NodeList(names).fold() for names in children]
    columns = (switches.names, nodes, folded, switches.level.tolist())
    return switches, [Declared(*row[:3], level=row[3]) for row in zip(*columns, strict=True)]


def fold_names(names: Strs) -> str:
    """Return node names as one folded list, in their order."""
    return NodeList(names.tolist()).fold()


#: For each kind: the keyword of its list, and that of an entry.
_LISTS = {"tree": ("switches", "switch"), "ring": ("rings", "ring"), "block": ("blocks", "block")}


def topology_yaml(machine: Machine) -> str:
    """Return the machine's switches as a ``topology.yaml``.

    `machine`: with Slurm's own switches, or any other: then a tree of its coordinates is written.
    One topology called ``nidmap``, the cluster's default.
    """
    kind = "tree" if machine.switches is None else machine.switches.kind
    lines = ["---", "- topology: nidmap", "  cluster_default: true"]
    if kind == "flat":
        return "\n".join((*lines, "  flat: true", ""))
    switches, rows = switch_rows(machine, "topology-yaml")
    lines += _list_switches(kind, switches, rows)
    return "\n".join((*lines, ""))


def _list_switches(kind: str, switches: Switches, rows: list[Declared]) -> Iterator[str]:
    """Yield the switches, blocks or rings."""
    below, word = _LISTS[kind]
    yield f"  {kind}:"
    if switches.block_sizes:
        yield "    block_sizes:"
        yield from (f"      - {size}" for size in switches.block_sizes)
    yield f"    {below}:"
    for row in rows:
        yield f"      - {word}: {_quote_value(row.name)}"
        if row.children:
            yield f"        children: {_quote_value(row.children)}"
        if row.nodes:
            yield f"        nodes: {_quote_value(row.nodes)}"


def _quote_value(text: str) -> str:
    """Quote a value that YAML would not read as this very text."""
    plain = text[:1].isalpha() and text.lower() not in ("null", "true", "false", "yes", "no")
    return text if plain and not set(text) & set(":#{}&*!|>'\"%@`") else f'"{text}"'


def write(machine: Machine, name: str) -> str:
    """Return a machine in one of the `FORMATS`.

    `name`: a key of `FORMATS`.
    """
    if name not in FORMATS:
        raise UsageError(f"unknown format {name!r}", f"choose from {', '.join(FORMATS)}")
    return FORMATS[name](machine)


def _join_lines(lines: Any) -> str:
    return "\n".join(lines) + "\n"


def _graph_text(machine: Machine, form: str) -> str:
    """Return the graph in a networkx format, omitting '' because some formats lack empty values."""
    import networkx

    graph = to_networkx(machine)
    for _, data in graph.nodes(data=True):
        for key in [k for k, v in data.items() if v == ""]:
            del data[key]
    return _join_lines(getattr(networkx, f"generate_{form}")(graph))


def _node_link(machine: Machine) -> str:
    import networkx

    data = networkx.node_link_data(to_networkx(machine), edges="edges")
    return json.dumps(data, indent=1) + "\n"


def _edge_list(machine: Machine) -> str:
    return _join_lines(
        # an edge list is split at blanks
        f"{'_'.join(a.split())} {'_'.join(b.split())} {json.dumps(edge_data(kind, count, gbs))}"
        for a, b, kind, count, gbs in edges(machine)
    )


def _csv_table(machine: Machine) -> str:
    stream = io.StringIO()
    to_pandas(machine).map(harmless_cell).to_csv(stream, lineterminator="\n")
    return stream.getvalue()


def _links_csv(machine: Machine) -> str:
    rows = ((*edge, gbs if math.isfinite(gbs) else "") for *edge, gbs in edges(machine))
    return csv_table([("a", "b", "class", "links", "gbs"), *rows])


def _routers_csv(machine: Machine) -> str:
    levels = machine.topology.levels[: machine.topology.router_levels]
    places = zip(graph_routers(machine), router_coords(machine).tolist(), strict=True)
    rows = ((name, k, *("" if x < 0 else x for x in at)) for k, (name, at) in enumerate(places))
    return csv_table([("router", "index", *levels), *rows])


#: Formats by name; the first one with a suffix is the one for ``-o FILE.suffix``.
FORMATS: dict[str, Callable[[Machine], str]] = {
    "graphml": partial(_graph_text, form="graphml"),
    "gexf": partial(_graph_text, form="gexf"),
    "gml": partial(_graph_text, form="gml"),
    "node-link": _node_link,
    "edgelist": _edge_list,
    "csv": _csv_table,
    "links-csv": _links_csv,
    "routers-csv": _routers_csv,
    "topology-conf": topology_conf,
    "topology-yaml": topology_yaml,
}
