# SPDX-License-Identifier: Apache-2.0
"""METIS graph files: ``vertices edges [fmt [ncon]]``, then one line per vertex.

fmt is up to three digits: 100 vertex sizes, 10 vertex weights (ncon of
them), 1 edge weights. A line names the vertex's neighbours from 1 on, each
with its edge's weight where there are such. Every edge is on the lines
of both its ends.
"""

from __future__ import annotations

import numpy as np

from nidmap.placement.errors import ParseError
from nidmap.placement.placement import MOST_RANKS
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.arrays import count_distinct
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.readers.entries import Entries, check_entries, gather_numbers, whole


def read(raw: bytes, source: str) -> Entries:
    """Return the entries of a METIS graph."""
    values, line, lines = gather_numbers(raw, source)
    if not len(values):
        raise ParseError(source, 0, "no header: vertices, edges and format expected")
    lines = lines[lines >= line[0]]  # blank lines above the header are not vertices
    head = int((line == line[0]).sum())
    n, m, extra, weighted = _read_header(values[:head], int(line[0]), source)
    vertex = np.searchsorted(lines, line[head:])
    if int(vertex.max(initial=0)) > n:
        raise ParseError(
            source, int(lines[n + 1]), f"a line for vertex {n + 1}, but the header says {n}"
        )
    if len(lines) - 1 < n:
        fault = f"{len(lines) - 1} lines for {n} vertices"
        raise ParseError(source, int(lines[-1]), fault, "is the file cut short?")
    a, b, weight, at = _read_edges(values[head:], vertex - 1, line[head:], extra, weighted, source)
    entries = check_entries(Entries(n, Traffic.of(a, b, weight)), source, at)
    joined = a != b
    edges = count_distinct(np.minimum(a, b)[joined] * n + np.maximum(a, b)[joined])
    if m not in (edges, -(-len(a) // 2)):
        raise ParseError(
            source, 1, f"{edges} edges, but the header says {m}", "is the file cut short?"
        )
    return entries


def _read_header(head: Floats, line: int, source: str) -> tuple[int, int, int, bool]:
    """Return vertices, edges, numbers before a line's neighbours, whether edges have weights."""
    words: list[int] = whole(head, np.full(len(head), line), source, "METIS header").tolist()
    if not 2 <= len(words) <= 4 or min(words) < 0:
        raise ParseError(source, line, "no METIS header: vertices, edges [, format [, weights]]")
    n, m, fmt, ncon = [*words, *(0, 1)[len(words) - 2 :]]
    if fmt not in (0, 1, 10, 11, 100, 101, 110, 111):
        raise ParseError(source, line, f"format {fmt} is not one of METIS's (0, 1, 10, 11, 100 …)")
    if n > MOST_RANKS:
        raise ParseError(source, line, f"{n} vertices, at most {MOST_RANKS} are supported")
    if n < 1:
        raise ParseError(source, line, "the graph has no vertices")
    return n, m, fmt // 100 + fmt // 10 % 10 * ncon, fmt % 10 == 1


def _read_edges(
    values: Floats, vertex: Ints, line: Ints, extra: int, weighted: bool, source: str
) -> tuple[Ints, Ints, Floats, Ints]:
    """Return from, to, weight and line of every entry."""
    first = np.flatnonzero(np.diff(vertex, prepend=-1))  # vertices ascend
    place = np.arange(len(vertex)) - np.repeat(first, np.diff(np.append(first, len(vertex))))
    kept = place >= extra
    values, vertex, line, place = values[kept], vertex[kept], line[kept], place[kept] - extra
    is_neighbour = place % 2 == 0 if weighted else np.ones(len(place), dtype=bool)
    odd = np.flatnonzero(is_neighbour & np.append(vertex[1:] != vertex[:-1], True))
    if weighted and len(odd):
        raise ParseError(source, int(line[odd[0]]), "a neighbour without an edge weight")
    at = line[is_neighbour]
    weight = values[~is_neighbour] if weighted else np.ones(len(at))
    return vertex[is_neighbour], whole(values[is_neighbour], at, source, "vertex") - 1, weight, at
