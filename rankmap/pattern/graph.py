# SPDX-License-Identifier: Apache-2.0
"""Graphs of ranks: patterns that were measured or drawn, not written down by a rule.

``graph:FILE`` holds undirected edges, ``matrix:FILE`` bytes from rank to rank:
an edge's weight there is what goes both ways. Which format a file has is seen
from its name and first lines (`nidmap.rankmap.readers`).
"""

from __future__ import annotations

import functools
import itertools
import math
import os
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.support.arrays import sum_by_key
from nidmap.placement.traffic import NO_TRAFFIC, Traffic, join_traffic
from nidmap.rankmap.pattern import Pattern, pattern
from nidmap.rankmap.pattern.structured import Stencil
from nidmap.rankmap.readers import FORMATS, read
from nidmap.rankmap.readers.entries import Entries, no_edges
from nidmap.rankmap.recording import file as recording_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nidmap.placement.support.array_types import Floats, Ints
    from nidmap.rankmap.recording import Recording

#: Differences of rank numbers that the edges of a stencil have at most (4 periodic dimensions).
MOST_OFFSETS = 320


@dataclass(frozen=True, slots=True, eq=False)
class Graph(Pattern):
    """A weighted graph of ranks, each edge in the rows of both its ends."""

    indptr: Ints  # (n + 1,), where each rank's row begins
    indices: Ints  # (2m,), the other ends, ascending in each row
    weights: Floats  # (2m,)
    # Whether the file states how many ranks there are; else there are n at least, and more have no
    # edge
    stated: bool = True
    spec: str = "graph"  # the pattern as it was asked for
    notes: tuple[str, ...] = ()  # what was done to the file's entries to make a graph of them
    # Its messages with their directions, where these are known and do not carry alike
    directed: Traffic | None = field(default=None, repr=False)
    # What it was made of, where a prediction may go by the order of its messages
    recording: Recording | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.indptr) - 1

    @property
    def ranks(self) -> int | None:
        """Number of ranks; None where the file does not state it."""
        return self.size if self.stated else None

    @property
    def dims(self) -> tuple[int, ...] | None:
        """The process grid, where the graph is that of a stencil on one; else None."""
        stencil = stencil_of(self)
        return None if stencil is None else stencil.dims

    @property
    def row(self) -> Ints:
        """Rank whose row each entry is in, int64 (2m,)."""
        return np.repeat(np.arange(self.size), np.diff(self.indptr))

    def upper(self) -> tuple[Ints, Ints, Floats]:
        """Return (a, b, weight) of each edge once, a < b."""
        row = self.row
        once = row < self.indices
        return row[once], self.indices[once], self.weights[once]

    def edges(self, block: int = 1 << 20) -> Iterator[Traffic]:
        """Yield every undirected edge once; see `Pattern.edges`."""
        a, b, weight = self.upper()
        yield from Traffic.of(a, b, weight).blocks(block)

    def resized(self, ranks: int) -> Pattern:
        """Return the graph with the missing ranks added, without edges."""
        if ranks < self.size:
            raise UsageError(
                f"pattern {self.spec} names rank {self.size - 1}, but there are {ranks} slots"
            )
        more = np.full(ranks - self.size, self.indptr[-1])
        notes = self.notes
        if len(more):
            notes = (*notes, f"ranks {self.size} to {ranks - 1} are not in the file: no edges")
        indptr = np.append(self.indptr, more)
        return replace(self, indptr=indptr, stated=True, notes=notes)


@functools.lru_cache(maxsize=8)
def stencil_of(graph: Graph) -> Stencil | None:
    """Return the stencil whose graph this is, None where there is none; looked for once a graph.

    A file that somebody made from a grid, or measured on one, is given back to the orders and
    bounds that know grids. Nothing is taken on likeness: the stencil's own edges must be the
    graph's, every one and every weight.
    """
    if _has_many_offsets(graph):
        return None
    row = graph.row
    once = row < graph.indices
    offset, first = np.unique((graph.indices - row)[once], return_index=True)
    if not len(offset) or len(offset) > MOST_OFFSETS or offset[0] != 1:
        return None
    heaviest = dict(zip(offset.tolist(), graph.weights[once][first].tolist(), strict=True))
    for strides in _stride_chains(offset.tolist(), graph.size):
        for candidate in _stencils_of_strides(strides, graph.size, heaviest):
            if _edges_of(candidate) in (None, len(graph.indices) // 2):
                graph_of_stencil = expand_pattern(candidate)
                same = np.array_equal(graph_of_stencil.indptr, graph.indptr)
                same = same and np.array_equal(graph_of_stencil.indices, graph.indices)
                if same and np.allclose(graph_of_stencil.weights, graph.weights, rtol=1e-12):
                    return candidate
    return None


def _has_many_offsets(graph: Graph) -> bool:
    """Return whether the first edges alone join ranks at more offsets than a stencil has."""
    rows = min(graph.size, int(np.searchsorted(graph.indptr, 64 * MOST_OFFSETS)))
    row = np.repeat(np.arange(rows), np.diff(graph.indptr[: rows + 1]))
    ends = graph.indices[: len(row)]
    return len(np.unique((ends - row)[row < ends])) > MOST_OFFSETS


def _stencils_of_strides(
    strides: tuple[int, ...], size: int, heaviest: dict[int, float]
) -> Iterator[Stencil]:
    """Yield the stencils whose dimensions have these strides."""
    dims = tuple(n // s for n, s in zip([size, *strides[:-1]], strides, strict=True))
    for wrap, reach in itertools.product((False, True), range(1, len(dims) + 1)):
        scale = [2.0 if wrap and e == 2 else 1.0 for e in dims]
        weights = tuple(heaviest[s] / k for s, k in zip(strides, scale, strict=True))
        yield Stencil(dims, wrap, () if set(weights) == {1.0} else weights, reach)


def _stride_chains(offsets: list[int], size: int) -> Iterator[tuple[int, ...]]:
    """Yield rows of up to four strides, the last being 1, each a multiple of the next."""
    chosen = [d for d in offsets if d > 1 and size % d == 0 and d < size]
    yield (1,)
    for count in (1, 2, 3):
        for row in itertools.combinations(reversed(chosen), count):
            strides = (*row, 1)
            if all(x % y == 0 for x, y in itertools.pairwise(strides)):
                yield strides


def _edges_of(stencil: Stencil) -> int | None:
    """Return how many pairs of ranks a stencil joins, None where offsets may meet on one pair."""
    if stencil.wrap and min(stencil.dims) <= 2:
        return None
    return sum(
        math.prod(
            extent if stencil.wrap or not k else extent - 1
            for extent, k in zip(stencil.dims, offset, strict=True)
        )
        for offset, _ in stencil.offsets()
    )


def from_edges(n: int, a: Ints, b: Ints, weight: Floats, **more: Any) -> Graph:
    """Return the graph of undirected edges.

    Edges given twice are added up, loops and edges without weight left out.

    `a`, `b` (m,). `weight` (m,). `more`: other fields of `Graph`.
    """
    kept = (a != b) & (weight > 0)
    key, weight = (np.minimum(a, b) * n + np.maximum(a, b))[kept], weight[kept]
    if not (key[1:] > key[:-1]).all():
        key, weight = sum_by_key(key, weight)
    low, high = np.divmod(key, max(n, 1))
    below, above = np.bincount(high, minlength=n), np.bincount(low, minlength=n)
    indptr = np.append(0, np.cumsum(below + above))
    # Each row holds the ends below it, then those above: both ascend already where edges are
    # taken in the order of their higher end, and of their lower.
    edge, by_high = np.arange(len(key)), np.argsort(high, kind="stable")
    indices, weights = np.empty(2 * len(key), dtype=np.int64), np.empty(2 * len(key))
    for place, end, order in (
        (edge + (indptr[1:] - np.cumsum(above))[low], high, edge),
        (edge + (indptr[:-1] - np.cumsum(below) + below)[high[by_high]], low, by_high),
    ):
        indices[place], weights[place] = end[order], weight[order]
    return Graph(indptr, indices, weights, **more)


def expand_pattern(wanted: Pattern) -> Graph:
    """Return any pattern's edges as a graph."""
    if isinstance(wanted, Graph):
        return wanted
    edges = join_traffic(wanted.edges())
    return from_edges(wanted.ranks or 0, *edges.columns[:3], spec=wanted.spec)


def from_entries(entries: Entries, both: bool, spec: str) -> Graph:
    """Return the graph of a file's entries.

    `entries`: weights from rank to rank. `both`: True where the weights of both directions add up
    (``matrix:``); False where they state one edge twice (``graph:``). `spec`: the pattern as it
    was asked for. Of a matrix that is not symmetric it has the messages with their directions.
    """
    low, high, there, back = _pair_weights(entries)
    entries = entries._replace(sent=NO_TRAFFIC)  # lets go of what was read
    notes = list(entries.notes)
    loops = int((low == high).sum())
    if loops:
        notes.append(f"{loops} ranks send to themselves: that costs nothing and is left out")
    uneven = int(((there != back) & (low < high)).sum())
    if uneven:
        note = "what goes both ways is added up" if both else "the larger of the two counts"
        notes.append(f"not symmetric ({uneven} pairs differ): {note}")
    total = there + back if both else np.maximum(there, back)
    more: dict[str, Any] = {"stated": entries.stated, "spec": spec, "notes": tuple(notes)}
    if both and uneven:
        ways = Traffic.of(low, high, there), Traffic.of(high, low, back)
        more["directed"] = join_traffic(
            way.some((way.bytes != 0) & (way.source != way.target)) for way in ways
        )
    return from_edges(entries.ranks, low, high, total, **more)


def _pair_weights(entries: Entries) -> tuple[Ints, Ints, Floats, Floats]:
    """Return each pair of ranks once, and what goes up and down the numbers of its ranks."""
    n, sent = max(entries.ranks, 1), entries.sent
    if not sent.bytes.all():
        sent = sent.some(sent.bytes != 0)
    pair = np.minimum(sent.source, sent.target) * n + np.maximum(sent.source, sent.target)
    up = sent.source <= sent.target
    upward, downward = np.where(up, sent.bytes, 0.0), np.where(up, 0.0, sent.bytes)
    pair, there, back = sum_by_key(pair, upward, downward)
    low, high = np.divmod(pair, n)
    return low, high, there, back


def _read_pattern(name: str, path: str) -> Pattern:
    """Build ``graph:FILE``, ``matrix:FILE`` or ``measured:FILE``.

    A graph's edges are undirected, each stated once or both ways; a matrix has bytes from rank
    to rank, those of both ways added up. What was measured are the bytes from rank to rank over
    all that was recorded: collectives are taken as the messages of a usual algorithm. Messages
    that make up exactly a stencil are known as one, as those of any graph are.
    """
    if not path:
        hint = "nidmap record writes it" if name == "measured" else FORMATS
        raise UsageError(f"pattern {name} needs a file: {name}:FILE", hint)
    return _read_once(name, path, _file_state(path))


def _file_state(path: str) -> tuple[int, ...]:
    """Return a fingerprint of a file, so that a large one is not read again for every question."""
    try:
        files = [path, *(os.scandir(path) if os.path.isdir(path) else ())]
        states = [os.stat(file) for file in files]
    except (OSError, ValueError):  # a ValueError: no file may be called so
        return ()
    return tuple(x for s in states for x in (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns))


@functools.lru_cache(maxsize=1)
def _read_once(name: str, path: str, state: tuple[int, ...]) -> Pattern:
    recording = recording_file.load_recording(path) if name == "measured" else None
    if recording is None:
        entries = read(path)
    else:
        total = recording.total()
        sent = replace(total, bytes=total.bytes.astype(float))
        entries = Entries(recording.ranks, sent, notes=recording.notes)
    graph = from_entries(entries, name != "graph", f"{name}:{path}")
    pattern = replace(graph, recording=recording)
    if not len(pattern.indices):
        raise no_edges(path)
    return pattern


for _name in ("graph", "matrix", "measured"):
    pattern(_name)(partial(_read_pattern, _name))
