# SPDX-License-Identifier: Apache-2.0
"""Patterns: who talks to whom, parsed from a short text without expanding it.

``stencil:24x24x16,periodic``, ``fft:64x64``, ``alltoall`` … each name is a
builder registered by the decorator `pattern`; other distributions add theirs
under the entry point group ``nidmap.patterns``. An order needs a pattern's
rank count and process grid only; who scores an order asks for its edges, in
blocks, so that a million ranks never cost an edge list.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from nidmap.placement.errors import UsageError, printable
from nidmap.placement.support.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from nidmap.placement.placement import Placement
    from nidmap.placement.traffic import Traffic

    Builder = Callable[[str], "Pattern"]

#: Where each bundled pattern lives: imported only when it is asked for.
BUNDLED = {
    name: module
    for module, names in {
        "collective": "allgather allreduce barrier bcast gather reduce reducescatter scatter",
        "graph": "graph matrix measured",
        "sends": "permutation sends transposition",
        "structured": "alltoall fft ring sort stencil",
        "sweep": "sweep",
        "training": "training",
    }.items()
    for name in names.split()
}

_builders: Registry[Builder] = Registry(
    "pattern",
    "nidmap.patterns",
    "nidmap.rankmap.pattern",
    BUNDLED,
    page="docs/reference/patterns.md",
)


class Pattern(ABC):
    """Who talks to whom among a job's ranks.

    A pattern is a pure value. It states its own rank count, or takes any
    (``ranks`` is None) until `fit` binds it to one.
    """

    @property
    @abstractmethod
    def spec(self) -> str:
        """The text from which `parse_pattern` makes this pattern again (rank count aside)."""

    @property
    @abstractmethod
    def ranks(self) -> int | None:
        """Number of ranks; None if the pattern accepts any number."""

    @property
    @abstractmethod
    def dims(self) -> tuple[int, ...] | None:
        """Extents of the process grid, ranks row-major with the last fastest.

        None where the pattern has no grid, or no rank count yet.
        """

    @abstractmethod
    def edges(self, block: int = 1 << 20) -> Iterator[Traffic]:
        """Yield every undirected edge once, in blocks of about `block` edges.

        An edge is a flow from its lower rank to its higher one, never from a rank to
        itself; as much goes back. Its bytes are what goes one way, in units of ``--bytes``.

        Raises
        ------
        UsageError
            Where the pattern has no rank count yet (`fit` gives it one).
        """

    @abstractmethod
    def resized(self, ranks: int) -> Pattern:
        """Return this pattern for `ranks` ranks; only called if ``ranks`` is None."""

    def fit(self, ranks: int) -> Pattern:
        """Return this pattern for exactly `ranks` ranks.

        Parameters
        ----------
        ranks : int
            Ranks of the job: the slots asked for.

        Raises
        ------
        UsageError
            Where the pattern states another number; the message has both.

        Examples
        --------
        >>> parse_pattern("ring").fit(6).ranks
        6
        >>> parse_pattern("fft:8x8").fit(48)
        Traceback (most recent call last):
            ...
        nidmap.placement.errors.UsageError: pattern fft:8x8 has 64 ranks, but there are 48 slots
        """
        if self.ranks is None:
            return self.resized(ranks)
        if self.ranks != ranks:
            slot_word = "slot" if ranks == 1 else "slots"
            rank_word = "rank" if self.ranks == 1 else "ranks"
            raise UsageError(
                f"pattern {self.spec} has {self.ranks} {rank_word},"
                f" but there are {ranks} {slot_word}"
            )
        return self

    def known_ranks(self) -> int:
        """Return the number of ranks; raise UsageError if it is not known yet."""
        if self.ranks is None:
            raise UsageError(f"pattern {self.spec} has no rank count yet")
        return self.ranks

    def on(self, placement: Placement) -> Pattern:
        """Return this pattern for exactly these slots; see `fit`.

        A pattern that chooses its own process grid (``stencil:auto``) goes by
        the ranks per node here, which `fit` knows nothing of.
        """
        return self.fit(placement.ranks)


class UnsizedPattern(Pattern):
    """A pattern for any number of ranks, without properties until it is fitted."""

    __slots__ = ()

    @property
    def ranks(self) -> int | None:
        """None: any number will do."""
        return None

    @property
    def dims(self) -> tuple[int, ...] | None:
        """None: there is no process grid yet."""
        return None

    def edges(self, block: int = 1 << 20) -> Iterator[Traffic]:
        """Raise: without ranks there are no edges."""
        raise UsageError(f"pattern {self.spec} has no rank count yet")


def pattern(name: str) -> Callable[[Builder], Builder]:
    """Register the decorated function, which parses what follows the colon, as pattern `name`."""
    return _builders.register(name)


def parse_options(name: str, text: str, known: Mapping[str, str]) -> dict[str, str]:
    """Return a pattern's options by name, '' for those without a value.

    `name`: the pattern's. `known`: a value of each option, for the hint; '' where it has none.
    """
    options: dict[str, str] = {}
    for word in text.split(",") if text else ():
        key, _, value = word.partition("=")
        if key in options:
            raise UsageError(f"{name}: {key} is given twice")
        if key not in known or word != (f"{key}={value}" if known[key] else key):
            examples = [f"{key}={value}" if value else key for key, value in known.items()]
            what = f"{name}: unknown option '{printable(word, 40)}'"
            hint = f"choose from {', '.join(examples)}" if examples else "it takes none"
            raise UsageError(what, hint)
        options[key] = value
    return options


def parse_whole(name: str, key: str, text: str, least: int = 0) -> int:
    """Parse an option's value as a whole number."""
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or int(text) < least:
        above = f" above {least - 1}" if least else ""
        raise UsageError(f"{name}: {key}={printable(text, 30)} is not a whole number{above}")
    return int(text)


def names() -> list[str]:
    """Return the names of all patterns, those of other distributions included."""
    return _builders.names()


def parse_pattern(spec: str) -> Pattern:
    """Return the pattern that a text names.

    `spec`: ``alltoall``, ``sort``, ``ring``, ``fft:PxQ`` (all-to-all in each row and each column
    of a process grid), ``fft:P`` (slab),
    ``stencil:24x24x16[,periodic][,weights=1:2:4][,points=27][,staged]`` or
    ``stencil:auto[,ndims=3]``, ``sweep:PxQ[,pieces=10]``, ``training:tp=8,cp=1,dp=16,pp=4``,
    ``bcast[:root=0]``, ``reduce``, ``gather``, ``scatter``, ``allreduce``, ``allgather``,
    ``reducescatter``, ``barrier``, ``permutation[:seed=1]``, ``transposition:RxC``,
    ``graph:FILE``, ``matrix:FILE``, ``measured:FILE``, ``sends:FILE``.
    """
    name, colon, text = spec.strip().partition(":")
    if colon and not text:
        raise UsageError(f"pattern '{printable(spec)}': nothing after the colon")
    if not colon and ("/" in name or "." in name):
        raise UsageError(
            f"pattern '{printable(name)}' is a file name: say what kind of file it is",
            "measured:FILE is a recording; matrix:FILE and graph:FILE say who sends to whom",
        )
    return _builders.find(name)(text)
