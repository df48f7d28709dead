# SPDX-License-Identifier: Apache-2.0
"""The result of the geometry modules, the position of each node in a table, and helpers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nidmap.placement.machine import Links, Topology
from nidmap.placement.names.numbering import GeminiNumbering, Xc
from nidmap.placement.node_table import Table
from nidmap.placement.support.array_types import Array, Floats, Ints, Mask, Strs
from nidmap.placement.support.arrays import rank_within

#: How cnames are numbered.
Rule = Xc | GeminiNumbering

_NO_NAMES: Strs = np.empty(0, dtype=np.str_)


@dataclass(frozen=True, eq=False, repr=False)  # minimal, since start-up time counts
class Geometry:
    """A topology and the positions of n nodes in it."""

    topology: Topology
    coords: NDArray[np.int32]  # (n, levels)
    router: NDArray[np.int32]  # (n, k), router index of each attachment, -1 for none
    # (r, router_levels), None where the topology and the nodes alone tell
    router_coords: NDArray[np.int32] | None = None
    # (r,), empty where the topology names them
    router_names: Strs = field(default_factory=lambda: _NO_NAMES)
    links: Links | None = None  # None where a rule makes them
    nid: Ints | None = None  # (n,), NIDs by the machine's numbering rule, for nodes that have none
    attachment_gbs: Floats | None = None  # (n, k), as `Machine` has them
    notes: tuple[str, ...] = ()  # assumptions


def refuse_first(
    table: Table, wrong: Mask | np.bool_, text: Callable[[int], str], hint: str = ""
) -> None:
    """Raise for the first marked node of a table, with the remark that `text` gives on its row."""
    if wrong.any():
        row = int(np.argmax(wrong))
        raise table.error(row, text(row), hint)


class SwitchPositions(NamedTuple):
    """Coordinates of n nodes on s switches of d levels."""

    coords: NDArray[np.int32]  # (n, d + 1), of the nodes, outermost level first
    order: Ints  # (s,), the switches, leaves first, each level in the order of its coordinates
    rank: Ints  # (s,), place of each switch in that order
    # (s, d), coordinates of the switches in that order, -1 below a switch's own level
    switches: NDArray[np.int32]


def switch_positions(
    leaf: Array, level: Array, units: Sequence[Ints], first: Ints
) -> SwitchPositions:
    """Return the positions of nodes on switches.

    `leaf` (n,): switch that each node hangs on. `level` (s,): level of each switch, 0 for a leaf.
    `units` (s,): for each level, the leaves' own first: a number of the unit that each switch is
    in. `first` (s,): units are numbered inside the next larger one in the order of their leaves,
    and the leaves in the order of these numbers.
    """
    count, leaves = len(level), level == 0
    number = np.full((count, len(units)), -1, dtype=np.int32)
    outer = np.zeros(count, dtype=np.int64)
    for column, unit in enumerate(reversed(units)):
        earliest = np.full(count, first.max(initial=0) + 1, dtype=np.int64)
        np.minimum.at(earliest, unit[leaves], first[leaves])
        by_unit = np.full(count, -1, dtype=np.int64)
        by_unit[unit[leaves]] = _dense_rank(outer[leaves], earliest[unit[leaves]])
        number[:, column] = np.where(level < len(units) - column, by_unit[unit], -1)
        outer = unit
    order = np.lexsort((*number.T[::-1], level))
    coords = np.column_stack([number[leaf], rank_within(leaf)]).astype(np.int32)
    return SwitchPositions(coords, order, np.argsort(order), number[order])


def _dense_rank(outer: Ints, key: Ints) -> Ints:
    """Return the rank of each key among the distinct keys with the same `outer`."""
    span = int(key.max(initial=0)) + 1
    pairs, inverse = np.unique(outer * span + key, return_inverse=True)
    first = np.searchsorted(pairs, pairs // span * span)
    rank: Ints = (np.arange(len(pairs)) - first)[inverse]
    return rank


def numbering_of(topology: Topology) -> Rule | None:
    """Return the numbering that a network states; None if it states none."""
    parameters = topology.parameters
    if topology.fabric == "aries" and "positions" in parameters:
        return Xc(int(parameters["positions"]))
    if topology.fabric == "gemini" and {"columns", "rows"} <= parameters.keys():
        return GeminiNumbering(int(parameters["columns"]), int(parameters["rows"]))
    return None
