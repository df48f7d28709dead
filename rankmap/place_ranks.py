# SPDX-License-Identifier: Apache-2.0
"""Nodes and ranks per node as users write them: a node list and ``--ppn``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from nidmap.placement.errors import ParseError, PlanError, UsageError
from nidmap.placement.lookup import rows_of
from nidmap.placement.nodelist import NodeList
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Array, Ints, Strs
from nidmap.placement.support.quantities import counted

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine

    #: Nodes as a user of Python may name them.
    Nodes = str | NodeList | Sequence[str] | Ints | None

#: A repeat count after a node: ``*3``, ``:3`` or `` slots=3``, or after a name `` 3``.
_REPEAT = re.compile(
    r"(?:[*:]|\s+slots=)[0-9]+"
    r"|(?<![^\s,])((?!#?(?:\d[\d\-]*|\[[\d,\-]*\])[ \t])[^\s,]+)[ \t]+[0-9]+(?![^\s,])"
)
#: The number of a node instead of its name: a NID, a range of NIDs, an index.
_NUMBERED = re.compile(r"#.*|\d+(?:-\d+)?", re.ASCII)
_COUNT = re.compile(r"([0-9]{1,9})(?:\*([0-9]{1,9})|\(x([0-9]{1,9})\))?")


def place_ranks(
    machine: Machine | None,
    nodes: Nodes = None,
    ppn: str | int | Sequence[int] | None = None,
    source: str = "",
    repeats: bool = False,
) -> Placement:
    """Return ranks on nodes of a machine, rank r on slot r.

    `machine`: None where only the nodes' names are known: then they must be names. `nodes` (n,):
    the nodes in the order that numbers the slots: a text as ``--nodes`` takes it (names, cnames,
    NIDs, ``#`` indices, folded), names, or rows of the machine; None means all free compute nodes
    in NID order. `ppn`: ranks on each node: one number, or one a node (``24,24,12``), at most
    the slots that the list states; None means as many as these (``nid00045*3``), else 1.
    `repeats`: True for the text of a host file, where a node is listed once per rank; in any other
    text only ``*3`` repeats a node.
    """
    if isinstance(nodes, str):
        repeating = repeats or _REPEAT.search(nodes) is not None
    else:
        repeating = ppn is None
    nodes_listed: Array = (
        _rows_of_nodes(machine, nodes, source, repeating)
        if machine
        else _unknown_nodes(nodes, source)
    )
    if repeating and not repeats and isinstance(nodes, str):
        # Only *3 repeats a node: written twice it is a slip, and refused as one.
        place_ranks(machine, _REPEAT.sub(r"\1", nodes), 1, source)
    # Each node once, in order of first appearance, with its number of occurrences.
    once, first, counts = np.unique(nodes_listed, return_index=True, return_counts=True)
    order = np.argsort(first)
    once, counts = once[order], counts[order].astype(np.int64)
    names = machine.names[once] if machine else once
    if len(once) < len(nodes_listed) and not repeating:
        twice = names[int(np.argmax(counts > 1))]
        raise ParseError(source or "--nodes", 0, f"{twice} is given twice")
    if ppn is not None:
        wanted = parse_counts(ppn, len(once))
        # A node that is listed once may have any number of ranks; else it has as many slots.
        overfull = np.flatnonzero((wanted > counts) & (counts > 1))
        if len(overfull):
            k = overfull[0]
            fault = f"{names[k]} has {counts[k]} slots, --ppn wants {wanted[k]} ranks there"
            raise ParseError(source or "--nodes", 0, fault)
        counts = wanted
    if machine is None:
        return Placement(once, counts)
    return Placement.on_rows(machine, once, counts)


def parse_counts(ppn: str | int | Sequence[int], nodes: int, what: str = "--ppn") -> Ints:
    """Return the ranks on each of this many nodes.

    `ppn`: one number for all nodes, or one for each: ``24,24,12``, also shortened as ``24*2,12``
    or, as in Slurm's variables, ``24(x2),12``. `what`: what to call the text in an error.
    """
    if not isinstance(ppn, str):
        alike = groupby([ppn] if isinstance(ppn, int) else ppn)
        runs = [(value, len(list(same))) for value, same in alike]
        ppn = ",".join(str(value) if times == 1 else f"{value}*{times}" for value, times in runs)
    counts, times = [], []
    for text in ppn.split(","):
        match = _COUNT.fullmatch(text.strip())
        if not match or int(match[1]) < 1:
            raise UsageError(f"{what}: '{text}' is not a number of ranks", "write 24 or 24,24,12")
        counts.append(int(match[1]))
        times.append(int(match[2] or match[3] or 1))
    if ppn.strip().isdigit():
        times = [nodes]
    if sum(times) != nodes:
        have = counted(nodes, "node")
        raise UsageError(f"{what} has {sum(times)} numbers, but there are {have}")
    return np.repeat(np.array(counts, dtype=np.int64), times)


def _rows_of_nodes(machine: Machine, nodes: Nodes, source: str, repeats: bool) -> Ints:
    if nodes is None:
        rows = np.flatnonzero(machine.free)
        if not len(rows):
            hint = "name the nodes by --nodes"
            raise PlanError(f"{machine.name} has no free compute nodes", hint)
        return rows
    if isinstance(nodes, np.ndarray):
        return nodes.astype(np.int64)
    text = nodes if isinstance(nodes, str | NodeList) else NodeList(nodes)
    return rows_of(machine, text, source=source, repeats=repeats)


def _unknown_nodes(nodes: Nodes, source: str) -> Strs:
    """Return the names of nodes of which nothing else is known."""
    if nodes is None or isinstance(nodes, np.ndarray):
        raise UsageError("no nodes given, and no machine to take them from")
    names = list(NodeList.parse(nodes, source) if isinstance(nodes, str) else nodes)
    number = next(filter(_NUMBERED.fullmatch, names), None)
    if number is not None:
        raise UsageError(f"{number} is not a node name", "NIDs need a machine: use -m")
    return np.array(names)
