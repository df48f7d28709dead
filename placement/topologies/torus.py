# SPDX-License-Identifier: Apache-2.0
"""Tori: routers on a grid of up to four axes, each axis a ring.

An extent of 2 has two links between its routers, of 1 none. On Gemini the
links of one axis differ: y inside a blade against y over cable, z inside a
cage against z between cages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from nidmap.placement import topologies
from nidmap.placement.fabrics import FABRICS
from nidmap.placement.machine import Links, Machine
from nidmap.placement.names import numbering
from nidmap.placement.support.array_types import Floats, Ints, Strs
from nidmap.placement.topologies import bundle_links, refuse_many

#: Axis names, the first being the fastest in the numbering.
AXES = ("x", "y", "z", "w")

#: Routers that one cage holds along z.
CAGE = 8


def router_coords(machine: Machine) -> NDArray[np.int32]:
    """Return all positions of the torus, x fastest, or the nodes' own if these differ."""
    topology = machine.topology
    extents = topology.extents[: topology.router_levels]
    of_nodes = machine.coords[:, : topology.router_levels]
    if np.array_equal(
        topologies.number_coords(of_nodes, extents, first_fastest=True), machine.router[:, 0]
    ):
        return topologies.box_coords(extents, first_fastest=True)
    distinct = topologies.coords_from_nodes(machine)
    return topologies.box_coords(extents, first_fastest=True) if distinct is None else distinct


def router_names(machine: Machine) -> Strs:
    """Return Gemini cnames (``c0-0c0s0g0``) if the cabinets are known, else ``x0y0z0``."""
    coords = topologies.router_coords(machine)
    parameters = machine.topology.parameters
    if machine.topology.fabric == "gemini" and {"columns", "rows"} <= parameters.keys():
        return _torus_cnames(coords, int(parameters["columns"]), int(parameters["rows"]))
    form = "".join(f"{axis}%d" for axis in machine.topology.levels[: coords.shape[1]])
    return np.array([form % tuple(row) for row in coords.tolist()], dtype=np.str_)


def wiring_text(machine: Machine) -> str:
    """Name the axes along which the rings run."""
    topology = machine.topology
    return f"rings along {', '.join(topology.levels[: topology.router_levels])}"


def _torus_cnames(coords: NDArray[np.int32], columns: int, rows: int) -> Strs:
    node_coords = np.column_stack([coords, np.zeros(len(coords), dtype=np.int32)])
    parts = numbering.GeminiNumbering(columns, rows).parts_of_coords(node_coords)
    parts = np.column_stack([parts[:, :4], parts[:, 4] // 2])
    written = parts.tolist()
    return np.array([f"c{c}-{r}c{h}s{s}g{g}" for c, r, h, s, g in written], dtype=np.str_)


def links(machine: Machine) -> Links:
    """Return the rings of all axes."""
    topology = machine.topology
    extents = topology.extents[: topology.router_levels]
    kinds = topology.levels[: topology.router_levels]
    refuse_many(math.prod(extents) * len(extents), "this torus")
    index = np.arange(math.prod(extents)).reshape(extents[::-1])
    rows = [_ring_links(index, extents, axis) for axis in range(len(extents))]
    kind = np.repeat(np.arange(len(extents)), [len(a) for a, _, _ in rows]).astype(np.int8)
    at = np.concatenate([place for _, _, place in rows])
    a = np.concatenate([r[0] for r in rows])
    b = np.concatenate([r[1] for r in rows])
    figures = topology.bandwidth
    gbs = link_bandwidth(kind, at, kinds, figures, gemini=topology.fabric == "gemini")
    return bundle_links(a, b, kind, kinds, np.ones(len(a), dtype=np.int64), gbs)


def _ring_links(index: Ints, extents: Sequence[int], axis: int) -> tuple[Ints, Ints, Ints]:
    """Return both ends of each link in + direction along `axis`, and its starting position."""
    if extents[axis] == 1:
        none = np.empty(0, dtype=np.int64)
        return none, none, none
    turned = len(extents) - 1 - axis  # in the index array x comes last
    after = np.roll(index, -1, axis=turned)
    start = np.indices(index.shape)[turned]
    return index.ravel(), after.ravel(), start.ravel()


def link_bandwidth(
    axis: NDArray[np.int8],
    start: Ints,
    kinds: Sequence[str],
    figures: Mapping[str, float],
    gemini: bool = False,
) -> Floats:
    """Return GB/s per direction of links by axis and, on Gemini, by position.

    `axis` (m,): index into `kinds`. `start` (m,): coordinate along that axis from which the link
    goes one step up. `figures`: GB/s by axis; ``y-cable`` and ``z-cable`` for those that leave
    their blade or cage (in Gemini's own proportion where left out). Returns (m,): NaN where no
    figure is given.
    """
    gbs = np.array([figures.get(kind, math.nan) for kind in kinds])[axis]
    if not gemini:
        return gbs
    for kind, cable in (("y", start % 2 == 1), ("z", start % CAGE == CAGE - 1)):
        if kind in kinds and kind in figures:
            usual = FABRICS["gemini"].bandwidth
            share = usual[f"{kind}-cable"] / usual[kind]
            slow = figures.get(f"{kind}-cable", figures[kind] * share)
            gbs[(axis == list(kinds).index(kind)) & cable] = slow
    return gbs
