"""Nodes for people: what is known of them now, and lists to take away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placement.errors import UsageError
from placement.lookup import nodes_of, rows_of
from placement.nodelist import NodeList

if TYPE_CHECKING:
    from placement.machine import Machine
    from web.requests import Emit
    from web.snapshot import Snapshot

__all__ = ["describe_nodes", "emit_nodes"]

#: Nodes that one answer describes.
MOST = 1000


def describe_nodes(machine: Machine, now: Snapshot, text: str) -> dict[str, Any]:
    """Return all that is known of some nodes.

    Raises
    ------
    ParseError
        A node that the machine does not have.
    UsageError
        More nodes than `MOST`.
    """
    _refuse_many(NodeList.length_of(text))
    rows = rows_of(machine, text, repeats=True)
    _refuse_many(len(rows))
    holders: dict[int, list[str]] = {}
    for job in now.jobs:
        for row in job.rows.tolist():
            holders.setdefault(row, []).append(job.id)
    return {"nodes": [_node(machine, now, holders, row) for row in rows.tolist()]}


def _refuse_many(count: int) -> None:
    if count > MOST:
        raise UsageError(f"{count} nodes, at most {MOST} are described", "use /api/v1/machine")


def _node(
    machine: Machine, now: Snapshot, holders: dict[int, list[str]], row: int
) -> dict[str, Any]:
    from placement.topologies import router_names

    words = {"name": machine.names, "cname": machine.cname, "role": machine.role,
             "state": now.state, "features": machine.features}  # fmt: skip
    numbers = ("nid", "sockets", "cores", "memory_mb", "nics", "gpus")
    routers = machine.router[row]
    return {
        "row": row,
        "coords": dict(zip(machine.topology.levels, machine.coords[row].tolist(), strict=True)),
        "planned": bool(now.planned[row]),
        "jobs": holders.get(row, []),
        "routers": router_names(machine)[routers[routers >= 0]].tolist(),
        **{name: str(column[row]) for name, column in words.items()},
        **{name: int(getattr(machine, name)[row]) for name in numbers},
    }


def emit_nodes(machine: Machine, wanted: Emit) -> dict[str, Any]:
    """Return nodes as text in a format of ``nidmap plan --format``.

    Raises
    ------
    ParseError, UsageError
        A node that is not there; a format that there is not, or that does not fit the site.
    """
    from placement.commands.nodes import nodes_document
    from placement.emit import emit
    from placement.emit.job import Emission, Job

    rows = rows_of(machine, wanted.nodes)
    names = nodes_of(machine, rows)
    emission = Emission(
        nodes=names,
        nids=tuple(machine.nid[rows].tolist()),
        cnames=tuple(machine.cname[rows].tolist()),
        job=Job(len(names), ppn=wanted.ppn, nodelist=names),
        scheduler=machine.scheduler,
        batch=machine.batch,
        remarks=(f"nidmap: {len(names)} nodes marked on {machine.name}",),
        document=nodes_document(machine, rows) if wanted.format == "json" else {},
    )
    return {"format": wanted.format, "count": len(names), "text": emit(emission, wanted.format)}
