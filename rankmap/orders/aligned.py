# SPDX-License-Identifier: Apache-2.0
"""Aligned: the rows of a pencil FFT on green links, its columns on blue ones.

S. Aseeri, A. G. Chatterjee, M. K. Verma and D. E. Keyes, "A scheduling policy
to improve 10% of communication time in parallel FFT", III-B and IV-E: all
blades of a chassis are linked to each other, and where the groups are wired
blade to blade, so are the blades of one (chassis, slot) in all groups. Rows of
the process grid go inside a chassis and columns along one position over the
groups; then every pair of a row or a column is one router hop.
"""

from __future__ import annotations

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Ints, Shape
from nidmap.rankmap.orders import ordering
from nidmap.rankmap.pattern import Pattern


@ordering("aligned")
def aligned(pattern: Pattern, placement: Placement) -> Placement:
    """Put rows of fft:PxQ within a chassis, columns along one position over the groups."""
    dims = pattern.dims
    if dims is None or len(dims) != 2 or not pattern.spec.startswith("fft:"):
        raise UsageError(f"strategy aligned is for pencils, fft:PxQ, not {pattern.spec}")
    table = _slots_by_position(placement)
    slot_of_rank = _lay_out(dims, table)
    if slot_of_rank is None:
        groups, positions, held = table.shape
        raise UsageError(
            f"{pattern.spec} does not fit {groups} groups x {positions} blades x {held} slots:"
            f" rows must be a multiple of {groups}, columns of {positions}"
        )
    return placement.with_order(slot_of_rank)


def _lay_out(dims: Shape, table: Ints) -> Ints | None:
    """Return each rank's slot; None if neither orientation of the grid fits."""
    groups, positions, held = table.shape
    for p, q in (dims, dims[::-1]):
        if p % groups == 0 and q % positions == 0 and p // groups * (q // positions) == held:
            cells = table.reshape(groups, positions, p // groups, q // positions)
            grid = cells.transpose(0, 2, 1, 3).reshape(p, q)
            return np.asarray((grid if (p, q) == dims else grid.T).ravel())
    return None


def _slots_by_position(placement: Placement) -> Ints:
    """Return the allocation's slots, int64 (groups, positions, slots per router)."""
    machine = placement.machine
    if machine is None or machine.topology.kind != "dragonfly":
        raise UsageError("strategy aligned needs a dragonfly", "name the machine with -m")
    depth = machine.topology.router_levels
    coords = machine.coords[placement.rows].astype(np.int64)
    places = np.unique(coords[:, 1:depth], axis=0, return_inverse=True)[1].reshape(-1)
    chassis = len(np.unique(coords[:, 1]))
    if depth == 3 and chassis > 1:
        raise UsageError(
            f"strategy aligned needs blades of one chassis, the same in every group: the nodes are"
            f" in {chassis} chassis",
            "plan with --strategy blades-linked",
        )
    group = np.unique(coords[:, 0], return_inverse=True)[1].reshape(-1)
    shape = (int(group.max()) + 1, int(places.max()) + 1)
    router = group * shape[1] + places
    held = np.bincount(router, placement.counts, minlength=shape[0] * shape[1]).astype(np.int64)
    if held.min() != held.max():
        raise UsageError(
            f"strategy aligned needs the same blades in all {shape[0]} groups with the same"
            f" number of ranks on each: they have {held.min()} to {held.max()}",
            "plan with --strategy blades-linked",
        )
    # A stable sort keeps the slots of a router in their own order, node by node.
    return np.argsort(router[placement.node_of_slot], kind="stable").reshape(*shape, int(held[0]))
