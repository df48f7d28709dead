"""Messages that are listed one by one: a random permutation, a transposition, a list in a file.

Every one of them becomes a graph of ranks that remembers which way each message goes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from placement.errors import UsageError, printable
from placement.support.array_types import Ints
from placement.traffic import Traffic
from rankmap.pattern import Pattern, UnsizedPattern, pattern
from rankmap.pattern.graph import Graph, from_entries
from rankmap.pattern.structured import parse_extents
from rankmap.readers.csv import read_messages
from rankmap.readers.entries import Entries, file_bytes, no_edges


@dataclass(frozen=True, slots=True)
class Permutation(UnsizedPattern):
    """Every rank sends one message to a rank drawn at random, no two to the same one.

    Attributes
    ----------
    seed : int
        The same seed and rank count always give the same permutation. A rank
        that draws itself sends nothing.

    Examples
    --------
    >>> Permutation(1).fit(8).ranks
    8
    """

    seed: int = 0

    @property
    def spec(self) -> str:
        """The text of this pattern."""
        return f"permutation:seed={self.seed}"

    def resized(self, ranks: int) -> Pattern:
        """Return the permutation of so many ranks."""
        to = np.random.default_rng(self.seed).permutation(ranks)
        return _one_each(to, self.spec)


@dataclass(frozen=True, slots=True)
class Transposition(UnsizedPattern):
    """Rank i*C + j of a process grid of R x C sends to rank j*R + i.

    Its messages are listed when a job has so many ranks: a grid may be named that no
    machine has memory for.

    Attributes
    ----------
    extents : tuple of int
        R and C.
    """

    extents: tuple[int, ...]

    @property
    def spec(self) -> str:
        """The text of this pattern."""
        return f"transposition:{self.extents[0]}x{self.extents[1]}"

    @property
    def ranks(self) -> int | None:
        """One at every point of the grid."""
        return math.prod(self.extents)

    def fit(self, ranks: int) -> Pattern:
        """Return the messages of the grid; UsageError where there are other ranks."""
        return Pattern.fit(self, ranks).resized(ranks)

    def resized(self, ranks: int) -> Pattern:
        """Return the messages of the grid."""
        to = np.arange(ranks).reshape(self.extents[::-1]).T.ravel()
        return _one_each(to, self.spec)


def _one_each(to: Ints, text: str) -> Graph:
    """Return the pattern in which rank r sends one message to rank ``to[r]``."""
    ranks = np.arange(len(to))
    away = to != ranks
    return _messages_graph(Entries(len(to), Traffic.of(ranks[away], to[away], 1.0)), text)


def _messages_graph(messages: Entries, text: str) -> Graph:
    """Return the graph of a list of messages, which remembers every single one."""
    away = messages.sent.away()
    graph = from_entries(messages, both=True, text=text)
    notes = tuple(note for note in graph.notes if not note.startswith("not symmetric"))
    return replace(graph, notes=notes, directed=away.some(away.bytes > 0))


@pattern("permutation")
def permutation(text: str) -> Pattern:
    """Build ``permutation[:seed=1]``."""
    key, _, value = text.partition("=")
    if text and (key != "seed" or not (value.isascii() and value.isdigit()) or len(value) > 18):
        raise UsageError(
            f"permutation: '{printable(text, 40)}' is not a seed", "write permutation:seed=1"
        )
    return Permutation(int(value) if text else 0)


@pattern("transposition")
def transposition(text: str) -> Pattern:
    """Build ``transposition:RxC``: rank i*C + j of a process grid sends to rank j*R + i."""
    extents = parse_extents(text, "transposition", most=2)
    if len(extents) != 2:
        raise UsageError("transposition: a grid of two dimensions is needed", "as in 16x16")
    return Transposition(extents)


@pattern("sends")
def sends(text: str) -> Pattern:
    """Build ``sends:FILE``: a message a line, its source, destination and bytes."""
    if not text:
        raise UsageError(
            "pattern sends needs a file: sends:FILE", "source destination bytes a line"
        )
    pattern = _messages_graph(read_messages(file_bytes(text), text), f"sends:{text}")
    if not len(pattern.indices):
        raise no_edges(text)
    return pattern
