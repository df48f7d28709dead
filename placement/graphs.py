"""A machine in the file formats that other programs read: graphs and tables."""

from __future__ import annotations

import io
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import UsageError
from placement.topologies import links, router_coords
from placement.views import attachment_class, graph_routers, injection, to_networkx, to_pandas

if TYPE_CHECKING:
    from collections.abc import Callable

    import networkx

    from placement.machine import Machine

__all__ = ["FORMATS", "write"]


def write(machine: Machine, name: str) -> str | bytes:
    """Return a machine in a graph or table format.

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
    >>> print(write(parse_spec("torus:2x1,bw=5"), "edgelist"), end="")
    x0y0 x1y0 {"class": "x", "count": 2, "bandwidth": 10.0}
    nid00000 x0y0 {"class": "injection", "count": 1}
    nid00001 x1y0 {"class": "injection", "count": 1}
    """
    if name not in FORMATS:
        raise UsageError(f"no format {name!r}", f"there are {', '.join(FORMATS)}")
    return FORMATS[name](machine)


def _lines(lines: Any) -> str:
    return "\n".join(lines) + "\n"


def _graph(machine: Machine) -> networkx.Graph[str]:
    """Return the graph without attributes that are '': some formats cannot say nothing."""
    graph = to_networkx(machine)
    for _, data in graph.nodes(data=True):
        for key in [k for k, v in data.items() if v == ""]:
            del data[key]
    return graph


def _graphml(machine: Machine) -> str:
    import networkx as nx

    return _lines(nx.generate_graphml(_graph(machine)))


def _gexf(machine: Machine) -> str:
    import networkx as nx

    return _lines(nx.generate_gexf(_graph(machine)))


def _gml(machine: Machine) -> str:
    import networkx as nx

    return _lines(nx.generate_gml(_graph(machine)))


def _node_link(machine: Machine) -> str:
    import networkx as nx

    data = nx.node_link_data(to_networkx(machine), edges="edges")
    return json.dumps(data, indent=1) + "\n"


def _edges(machine: Machine) -> list[tuple[str, str, str, int, float]]:
    """Return every bundle and every attachment: both names, class, links, GB/s."""
    found = links(machine)
    routers = graph_routers(machine)
    rows = [
        (routers[a], routers[b], found.kinds[kind], count, gbs)
        for a, b, kind, count, gbs in zip(
            found.a.tolist(),
            found.b.tolist(),
            found.kind.tolist(),
            found.count.tolist(),
            found.bandwidth.tolist(),
            strict=True,
        )
    ]
    kind, one = attachment_class(machine), injection(machine)
    for name, row in zip(machine.names.tolist(), machine.router.tolist(), strict=True):
        values, counts = np.unique([r for r in row if r >= 0], return_counts=True)
        ends = zip(values.tolist(), counts.tolist(), strict=True)
        rows += [(name, routers[int(r)], kind, n, one * n) for r, n in ends]
    return rows


def _edge_list(machine: Machine) -> str:
    return _lines(
        f"{_word(a)} {_word(b)} " + json.dumps(_data(kind, count, gbs))
        for a, b, kind, count, gbs in _edges(machine)
    )


def _word(name: str) -> str:
    """Return a name without blanks: an edge list divides at them."""
    return "_".join(name.split())


def _data(kind: str, count: int, gbs: float) -> dict[str, Any]:
    known = {"bandwidth": gbs} if math.isfinite(gbs) else {}
    return {"class": kind, "count": count, **known}


def _csv(machine: Machine) -> str:
    stream = io.StringIO()
    to_pandas(machine).map(_unformula).to_csv(stream, lineterminator="\n")
    return stream.getvalue()


def _unformula(value: Any) -> Any:
    """Keep a spreadsheet from taking a text for a formula: others wrote it."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


def _links_csv(machine: Machine) -> str:
    import csv

    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["a", "b", "class", "links", "gbs"])
    for a, b, kind, count, gbs in _edges(machine):
        names = (_unformula(a), _unformula(b))
        writer.writerow([*names, kind, count, gbs if math.isfinite(gbs) else ""])
    return stream.getvalue()


def _routers_csv(machine: Machine) -> str:
    levels = machine.topology.levels[: machine.topology.router_levels]
    rows = [",".join(["router", "index", *levels])]
    for index, (name, row) in enumerate(
        zip(graph_routers(machine), router_coords(machine).tolist(), strict=True)
    ):
        shown = ["" if value < 0 else str(value) for value in row]
        quoted = f'"{name}"' if "," in name else name
        rows.append(",".join([str(_unformula(quoted)), str(index), *shown]))
    return _lines(rows)


def _parquet(machine: Machine) -> bytes:
    import pyarrow  # noqa: F401  # pandas would say less clearly that it is missing

    stream = io.BytesIO()
    to_pandas(machine).to_parquet(stream)
    return stream.getvalue()


#: Formats by name; the first of a suffix is what ``-o FILE.suffix`` takes.
FORMATS: dict[str, Callable[[Machine], str | bytes]] = {
    "graphml": _graphml,
    "gexf": _gexf,
    "gml": _gml,
    "node-link": _node_link,
    "edgelist": _edge_list,
    "csv": _csv,
    "links-csv": _links_csv,
    "routers-csv": _routers_csv,
    "parquet": _parquet,
}
