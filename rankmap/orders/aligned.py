"""Aligned: the rows of a pencil FFT on green links, its columns on blue ones.

S. Aseeri, A. G. Chatterjee, M. K. Verma and D. E. Keyes, "A scheduling policy
to improve 10% of communication time in parallel FFT", III-B and IV-E: all
blades of a chassis are linked to each other, and where the groups are wired
blade to blade, so are the blades of one (chassis, slot) in all groups. Rows of
the process grid go inside a chassis and columns along one position over the
groups; then every pair of a row or a column is one router hop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement.errors import UsageError
from rankmap.order import Order
from rankmap.orders import ordering

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankmap.pattern import Pattern
    from rankmap.slots import Slots

    Ints = NDArray[np.int64]

__all__ = ["aligned"]


class _Slice(NamedTuple):
    """Slots of an allocation that has the same positions in all groups.

    Attributes
    ----------
    slots : int64 (groups, positions, slots a router)
    """

    slots: Ints


@ordering("aligned")
def aligned(pattern: Pattern, slots: Slots) -> Order:
    """Put rows of fft:PxQ inside a chassis, columns along one position over the groups.

    Raises
    ------
    UsageError
        Where the pattern is no pencil FFT, the machine no dragonfly, or the
        allocation not the same blades of one chassis in every group with a
        grid that fits; the message says what would.
    """
    dims = pattern.dims
    if dims is None or len(dims) != 2 or not pattern.spec.startswith("fft:"):
        raise UsageError(f"strategy aligned is for pencils, fft:PxQ, not {pattern.spec}")
    table = _slice(slots).slots
    found = _laid(dims, table)
    if found is None:
        raise UsageError(_no_fit(dims, table))
    return Order(found, slots)


def _laid(dims: tuple[int, ...], table: Ints) -> Ints | None:
    """Return the slot of every rank of the grid; None where neither way round fits."""
    groups, positions, held = table.shape
    rows, columns = dims
    for turned in (False, True):
        p, q = (columns, rows) if turned else (rows, columns)
        if p % groups == 0 and q % positions == 0 and p // groups * (q // positions) == held:
            cells = table.reshape(groups, positions, p // groups, q // positions)
            grid = cells.transpose(0, 2, 1, 3).reshape(p, q)
            return np.asarray((grid.T if turned else grid).ravel())
    return None


def _no_fit(dims: tuple[int, ...], table: Ints) -> str:
    groups, positions, held = table.shape
    return (
        f"fft:{dims[0]}x{dims[1]} does not fit {groups} groups x {positions} blades x {held} slots:"
        f" rows are to be a multiple of {groups}, columns of {positions}"
    )


def _slice(slots: Slots) -> _Slice:
    """Return the allocation's slots by group and position.

    Raises
    ------
    UsageError
        Where it is no such slice.
    """
    machine = slots.machine
    if machine is None or slots.rows is None or machine.topology.kind != "dragonfly":
        raise UsageError("strategy aligned needs a dragonfly", "name the machine by -m")
    depth = machine.topology.router_levels
    coords = machine.coords[slots.rows].astype(np.int64)
    places = np.unique(coords[:, 1:depth], axis=0, return_inverse=True)[1].reshape(-1)
    if depth == 3 and len(np.unique(coords[:, 1])) > 1:
        chassis = len(np.unique(coords[:, 1]))
        raise UsageError(
            f"strategy aligned needs blades of one chassis, the same in every group: the nodes are"
            f" in {chassis} chassis",
            "plan with --strategy blades-linked",
        )
    group = np.unique(coords[:, 0], return_inverse=True)[1].reshape(-1)
    shape = (int(group.max()) + 1, int(places.max()) + 1)
    router = group * shape[1] + places
    held = np.bincount(router, slots.counts, minlength=shape[0] * shape[1]).astype(np.int64)
    if held.min() != held.max():
        raise UsageError(
            f"strategy aligned needs the same blades in all {shape[0]} groups with as many ranks on"
            f" each: they have {held.min()} to {held.max()}",
            "plan with --strategy blades-linked",
        )
    by_slot = router[slots.node]
    # A stable sort keeps the slots of a router in their own order, node by node.
    return _Slice(np.argsort(by_slot, kind="stable").reshape(*shape, int(held[0])))
