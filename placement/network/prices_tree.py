"""Costs on trees of switches: up to the first common switch, and down again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.network.tree import _forest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.network.prices import Costs

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["between"]


def between(machine: Machine, price: Floats) -> Costs | None:
    """Return the cost of a byte between nodes; None where the switches make no tree."""
    forest = _forest(machine)
    if forest is None:
        return None
    one = machine.router.shape[1] == 1
    own = machine.router[:, 0].astype(np.int64) if one else np.arange(len(forest.depth))
    priced = np.append(price, 0.0)  # a root has no channel above it: row -1
    labels = [label[own] for label in forest.ancestor[1:]]
    up = [np.where(label >= 0, priced[forest.up[label]], 0.0) for label in labels]
    down = [np.where(label >= 0, priced[forest.down[label]], 0.0) for label in labels]

    def cost(a: Ints, b: Ints) -> Floats:
        out = np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)))
        for label, above, below in zip(labels, up, down, strict=True):
            out += (label[a] != label[b]) * (above[a] + below[b])
        return out

    return cost
