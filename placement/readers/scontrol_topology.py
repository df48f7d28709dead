"""The output of ``scontrol show topology``: tree, block and ring.

Every line is one switch or block. A tree prints every switch with all nodes
below it; block prints its base blocks and then, from Slurm 24.11 on, the
aggregated ones that BlockSizes makes. A torus prints its nodes in the order
of the node table, so their places cannot be had from it: topology.yaml is the
file to read there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from placement.errors import ParseError, printable
from placement.readers.plain import count_lines, refuse_empty, split_lines
from placement.readers.slurm_switches import (
    Declared,
    block_size_faults,
    expand,
    resolve,
    switch_dump,
)
from placement.readers.topology_conf import statements
from placement.records import Fault, LineCounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placement.readers.topology_conf import Statement
    from placement.records import Dump, SwitchRecord

__all__ = ["read", "sniff"]

#: What a line begins with, the kind it is of, and the keywords it must and may have.
KINDS = {
    "switchname": ("tree", ("level",), ("linkspeed", "nodes", "switches")),
    "blockname": ("block", ("blockindex",), ("nodes", "blocksize")),
    "aggregatedblock": ("block", ("blockindex",), ("nodes", "blocksize")),
    "ringname": ("ring", ("ringsize",), ("nodes",)),
    "torusname": ("torus3d", (), ("dims", "nodes", "placementdims", "anchors")),
}

_LINE = re.compile(
    r"^[ \t]*(?:SwitchName=\S+ Level=\d|(?:BlockName|AggregatedBlock)=\S+ BlockIndex=\d|"
    r"RingName=\S+ (?:Nodes=\S+ )?RingSize=\d|TorusName=\S+ Dims=)",
    re.MULTILINE,
)
_CUT = "unset SLURM_TOPO_LEN and print it again: it cuts the lines"


def sniff(head: str) -> bool:
    r"""Say whether the first lines look like ``scontrol show topology``.

    Examples
    --------
    >>> sniff("SwitchName=s0 Level=0 LinkSpeed=1 Nodes=dev[0-5]\n")
    True
    """
    return bool(_LINE.search(head))


def read(text: str, source: str) -> Dump:
    """Read the output of ``scontrol show topology``.

    Parameters
    ----------
    text : str
    source : str
        File name, for errors.

    Returns
    -------
    Dump
        As of `topology_conf.read`; the nodes of upper switches are those of
        their leaves, and aggregated blocks leave only their sizes in
        ``parameters["block_sizes"]``.

    Raises
    ------
    ParseError
        Where a line is not one that scontrol prints, or is cut off.

    Examples
    --------
    >>> text = '''SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-2]
    ... SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-2] Switches=s0
    ... '''
    >>> [(s.name, s.nodes, s.children) for s in read(text, "-").switches]
    [('s0', ('n1', 'n2'), ()), ('top', (), ('s0',))]
    """
    lines = split_lines(text, source)
    counts = count_lines(lines)
    found = list(statements(lines, source, "scontrol-topology"))
    refuse_empty(counts if found else LineCounts(0), source, "SwitchName or BlockName")
    kind = _kind(found, source)
    base = [s for s in found if _is_base(s)]
    if not base:
        raise ParseError(source, found[0].line, f"no {kind} of its own, only aggregated ones")
    switches, faults = resolve(kind, [_declared(s, source) for s in base], source)
    parameters: dict[str, object] = {}
    if kind == "tree":
        faults += _missing_nodes(base, switches, source)
    elif kind == "block":
        faults += _sizes(found, source, parameters)
    elif kind == "torus3d":
        faults.append(_no_places(base[0]))
    return switch_dump("scontrol-topology", source, counts, kind, switches, faults, parameters)


def _kind(found: Sequence[Statement], source: str) -> str:
    first = found[0]
    kind = KINDS.get(first.key, ("", (), ()))[0]
    for statement in found:
        this, must, may = KINDS.get(statement.key, ("", (), ()))
        odd = [key for key in statement.rest if key not in must + may]
        if not this or odd:
            key = printable(odd[0] if this else statement.key)
            text = f"scontrol show topology prints no {key!r}"
            raise ParseError(source, statement.line, text, "is this its whole output?")
        if this != kind:
            text = f"a {this} topology here and a {kind} topology on line {first.line}"
            raise ParseError(source, statement.line, text, "print one topology at a time")
        for key in must:
            _number(statement, key, source)
    return kind


def _number(statement: Statement, key: str, source: str) -> int:
    """Return a number that scontrol prints on every such line."""
    word = statement.rest.get(key, "")
    if not (word.isascii() and word.isdigit() and len(word) < 10):
        what = f"no {key}" if not word else f"{key} {printable(word)!r} is not a number"
        raise ParseError(source, statement.line, f"{printable(statement.value)}: {what}", _CUT)
    return int(word)


def _is_base(statement: Statement) -> bool:
    """Say whether a line is a switch, ring or base block: not one made of others."""
    if statement.key == "torusname":
        return "dims" in statement.rest
    if statement.key == "blockname":
        return not set(statement.value) & set("[,")
    return statement.key != "aggregatedblock"


def _declared(statement: Statement, source: str) -> Declared:
    nodes = statement.rest.get("nodes", "")
    if statement.key != "switchname":
        return Declared(statement.value, nodes, line=statement.line)
    level = _number(statement, "level", source)
    children = statement.rest.get("switches", "")
    if level and not children:
        text = f"switch {printable(statement.value)} of level {level} has no Switches"
        raise ParseError(source, statement.line, text, _CUT)
    return Declared(statement.value, "" if level else nodes, children, statement.line, level)


def _missing_nodes(
    base: Sequence[Statement], switches: Sequence[SwitchRecord], source: str
) -> list[Fault]:
    """Compare each top switch's own list of nodes with what its leaves hold."""
    nodes = {s.name: s for s in switches}
    below = {child for s in switches for child in s.children}
    faults = []
    for statement in base:
        listed = statement.rest.get("nodes", "")
        top = nodes[statement.value]
        if top.name in below or not top.children or not listed:
            continue
        wanted = len(set(expand(listed, source, statement.line, "Nodes")))
        held = _count_below(top, nodes)
        if held != wanted:
            text = f"switch {printable(top.name)} has {wanted} nodes, the leaves below it {held}"
            faults.append(Fault(statement.line, "missing-nodes", text, _CUT))
    return faults


def _count_below(top: SwitchRecord, nodes: dict[str, SwitchRecord]) -> int:
    """Return how many different nodes the leaves below a switch hold."""
    seen = {top.name}
    held: set[str] = set()
    todo = [top]
    while todo:
        switch = todo.pop()
        held.update(switch.nodes)
        new = [c for c in switch.children if c in nodes and c not in seen]
        seen.update(new)
        todo.extend(nodes[c] for c in new)
    return len(held)


def _sizes(found: Sequence[Statement], source: str, parameters: dict[str, object]) -> list[Fault]:
    """Note the block sizes that the lines show; a remark where they make no sense."""
    stated = {_number(s, "blocksize", source) for s in found if "blocksize" in s.rest}
    sizes = tuple(sorted(stated - {0}))
    if not sizes:
        return []
    if block_size_faults(sizes, 0, ()):
        text = f"block sizes {', '.join(map(str, sizes))} are not powers of two of the least"
        return [Fault(found[0].line, "block-size", text, "they are left out", fatal=False)]
    parameters["block_sizes"] = sizes
    return []


def _no_places(torus: Statement) -> Fault:
    text = f"torus {printable(torus.value)}: scontrol does not say where in it a node is"
    return Fault(torus.line, "no-coordinates", text, "read topology.yaml instead")
