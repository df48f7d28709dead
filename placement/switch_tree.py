# SPDX-License-Identifier: Apache-2.0
"""Slurm's switches over a machine, from its topology.conf or derived from its network.

Slurm's tree and dragonfly choices look at switches only. Where a
topology.conf (or ``scontrol show topology``) was read, its switches are
used. Elsewhere they follow from the machine's coordinates, as an
administrator would write them: the leaf is the first level of a tree, the
blade on XC, XE and XK, the router of a torus without cnames, the leaf module
of a fat tree, the switch on Slingshot; the levels above are the coordinates
above, and one root joins all.
"""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nidmap.placement.machine import Machine, Switches, once
from nidmap.placement.names import parse_cnames
from nidmap.placement.support.array_types import Ints, Strs


@once
def slurm_switches(machine: Machine) -> Switches:
    """Return the switches that Slurm sees.

    The machine's own where a topology.conf was given, whatever its kind; else a tree of its
    compute nodes, in Slurm's order: leaves first, each level in the order of its coordinates.
    Service nodes and nodes without a place hang on no switch (``leaf_of`` -1).
    """
    if machine.switches is not None:
        return machine.switches
    places, words = _name_leaves(machine)
    rows = np.flatnonzero(machine.compute & (places >= 0).all(axis=1))
    leaf_of = np.full(len(machine), -1, dtype=np.int32)
    if not len(rows):
        none = np.empty(0, dtype=np.int32)
        return Switches((), none, none, leaf_of)
    at, below = _distinct_rows(places[rows])
    leaf_of[rows] = below
    levels, parents = [at], []
    while at.shape[1] > 1:
        at, below = _distinct_rows(at[:, :-1])
        levels.append(at)
        parents.append(below)
    if len(at) > 1:
        parents.append(np.zeros(len(at), dtype=np.int64))
        levels.append(np.empty((1, 0), dtype=places.dtype))
    sizes = [len(at) for at in levels]
    shifted = [above + first for above, first in zip(parents, np.cumsum(sizes), strict=False)]
    parent = np.concatenate([*shifted, np.full(sizes[-1], -1)]).astype(np.int32)
    height = np.repeat(np.arange(len(levels), dtype=np.int32), sizes)
    forms = ["-".join(f"{word}%d" for word in words[: at.shape[1]]) or "root" for at in levels]
    names = tuple(  # by coordinates: ``group3-chassis1-blade5``
        form % tuple(row) for form, at in zip(forms, levels, strict=True) for row in at.tolist()
    )
    return Switches(names, parent, height, leaf_of)


def members(switches: Switches) -> list[Ints]:
    """Return the rows directly below each switch, in machine order; none above the leaves."""
    rows = np.argsort(switches.leaf_of, kind="stable")
    ends = np.searchsorted(switches.leaf_of[rows], np.arange(len(switches.names) + 1))
    return [rows[a:b] for a, b in pairwise(ends)]


def block_sizes(blocks: Switches) -> list[int]:
    """Return block sizes in nodes, base blocks' first; five if ``BlockSizes`` is missing.

    Slurm takes the first block's nodes for the base size then, and all powers
    of two of it up to 16.
    """
    if blocks.block_sizes:
        return sorted(blocks.block_sizes)
    base = max(1, int((blocks.leaf_of == 0).sum()))
    return [base << level for level in range(5)]


def subtree_sums(switches: Switches, at_leaf: Ints, combine: np.ufunc = np.add) -> Ints:
    """Return, for each switch, the sum over the leaves in its subtree.

    `at_leaf` (s,): a figure per leaf; what is at other switches counts, too. `combine`: what to
    do instead of adding, such as ``np.minimum``. Returns (s,).
    """
    total = at_leaf.astype(np.int64)
    for level in range(int(switches.level.max(initial=-1))):
        here = np.flatnonzero((switches.level == level) & (switches.parent >= 0))
        combine.at(total, switches.parent[here], total[here])
    return total


def forest_roots(switches: Switches) -> NDArray[np.int32]:
    """Return the root above each switch; a switch without a parent is its own root."""
    root = np.arange(len(switches.parent), dtype=np.int32)
    for level in range(int(switches.level.max(initial=0)) - 1, -1, -1):
        here = np.flatnonzero((switches.level == level) & (switches.parent >= 0))
        root[here] = root[switches.parent[here]]
    return root


def _distinct_rows(places: NDArray[np.int32]) -> tuple[NDArray[np.int32], Ints]:
    """Return the distinct rows in ascending order, and the index of each row in them."""
    shape = places.max(axis=0).astype(np.int64) + 1
    flat = np.ravel_multi_index(tuple(places.T), tuple(shape.tolist()))
    _, first, which = np.unique(flat, return_index=True, return_inverse=True)
    return places[first], which


def _name_leaves(machine: Machine) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Return the names above each node's leaf, outermost first, and what they denote."""
    topology = machine.topology
    if topology.kind == "torus" and machine.cname.astype(bool).any():
        parts = parse_cnames(machine.cname)
        return parts[:, [1, 0, 2, 3]], ("row", "cabinet", "cage", "blade")
    words = tuple(f"{w}-" if w[-1].isdigit() else w for w in topology.levels[:-1])
    return machine.coords[:, : len(words)], words


_TOKEN = re.compile(r"[0-9]+|[^0-9]")


def slurm_order(names: Strs) -> Ints:
    """Return the indices that sort node names in Slurm's order.

    `names` (n,). Returns (n,): ``names[slurm_order(names)]`` is sorted as slurmctld's node table
    is.
    """
    if _digits_alike(names):
        if bool((names[:-1] <= names[1:]).all()):
            return np.arange(len(names), dtype=np.int64)
        return np.argsort(names, kind="stable")
    keys = [_slurm_key(name) for name in names.tolist()]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


@once
def machine_slurm_order(machine: Machine) -> Ints:
    """Return a machine's rows in slurmctld's sort order; computed once per machine."""
    return slurm_order(machine.names)


#: Turns every digit into a zero.
_ZEROS = str.maketrans("123456789", "0" * 9)


def _digits_alike(names: Strs) -> bool:
    """Tell whether all names differ only in digits, at the same positions.

    Then comparing them character by character is Slurm's order.
    """
    return len({name.translate(_ZEROS) for name in names.tolist()}) < 2


def _slurm_key(name: str) -> tuple[tuple[int, int, int, str], ...]:
    """Return a key that sorts as Slurm compares: character codes, and numbers by value.

    A run of digits is at its first digit's place among the characters. With a
    leading zero it comes before every run without and is compared as text.
    """
    return tuple(
        (ord("0"), *((0, 0, word) if word[0] == "0" else (1, len(word), word)))
        if word[0] in "0123456789"
        else (ord(word), 0, 0, "")
        for word in _TOKEN.findall(name)
    )
