"""Costs on whole fat trees under d-mod-k: by (subtree, destination's residue) at each level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.network.fattree import _regular

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.network.fattree import Regular
    from placement.network.prices import Costs
    from placement.topologies.fattree import Shape

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["between", "tables"]


def between(machine: Machine, price: Floats) -> Costs | None:
    """Return the cost of a byte between nodes; None where cables are missing."""
    regular = _regular(machine)
    if regular is None:
        return None
    levels = range(1, regular.shape.height)
    priced = [tables(regular, level, price) for level in levels]
    subtrees = [regular.subtree(level) for level in levels]
    residues = [regular.index % regular.shape.twins(level + 1) for level in levels]

    def cost(a: Ints, b: Ints) -> Floats:
        out = np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)))
        for (up, down), subtree, residue in zip(priced, subtrees, residues, strict=True):
            here, there, port = subtree[a], subtree[b], residue[b]
            out += (here != there) * (up[here, port] + down[there, port])
        return out

    return cost


def tables(regular: Regular, level: int, price: Floats) -> tuple[Floats, Floats]:
    """Return the prices of a level's channels up and down, (subtrees, residues) each."""
    whole, half = regular.shape, regular.first[-1]
    rows = slice(regular.first[level - 1], regular.first[level])
    return _by_residue(whole, level, price[:half][rows]), _by_residue(
        whole, level, price[half:][rows]
    )


def _by_residue(whole: Shape, level: int, price: Floats) -> Floats:
    """Return the prices of a level's links by (subtree, residue): `_by_link`, turned round."""
    table = price.reshape(whole.trees(level), whole.twins(level), whole.up[level])
    return np.swapaxes(table, 1, 2).reshape(whole.trees(level), -1)
