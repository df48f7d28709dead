# SPDX-License-Identifier: Apache-2.0
"""Collectives by name: ``bcast``, ``allreduce:…`` and so on, as MPI programs call them.

Who sends to whom is the algorithm's matter, and that goes by bytes and ranks: predictions
take the usual algorithm for theirs (`nidmap.rankmap.predict.phases`). Where there are only
edges, for J and for orders, they are those of 1 MB.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from nidmap.placement.errors import UsageError
from nidmap.placement.support.array_types import Shape
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.collectives import FAMILIES, ROOTED, algorithms, usual_algorithm
from nidmap.rankmap.pattern import Pattern, parse_options, parse_whole, pattern

#: Bytes for which the edges' algorithm is chosen.
USUAL_BYTES = 1e6


@dataclass(frozen=True, slots=True)
class Collective(Pattern):
    """One collective call among all ranks."""

    name: str  # a key of `nidmap.rankmap.collectives.FAMILIES`
    root: int = 0  # root rank; 0 if there is none
    dims: Shape | None = None  # the rank count; None before `Pattern.fit`

    @property
    def spec(self) -> str:
        """The text of this pattern."""
        return f"{self.name}:root={self.root}" if self.root else self.name

    @property
    def ranks(self) -> int | None:
        """Number of ranks; None before `fit`."""
        return None if self.dims is None else self.dims[0]

    def resized(self, ranks: int) -> Pattern:
        """Return the collective for this many ranks."""
        if self.root >= ranks:
            ranks_text = "1 rank" if ranks == 1 else f"{ranks} ranks"
            raise UsageError(
                f"pattern {self.spec}: the root must be one of {ranks_text}, 0 to {ranks - 1}"
            )
        return replace(self, dims=(ranks,))

    def edges(self, block: int = 1 << 20) -> Iterator[Traffic]:
        """Yield the messages of the usual algorithm for 1 MB as edges; see `Pattern.edges`.

        A pair may come several times. A reduce-scatter takes recursive halving, not pair by
        pair, which would be every pair of ranks; a barrier's messages weigh 1 each.
        """
        ranks = self.known_ranks()
        algorithm = usual_algorithm(self.name, USUAL_BYTES, ranks)
        algorithm = "halving" if algorithm == "pairwise" else algorithm
        steps = algorithms.call_steps(self.name, algorithm, ranks, self.root, 1.0)
        for source, target, size, times in steps:
            weight = times * (1.0 if self.name == "barrier" else size)
            yield from Traffic.undirected(source, target, weight).blocks(block)


def _build_collective(name: str, text: str) -> Pattern:
    """Build a collective, with ``root=0`` after the colon if it has a root."""
    options = parse_options(name, text, {"root": "0"} if name in ROOTED else {})
    return Collective(name, parse_whole(name, "root", options.get("root", "0")))


for _name in FAMILIES:
    pattern(_name)(partial(_build_collective, _name))
