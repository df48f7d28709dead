"""What the geometry modules answer: where each node of a table sits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from placement.dumps.tables import Table
    from placement.machine import Links, Topology
    from placement.support.array_types import Ints, Mask, Strs

__all__ = ["Network", "refuse"]

_NO_NAMES: Strs = np.empty(0, dtype=np.str_)


@dataclass(frozen=True, eq=False, repr=False)  # as little as may be: start-up counts
class Network:
    """A topology and the places of n nodes in it.

    Attributes
    ----------
    topology : Topology
    coords : int32 (n, levels)
    router : int32 (n, k)
        Router index of each attachment, -1 for none.
    router_coords : int32 (r, router_levels) or None
        None where the topology and the nodes alone tell.
    router_names : str (r,)
        Empty where the topology names them.
    links : Links or None
        None where a rule makes them.
    nid : int64 (n,) or None
        NIDs by the machine's numbering rule, for nodes that have none.
    notes : tuple of str
        What was assumed.
    """

    topology: Topology
    coords: NDArray[np.int32]
    router: NDArray[np.int32]
    router_coords: NDArray[np.int32] | None = None
    router_names: Strs = field(default_factory=lambda: _NO_NAMES)
    links: Links | None = None
    nid: Ints | None = None
    notes: tuple[str, ...] = ()


def refuse(
    table: Table, wrong: Mask | np.bool_, text: Callable[[int], str], hint: str = ""
) -> None:
    """Refuse the first node of a table that is marked, with what `text` says of its row.

    Raises
    ------
    ParseError
    """
    if wrong.any():
        row = int(np.argmax(wrong))
        raise table.error(row, text(row), hint)
