"""A machine in the file formats that other programs read: graphs, tables, Slurm's topology."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any

from placement.errors import UsageError
from placement.machine import Machine
from placement.support.lazy import lazy
from placement.support.tables import csv_table, harmless
from placement.topologies import router_coords
from placement.views import slurm_files
from placement.views.frames import edge_data, edges, graph_routers, to_networkx, to_pandas

__all__ = ["FORMATS", "write"]

networkx, pyarrow = lazy("networkx"), lazy("pyarrow")


def write(machine: Machine, name: str) -> str | bytes:
    """Return a machine in one of the `FORMATS`.

    Parameters
    ----------
    machine : Machine
    name : str
        A key of `FORMATS`.

    Returns
    -------
    str, or bytes for parquet

    Raises
    ------
    UsageError
        Where there is no such format, or it needs a package that is not
        installed.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> print(write(parse_spec("torus:2x1,bw=5,injection=10"), "edgelist"), end="")
    x0y0 x1y0 {"class": "x", "count": 2, "bandwidth": 10.0}
    nid00000 x0y0 {"class": "injection", "count": 1, "bandwidth": 10.0}
    nid00001 x1y0 {"class": "injection", "count": 1, "bandwidth": 10.0}
    """
    if name not in FORMATS:
        raise UsageError(f"no format {name!r}", f"there are {', '.join(FORMATS)}")
    return FORMATS[name](machine)


def _lines(lines: Any) -> str:
    return "\n".join(lines) + "\n"


def _graph(machine: Machine, form: str) -> str:
    """Return the graph in a format of networkx, '' left out: some formats cannot say nothing."""
    graph = to_networkx(machine)
    for _, data in graph.nodes(data=True):
        for key in [k for k, v in data.items() if v == ""]:
            del data[key]
    return _lines(getattr(networkx, f"generate_{form}")(graph))


def _node_link(machine: Machine) -> str:
    data = networkx.node_link_data(to_networkx(machine), edges="edges")
    return json.dumps(data, indent=1) + "\n"


def _edge_list(machine: Machine) -> str:
    return _lines(
        # an edge list divides at blanks
        f"{'_'.join(a.split())} {'_'.join(b.split())} {json.dumps(edge_data(kind, count, gbs))}"
        for a, b, kind, count, gbs in edges(machine)
    )


def _csv(machine: Machine) -> str:
    stream = io.StringIO()
    to_pandas(machine).map(harmless).to_csv(stream, lineterminator="\n")
    return stream.getvalue()


def _links_csv(machine: Machine) -> str:
    rows = ((*edge, gbs if math.isfinite(gbs) else "") for *edge, gbs in edges(machine))
    return csv_table([("a", "b", "class", "links", "gbs"), *rows])


def _routers_csv(machine: Machine) -> str:
    levels = machine.topology.levels[: machine.topology.router_levels]
    places = zip(graph_routers(machine), router_coords(machine).tolist(), strict=True)
    rows = ((name, k, *("" if x < 0 else x for x in at)) for k, (name, at) in enumerate(places))
    return csv_table([("router", "index", *levels), *rows])


def _parquet(machine: Machine) -> bytes:
    stream = io.BytesIO()
    _ = pyarrow.Table  # pandas would say less clearly that it is missing
    to_pandas(machine).to_parquet(stream)
    return stream.getvalue()


#: Formats by name; the first of a suffix is what ``-o FILE.suffix`` takes.
FORMATS: dict[str, Callable[[Machine], str | bytes]] = {
    "graphml": partial(_graph, form="graphml"),
    "gexf": partial(_graph, form="gexf"),
    "gml": partial(_graph, form="gml"),
    "node-link": _node_link,
    "edgelist": _edge_list,
    "csv": _csv,
    "links-csv": _links_csv,
    "routers-csv": _routers_csv,
    "parquet": _parquet,
    "topology-conf": slurm_files.topology_conf,
    "topology-yaml": slurm_files.topology_yaml,
}
