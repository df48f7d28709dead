# SPDX-License-Identifier: Apache-2.0
"""What Slurm's three topology formats share: switches by name, and the tree they form.

``topology.conf``, ``topology.yaml`` and ``scontrol show topology`` word the
same thing differently. Each reader turns its words into `Declared` rows; here
the folded lists are expanded and the switches put below one another. What makes
no machine is refused: names twice, children that are not defined, loops. Switches that
are above the same ones are taken as one (`nidmap.placement.readers.parallel_switches`). What else
slurmctld refuses is said by ``machine check`` (`nidmap.placement.readers.slurm_rules`). A node
under two leaves of a tree, of which Slurm warns, has its place below the first one here; Slurm
counts it below both (22.05: its address is ``top.a,b.node``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nidmap.placement.errors import ParseError
from nidmap.placement.names import hostlist
from nidmap.placement.names.hostlist import TextPiece
from nidmap.placement.readers import MOST_NODES
from nidmap.placement.readers.parallel_switches import join_parallel
from nidmap.placement.records import Dump, Finding, LineCounts, NodeRecords, SwitchRecord

#: Slurm counts switches and blocks in sixteen bits.
MAX_SWITCHES = 65_534
#: slurmctld gives up on a tree ("is not a tree") after this many passes.
MAX_LEVELS = 20


class Declared(NamedTuple):
    """One switch, block or ring as written in a file, with lists still folded."""

    name: str
    # nodes, children: folded lists; '' for none
    nodes: str = ""
    children: str = ""
    line: int = 0
    level: int = -1  # as in the file, 0 at a leaf; -1 if not given


def expand(text: str, source: str, line: int, what: str) -> tuple[str, ...]:
    """Return the names in a folded list, in its order."""
    piece = [TextPiece(text, line)]
    try:
        if set(text) & set("*:#"):
            raise ParseError(source, line, f"{text!r} is not a list of names")
        if hostlist.count(piece, source) > MOST_NODES:
            raise ParseError(source, line, f"more than {MOST_NODES:,} names in one list")
        names = tuple(hostlist.expand(piece, source))
        if not names:
            raise ParseError(source, line, f"{text!r} lists no names")
    except ParseError as error:
        raise ParseError(source, line, f"{what}: {error.text}", error.hint) from None
    return names


def resolve_members(
    declared: Sequence[Declared], source: str
) -> tuple[tuple[SwitchRecord, ...], list[Finding]]:
    """Expand the lists of all switches, blocks or rings, and determine their levels.

    Returns `switches`: in the order given, each with its level; of one with nodes and children,
    as Slurm, the nodes.
    """
    switches: list[SwitchRecord] = []
    total = 0
    for row in declared:
        nodes, children = (
            tuple(dict.fromkeys(expand(folded, source, row.line, key))) if folded else ()
            for folded, key in (
                (row.nodes, "Nodes"),
                ("" if row.nodes else row.children, "Switches"),
            )
        )
        total += len(nodes) + len(children)
        if total > MOST_NODES:
            raise ParseError(source, row.line, f"more than {MOST_NODES:,} nodes in one topology")
        switches.append(SwitchRecord(row.name, nodes, children, row.line))
    below = _number_children(switches, source)
    heights = _switch_heights(below)
    loop = [s for s, height in zip(switches, heights, strict=True) if height < 0]
    if loop:
        names = ", ".join(s.name for s in loop[:8])
        text = f"the switches are not a tree: {names} are below themselves"
        raise ParseError(source, loop[0].line, text)
    if max(heights, default=0) > MAX_LEVELS:
        high = next(s for s, height in zip(switches, heights, strict=True) if height > MAX_LEVELS)
        text = f"switch {high.name} is more than {MAX_LEVELS} levels above its leaves"
        raise ParseError(source, high.line, text, f"Slurm takes {MAX_LEVELS} levels")
    joined, parallel = join_parallel(switches, below)
    heights = _switch_heights(_number_children(joined, source)) if parallel else heights
    placed = [replace(s, level=height) for s, height in zip(joined, heights, strict=True)]
    leaves, remarks = _below_one_leaf(placed)
    return leaves, [*parallel, *remarks]


def _number_children(switches: Sequence[SwitchRecord], source: str) -> list[list[int]]:
    """Return each switch's children as numbers, refusing anything but a tree."""
    index: dict[str, int] = {}
    for number, switch in enumerate(switches):
        first = index.setdefault(switch.name, number)
        if first != number:
            text = f"{switch.name} is already defined on line {switches[first].line}"
            raise ParseError(source, switch.line, text, "give it another name")
    for switch in switches:
        for child in switch.children:
            if child not in index:
                text = f"switch {switch.name} has a child {child} that is not defined"
                hint = "each switch needs a line of its own"
                raise ParseError(source, switch.line, text, hint)
    return [[index[child] for child in switch.children] for switch in switches]


def _switch_heights(below: Sequence[Sequence[int]]) -> list[int]:
    """Return each switch's height above its leaves; -1 on or above a loop."""
    above: list[list[int]] = [[] for _ in below]
    for i, children in enumerate(below):
        for child in children:
            above[child].append(i)
    waiting = [len(children) for children in below]
    height = [-1] * len(below)
    ready = [i for i, n in enumerate(waiting) if not n]
    for i in ready:  # grows during the loop
        height[i] = max((height[child] + 1 for child in below[i]), default=0)
        for up in above[i]:
            waiting[up] -= 1
            if not waiting[up]:
                ready.append(up)
    return height


def _below_one_leaf(
    switches: Sequence[SwitchRecord],
) -> tuple[tuple[SwitchRecord, ...], list[Finding]]:
    """Keep each node below the first leaf that lists it, with a remark on the others."""
    first: dict[str, SwitchRecord] = {}
    kept, remarks = [], []
    for switch in switches:
        again = [node for node in switch.nodes if first.setdefault(node, switch) is not switch]
        kept.append(switch)
        if again:
            other = first[again[0]]
            kept[-1] = replace(switch, nodes=tuple(n for n in switch.nodes if first[n] is switch))
            are = f" and {len(again) - 1} more are" if len(again) > 1 else " is"
            text = f"node {again[0]}{are} {_below_both(switch, other)}"
            hint = f"{other.name}, the first, counts; Slurm warns, and counts them below both"
            remarks.append(Finding(switch.line, "two-leaves", text, hint, fault=False))
    return tuple(kept), remarks


def _below_both(here: SwitchRecord, other: SwitchRecord) -> str:
    return f"below {here.name} and, on line {other.line}, below {other.name}"


def switch_dump(
    counts: LineCounts,
    kind: str,
    switches: tuple[SwitchRecord, ...],
    faults: Sequence[Finding],
    parameters: Mapping[str, object],
) -> Dump:
    """Return the dump of a Slurm topology, with nodes in leaf order."""
    leaves, nodes = [s for s in switches if s.nodes], None
    if leaves:
        sizes = [len(s.nodes) for s in leaves]
        nodes = NodeRecords(
            line=np.repeat(np.array([s.line for s in leaves], dtype=np.int32), sizes),
            name=np.array([n for s in leaves for n in s.nodes]),
            router=np.repeat(np.array([s.name for s in leaves]), sizes),
        )
    return Dump(
        counts,
        nodes=nodes,
        switches=switches,
        fabric=kind,
        parameters=parameters,
        findings=faults,
    )
