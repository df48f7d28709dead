"""Router positions as numbers: coordinates to indices and back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from placement.errors import ParseError
from placement.machine import Machine
from placement.support.array_types import Ints

__all__ = ["MAX_ROUTERS", "box_coords", "from_nodes", "number_coords", "refuse_huge"]

#: A torus with more positions than this is a mistake.
MAX_ROUTERS = 4_194_304


def number_coords(
    coords: NDArray[np.int32], extents: Sequence[int], first_fastest: bool = False
) -> Ints:
    """Return the index of each coordinate row in a full box.

    Parameters
    ----------
    coords : int32 (n, d)
    extents : sequence of int, length d
    first_fastest : bool
        True on a torus (x fastest), False row-major (last fastest).

    Examples
    --------
    >>> import numpy as np
    >>> number_coords(np.array([[1, 0], [0, 1]]), (2, 3)).tolist()
    [3, 1]
    >>> number_coords(np.array([[1, 0], [0, 1]]), (2, 3), first_fastest=True).tolist()
    [1, 2]
    """
    order = range(len(extents) - 1, -1, -1) if first_fastest else range(len(extents))
    total = np.zeros(len(coords), dtype=np.int64)
    for axis in order:
        total = total * extents[axis] + coords[:, axis]
    return total


def box_coords(extents: Sequence[int], first_fastest: bool = False) -> NDArray[np.int32]:
    """Return the coordinates of every position of a box, in the order of `number_coords`.

    Examples
    --------
    >>> box_coords((2, 2), first_fastest=True).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    sizes = tuple(extents)[::-1] if first_fastest else tuple(extents)
    rows = np.indices(sizes, dtype=np.int32).reshape(len(sizes), -1)
    return np.ascontiguousarray((rows[::-1] if first_fastest else rows).T)


def refuse_huge(extents: Sequence[int], source: str) -> None:
    """Raise ParseError where a dump's coordinates span more routers than any machine has.

    A torus has a router at every position, so one absurd coordinate would
    make it enormous.
    """
    if math.prod(extents) > MAX_ROUTERS:
        size = "x".join(map(str, extents))
        text = f"its coordinates span a torus of {size}, more than {MAX_ROUTERS} routers"
        raise ParseError(source, 0, text, "is a coordinate mistyped?")


def from_nodes(machine: Machine) -> NDArray[np.int32] | None:
    """Return the router coordinates that the nodes themselves tell, None where some are missing."""
    first = machine.router[:, 0]
    count = int(machine.router.max(initial=-1)) + 1
    out = np.full((count, machine.topology.router_levels), -1, dtype=np.int32)
    known = first >= 0
    out[first[known]] = machine.coords[known, : machine.topology.router_levels]
    return None if (out < 0).any() else out
