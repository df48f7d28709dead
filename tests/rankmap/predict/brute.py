# SPDX-License-Identifier: Apache-2.0
"""Patterns the slow way: every message of every rank, one by one."""

import itertools

import numpy as np

from nidmap.rankmap.pattern.structured import Lines, Ring, Stencil


def messages(pattern, size):
    """Return [(from rank, to rank, bytes)] of a pattern, self-messages left out."""
    if isinstance(pattern, Lines):
        return list(_lines(pattern.dims, size / pattern.ranks if pattern.share else size))
    if isinstance(pattern, Ring):
        n = pattern.ranks
        return [(r, (r + 1) % n, size) for r in range(n) if n > 1]
    assert isinstance(pattern, Stencil)
    return list(_stencil(pattern, size))


def _lines(dims, size):
    cells = list(itertools.product(*map(range, dims)))
    rank = {cell: k for k, cell in enumerate(cells)}
    for a in cells:
        for b in cells:
            if sum(x != y for x, y in zip(a, b, strict=True)) == 1:
                yield rank[a], rank[b], size


def _stencil(pattern, size):
    dims = pattern.dims
    weights = pattern.weights or (1.0,) * len(dims)
    cells = list(itertools.product(*map(range, dims)))
    rank = {cell: k for k, cell in enumerate(cells)}
    for cell in cells:
        for step in itertools.product((-1, 0, 1), repeat=len(dims)):
            along = [k for k, s in enumerate(step) if s]
            if not along or len(along) > pattern.reach:
                continue
            to = tuple(c + s for c, s in zip(cell, step, strict=True))
            if pattern.wrap:
                to = tuple(c % n for c, n in zip(to, dims, strict=True))
            if to in rank and to != cell:
                yield rank[cell], rank[to], size * min(weights[k] for k in along)


def table(found, node, rows, nodes):
    """Return the bytes from node to node, (nodes, nodes), and those that stay inside each."""
    between = np.zeros((nodes, nodes))
    for a, b, size in found:
        between[rows[node[a]], rows[node[b]]] += size
    inside = between.diagonal().copy()
    np.fill_diagonal(between, 0)
    return between, inside
