# SPDX-License-Identifier: Apache-2.0
"""A machine as compact columns for the page: what never changes while a server runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from nidmap.placement import planners
from nidmap.placement.emit import formats_for
from nidmap.placement.errors import NidmapError
from nidmap.placement.machine import Machine
from nidmap.placement.network import routings
from nidmap.placement.network.channel_loads import slowest_attachment
from nidmap.placement.scheduler.baseline import baseline_of
from nidmap.placement.scheduler.kinds import kinds_of
from nidmap.placement.support.array_types import Array, Ints
from nidmap.placement.topologies import links, router_coords, router_names, wiring_text
from nidmap.placement.views import summarise
from nidmap.rankmap import emit, orders

SCHEMA = "nidmap.machine-columns/1"

#: Patterns that name a file: whoever looks at a page must not choose files of the server's host.
FILE_PATTERNS = ("graph", "matrix", "measured", "sends")

_WORDS = ("role", "state", "mode", "features")
_NUMBERS = ("sockets", "cores", "memory_mb", "nics", "gpus")

#: Patterns with an example each, in the order in which they are offered.
_PATTERNS = (
    ("alltoall", "every rank to every other rank"),
    ("fft:16x16", "a process grid: all-to-all in each row and each column"),
    ("stencil:8x8x4", "neighbours in a grid; add ,periodic or ,weights=1:2:4"),
    ("stencil:auto", "a grid of the job's own size in three dimensions"),
    ("sort", "a parallel sort: samples, then an all-to-all exchange"),
    ("ring", "each rank to the next"),
    ("sweep:16x16", "wavefronts through a grid from each corner; add ,pieces=10"),
    ("allreduce", "a reduction, its result to all ranks; also bcast, reduce, allgather …"),
    ("permutation", "each rank to a random rank; add :seed=1"),
    ("transposition:16x16", "each rank of a grid to the rank across its diagonal"),
    ("training:tp=8,pp=4,dp=8", "training of a large model"),
)


def code_column(values: Array) -> dict[str, list[Any]]:
    """Return a column as its distinct values and a code for each row."""
    distinct, codes = np.unique(values, return_inverse=True)
    return {"values": distinct.tolist(), "codes": codes.reshape(-1).tolist()}


def folded_rows(rows: Iterable[int] | Ints) -> str:
    """Return rows as ranges, keeping their order."""
    values = np.asarray(list(rows) if not isinstance(rows, np.ndarray) else rows, dtype=np.int64)
    if not len(values):
        return ""
    cuts = np.flatnonzero(np.diff(values) != 1) + 1
    first, last = values[np.r_[0, cuts]].tolist(), values[np.r_[cuts - 1, -1]].tolist()
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in zip(first, last, strict=True))


def document(machine: Machine) -> dict[str, Any]:
    """Return what the page needs to know about a machine once."""
    topology = machine.topology
    return {
        "schema": SCHEMA,
        "name": machine.name,
        "kind": topology.kind,
        "fabric": topology.fabric,
        "site": machine.site,
        "scheduler": machine.scheduler,
        "wiring": wiring_text(machine),
        "levels": list(topology.levels),
        "extents": list(topology.extents),
        "count": len(machine),
        "nodes": _node_columns(machine),
        "routers": _router_columns(machine),
        "links": _link_columns(machine),
        "notes": list(machine.notes),
        "summary": summarise(machine),
        "choices": _offered_choices(machine),
    }


def _node_columns(machine: Machine) -> dict[str, Any]:
    first = machine.router[:, 0].tolist() if machine.router.shape[1] else [-1] * len(machine)
    return {
        "nid": machine.nid.tolist(),
        "name": machine.names.tolist(),
        "cname": machine.cname.tolist() if (machine.cname != "").any() else [],
        "coords": machine.coords.T.tolist(),
        **{name: code_column(getattr(machine, name)) for name in (*_WORDS, *_NUMBERS)},
        "router": first,
        **_cable_column(machine),
    }


def _cable_column(machine: Machine) -> dict[str, Any]:
    """Return GB/s of each node's slowest cable, if nodes differ."""
    if machine.attachment_gbs is None:
        return {}
    return {"cable_gbs": code_column(slowest_attachment(machine).round(3))}


def _router_columns(machine: Machine) -> dict[str, Any]:
    """Return the routers' names, and each one's outermost unit (-1: none)."""
    names, coords = router_names(machine), router_coords(machine)
    unit = coords[:, 0].tolist() if coords.shape[1] else [-1] * len(names)
    return {"count": len(names), "name": names.tolist(), "unit": unit}


def _link_columns(machine: Machine) -> dict[str, Any]:
    try:
        bundles = links(machine)
    except NidmapError:
        return {"kinds": [], "counts": []}
    counts = np.bincount(bundles.kind, weights=bundles.count, minlength=len(bundles.kinds))
    return {"kinds": list(bundles.kinds), "counts": counts.astype(np.int64).tolist()}


def _offered_choices(machine: Machine) -> dict[str, Any]:
    """Return the available strategies for a plan and an order on this machine."""
    kinds = kinds_of(machine)
    left_out = {"exclude", *([] if (machine.cname != "").any() else ["cnames"])}
    try:
        known = list(routings(machine))
    except NidmapError:
        known = []
    return {
        "strategies": planners.fitting_planners(machine),
        "kinds": [
            {"name": name, "count": int((kinds.of == number).sum())}
            for number, name in enumerate(kinds.names)
        ],
        "orders": orders.names(),
        "routings": known,
        "formats": [name for name in formats_for(machine.batch) if name not in left_out],
        "order_formats": emit.names(),
        "patterns": [{"example": example, "help": text} for example, text in _PATTERNS],
        "default_strategy": baseline_of(machine).strategy,
    }  # fmt: skip
