# SPDX-License-Identifier: Apache-2.0
"""Individually listed messages: a random permutation, a transposition, a list in a file.

Every one of them becomes a graph of ranks that remembers which way each message goes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.support.array_types import Ints, Shape
from nidmap.placement.support.reading import read_bytes
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.pattern import Pattern, UnsizedPattern, parse_options, parse_whole, pattern
from nidmap.rankmap.pattern.graph import Graph, from_entries
from nidmap.rankmap.pattern.structured import parse_extents
from nidmap.rankmap.readers.csv import read_messages
from nidmap.rankmap.readers.entries import MOST_BYTES, Entries, no_edges


@dataclass(frozen=True, slots=True)
class OneEach(UnsizedPattern):
    """Every rank sends one message to a different rank; those mapped to themselves send none.

    Its messages are listed when a job has this many ranks: a grid may be named that no
    machine has memory for.
    """

    receivers: Callable[[int], Ints]  # returns the rank that each of this many ranks sends to
    spec: str  # the text of this pattern
    ranks: int | None = None  # None if any number will do

    def fit(self, ranks: int) -> Pattern:
        """Return the messages; raise UsageError if the pattern is for other rank counts."""
        if self.ranks is not None:
            Pattern.fit(self, ranks)  # refuses another number
        return self.resized(ranks)

    def resized(self, ranks: int) -> Pattern:
        """Return the messages for this many ranks."""
        sender, receiver = np.arange(ranks), self.receivers(ranks)
        sent = Traffic.of(sender, receiver, 1.0).away()
        return _messages_graph(Entries(ranks, sent), self.spec)


def _draw_receivers(ranks: int, seed: int) -> Ints:
    """Draw a permutation, reproducible for the same seed and ranks."""
    return np.random.default_rng(seed).permutation(ranks)


def _transpose(ranks: int, extents: Shape) -> Ints:
    """Return each rank's position in the transposed grid."""
    return np.arange(ranks).reshape(extents[::-1]).T.ravel()


def _messages_graph(messages: Entries, spec: str) -> Graph:
    """Return the graph of a list of messages, which keeps every single message."""
    away = messages.sent.away()
    graph = from_entries(messages, both=True, spec=spec)
    notes = tuple(note for note in graph.notes if not note.startswith("not symmetric"))
    return replace(graph, notes=notes, directed=away.some(away.bytes > 0))


@pattern("permutation")
def permutation(text: str) -> Pattern:
    """Build ``permutation[:seed=1]``."""
    options = parse_options("permutation", text, {"seed": "1"})
    seed = parse_whole("permutation", "seed", options.get("seed", "0"))
    return OneEach(partial(_draw_receivers, seed=seed), f"permutation:seed={seed}")


@pattern("transposition")
def transposition(text: str) -> Pattern:
    """Build ``transposition:RxC``: rank i*C + j of a process grid sends to rank j*R + i."""
    extents = parse_extents(text, "transposition", most=2)
    if len(extents) != 2:
        raise UsageError("transposition: a grid of two dimensions is needed", "as in 16x16")
    rows, columns = extents
    receivers = partial(_transpose, extents=extents)
    return OneEach(receivers, f"transposition:{rows}x{columns}", rows * columns)


@pattern("sends")
def sends(text: str) -> Pattern:
    """Build ``sends:FILE``: one message per line, with source, destination and bytes."""
    if not text:
        hint = "one line per message: source destination bytes"
        raise UsageError("pattern sends needs a file: sends:FILE", hint)
    messages = read_messages(read_bytes(text, "sends:-", MOST_BYTES), text)
    pattern = _messages_graph(messages, f"sends:{text}")
    if not len(pattern.indices):
        raise no_edges(text)
    return pattern
