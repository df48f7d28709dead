"""What Slurm's three topology formats share: switches by name, and their rules.

``topology.conf``, ``topology.yaml`` and ``scontrol show topology`` word the
same thing differently. Each reader turns its words into `Declared` rows; here
the folded lists are expanded and the result is judged by Slurm's own rules
(read in the sources of its tree, block and ring plugins, 22.05 to 26.05):
what makes slurmctld stop is a fatal `Fault`, what it only warns of is a
remark. A node under two leaves of a tree, of which Slurm warns, has its place
below the first one here; Slurm counts it below both (22.05: its address is
``top.a,b.node``). A switch with two parents, of which Slurm takes the last
one, is fatal: no machine is cabled so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from placement.errors import ParseError, printable
from placement.records import Dump, Fault, NodeRecords, SwitchRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from placement.records import LineCounts

__all__ = [
    "MAX_NODES",
    "MAX_SWITCHES",
    "Declared",
    "block_size_faults",
    "expand",
    "resolve",
    "switch_dump",
]

#: Most nodes that one dump may name; the largest machines have some 160,000.
MAX_NODES = 500_000
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

_WORD = re.compile(r"(?:[^\s,\[\]]|\[[^\[\]]*\])+")
_BRACKET = re.compile(r"\[([^\[\]]*)\]")


@dataclass(frozen=True, slots=True)
class Declared:
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
    from placement.lists import expanding
    from placement.lists.piece import Piece

    if _bound(text) > MAX_NODES:
        raise ParseError(source, line, f"{what}: more than {MAX_NODES:,} names in one list")
    if set(text) & set("*:#"):
        raise ParseError(source, line, f"{what}: {printable(text)!r} is not a list of names")
    try:
        names = tuple(expanding.expand([Piece(text, line)], source))
    except ParseError as error:
        raise ParseError(source, line, f"{what}: {error.text}", error.hint) from None
    if not names:
        raise ParseError(source, line, f"{what}: {printable(text)!r} names nothing")
    return names


def _bound(text: str) -> int:
    """Return how many names a folded list holds at most, without making them."""
    total = 0
    for word in _WORD.findall(text):
        names = 1
        for inner in _BRACKET.findall(word):
            names *= sum(_span(part) for part in inner.split(","))
            if names > MAX_NODES:
                return names
        total += names
    return total


def _is_number(text: str) -> bool:
    """Tell ASCII digits from what Python also calls digits ('²'), which int() refuses."""
    return text.isascii() and text.isdigit()


def _span(part: str) -> int:
    first, dash, last = part.partition("-")
    if not dash or not _is_number(first + last) or len(first + last) > 40:
        return 1  # no range, or none that the parser would take
    return max(int(last or 0) - int(first or 0) + 1, 1)


def resolve(
    kind: str, declared: Sequence[Declared], source: str, *, both: bool = False
) -> tuple[tuple[SwitchRecord, ...], list[Fault]]:
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
    faults : list of Fault

    Raises
    ------
    ParseError
        Where a list cannot be read or the whole names too many nodes.
    """
    faults: list[Fault] = []
    switches: list[SwitchRecord] = []
    total = 0
    for row in declared:
        switch = _expanded(row, source, both, faults)
        total += len(switch.nodes) + len(switch.children)
        if total > MAX_NODES:
            raise ParseError(source, row.line, f"more than {MAX_NODES:,} nodes in one topology")
        switches.append(switch)
    faults += _empty_faults(kind, switches)
    faults += _name_faults(kind, switches)
    if kind == "tree":
        switches = _below_one_leaf(switches, faults)
        leveled, tree_faults = _leveled(switches, declared)
        return leveled, faults + tree_faults
    faults += _node_faults(switches)
    if kind == "ring":
        faults += _ring_faults(switches)
    return tuple(switches), faults


def _expanded(row: Declared, source: str, both: bool, faults: list[Fault]) -> SwitchRecord:
    """Return one switch with its lists expanded, repeats within a list dropped."""
    name = printable(row.name)
    children_text = row.children
    if row.nodes and row.children:
        text = f"switch {name} has both nodes and switches"
        hint = "Slurm ignores the switches" if both else "only a leaf switch has nodes"
        faults.append(Fault(row.line, "both-nodes-and-switches", text, hint, fatal=not both))
        children_text = ""
    nodes = expand(row.nodes, source, row.line, "Nodes") if row.nodes else ()
    children = expand(children_text, source, row.line, "Switches") if children_text else ()
    return SwitchRecord(
        name=row.name,
        nodes=_once(nodes, row, "node", faults),
        children=_once(children, row, "switch", faults),
        line=row.line,
        level=row.level if children else 0,
    )


def _once(names: tuple[str, ...], row: Declared, what: str, faults: list[Fault]) -> tuple[str, ...]:
    """Drop repeats in one list, with a remark: Slurm takes them as one."""
    kept = dict.fromkeys(names)
    if len(kept) == len(names):
        return names
    seen: set[str] = set()
    twice = next(n for n in names if n in seen or seen.add(n))  # type: ignore[func-returns-value]  # add() is the step to the next
    text = f"{what} {printable(twice)} is listed twice below {printable(row.name)}"
    faults.append(Fault(row.line, f"repeated-{what}", text, "taken as one", fatal=False))
    return tuple(kept)


def _empty_faults(kind: str, switches: Iterable[SwitchRecord]) -> list[Fault]:
    """Remark on leaves without nodes, which Slurm 22.05 refuses and later versions take."""
    if kind != "tree":
        return []
    text = "has neither nodes nor switches"
    return [
        Fault(s.line, "empty-switch", f"switch {printable(s.name)} {text}", _OLD, fatal=False)
        for s in switches
        if not s.nodes and not s.children
    ]


def _name_faults(kind: str, switches: Iterable[SwitchRecord]) -> list[Fault]:
    """Find names used twice and names that Slurm would not take."""
    word = {"tree": "switch", "torus3d": "torus"}.get(kind, kind)
    faults = []
    first: dict[str, int] = {}
    for switch in switches:
        name = printable(switch.name)
        if switch.name in first:
            text = f"{word} {name} is already defined on line {first[switch.name]}"
            faults.append(Fault(switch.line, "duplicate-switch", text, "give it another name"))
        first.setdefault(switch.name, switch.line)
        if len(switch.name) > MAX_NAME:
            text = f"{word} name {name} is longer than {MAX_NAME} characters"
            faults.append(Fault(switch.line, "switch-name", text))
        elif not switch.name.isprintable() or set(switch.name) & set(' ,[]"'):
            text = f"{word} name {name!r} is not one plain name"
            faults.append(Fault(switch.line, "switch-name", text, "one line for each of them"))
    return faults


def _below_one_leaf(switches: list[SwitchRecord], faults: list[Fault]) -> list[SwitchRecord]:
    """Leave each node of a tree below the first of its leaves, with a remark on the others."""
    if len(set().union(*(s.nodes for s in switches))) == sum(len(s.nodes) for s in switches):
        return switches
    first: dict[str, SwitchRecord] = {}
    kept = []
    for switch in switches:
        again: dict[str, list[str]] = {}
        for node in switch.nodes:
            other = first.setdefault(node, switch)
            if other is not switch:
                again.setdefault(other.name, []).append(node)
        faults += [_two_leaves(nodes, first[nodes[0]], switch) for nodes in again.values()]
        kept.append(replace(switch, nodes=tuple(n for n in switch.nodes if first[n] is switch)))
    return kept


def _two_leaves(nodes: list[str], one: SwitchRecord, other: SwitchRecord) -> Fault:
    """Return the remark on nodes of the leaf `other` that are below `one` already."""
    more = f" and {len(nodes) - 1} more are" if len(nodes) > 1 else " is"
    here, before = printable(other.name), printable(one.name)
    text = f"node {printable(nodes[0])}{more} below {here} and, on line {one.line}, below {before}"
    hint = f"{before}, the first, counts; Slurm warns, and counts them below both"
    return Fault(other.line, "two-leaves", text, hint, fatal=False)


def _node_faults(switches: Sequence[SwitchRecord]) -> list[Fault]:
    """Find nodes in two blocks or rings."""
    where: dict[str, SwitchRecord] = {}
    faults: list[Fault] = []
    for switch in switches:
        for node in switch.nodes:
            other = where.setdefault(node, switch)
            if other is not switch:
                text = (
                    f"node {printable(node)} is below {printable(switch.name)} and, "
                    f"on line {other.line}, below {printable(other.name)}"
                )
                faults.append(Fault(switch.line, "duplicate-name", text))
                if len(faults) == MAX_FAULTS:
                    return [*faults, Fault(switch.line, "duplicate-name", "and more of them")]
    return faults


def _ring_faults(switches: Iterable[SwitchRecord]) -> list[Fault]:
    return [
        Fault(
            s.line,
            "ring-size",
            f"ring {printable(s.name)} has {len(s.nodes)} nodes; Slurm takes at most {MAX_RING}",
        )
        for s in switches
        if len(s.nodes) > MAX_RING
    ]


def _leveled(
    switches: Sequence[SwitchRecord], declared: Sequence[Declared]
) -> tuple[tuple[SwitchRecord, ...], list[Fault]]:
    """Give each switch of a tree its level and find what keeps it from being one."""
    index = {s.name: i for i, s in enumerate(reversed(switches))}
    index = {name: len(switches) - 1 - i for name, i in index.items()}
    below = [[index[c] for c in s.children if c in index] for s in switches]
    faults = _child_faults(switches, index)
    level = _levels(below)
    faults += _loop_faults(switches, below, level)
    faults += _depth_faults(switches, level)
    faults += _level_faults(declared, level)
    return (
        tuple(
            SwitchRecord(s.name, s.nodes, s.children, s.line, lv)
            for s, lv in zip(switches, level, strict=True)
        ),
        faults,
    )


def _child_faults(switches: Sequence[SwitchRecord], index: dict[str, int]) -> list[Fault]:
    """Find children that are not defined and children of two parents."""
    parent: dict[str, SwitchRecord] = {}
    faults: list[Fault] = []
    for switch in switches:
        for child in switch.children:
            if len(faults) >= MAX_FAULTS:
                return [*faults, Fault(switch.line, "undefined-switch", "and more of them")]
            if child not in index:
                faults.append(_undefined(switch, child, index if len(faults) < 3 else {}))
            other = parent.setdefault(child, switch)
            if other is not switch:
                text = (
                    f"switch {printable(child)} is below {printable(switch.name)} and, "
                    f"on line {other.line}, below {printable(other.name)}"
                )
                hint = "Slurm takes the last one; a tree has one parent a switch"
                faults.append(Fault(switch.line, "two-parents", text, hint))
    return faults


def _undefined(switch: SwitchRecord, child: str, index: dict[str, int]) -> Fault:
    from difflib import get_close_matches

    # The comparison is quadratic in the names' length and the number of them.
    near = get_close_matches(child[:MAX_NAME], list(index)[:2000], n=1)
    hint = f"is {printable(near[0])} meant?" if near else "each switch needs a line of its own"
    text = f"switch {printable(switch.name)} has a child {printable(child)} that is not defined"
    return Fault(switch.line, "undefined-switch", text, hint)


def _levels(below: Sequence[Sequence[int]]) -> list[int]:
    """Return each switch's height over its leaves, -1 on a loop and above one."""
    above: list[list[int]] = [[] for _ in below]
    waiting = [len(children) for children in below]
    for i, children in enumerate(below):
        for child in children:
            above[child].append(i)
    level = [0 if not n else -1 for n in waiting]
    height = [0] * len(below)
    ready = [i for i, n in enumerate(waiting) if not n]
    for i in ready:  # grows while it is walked
        for up in above[i]:
            height[up] = max(height[up], height[i] + 1)
            waiting[up] -= 1
            if not waiting[up]:
                level[up] = height[up]
                ready.append(up)
    return level


def _loop_faults(
    switches: Sequence[SwitchRecord], below: Sequence[Sequence[int]], level: Sequence[int]
) -> list[Fault]:
    """Find the loops: one fault for each, at its first line."""
    stuck = {i for i, lv in enumerate(level) if lv < 0}
    faults = []
    while stuck:
        loop = _one_loop(min(stuck), below, stuck)
        if not loop:
            break
        names = " > ".join(printable(switches[i].name) for i in [*loop[:8], loop[0]])
        line = min(switches[i].line for i in loop)
        text = f"the switches are not a tree: {names}"
        faults.append(Fault(line, "loop", text, "a switch cannot be below itself"))
        stuck -= _reaching(loop, below, stuck)
    return faults


def _one_loop(start: int, below: Sequence[Sequence[int]], stuck: set[int]) -> list[int]:
    """Walk down from a stuck switch through stuck ones until one comes again."""
    path: dict[int, int] = {}
    here: int | None = start
    while here is not None and here not in path:
        path[here] = len(path)
        here = next((c for c in below[here] if c in stuck), None)
    return [] if here is None else list(path)[path[here] :]


def _reaching(loop: Sequence[int], below: Sequence[Sequence[int]], stuck: set[int]) -> set[int]:
    """Return the stuck switches from which the loop can be reached, itself included."""
    above: dict[int, list[int]] = {i: [] for i in stuck}
    for i in stuck:
        for child in below[i]:
            if child in stuck:
                above[child].append(i)
    found = set(loop)
    todo = list(loop)
    while todo:
        for up in above[todo.pop()]:
            if up not in found:
                found.add(up)
                todo.append(up)
    return found


def _depth_faults(switches: Sequence[SwitchRecord], level: Sequence[int]) -> list[Fault]:
    deep = next((i for i, lv in enumerate(level) if lv > MAX_LEVELS), None)
    if deep is None:
        return []
    name = printable(switches[deep].name)
    text = f"switch {name} stands {level[deep]} levels above its leaves"
    return [Fault(switches[deep].line, "depth", text, f"Slurm takes {MAX_LEVELS} levels")]


def _level_faults(declared: Sequence[Declared], level: Sequence[int]) -> list[Fault]:
    """Compare the levels that ``scontrol show topology`` states with the tree's."""
    return [
        Fault(
            row.line,
            "level",
            f"switch {printable(row.name)} says level {row.level}, its switches make it {lv}",
            "print the topology again, whole",
        )
        for row, lv in zip(declared, level, strict=True)
        if row.level >= 0 and lv >= 0 and row.level != lv
    ]


def block_size_faults(
    sizes: Sequence[int], line: int, blocks: Sequence[SwitchRecord]
) -> list[Fault]:
    """Judge BlockSizes by Slurm's rule: the first times a power of two, up to 2^15.

    Examples
    --------
    >>> block_size_faults((4, 16), 9, ())
    []
    >>> block_size_faults((4, 12), 9, ())[0].text
    'block size 12 is not the base size 4 times a power of two'
    """
    if not sizes:
        return []
    base = sizes[0]
    allowed = {base << k for k in range(16)}
    faults = [
        Fault(
            line,
            "block-size",
            f"block size {size} is not the base size {base} times a power of two",
        )
        for size in sizes
        if size < 1 or size not in allowed
    ]
    return faults + [
        Fault(
            b.line,
            "short-block",
            f"block {printable(b.name)} has {len(b.nodes)} nodes, fewer than the base size {base}",
            _OLD,
            fatal=False,
        )
        for b in blocks
        if len(b.nodes) < base
    ]


def switch_dump(
    format: str,  # noqa: A002  # the field of Dump that it fills
    source: str,
    counts: LineCounts,
    kind: str,
    switches: tuple[SwitchRecord, ...],
    faults: Sequence[Fault],
    parameters: dict[str, object] | None = None,
) -> Dump:
    """Return the dump of a Slurm topology, its nodes in the order of their leaves."""
    return Dump(
        format=format,
        source=source,
        counts=counts,
        nodes=_nodes(switches),
        switches=switches,
        fabric=kind,
        parameters=parameters or {},
        faults=tuple(sorted(faults, key=lambda f: f.line)),
    )


def _nodes(switches: Sequence[SwitchRecord]) -> NodeRecords | None:
    """Return one row a node: its name, its leaf and the line of that."""
    import numpy as np

    leaves = [s for s in switches if s.nodes]
    if not leaves:
        return None
    many = [len(s.nodes) for s in leaves]
    return NodeRecords(
        line=np.repeat(np.array([s.line for s in leaves], dtype=np.int32), many),
        name=np.array([n for s in leaves for n in s.nodes]),
        router=np.repeat(np.array([s.name for s in leaves]), many),
    )
