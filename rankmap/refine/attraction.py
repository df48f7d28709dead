"""How ranks are drawn to nodes by the ranks elsewhere that they talk to.

Terminal propagation: A. E. Dunlop and B. W. Kernighan, "A procedure for placement of
standard-cell VLSI circuits" (IEEE Trans. CAD 1985).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankmap.refine.jit import kernel

if TYPE_CHECKING:
    from rankmap.refine.arrays import Bytes, Floats, Ints, Longs

__all__ = ["add_pull", "bias_at_cut", "note_side", "outer_costs"]


@kernel
def note_side(mine: Ints, half: Bytes, where: Ints, cut: int) -> None:
    """Note that ranks are before or behind a cut of the nodes now."""
    for i in range(len(mine)):
        where[mine[i], 1 - half[i]] = cut


@kernel
def add_pull(
    ptr: Ints, adj: Ints, w: Floats, mine: Ints, where: Ints, cut: Longs, far: Floats,
    bias: Floats, inner: Floats,
) -> None:  # fmt: skip
    """Add to `bias` how ranks are drawn by those elsewhere, and weigh inner edges by distance.

    `where` says of each rank from and up to which node it may be; all of these
    count alike. Nodes ``cut[0] … cut[1] - 1`` part from ``cut[1] … cut[2] - 1``.
    """
    low, middle, high = cut[0], cut[1], cut[2]
    more = np.zeros(len(far) + 1)  # how much farther from the nodes behind the cut, summed up
    apart = 0.0
    for i in range(low, high):
        share = -1.0 / (middle - low) if i < middle else 1.0 / (high - middle)
        for r in range(len(far)):
            more[r + 1] += share * far[i, r]
        if i >= middle:
            for r in range(low, middle):
                apart += far[i, r] / ((middle - low) * (high - middle))
    for r in range(len(far)):
        more[r + 1] += more[r]
    for e in range(len(inner)):
        inner[e] *= apart
    for i in range(len(mine)):
        for e in range(ptr[mine[i]], ptr[mine[i] + 1]):
            a, b = where[adj[e], 0], where[adj[e], 1]
            if a != low or b != high:
                bias[i] += w[e] * (more[b] - more[a]) / (b - a)


@kernel
def outer_costs(
    ptr: Ints, adj: Ints, w: Floats, node: Ints, far: Floats, outer: Floats, mine: Ints, some: Longs
) -> Floats:
    """Return what edges to ranks on other nodes cost with each rank on each of some nodes."""
    inside = np.zeros(len(far), dtype=np.bool_)
    for r in some:
        inside[r] = True
    out = np.zeros((len(mine), len(some)))
    for i in range(len(mine)):
        u = mine[i]
        for j in range(len(some)):
            out[i, j] = outer[u, some[j]] if len(outer) > 0 else 0.0
        for e in range(ptr[u], ptr[u + 1]):
            r = node[adj[e]]
            if not inside[r]:
                for j in range(len(some)):
                    out[i, j] += w[e] * far[some[j], r]
    return out


@kernel
def bias_at_cut(outer: Floats, these: Ints, low: int, cut: int, high: int) -> Floats:
    """Return what edges to ranks elsewhere cost more on nodes cut … high-1 than low … cut-1."""
    bias = np.zeros(len(these))
    for i in range(len(these)):
        for j in range(low, cut):
            bias[i] -= outer[these[i], j] / (cut - low)
        for j in range(cut, high):
            bias[i] += outer[these[i], j] / (high - cut)
    return bias
