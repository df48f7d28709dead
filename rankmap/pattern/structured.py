# SPDX-License-Identifier: Apache-2.0
"""Patterns on a process grid: stencils, and all-to-alls along the grid's lines.

Both are a set of offsets in the grid, the same for every rank, so both stay
a few numbers whatever the rank count. A stencil's offsets lead to its
neighbours; an all-to-all along a line of length L has the offsets 1 … L-1.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from nidmap.placement.errors import UsageError, printable
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Shape
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.grid.dims import dims, offset_ends
from nidmap.rankmap.pattern import Pattern, UnsizedPattern, parse_options, pattern

WeightedOffset = tuple[Shape, float]

#: No machine runs more ranks; a larger extent is a slip of the finger.
MOST_RANKS = 1 << 40


class GridPattern(Pattern):
    """A pattern whose ranks form a grid and all send to the same offsets."""

    @property
    def ranks(self) -> int | None:
        """Number of ranks: the product of the grid's extents; None before `fit`."""
        return None if self.dims is None else math.prod(self.dims)

    @property
    @abstractmethod
    def periodic(self) -> tuple[bool, ...]:
        """For each dimension, whether the last rank neighbours the first."""

    @abstractmethod
    def offsets(self) -> Iterator[WeightedOffset]:
        """Yield (offset, weight), one of each pair of opposite offsets."""

    def edges(self, block: int = 1 << 20) -> Iterator[Traffic]:
        """Yield every undirected edge once, in blocks; see `Pattern.edges`.

        On a periodic extent of 2 both neighbours are the same rank: two
        messages go each way, and two edges are yielded.
        """
        ranks = np.arange(self.known_ranks()).reshape(self.dims or ())
        for offset, weight in self.offsets():
            a, b = (ends.ravel() for ends in offset_ends(ranks, self.periodic, offset))
            yield from Traffic.undirected(a, b, weight).blocks(block)

    def resized(self, ranks: int) -> Pattern:
        """Raise: a grid determines its own rank count."""
        raise UsageError(f"pattern {self.spec} has its own rank count, not {ranks}")


@dataclass(frozen=True, slots=True)
class Stencil(GridPattern):
    """Every rank talks to its neighbours in a process grid."""

    dims: Shape  # extents, 1 to 4 of them, the last fastest
    wrap: bool = False  # whether all dimensions are periodic
    # Bytes to a neighbour along each dimension, in units of ``--bytes``; empty for 1 everywhere. A
    # diagonal neighbour gets the smallest of the weights of the dimensions it lies along.
    weights: tuple[float, ...] = ()
    # In how many dimensions at once a neighbour may differ: 1 gives the 5- and 7-point stencils,
    # all of them the 9- and 27-point ones
    reach: int = 1
    # Whether the exchange goes direction by direction, as a chain of ``MPI_Sendrecv`` does, instead
    # of being posted at once. Who talks to whom is the same.
    staged: bool = False

    @property
    def spec(self) -> str:
        """The text of this pattern."""
        text = f"stencil:{_by_x(self.dims)}" + (",periodic" if self.wrap else "")
        if self.weights:
            text += ",weights=" + ":".join(f"{w:g}" for w in self.weights)
        text += f",points={points(len(self.dims), self.reach)}" if self.reach > 1 else ""
        return text + (",staged" if self.staged else "")

    @property
    def periodic(self) -> tuple[bool, ...]:
        """Whether each dimension wraps around."""
        return (self.wrap,) * len(self.dims)

    def offsets(self) -> Iterator[WeightedOffset]:
        """Yield (offset, weight) for one of each pair of opposite neighbours."""
        weights = self.weights or (1.0,) * len(self.dims)
        zero = (0,) * len(self.dims)
        for offset in itertools.product((-1, 0, 1), repeat=len(self.dims)):
            along = [k for k, distance in enumerate(offset) if distance]
            if offset > zero and len(along) <= self.reach:
                yield offset, min(weights[k] for k in along)


@dataclass(frozen=True, slots=True)
class Lines(GridPattern):
    """An all-to-all along every line of a process grid, in each dimension.

    ``alltoall`` and ``sort`` are one line of all ranks, ``fft:P`` (slab) too;
    ``fft:PxQ`` (pencil) is an all-to-all in each row and in each column.
    """

    name: str  # ``alltoall``, ``sort`` or ``fft``
    dims: Shape | None = None  # extents of the grid; None where any rank count will do
    # True if ``--bytes`` is a rank's total local data, of which every other rank gets an equal part
    # (``sort``)
    share: bool = False

    @property
    def spec(self) -> str:
        """The text of this pattern."""
        return f"fft:{_by_x(self.dims)}" if self.name == "fft" and self.dims else self.name

    @property
    def periodic(self) -> tuple[bool, ...]:
        """Nothing wraps, since all ranks of a line talk to each other anyway."""
        return (False,) * len(self.dims or ())

    @property
    def weight(self) -> float:
        """Payload of one message in units of ``--bytes``."""
        return 1.0 / (self.ranks or 1) if self.share else 1.0

    def offsets(self) -> Iterator[WeightedOffset]:
        """Yield (offset, weight) for every distance within a line, dimension by dimension."""
        dims = self.dims or ()
        for axis, extent in enumerate(dims):
            for distance in range(1, extent):
                yield tuple(distance * (k == axis) for k in range(len(dims))), self.weight

    def resized(self, ranks: int) -> Pattern:
        """Return the all-to-all for this many ranks."""
        return replace(self, dims=(ranks,))


@dataclass(frozen=True, slots=True)
class Ring(GridPattern):
    """Every rank sends to the next, and the last to the first."""

    dims: Shape | None = None  # the rank count; None before `Pattern.fit`

    @property
    def spec(self) -> str:
        """The text of this pattern."""
        return "ring"

    @property
    def periodic(self) -> tuple[bool, ...]:
        """A ring is closed, except for two ranks, which share a single edge."""
        return (self.dims is not None and self.dims[0] > 2,)

    def offsets(self) -> Iterator[WeightedOffset]:
        """Yield the single offset, to the next rank."""
        yield (1,), 1.0

    def resized(self, ranks: int) -> Pattern:
        """Return the ring for this many ranks."""
        return Ring((ranks,))


def grid_model(pattern: Pattern | None) -> GridPattern | None:
    """Return a pattern, or a similar one, on a process grid; None if it has no grid."""
    model = pattern if isinstance(pattern, GridPattern) else getattr(pattern, "model", None)
    return model if isinstance(model, GridPattern) else None


def points(dimensions: int, reach: int) -> int:
    """Return the points of a stencil: itself and neighbours differing in <= `reach` dimensions."""
    return sum(math.comb(dimensions, k) * 2**k for k in range(reach + 1))


def parse_extents(text: str, what: str, most: int = 4) -> Shape:
    """Return the extents of a grid such as ``24x24x16``."""
    parts = text.split("x")
    for part in parts:
        if not (part.isascii() and part.isdigit()) or len(part) > 18 or int(part) < 1:
            example = "64x64 or 64" if most == 2 else "24x24x16"
            hint = f"a grid is written like {example}"
            raise UsageError(f"{what}: '{printable(part, 30)}' is not an extent", hint)
    shown = printable(text, 80)
    if len(parts) > most:
        raise UsageError(
            f"{what}: {len(parts)} dimensions in '{shown}', at most {most} are supported"
        )
    extents = tuple(int(part) for part in parts)
    if math.prod(extents) > MOST_RANKS:
        raise UsageError(
            f"{what}: {math.prod(extents)} ranks in '{shown}', no machine has that many"
        )
    return extents


@dataclass(frozen=True, slots=True)
class AutoStencil(UnsizedPattern):
    """A stencil whose process grid `nidmap.rankmap.grid.dims` chooses for the given ranks."""

    # A template with the right number of dimensions, whose extents have no meaning
    form: Stencil

    @property
    def spec(self) -> str:
        """The text of this pattern."""
        _, comma, rest = self.form.spec.partition(",")
        return f"stencil:auto,ndims={len(self.form.dims)}{comma}{rest}"

    def resized(self, ranks: int) -> Pattern:
        """Return the stencil on the compact grid for this many ranks."""
        return self._on_grid(ranks, None)

    def on(self, placement: Placement) -> Pattern:
        """Return the stencil on a grid that boxes of a node's ranks tile, if one exists."""
        return self._on_grid(placement.ranks, placement)

    def _on_grid(self, ranks: int, placement: Placement | None) -> Stencil:
        held = None if placement is None else math.gcd(*placement.counts.tolist())
        return replace(self.form, dims=dims(ranks, len(self.form.dims), ppn=held))


@pattern("stencil")
def stencil(text: str) -> Pattern:
    """Build ``stencil:24x24x16[,periodic][,weights=1:2:4][,points=27][,staged]`` or ``:auto``."""
    grid, _, more = text.partition(",")
    auto = grid == "auto"
    known = {"periodic": "", "staged": "", "weights": "1:2:4", "points": "9"}
    options = parse_options("stencil", more, known | {"ndims": "3"} if auto else known)
    dims = (1,) * _stated_dimensions(options) if auto else parse_extents(grid, "stencil")
    weights = _parse_weights(options["weights"], len(dims)) if "weights" in options else ()
    reach = _parse_reach(options["points"], len(dims)) if "points" in options else 1
    pattern = Stencil(dims, "periodic" in options, weights, reach, "staged" in options)
    return AutoStencil(pattern) if auto else pattern


def _stated_dimensions(options: dict[str, str]) -> int:
    """Return the dimensions of stencil:auto: as stated, else one per weight, else 3."""
    if "ndims" not in options:
        return min(4, options["weights"].count(":") + 1) if "weights" in options else 3
    if options["ndims"] not in ("1", "2", "3", "4"):
        raise UsageError(f"stencil: 'ndims={printable(options['ndims'], 40)}' is not ndims=1 to 4")
    return int(options["ndims"])


@pattern("fft")
def fft(text: str) -> Pattern:
    """Build ``fft:PxQ`` (pencils on a process grid) or ``fft:P`` (slabs)."""
    return Lines("fft", parse_extents(text, "fft", most=2))


def _register_any(name: str, built: Pattern) -> None:
    """Register a pattern for any number of ranks."""

    @pattern(name)
    def build(text: str) -> Pattern:
        if text:
            raise UsageError(
                f"pattern {name} takes no options, not '{printable(text, 40)}'",
                "its rank count is the number of slots",
            )
        return built


_register_any("alltoall", Lines("alltoall"))
_register_any("sort", Lines("sort", share=True))
_register_any("ring", Ring())


def _parse_weights(text: str, dimensions: int) -> tuple[float, ...]:
    values = []
    for part in text.split(":"):
        try:
            values.append(float(part))
        except ValueError:
            values.append(math.nan)
        if not 0 <= values[-1] < math.inf:
            raise UsageError(
                f"stencil: weight '{printable(part, 30)}' is not a number of 0 or more"
            )
    if len(values) != dimensions:
        weights_text = f"{len(values)} weights" if len(values) > 1 else "1 weight"
        raise UsageError(
            f"stencil: {weights_text} for {dimensions} dimensions", "give one per dimension"
        )
    return tuple(values)


def _parse_reach(text: str, dimensions: int) -> int:
    allowed = {str(points(dimensions, k)): k for k in range(1, dimensions + 1)}
    if text not in allowed:
        raise UsageError(
            f"stencil: points={printable(text, 30)} is not possible in {dimensions} dimensions",
            f"choose from {', '.join(allowed)}",
        )
    return allowed[text]


def _by_x(dims: Shape) -> str:
    return "x".join(str(extent) for extent in dims)
