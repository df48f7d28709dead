"""A machine in figures: what ``machine show`` prints."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from placement.machine import Machine
from placement.support.array_types import Ints
from placement.topologies import links, number_coords, router_count, wiring_text
from placement.views.frames import attachment_class, injection

__all__ = ["count_holes", "first_hole", "summarise"]

#: What is in a node.
HARDWARE = ("sockets", "cores", "memory_mb", "nics", "gpus", "features")


def summarise(machine: Machine) -> dict[str, Any]:
    """Return the figures of a machine.

    Parameters
    ----------
    machine : Machine

    Returns
    -------
    dict
        ``name``, ``kind``, ``fabric``, ``site``, ``scheduler``, ``sources``,
        ``wiring`` (in words), ``levels`` (each with its extent and how many
        are present), ``nodes`` (total, compute, service, free, and by role
        and state), ``count_holes`` (by level; empty where a level has no fixed
        size), ``routers``, ``links`` (by class), ``attachments`` (``most`` a node,
        on how many ``routers``),
        ``hardware`` (kinds of compute node), ``inside`` (what is known of the inside of some, in
        words), ``switches`` and ``notes``.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> found = summarise(parse_spec("dragonfly:groups=2,chassis=2,blades=4,nodes=4"))
    >>> found["nodes"]["compute"], found["levels"][1], found["holes"]
    (64, {'level': 'chassis', 'extent': 2, 'present': 4}, {})
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
    """Return how many distinct places the nodes take in the first `depth` levels."""
    keys = number_coords(machine.coords[:, :depth], machine.topology.extents[:depth])
    return len(np.unique(keys, return_index=True)[0])


def _level_rows(machine: Machine) -> list[dict[str, Any]]:
    topology = machine.topology
    axes = topology.router_levels if topology.kind == "torus" else 0  # not in one another
    present = [
        len(np.unique(machine.coords[:, k])) if k < axes else _count_present(machine, k + 1)
        for k in range(len(topology.levels))
    ]
    names = ("level", "extent", "present")
    rows = zip(topology.levels, topology.extents, present, strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def count_holes(machine: Machine) -> dict[str, int]:
    """Return how many places are empty at each level, inside what is there of the level above.

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


def first_hole(machine: Machine, level: str) -> tuple[int, ...]:
    """Return the coordinates of the first empty place of a level that `count_holes` counts.

    Examples
    --------
    >>> from placement.readers import read_text
    >>> from placement.dumps.assemble import assemble
    >>> m = assemble([read_text("1 0x1 c0-0c0s0n1 compute up batch")])
    >>> count_holes(m)["node"], first_hole(m, "node")
    (3, (0, 0, 0, 0))
    """
    topology = machine.topology
    if level == "router":
        extents = topology.extents[:-1]
        taken = number_coords(machine.coords[:, :-1], extents, first_fastest=True)
        at = np.array([_first_missing(taken, math.prod(extents))])
        return tuple(int(c[0]) for c in np.unravel_index(at, extents[::-1])[::-1])
    depth = topology.levels.index(level)
    rows = np.unique(machine.coords[:, : depth + 1], axis=0)
    above, which = np.unique(rows[:, :depth], axis=0, return_inverse=True)
    which = which if depth else np.zeros(len(rows), dtype=np.int64)
    extent = topology.extents[depth]
    free = _first_missing(which * extent + rows[:, depth], (int(which.max()) + 1) * extent)
    parent = above[free // extent].tolist() if depth else []
    return (*parent, free % extent)


def _first_missing(taken: Ints, count: int) -> int:
    mask = np.ones(count, dtype=np.bool_)
    mask[taken] = False
    return int(np.argmax(mask))


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
    return {
        "class": attachment_class(machine),
        "links": int(attached.sum()),
        "most": int(attached.sum(axis=1).max(initial=0)),
        "routers": len(np.unique(machine.router[attached])),
        "gbs": _round_figure(injection(machine)),
    }


def _hardware_rows(machine: Machine) -> list[dict[str, Any]]:
    """Return the kinds of compute node, most frequent first; [] where nothing is known."""
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
