"""The parts of the API that people read: nodes, lists to take away, the server's state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placement.errors import UsageError
from placement.lookup import nodes_of, rows_of

if TYPE_CHECKING:
    from placement.machine import Machine
    from web.asked import Emit
    from web.served import Served

__all__ = ["emitted", "nodes", "status"]

#: Nodes that one answer describes.
MOST = 1000


def nodes(served: Served, text: str) -> dict[str, Any]:
    """Return all that is known of some nodes.

    Raises
    ------
    ParseError
        A node that the machine does not have.
    UsageError
        More nodes than `MOST`.
    """
    machine, now = served.machine, served.live.snapshot
    rows = rows_of(machine, text, repeats=True)
    if len(rows) > MOST:
        raise UsageError(f"{len(rows)} nodes, at most {MOST} are described", "use /api/v1/machine")
    holders = _holders(now.jobs)
    return {"nodes": [_node(machine, now, holders, row) for row in rows.tolist()]}


def _holders(found: Any) -> dict[int, list[str]]:
    out: dict[int, list[str]] = {}
    for job in found:
        for row in job.rows.tolist():
            out.setdefault(row, []).append(job.id)
    return out


def _node(machine: Machine, now: Any, holders: dict[int, list[str]], row: int) -> dict[str, Any]:
    from placement.topologies import router_names

    routers = [int(r) for r in machine.router[row] if r >= 0]
    numbers = ("sockets", "cores", "memory_mb", "nics", "gpus")
    return {
        "row": row,
        "name": str(machine.names[row]),
        "nid": int(machine.nid[row]),
        "cname": str(machine.cname[row]),
        "coords": dict(zip(machine.topology.levels, machine.coords[row].tolist(), strict=True)),
        "role": str(machine.role[row]),
        "state": str(now.state[row]),
        "planned": bool(now.planned[row]),
        "jobs": holders.get(row, []),
        "routers": [str(router_names(machine)[r]) for r in routers],
        "features": str(machine.features[row]),
        **{name: int(getattr(machine, name)[row]) for name in numbers},
    }


def emitted(machine: Machine, wanted: Emit) -> dict[str, Any]:
    """Return nodes as text in a format of ``nidmap plan --format``.

    Raises
    ------
    ParseError, UsageError
        A node that is not there; a format that there is not, or that does not fit the site.
    """
    from placement.emit import Emission, emit

    rows = rows_of(machine, wanted.nodes)
    names = nodes_of(machine, rows)
    nids, cnames = machine.nid[rows].tolist(), machine.cname[rows].tolist()
    made = Emission(
        nodes=names,
        nids=tuple(nids),
        cnames=tuple(cnames),
        ppn=wanted.ppn,
        scheduler=machine.scheduler,
        remarks=(f"nidmap: {len(names)} nodes marked on {machine.name}",),
        document={
            "schema": "nidmap.nodes/1",
            "machine": machine.name,
            "count": len(names),
            "nodelist": names.fold(),
            "nodes": list(names),
            "nids": nids,
            "cnames": cnames,
        },
    )
    return {"format": wanted.format, "count": len(names), "text": emit(made, wanted.format)}


def status(served: Served) -> dict[str, Any]:
    """Return how the server is doing."""
    now = served.live.snapshot
    return {
        "machine": served.machine.name,
        "nodes": len(served.machine),
        "live": bool(served.live.sources),
        "source": now.source,
        "version": now.version,
        "taken": now.taken,
        "stale": now.stale,
        "error": now.error,
        "calculations": served.pool.inside,
        "streams": served.streams(),
    }
