# SPDX-License-Identifier: Apache-2.0
"""Cells: the algorithm of Cray's grid_order, which takes the same options.

``--strategy "cells:-R -c 4,2 -g 64,64"`` is the order that
``grid_order -R -c 4,2 -g 64,64`` prints for MPICH_RANK_ORDER: the ranks of a
grid, cell after cell, so that a node gets the ranks of one cell. It looks at
no allocation: slots are filled as they are numbered.
"""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from getopt import GetoptError, getopt

import numpy as np

from nidmap.placement.curves import hilbert_key
from nidmap.placement.errors import UsageError, printable
from nidmap.placement.permutation import inverse
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Ints, Shape
from nidmap.rankmap.grid.dims import boxes_of
from nidmap.rankmap.grid.embedding import lay_grid
from nidmap.rankmap.grid.traversal import cells as numbered
from nidmap.rankmap.orders import ordering
from nidmap.rankmap.pattern import Pattern

#: grid_order's options, as getopt writes them. -m, -n, -N, -q and -T say how the list is printed,
#: not what it holds.
OPTIONS = "c:g:o:m:n:N:RCPZHqT"

#: Hint for an unknown option.
KNOWN = "those of grid_order: -R or -C, -c cell, -g grid, -H, -P or -Z, -o"


@dataclass(frozen=True, slots=True)
class CellOptions:
    """The options of grid_order that determine an order."""

    # Extents of a cell (``-c``); () for the whole grid's along every dimension of 1, which with
    # ``-H`` is the plain curve
    cell: Shape = ()
    grid: Shape = ()  # extents of the grid (``-g``); () for the pattern's
    columns: bool = False  # ranks are numbered with the first dimension fastest (``-C``)
    walk: str = "Z"  # ``Z``: rows of cells in the same order; ``P``: to and fro; ``H``: Hilbert
    # Dimensions in the order in which successive cells go along them, the fastest first (``-o``,
    # from 1); () for the numbering's own
    along: Shape = ()

    @classmethod
    def parse(cls, text: str) -> CellOptions:
        """Parse options as grid_order takes them: ``-R -c 4,2 -g 64,64 -H``."""
        options: dict[str, str] = {}
        for name, value in _split_options(text):
            if name in options:
                raise UsageError(f"strategy cells: {name} is given twice")
            options[name] = value
        for flag, rival in (("-R", "-C"), ("-P", "-Z"), ("-P", "-H"), ("-Z", "-H")):
            if flag in options and rival in options:
                raise UsageError(f"strategy cells: {flag} and {rival} cannot be combined")
        return cls(
            cell=_parse_extents("-c", options.get("-c", "")),
            grid=_parse_extents("-g", options.get("-g", "")),
            columns="-C" in options,
            walk=next((name[1] for name in ("-P", "-H") if name in options), "Z"),
            along=_parse_extents("-o", options.get("-o", "")),
        )


def _split_options(text: str) -> list[tuple[str, str]]:
    """Return each option with its value; '' for those without one."""
    try:
        words = shlex.split(text)
        options, others = getopt(words[words[:1] == ["grid_order"] :], OPTIONS)
    except ValueError:
        raise UsageError(f"strategy cells: unbalanced quotes in '{printable(text, 60)}'") from None
    except GetoptError as error:
        raise UsageError(f"strategy cells: {printable(error.msg, 60)}", KNOWN) from None
    if others:
        raise UsageError(f"strategy cells: unknown option '{printable(others[0], 30)}'", KNOWN)
    return options


def _parse_extents(name: str, text: str) -> Shape:
    if not text:
        return ()
    parts = text.replace("x", ",").split(",")
    if not all(part.isascii() and part.isdigit() and 0 < int(part) < 1 << 40 for part in parts):
        raise UsageError(
            f"strategy cells: {name} {printable(text, 30)} is not a list of whole numbers above 0",
            f"as in {name} 4,2",
        )
    return tuple(int(part) for part in parts)


@ordering("cells")
def cells(pattern: Pattern, placement: Placement, options: str = "") -> Placement:
    """List the grid's ranks cell by cell, as Cray's grid_order does.

    `options`: grid_order's own: ``-R`` (default) or ``-C``, ``-c`` cell (default: a box of a
    node's ranks), ``-g`` grid (default: the pattern's), ``-H``, ``-P`` or ``-Z``, ``-o``.
    """
    wanted = CellOptions.parse(options)
    grid = wanted.grid or pattern.dims
    if grid is None:
        raise UsageError(f"strategy cells needs a grid (-g): pattern {pattern.spec} has none")
    if math.prod(grid) != placement.ranks:
        shown = ",".join(map(str, grid))
        raise UsageError(
            f"strategy cells: -g {shown} has {math.prod(grid)} ranks, not {placement.ranks}"
        )
    cell = wanted.cell or ((1,) * len(grid) if wanted.walk == "H" else _node_cell(grid, placement))
    return placement.with_order(inverse(rank_list(grid, cell, wanted)))


def _node_cell(grid: Shape, placement: Placement) -> Shape:
    """Return the cell of least surface that holds a node's ranks."""
    ranks = math.gcd(*placement.counts.tolist())
    shapes = boxes_of(ranks, grid)
    if not len(shapes):
        raise UsageError(
            f"strategy cells: no cell of {ranks} ranks divides the grid", "give one with -c"
        )
    return tuple(shapes[int(np.argmin(shapes.sum(axis=1)))].tolist())


def rank_list(grid: Shape, cell: Shape, options: CellOptions) -> Ints:
    """Return the ranks in list order, int64 (ranks,).

    `grid`, `cell`: cells that do not divide the grid are cut off at its far edges.
    """
    if len(cell) != len(grid):
        raise UsageError(
            f"strategy cells: -c has {len(cell)} numbers, but the grid has {len(grid)} dimensions"
        )
    if options.columns:  # the same in a mirror: dimensions and numbering both turned round
        grid, cell = grid[::-1], cell[::-1]
    across = tuple(-(-extent // side) for extent, side in zip(grid, cell, strict=True))
    place = _cell_turns(across, options, len(grid))
    points = np.stack(np.unravel_index(np.arange(math.prod(grid)), grid), axis=1)
    of_cell = place[tuple((points // np.array(cell)).T)]
    return np.argsort(of_cell, kind="stable").astype(np.int64)


def _cell_turns(across: Shape, options: CellOptions, dims: int) -> Ints:
    """Return each cell's turn, as an array in the shape of the grid of cells."""
    if options.walk == "H":
        points = np.stack(np.unravel_index(np.arange(math.prod(across)), across), axis=1)
        sides = [k for k, extent in enumerate(across) if extent > 1]
        if not sides:
            return numbered(across)
        keys = hilbert_key(points[:, sides], tuple(across[k] for k in sides))
        return np.asarray(keys).reshape(across)
    order = list(range(dims))  # the dimension along which cells follow each other fastest is last
    if options.along:
        if sorted(options.along) != list(range(1, dims + 1)):
            raise UsageError(f"strategy cells: -o must name the dimensions 1 to {dims}, each once")
        order = [dims - k if options.columns else k - 1 for k in options.along][::-1]
    turned = numbered(tuple(across[k] for k in order))
    if options.walk == "P":  # every other row is walked backwards
        shape = turned.shape
        points = lay_grid((turned.size,), shape, (tuple(range(dims)),))
        turned = inverse(np.ravel_multi_index(tuple(points.T), shape)).reshape(shape)
    return np.asarray(turned.transpose(np.argsort(order)))
