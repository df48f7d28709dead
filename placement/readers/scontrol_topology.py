"""``scontrol show topology``: Slurm's switches, blocks or rings.

Every line is one switch or block. A tree prints every switch with all nodes
below it; block prints its base blocks and then, from Slurm 24.11 on, the
aggregated ones that BlockSizes makes. A torus prints its nodes in the order
of the node table, so their places cannot be had from it: topology.yaml is the
file to read there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from placement.errors import ParseError
from placement.readers import dump_format
from placement.readers import slurm_switches as w
from placement.readers.plain import count_lines, refuse_empty, sniffing, split_lines
from placement.readers.topology_conf import Statement, statements
from placement.records import Dump, Finding, LineCounts, SwitchRecord

__all__ = ["read", "sniff"]

#: What a line begins with, the kind it is of, and the keywords it must and may have.
KINDS = {
    "switchname": ("tree", ("level",), ("linkspeed", "nodes", "switches")),
    "blockname": ("block", ("blockindex",), ("nodes", "blocksize")),
    "aggregatedblock": ("block", ("blockindex",), ("nodes", "blocksize")),
    "ringname": ("ring", ("ringsize",), ("nodes",)),
    "torusname": ("torus3d", (), ("dims", "nodes", "placementdims", "anchors")),
}

sniff = sniffing(
    r"^[ \t]*(?:SwitchName=\S+ Level=\d|(?:BlockName|AggregatedBlock)=\S+ BlockIndex=\d|"
    r"RingName=\S+ (?:Nodes=\S+ )?RingSize=\d|TorusName=\S+ Dims=)",
    re.M,
)
_CUT = "unset SLURM_TOPO_LEN and print it again: it cuts the lines"


@dump_format("scontrol-topology", "topology", sniff, scheduler="slurm")
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
    records = list(statements(lines, source, "scontrol-topology"))
    refuse_empty(counts if records else LineCounts(0), source, "SwitchName or BlockName")
    kind = _kind(records)
    base = [s for s in records if _is_base(s)]
    if not base:
        raise ParseError(source, records[0].line, f"no {kind} of its own, only aggregated ones")
    switches, faults = w.resolve(kind, [_declare_switch(s) for s in base], source)
    parameters: dict[str, object] = {}
    if kind == "tree":
        faults += _missing_nodes(base, switches)
    elif kind == "block":
        faults += _sizes(records, parameters)
    elif kind == "torus3d":
        text = f"torus {base[0].value}: scontrol does not say where in it a node is"
        faults.append(Finding(base[0].line, "no-coordinates", text, "read topology.yaml instead"))
    return w.switch_dump("scontrol-topology", source, counts, kind, switches, faults, parameters)


def _kind(records: Sequence[Statement]) -> str:
    first = records[0]
    kind = KINDS.get(first.key, ("", (), ()))[0]
    for statement in records:
        this, must, may = KINDS.get(statement.key, ("", (), ()))
        odd = [key for key in statement.rest if key not in must + may]
        if not this or odd:
            key = odd[0] if this else statement.key
            hint = "is this its whole output?"
            raise statement.error(f"scontrol show topology prints no {key!r}", hint)
        if this != kind:
            text = f"a {this} topology here and a {kind} topology on line {first.line}"
            raise statement.error(text, "print one topology at a time")
        for key in must:
            _number(statement, key)
    return kind


def _number(statement: Statement, key: str) -> int:
    """Return a number that scontrol prints on every such line."""
    word = statement.rest.get(key, "")
    if not (word.isascii() and word.isdigit() and len(word) < 10):
        what = f"no {key}" if not word else f"{key} {word!r} is not a number"
        raise statement.error(f"{statement.value}: {what}", _CUT)
    return int(word)


def _is_base(statement: Statement) -> bool:
    """Say whether a line is a switch, ring or base block: not one made of others."""
    if statement.key == "torusname":
        return "dims" in statement.rest
    if statement.key == "blockname":
        return not set(statement.value) & set("[,")
    return statement.key != "aggregatedblock"


def _declare_switch(statement: Statement) -> w.Declared:
    nodes = statement.rest.get("nodes", "")
    if statement.key != "switchname":
        return w.Declared(statement.value, nodes, line=statement.line)
    level = _number(statement, "level")
    children = statement.rest.get("switches", "")
    if level and not children:
        what = f"switch {statement.value} of level {level} has no Switches"
        raise statement.error(what, _CUT)
    return w.Declared(statement.value, "" if level else nodes, children, statement.line, level)


def _missing_nodes(base: Sequence[Statement], switches: Sequence[SwitchRecord]) -> list[Finding]:
    """Compare each top switch's own list of nodes with what its leaves hold."""
    nodes = {s.name: s for s in switches}
    below = {child for s in switches for child in s.children}
    faults = []
    for statement in base:
        listed = statement.rest.get("nodes", "")
        top = nodes[statement.value]
        if top.name in below or not top.children or not listed:
            continue
        wanted = len(set(w.expand(listed, statement.source, statement.line, "Nodes")))
        held = _count_below(top, nodes)
        if held != wanted:
            text = f"switch {top.name} has {wanted} nodes, the leaves below it {held}"
            faults.append(Finding(statement.line, "missing-nodes", text, _CUT))
    return faults


def _count_below(top: SwitchRecord, nodes: dict[str, SwitchRecord]) -> int:
    """Return how many different nodes the leaves below a switch hold."""
    reached = {top.name: top}
    for switch in (todo := [top]):  # grows while it is walked
        new = {c: nodes[c] for c in switch.children if c in nodes and c not in reached}
        reached |= new
        todo += new.values()
    return len({node for switch in todo for node in switch.nodes})


def _sizes(records: Sequence[Statement], parameters: dict[str, object]) -> list[Finding]:
    """Note the block sizes that the lines show; a remark where they make no sense."""
    stated = {_number(s, "blocksize") for s in records if "blocksize" in s.rest}
    sizes = tuple(sorted(stated - {0}))
    if list(w.block_size_faults(sizes, 0, ())):
        text = f"block sizes {', '.join(map(str, sizes))} are not powers of two of the least"
        return [Finding(records[0].line, "block-size", text, "they are left out", fault=False)]
    parameters |= {"block_sizes": sizes} if sizes else {}
    return []
