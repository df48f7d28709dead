"""What Slurm's three topology formats share: switches by name, and their rules.

``topology.conf``, ``topology.yaml`` and ``scontrol show topology`` word the
same thing differently. Each reader turns its words into `Declared` rows; here
the folded lists are expanded and the result is judged by Slurm's own rules
(read in the sources of its tree, block and ring plugins, 22.05 to 26.05):
what makes slurmctld stop is a fault, a `Finding`, what it only warns of is a
remark. A node under two leaves of a tree, of which Slurm warns, has its place
below the first one here; Slurm counts it below both (22.05: its address is
``top.a,b.node``). A switch with two parents, of which Slurm takes the last
one, is fatal: no machine is cabled so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice
from typing import NamedTuple

import numpy as np

from placement.errors import ParseError
from placement.lists import expanding
from placement.lists.expanding import TextPiece
from placement.readers.plain import MOST_NODES
from placement.records import Dump, Finding, LineCounts, NodeRecords, SwitchRecord

#: Slurm counts switches and blocks in sixteen bits.
MAX_SWITCHES = 65_534
#: slurmctld gives up on a tree ("is not a tree") after so many passes.
MAX_LEVELS = 20
#: Longest switch name that Slurm takes (HOST_NAME_MAX).
MAX_NAME = 64
#: More faults of one kind than this help nobody and can fill the memory.
MAX_FAULTS = 1000
#: Most nodes in one ring (MAX_RING_SIZE of topology/ring).
MAX_RING = 16

_OLD = "older Slurm versions refuse it"


class Declared(NamedTuple):
    """One switch, block or ring as a file words it, lists still folded.

    Attributes
    ----------
    name : str
    nodes, children : str
        Folded lists; '' for none.
    line : int
    level : int
        As the file says, 0 at a leaf; -1 where it does not.
    """

    name: str
    nodes: str = ""
    children: str = ""
    line: int = 0
    level: int = -1


def expand(text: str, source: str, line: int, what: str) -> tuple[str, ...]:
    """Return the names in a folded list, in its order.

    Raises
    ------
    ParseError
        At `line` of `source`, where the list is malformed or far too long.

    Examples
    --------
    >>> expand("n[1-3],m7", "topology.conf", 4, "Nodes")
    ('n1', 'n2', 'n3', 'm7')
    """
    piece = [TextPiece(text, line)]
    try:
        if set(text) & set("*:#"):
            raise ParseError(source, line, f"{text!r} is not a list of names")
        if expanding.count(piece, source) > MOST_NODES:
            raise ParseError(source, line, f"more than {MOST_NODES:,} names in one list")
        names = tuple(expanding.expand(piece, source))
        if not names:
            raise ParseError(source, line, f"{text!r} names nothing")
    except ParseError as error:
        raise ParseError(source, line, f"{what}: {error.text}", error.hint) from None
    return names


def first_repeat(names: Iterable[str]) -> str:
    """Return the first name that comes again, '' for none.

    Examples
    --------
    >>> first_repeat(["a", "b", "b", "a"])
    'b'
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""


def resolve(
    kind: str, declared: Sequence[Declared], source: str, *, both: bool = False
) -> tuple[tuple[SwitchRecord, ...], list[Finding]]:
    """Expand the lists of all switches and judge them by Slurm's rules.

    Parameters
    ----------
    kind : str
        ``tree``, ``block``, ``ring`` or ``torus3d``.
    declared : sequence of Declared
    source : str
        For errors.
    both : bool
        True where Slurm only warns of a switch with nodes and children (it
        then ignores the children, as in topology.yaml).

    Returns
    -------
    switches : tuple of SwitchRecord
        In the order given, each with its level.
    faults : list of Finding

    Raises
    ------
    ParseError
        Where a list cannot be read or the whole names too many nodes.
    """
    faults: list[Finding] = []
    switches: list[SwitchRecord] = []
    total = 0
    for row in declared:
        switch = _expand_switch(row, source, both, faults)
        total += len(switch.nodes) + len(switch.children)
        if total > MOST_NODES:
            raise ParseError(source, row.line, f"more than {MOST_NODES:,} nodes in one topology")
        switches.append(switch)
    if kind == "tree":
        for s in switches:
            if not s.nodes and not s.children:
                text = f"switch {s.name} has neither nodes nor switches"
                faults.append(Finding(s.line, "empty-switch", text, _OLD, fault=False))
    faults += _name_faults({"tree": "switch", "torus3d": "torus"}.get(kind, kind), switches)
    if kind == "tree":
        return _as_tree(_below_one_leaf(switches, faults), declared, faults), faults
    faults += _first_faults(_nodes_below_two(switches))
    for s in switches:
        if kind == "ring" and len(s.nodes) > MAX_RING:
            has = f"ring {s.name} has {len(s.nodes)} nodes"
            faults.append(Finding(s.line, "ring-size", f"{has}; Slurm takes at most {MAX_RING}"))
    return tuple(switches), faults


def _expand_switch(row: Declared, source: str, both: bool, faults: list[Finding]) -> SwitchRecord:
    """Return one switch with its lists expanded, repeats within a list dropped."""
    children = row.children
    if row.nodes and row.children:
        text = f"switch {row.name} has both nodes and switches"
        hint = "Slurm ignores the switches" if both else "only a leaf switch has nodes"
        faults.append(Finding(row.line, "both-nodes-and-switches", text, hint, fault=not both))
        children = ""
    below = []
    for folded, key, what in ((row.nodes, "Nodes", "node"), (children, "Switches", "switch")):
        names = expand(folded, source, row.line, key) if folded else ()
        twice = first_repeat(names)
        if twice:
            text = f"{what} {twice} is listed twice below {row.name}"
            fault = Finding(row.line, f"repeated-{what}", text, "taken as one", fault=False)
            faults.append(fault)
        below.append(tuple(dict.fromkeys(names)))
    return SwitchRecord(row.name, below[0], below[1], row.line, row.level if below[1] else 0)


def _first_faults(faults: Iterator[Finding]) -> list[Finding]:
    """Return some of the faults, the last one telling that there are more."""
    findings = list(islice(faults, MAX_FAULTS))
    rest = next(faults, None)
    return [*findings, replace(rest, text="and more of them", hint="")] if rest else findings


def _name_faults(word: str, switches: Iterable[SwitchRecord]) -> Iterator[Finding]:
    """Find names used twice and names that Slurm would not take."""
    first: dict[str, int] = {}
    for switch in switches:
        if switch.name in first:
            text = f"{word} {switch.name} is already defined on line {first[switch.name]}"
            yield Finding(switch.line, "duplicate-switch", text, "give it another name")
        first.setdefault(switch.name, switch.line)
        if len(switch.name) > MAX_NAME:
            text = f"{word} name {switch.name} is longer than {MAX_NAME} characters"
            yield Finding(switch.line, "switch-name", text)
        elif not switch.name.isprintable() or set(switch.name) & set(' ,[]"'):
            text = f"{word} name {switch.name!r} is not one plain name"
            yield Finding(switch.line, "switch-name", text, "one line for each of them")


def _below_one_leaf(switches: list[SwitchRecord], faults: list[Finding]) -> list[SwitchRecord]:
    """Leave each node of a tree below the first of its leaves, with a remark on the others."""
    first: dict[str, SwitchRecord] = {}
    kept = []
    for switch in switches:
        again: dict[str, list[str]] = {}
        for node in switch.nodes:
            other = first.setdefault(node, switch)
            if other is not switch:
                again.setdefault(other.name, []).append(node)
        faults += [_two_leaves(nodes, first[nodes[0]], switch) for nodes in again.values()]
        kept_nodes = tuple(n for n in switch.nodes if first[n] is switch) if again else switch.nodes
        kept.append(replace(switch, nodes=kept_nodes))
    return kept


def _two_leaves(nodes: list[str], first: SwitchRecord, later: SwitchRecord) -> Finding:
    """Return the remark on nodes of the leaf `later` that are below `first` already."""
    more = f" and {len(nodes) - 1} more are" if len(nodes) > 1 else " is"
    text = _below_both(f"node {nodes[0]}{more}", later, first)
    hint = f"{first.name}, the first, counts; Slurm warns, and counts them below both"
    return Finding(later.line, "two-leaves", text, hint, fault=False)


def _below_both(what: str, here: SwitchRecord, other: SwitchRecord) -> str:
    there = f"on line {other.line}, below {other.name}"
    return f"{what} below {here.name} and, {there}"


def _nodes_below_two(switches: Sequence[SwitchRecord]) -> Iterator[Finding]:
    """Find nodes in two blocks or rings."""
    where: dict[str, SwitchRecord] = {}
    for switch in switches:
        for node in switch.nodes:
            other = where.setdefault(node, switch)
            if other is not switch:
                text = _below_both(f"node {node} is", switch, other)
                yield Finding(switch.line, "duplicate-name", text)


def _as_tree(
    switches: Sequence[SwitchRecord], declared: Sequence[Declared], faults: list[Finding]
) -> tuple[SwitchRecord, ...]:
    """Give each switch of a tree its level and find what keeps it from being one."""
    index: dict[str, int] = {}
    for i, s in enumerate(switches):
        index.setdefault(s.name, i)
    below = [[index[c] for c in s.children if c in index] for s in switches]
    faults += _first_faults(_child_faults(switches, index))
    level = _levels(below)
    faults += _loop_faults(switches, below, level)
    deep = next((i for i, lv in enumerate(level) if lv > MAX_LEVELS), None)
    if deep is not None:
        text = f"switch {switches[deep].name} stands {level[deep]} levels above its leaves"
        faults.append(
            Finding(switches[deep].line, "depth", text, f"Slurm takes {MAX_LEVELS} levels")
        )
    for row, lv in zip(declared, level, strict=True):
        if row.level >= 0 and lv >= 0 and row.level != lv:
            says = f"switch {row.name} says level {row.level}"
            hint = "print the whole topology again"
            faults.append(Finding(row.line, "level", f"{says}, its switches make it {lv}", hint))
    return tuple(replace(s, level=lv) for s, lv in zip(switches, level, strict=True))


def _child_faults(switches: Sequence[SwitchRecord], index: dict[str, int]) -> Iterator[Finding]:
    """Find children that are not defined and children of two parents."""
    parent: dict[str, SwitchRecord] = {}
    undefined = 0
    for switch in switches:
        for child in switch.children:
            if child not in index:
                undefined += 1
                # the comparison is quadratic in the names' length and the number of them
                names = list(index)[:2000] if undefined <= 3 else []
                near = get_close_matches(child[:MAX_NAME], names, n=1)
                hint = "each switch needs a line of its own"
                hint = f"did you mean {near[0]}?" if near else hint
                has = f"switch {switch.name} has a child {child}"
                yield Finding(switch.line, "undefined-switch", f"{has} that is not defined", hint)
            other = parent.setdefault(child, switch)
            if other is not switch:
                text = _below_both(f"switch {child} is", switch, other)
                hint = "Slurm takes the last one; a tree has one parent a switch"
                yield Finding(switch.line, "two-parents", text, hint)


def _levels(below: Sequence[Sequence[int]]) -> list[int]:
    """Return each switch's height over its leaves, -1 on a loop and above one."""
    above: list[list[int]] = [[] for _ in below]
    for i, children in enumerate(below):
        for child in children:
            above[child].append(i)
    waiting = [len(children) for children in below]
    level = [-1] * len(below)
    ready = [i for i, n in enumerate(waiting) if not n]
    for i in ready:  # grows while it is walked
        level[i] = max((level[child] + 1 for child in below[i]), default=0)
        for up in above[i]:
            waiting[up] -= 1
            if not waiting[up]:
                ready.append(up)
    return level


def _loop_faults(
    switches: Sequence[SwitchRecord], below: Sequence[Sequence[int]], level: Sequence[int]
) -> Iterator[Finding]:
    """Find the loops: one fault for each, at its first line.

    A switch without a level has a child without one: who walks down from it
    comes into a loop.
    """
    done: set[int] = set()
    for start in range(len(level)):
        path: list[int] = []
        here = start
        while level[here] < 0 and here not in done:
            done.add(here)
            path.append(here)
            here = next(child for child in below[here] if level[child] < 0)
        if here in path:
            loop = path[path.index(here) :]
            names = " > ".join(switches[i].name for i in [*loop[:8], here])
            line = min(switches[i].line for i in loop)
            text = f"the switches are not a tree: {names}"
            yield Finding(line, "loop", text, "a switch cannot be below itself")


def block_size_faults(
    sizes: Sequence[int], line: int, blocks: Sequence[SwitchRecord]
) -> Iterator[Finding]:
    """Judge BlockSizes by Slurm's rule: the first times a power of two, up to 2^15.

    Examples
    --------
    >>> list(block_size_faults((4, 16), 9, ()))
    []
    >>> [fault.text for fault in block_size_faults((4, 12), 9, ())]
    ['block size 12 is not the base size 4 times a power of two']
    """
    base = sizes[0] if sizes else 0
    for size in sizes:
        if size < 1 or size not in {base << k for k in range(16)}:
            text = f"block size {size} is not the base size {base} times a power of two"
            yield Finding(line, "block-size", text)
    for b in blocks:
        if len(b.nodes) < base:
            has = f"block {b.name} has {len(b.nodes)} nodes"
            text = f"{has}, fewer than the base size {base}"
            yield Finding(b.line, "short-block", text, _OLD, fault=False)


def switch_dump(
    counts: LineCounts,
    kind: str,
    switches: tuple[SwitchRecord, ...],
    faults: Sequence[Finding],
    parameters: Mapping[str, object],
    nodes: NodeRecords | None = None,
) -> Dump:
    """Return the dump of a Slurm topology; its nodes, where none are given, leaf by leaf."""
    leaves = [s for s in switches if s.nodes]
    if nodes is None and leaves:
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
