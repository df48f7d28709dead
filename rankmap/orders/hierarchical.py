# SPDX-License-Identifier: Apache-2.0
"""Hierarchical: DASH's automatic hierarchical unit mapping, its ten steps and Algorithm 1.

K. Idrees, T. Fuchs and C. W. Glass, "Effective use of the PGAS Paradigm",
section 3.4. Steps 1 to 5 (who is where) are the slots; step 6 sorts the nodes
by all levels; step 7 is the pattern's grid; step 8 chooses the multicore
group, a box of a node's units in the permutation that divides the grid;
step 9 is Algorithm 1, which numbers units block by block: group by group on a
blade, blade by blade in a chassis, chassis by chassis in a group, group by
group; step 10 is the order itself.

The paper elides the offsets of its lines 16 and 17. They follow from line 18,
where a block's side is the product of the sides of what it holds: a chassis
block is N2[0]*N0[0] by N2[1]*N1[0]*N0[1] by N2[2]*N1[1]*N0[2] units, and so
on up. So the units that the loops meet one after another are the cells of
nested boxes (`nidmap.rankmap.grid.traversal.cells_in`); their number is checked with >=, not
with > as in line 13. `unitID[k]` is the rank at hardware slot k, the inverse
of an order's slots.

Where a level has fewer nodes than it could, the next ones that are there take
their place in the walk.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from nidmap.placement.errors import UsageError, printable
from nidmap.placement.names import parse_cnames
from nidmap.placement.permutation import inverse
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Ints, Shape
from nidmap.rankmap.grid.dims import balanced_factors, factorisations, shape_turns
from nidmap.rankmap.grid.traversal import cells_in
from nidmap.rankmap.orders import grid_of, ordering
from nidmap.rankmap.pattern import Pattern
from nidmap.rankmap.pattern.structured import GridPattern, Stencil
from nidmap.rankmap.pattern.tiling import weight_inside
from nidmap.rankmap.units import slots_by_node

#: By the outermost block: the weight parted, and the blocks from the innermost on.
Chains = dict[Shape, tuple[float, list[Shape]]]

#: A level's block that no permutation fits is tried in this many other shapes at most.
MOST_OTHERS = 64


@ordering("hierarchical")
def hierarchical(pattern: Pattern, placement: Placement, options: str = "") -> Placement:
    """Map units as DASH does: multicore groups into blade blocks, those into chassis blocks.

    `pattern`: with a process grid. `options`: ``levels=machine`` (default) or ``levels=paper``,
    and ``relax``, separated by commas.
    """
    words = [word.strip() for word in options.split(",") if word.strip()]
    wrong = next((w for w in words if w not in ("relax", "levels=paper", "levels=machine")), None)
    if wrong is not None:
        raise UsageError(
            f"strategy hierarchical: unknown option '{printable(wrong, 40)}'",
            "choose from relax, levels=machine, levels=paper",
        )
    if {"levels=paper", "levels=machine"} <= set(words):
        raise UsageError("strategy hierarchical: levels is given twice")
    dims = grid_of(pattern, "hierarchical")
    nodes = sorted_nodes(placement, "levels=paper" in words)
    unit = cells_in(dims, chain_of(pattern, placement, "relax" in words))
    return placement.with_order(slots_by_node(placement, nodes)[inverse(unit)])


def sorted_nodes(placement: Placement, paper: bool = False) -> Ints:
    """Return the nodes sorted by all levels (step 6), as positions of the allocation.

    `paper`: True for column, row, chassis, blade, node of the cnames as the paper has it: on an
    XC, whose groups are two cabinets side by side in a row, that tears a group's two cabinets
    apart. False for the network's own levels, outermost first.
    """
    machine = placement.machine
    if machine is None:
        if paper:
            raise UsageError("levels=paper sorts by cnames, but no machine is given", "use -m")
        return np.arange(len(placement.counts))
    if not paper:
        return np.lexsort(machine.coords[placement.rows].T[::-1])
    cnames = machine.cname[placement.rows]
    if not len(cnames) or (cnames == "").any():
        raise UsageError(f"levels=paper sorts by cnames, which {machine.name} does not have")
    return np.lexsort(parse_cnames(cnames).T[::-1])


def chain_of(pattern: Pattern, placement: Placement, relax: bool = False) -> list[Shape]:
    """Return the blocks of all levels in units, multicore groups first (steps 7 and 8).

    Of all permutations that divide the grid those with the fewest neighbours
    parted are taken.
    """
    dims = pattern.dims or ()
    model = pattern if isinstance(pattern, GridPattern) else Stencil(dims)
    group = math.gcd(*placement.counts.tolist())
    turns = shape_turns(balanced_factors(group, len(dims)))
    groups = [shape for shape in turns if _divides_grid(shape, dims)]
    if not groups and relax:
        groups = list(factorisations(group, dims))
    if not groups:
        tried = ", ".join("x".join(map(str, box)) for box in turns)
        grid = "x".join(map(str, dims))
        raise UsageError(
            f"no multicore group of {group} units divides the grid {grid}: tried {tried}",
            "--strategy hierarchical:relax uses another shape if there is one",
        )
    chains: Chains = {shape: (_weight_parted(model, shape), [shape]) for shape in groups}
    for place, size in enumerate(_level_sizes(placement)):
        chains = _next_level(model, chains, size, flat=place == 0)
    return min(chains.values(), key=lambda priced: priced[0])[1]


def _divides_grid(shape: Shape, dims: Shape) -> bool:
    return all(extent % side == 0 for side, extent in zip(shape, dims, strict=True))


def _weight_parted(model: GridPattern, box: Shape) -> float:
    """Return the weight between blocks, up to a constant common to all shapes."""
    volume = math.prod(box)
    # Weight parted = all weight - blocks * weight inside one; the first is the same for all shapes.
    return -float(weight_inside(model, np.array([box]))[0]) * (math.prod(model.dims or ()) / volume)


def _next_level(model: GridPattern, below: Chains, size: int, flat: bool) -> Chains:
    """Return blocks of `size` blocks of the level below, each with its cheapest chain.

    Where `size` of them make no block, the level is passed over: its nodes
    come one after another in the walk as they are.
    """
    chains: Chains = {}
    for box, (cost, chain) in below.items():
        for factor in _blocks_to_try(size, box, model.dims or (), flat):
            block = tuple(side * f for side, f in zip(box, factor, strict=True))
            total = cost + _weight_parted(model, block)
            if block not in chains or total < chains[block][0]:
                chains[block] = total, [*chain, block]
    return chains or below


def _blocks_to_try(size: int, box: Shape, dims: Shape, flat: bool) -> list[Shape]:
    """Return candidate shapes of a block, in blocks of the level below per dimension.

    On a blade the paper lays nodes out in two dimensions, the last two (g and
    h in its line 11).
    """
    left = tuple(extent // side for extent, side in zip(dims, box, strict=True))
    free = 2 if flat and len(dims) > 2 else len(dims)
    lead = (1,) * (len(dims) - free)
    shapes = [(*lead, *shape) for shape in shape_turns(balanced_factors(size, free))]
    fitting = [shape for shape in shapes if _divides_grid(shape, left)]
    return fitting or list(itertools.islice(factorisations(size, left), MOST_OTHERS))


def _level_sizes(placement: Placement) -> list[int]:
    """Return how many units of the level below each level holds, nodes per blade first.

    As many as the allocation has in every unit where these agree, else as
    many as the fullest has. What is outermost takes all that is left.
    """
    if placement.machine is None:
        return []
    coords = placement.machine.coords[placement.rows].astype(np.int64)
    sizes = []
    held = np.arange(len(coords))
    for depth in range(coords.shape[1] - 1, 0, -1):
        above = np.unique(coords[:, :depth], axis=0, return_inverse=True)[1].reshape(-1)
        first = np.unique(held, return_index=True)[1]
        sizes.append(int(np.bincount(above[first]).max()))
        held = above
    return sizes
