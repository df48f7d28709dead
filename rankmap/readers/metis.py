"""METIS graph files: ``vertices edges [fmt [ncon]]``, then one line a vertex.

fmt is up to three digits: 100 vertex sizes, 10 vertex weights (ncon of
them), 1 edge weights. A line names the vertex's neighbours from 1 on, each
with its edge's weight where there are such. Every edge stands on the lines
of both its ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.errors import ParseError
from rankmap.pattern.edges import distinct
from rankmap.readers.entries import Entries, checked
from rankmap.readers.text import blocks, whole
from rankmap.slots import MOST_SLOTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["read"]


def read(raw: bytes, source: str) -> Entries:
    """Return the entries of a METIS graph.

    Raises
    ------
    ParseError
        A header that is none, more or fewer lines than vertices, a
        neighbour that is no vertex, another number of edges than stated.

    Examples
    --------
    >>> e = read(b"3 2 1\\n2 7\\n1 7 3 1\\n2 1\\n", "-")
    >>> e.ranks, e.a.tolist(), e.b.tolist(), e.weight.tolist()
    (3, [0, 1, 1, 2], [1, 0, 2, 1], [7.0, 7.0, 1.0, 1.0])
    """
    values, line, lines = _numbers(raw, source)
    if not len(values):
        raise ParseError(source, 0, "no header: vertices, edges and format expected")
    head = values[line == line[0]]
    n, m, extra, weighted = _header(head, int(line[0]), source)
    body = slice(len(head), None)
    vertex = np.searchsorted(lines, line[body])
    stated = len(lines) - 1
    if int(vertex.max(initial=0)) > n:
        raise ParseError(source, int(lines[n + 1]), f"line of vertex {n + 1}, the header has {n}")
    if stated < n:
        raise ParseError(
            source, int(lines[-1]), f"{stated} lines for {n} vertices", "is the file cut short?"
        )
    a, b, weight, at = _edges(values[body], vertex - 1, line[body], extra, weighted, source)
    entries = checked(Entries(n, a, b, weight), source, at)
    _right_count(entries, m, source)
    return entries


def _numbers(
    raw: bytes, source: str
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return all numbers, the line of each, and the lines of header and vertices."""
    found = list(blocks(raw, source))
    values = np.concatenate([b.values for b in found])
    line = np.concatenate([b.line for b in found])
    lines = np.concatenate([b.first + np.flatnonzero(~b.comment) for b in found])
    if len(line):
        lines = lines[lines >= line[0]]  # blank lines above the header are no vertices
    return values, line, lines


def _header(head: NDArray[np.float64], line: int, source: str) -> tuple[int, int, int, bool]:
    """Return vertices, edges, numbers before the neighbours of each line, whether edges weigh."""
    words = whole(head, np.full(len(head), line), source, "METIS header").tolist()
    if not 2 <= len(words) <= 4 or min(words) < 0:
        raise ParseError(source, line, "no METIS header: vertices, edges [, format [, weights]]")
    n, m = words[:2]
    fmt = words[2] if len(words) > 2 else 0
    if fmt not in (0, 1, 10, 11, 100, 101, 110, 111):
        raise ParseError(source, line, f"format {fmt} is none of METIS's (0, 1, 10, 11, 100 …)")
    if n > MOST_SLOTS:
        raise ParseError(source, line, f"{n} vertices, at most {MOST_SLOTS} are supported")
    if n < 1:
        raise ParseError(source, line, "a graph without vertices")
    sizes, weights, edges = fmt // 100, fmt // 10 % 10, fmt % 10
    ncon = words[3] if len(words) > 3 else 1
    return n, m, sizes + weights * ncon, bool(edges)


def _edges(
    values: NDArray[np.float64],
    vertex: NDArray[np.int64],
    line: NDArray[np.int64],
    extra: int,
    weighted: bool,
    source: str,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Return from, to, weight and line of every entry."""
    place = np.arange(len(vertex)) - np.searchsorted(vertex, vertex)
    kept = place >= extra
    values, vertex, line, place = values[kept], vertex[kept], line[kept], place[kept] - extra
    step = 2 if weighted else 1
    is_neighbour = place % step == 0
    neighbours = values[is_neighbour]
    weight = values[~is_neighbour] if weighted else np.ones(len(neighbours))
    if weighted:
        odd = np.flatnonzero(is_neighbour & np.append(vertex[1:] != vertex[:-1], True))
        if len(odd):
            raise ParseError(source, int(line[odd[0]]), "a neighbour without its edge's weight")
    at = line[is_neighbour]
    return vertex[is_neighbour], whole(neighbours, at, source, "vertex") - 1, weight, at


def _right_count(entries: Entries, m: int, source: str) -> None:
    """Refuse another number of edges than the header has."""
    low, high = np.minimum(entries.a, entries.b), np.maximum(entries.a, entries.b)
    joined = low != high
    edges = distinct(low[joined] * entries.ranks + high[joined])
    if m not in (edges, -(-len(entries.a) // 2)):
        raise ParseError(source, 1, f"{edges} edges, the header has {m}", "is the file cut short?")
