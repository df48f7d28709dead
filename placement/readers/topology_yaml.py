# SPDX-License-Identifier: Apache-2.0
"""``topology.yaml``: Slurm's switches, blocks or rings.

The file is a list of topologies, each with exactly one kind. The machine is
made from the one that is chosen (``-m FILE,topology=NAME``), else from that which Slurm takes for
the whole cluster: the first with ``cluster_default: true``, else the first. Keys and rules are
those of Slurm 25.05 to 26.05 (its manual page and the sources of its data parser and plugins).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from nidmap.placement.errors import ParseError, schema_fault
from nidmap.placement.readers import (
    count_lines,
    dump_format,
    refuse_empty,
    sniffing,
    split_lines,
)
from nidmap.placement.readers.slurm_rules import refuse_units
from nidmap.placement.readers.slurm_switches import Declared, resolve_members, switch_dump
from nidmap.placement.readers.yaml_json import LINE, line_of, parse_yaml
from nidmap.placement.records import Dump, Finding, LineCounts
from nidmap.placement.support.quantities import counted

sniff = sniffing(r"^(?:-[ \t]+|[ \t]+)[\"']?topology[\"']?[ \t]*:", re.M)

#: Values that Slurm reads as false; an empty value counts as false, too.
_FALSE = ("false", "no", "off", "0", "n", "f", "")
#: Lists whose only entry may be written without a list.
_LISTS = ("switches", "blocks", "rings", "block_sizes")

Name = Annotated[str, Meta(min_length=1)]


class YamlEntry(Struct, kw_only=True, forbid_unknown_fields=True):
    """A mapping in the file, and its line."""

    line: int = field(name=LINE)


class YamlSwitch(YamlEntry, kw_only=True):
    """A switch of a tree, with nodes or children."""

    switch: Name
    nodes: str = ""
    children: str = ""


class YamlBlock(YamlEntry, kw_only=True):
    """A base block."""

    block: Name
    nodes: str = ""


class YamlRing(YamlEntry, kw_only=True):
    """A ring."""

    ring: Name
    nodes: str = ""


class YamlTree(YamlEntry, kw_only=True):
    """``topology/tree``."""

    switches: list[YamlSwitch]


class YamlBlocks(YamlEntry, kw_only=True):
    """``topology/block``; the sizes are in nodes, the base blocks' first."""

    blocks: list[YamlBlock]
    block_sizes: list[Annotated[int, Meta(ge=1)]] = []


class YamlRings(YamlEntry, kw_only=True):
    """``topology/ring``."""

    rings: list[YamlRing]


class YamlTopology(YamlEntry, kw_only=True):
    """One topology of the file, of one kind."""

    topology: Name
    cluster_default: str = ""
    tree: YamlTree | None = None
    block: YamlBlocks | None = None
    ring: YamlRings | None = None
    torus3d: Any = None
    flat: Any = None


@dump_format("topology-yaml", "topology", sniff, scheduler="slurm")
def read(text: str, source: str) -> Dump:
    """Read a ``topology.yaml``.

    Of the cluster's default topology: `fabric` is its kind, `switches` its switches, blocks or
    rings. Of blocks `parameters` has the ``block_sizes``, and of any its name (``topology``) and
    all ``topologies`` of the file by name.
    """
    counts = count_lines(split_lines(text, source))
    refuse_empty(counts, source, "topology")
    topologies = _read_topologies(parse_yaml(text, source), source)
    chosen = next((t for t in topologies if t.cluster_default.lower() not in _FALSE), topologies[0])
    parsed = {t.topology: _parse_topology(t, counts, source) for t in topologies}
    dump = parsed[chosen.topology]
    if isinstance(dump, ParseError):
        raise dump
    remarks = [
        Finding(
            other.line,
            "other-topology",
            f"topology {other.topology} ({describe_topology(parsed[other.topology])}) is left"
            f" out: {chosen.topology} is the default",
            f"topology={other.topology} takes it, as Slurm does for partitions that name it",
            fault=False,
        )
        for other in topologies
        if other is not chosen
    ]
    parameters = {**dump.parameters, "topologies": parsed, "topology": chosen.topology}
    return replace(dump, findings=(*remarks, *dump.findings), parameters=parameters)


def _parse_topology(topology: YamlTopology, counts: LineCounts, source: str) -> Dump | ParseError:
    """Return one topology, or why it cannot be read, since another may be the wanted one."""
    kind = _topology_kinds(topology)[0]
    if kind == "torus3d":
        what = f"topology {topology.topology}: topology/torus3d is not supported"
        return ParseError(source, topology.line, what, "tree, block, ring and flat are")
    parameters: dict[str, object] = {}
    if topology.block and topology.block.block_sizes:
        parameters["block_sizes"] = tuple(dict.fromkeys(topology.block.block_sizes))
    try:
        switches, remarks = resolve_members(_declared_units(topology), source)
    except ParseError as error:
        return error
    sizes = topology.block.block_sizes if topology.block else []
    refused = refuse_units(kind, switches, sizes, topology.line)
    return switch_dump(counts, kind, switches, [*remarks, *refused], parameters)


def describe_topology(dump: Dump | ParseError) -> str:
    """Describe a topology in a few words."""
    if isinstance(dump, ParseError):
        return "unreadable"
    nodes = 0 if dump.nodes is None else len(dump.nodes)
    return f"{dump.fabric}, {counted(nodes, 'node')}" if nodes else dump.fabric


def _read_topologies(root: Any, source: str) -> list[YamlTopology]:
    """Return the topologies of a file, each of one kind that is not empty."""
    _wrap_single(root)
    try:
        topologies = msgspec.convert(root, list[YamlTopology], strict=False)
    except msgspec.ValidationError as error:
        path, words = schema_fault(error)
        raise ParseError(source, _line_at(root, path), words) from None
    if not topologies:
        raise ParseError(source, line_of(root), "a list without a topology")
    for topology in topologies:
        kinds = _topology_kinds(topology)
        if len(kinds) != 1:
            has = " and ".join(kinds) or "no kind"
            what = f"topology {topology.topology} has {has} where one of tree, block, ring, "
            raise ParseError(source, topology.line, f"{what}torus3d and flat belongs")
        if kinds[0] in ("tree", "block", "ring") and not _declared_units(topology):
            raise ParseError(source, topology.line, f"topology {topology.topology} is empty")
    lines: dict[str, int] = {}
    for topology in topologies:
        first = lines.setdefault(topology.topology, topology.line)
        if first != topology.line:
            text = f"topology {topology.topology} is already defined on line {first}"
            raise ParseError(source, topology.line, text, "give it another name")
    return topologies


def _wrap_single(value: Any) -> None:
    """Wrap a single entry in a list where one is expected, as Slurm does."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if key in _LISTS and not isinstance(item, list):
            value[key] = [item]
        if isinstance(item, (dict, list)):
            _wrap_single(item)


def _line_at(root: Any, path: str) -> int:
    """Return the line of the value at msgspec's path, or of its closest parent."""
    value, line = root, line_of(root)
    for key in re.findall(r"[\w@]+", path):
        value = value[int(key)] if isinstance(value, list) else value.get(key)
        line = line_of(value) or line
    return line


def _topology_kinds(topology: YamlTopology) -> list[str]:
    """Return the kinds that a topology has; ``flat: false`` does not count."""
    flat = topology.flat is not None and str(topology.flat).lower() not in _FALSE
    kinds = [kind for kind in ("tree", "block", "ring", "torus3d") if getattr(topology, kind)]
    return [*kinds, *(["flat"] if flat else [])]


def _declared_units(topology: YamlTopology) -> list[Declared]:
    """Return the switches, blocks or rings of a topology."""
    if topology.tree:
        return [Declared(s.switch, s.nodes, s.children, s.line) for s in topology.tree.switches]
    if topology.block:
        return [Declared(b.block, b.nodes, line=b.line) for b in topology.block.blocks]
    rings = topology.ring.rings if topology.ring else []
    return [Declared(r.ring, r.nodes, line=r.line) for r in rings]
