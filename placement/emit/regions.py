"""The part of a machine that some nodes lie in: what a softer job header leaves open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.support.quantities import counted

if TYPE_CHECKING:
    from placement.machine import Machine
    from placement.support.array_types import Ints, Ints32, Mask

__all__ = ["around"]


def around(machine: Machine, rows: Ints) -> tuple[Mask, str]:
    """Return the nodes of the part of the machine that some nodes lie in.

    Their groups, outermost switches or leaf modules; on a torus, which has
    none, the smallest box around them, which may go around the ends.

    Parameters
    ----------
    machine : Machine
    rows : int64 (k,)
        At least one.

    Returns
    -------
    inside : bool (n,)
    words : str
        What part that is.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> inside, words = around(parse_spec("torus:8x4"), np.array([7, 8, 9]))
    >>> np.flatnonzero(inside).tolist(), words
    ([0, 1, 7, 8, 9, 15], 'the box x 7-1, y 0-1')
    """
    levels = machine.topology.levels
    if machine.topology.kind != "torus":
        if len(levels) == 1:
            return machine.compute, "the machine"
        outermost = machine.coords[:, 0]
        used = np.unique(outermost[rows])
        part = counted(len(used), levels[0])
        return np.isin(outermost, used), f"the {part} that the plan uses"
    inside = np.ones(len(machine), dtype=bool)
    words = []
    for axis, (name, extent) in enumerate(
        zip(levels[:-1], machine.topology.extents[:-1], strict=True)
    ):
        start, length = _shortest_arc(machine.coords[rows, axis], extent)
        inside &= (machine.coords[:, axis] - start) % extent < length
        words.append(f"{name} {start}-{(start + length - 1) % extent}")
    return inside, f"the box {', '.join(words)}"


def _shortest_arc(values: Ints32, extent: int) -> tuple[int, int]:
    """Return start and length of the shortest arc of a ring that holds all values."""
    taken = np.unique(values)
    gaps = np.diff(np.append(taken, taken[0] + extent))
    after = int(np.argmax(gaps))
    return int(taken[(after + 1) % len(taken)]), extent - int(gaps[after]) + 1
