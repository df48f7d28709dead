"""``topology.yaml``: Slurm's switches, blocks, rings or torus.

The file is a list of topologies, each with exactly one kind. The machine is
made from the one that Slurm takes for the whole cluster: the first with
``cluster_default: true``, else the first. Keys and rules are those of Slurm
25.05 to 26.05 (its manual page and the sources of its data parser and
plugins): in a torus the nodes run x fastest, then y, then z, and regions
fill it where nodes are missing.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct, field

from placement.errors import ParseError, schema_fault
from placement.readers import (
    MOST_NODES,
    count_lines,
    dump_format,
    refuse_empty,
    sniffing,
    split_lines,
)
from placement.readers.slurm_switches import Declared, expand, resolve_members, switch_dump
from placement.readers.trees import LINE, line_of, parse_yaml
from placement.records import Dump, Finding, NodeRecords, SwitchRecord
from placement.support.array_types import Ints32

__all__ = ["cell_coords", "read", "sniff"]

sniff = sniffing(r"^(?:-[ \t]+|[ \t]+)[\"']?topology[\"']?[ \t]*:", re.M)

#: What Slurm takes for no; an empty value is none either.
_FALSE = ("false", "no", "off", "0", "n", "f", "")
#: Lists of which the only entry may stand alone.
_LISTS = ("switches", "blocks", "rings", "toruses", "regions", "block_sizes")

Name = Annotated[str, Meta(min_length=1)]
#: Slurm keeps each dimension in sixteen bits.
Extent = Annotated[int, Meta(ge=0, le=65_535)]


class YamlEntry(Struct, kw_only=True, forbid_unknown_fields=True):
    """A dictionary of the file, and its line."""

    line: int = field(name=LINE)


class YamlSwitch(YamlEntry, kw_only=True):
    """A switch of a tree: it has nodes, or children."""

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


class YamlTriple(YamlEntry, kw_only=True):
    """A place in a torus, or how far something reaches along each axis."""

    x: Extent = 0
    y: Extent = 0
    z: Extent = 0

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The three numbers."""
        return self.x, self.y, self.z


class YamlRegion(YamlEntry, kw_only=True):
    """A part of a torus that nodes fill."""

    dims: YamlTriple
    nodes: str
    anchor: YamlTriple | None = None


class YamlTorus(YamlEntry, kw_only=True):
    """A torus: nodes for all of its cells, or regions of it."""

    name: Name
    dims: YamlTriple
    nodes: str = ""
    regions: list[YamlRegion] = []
    placements: Any = None


class YamlTori(YamlEntry, kw_only=True):
    """``topology/torus3d``."""

    toruses: list[YamlTorus]


class YamlTopology(YamlEntry, kw_only=True):
    """One topology of the file, of one kind."""

    topology: Name
    cluster_default: str = ""
    tree: YamlTree | None = None
    block: YamlBlocks | None = None
    ring: YamlRings | None = None
    torus3d: YamlTori | None = None
    flat: Any = None


@dump_format("topology-yaml", "topology", sniff, scheduler="slurm")
def read(text: str, source: str) -> Dump:
    """Read a ``topology.yaml``.

    Parameters
    ----------
    text : str
    source : str
        File name, for errors.

    Returns
    -------
    Dump
        Of the cluster's default topology: `fabric` is its kind, `switches`
        its switches, blocks, rings or torus. In a torus ``nodes.coords`` has
        x, y, z and `parameters` the ``extents``; blocks leave ``block_sizes``.
        `parameters` always has the ``topology``'s name.

    Raises
    ------
    ParseError
        Where it is not YAML or not of this form, the switches are not a tree, or
        the nodes of a torus do not fill its cells.

    Examples
    --------
    >>> text = '''
    ... - topology: t
    ...   cluster_default: true
    ...   torus3d:
    ...     toruses:
    ...       - {name: pod, dims: {x: 2, y: 1, z: 2}, nodes: "n[1-4]"}
    ... '''
    >>> dump = read(text, "topology.yaml")
    >>> dump.fabric, dump.nodes.coords.tolist()
    ('torus3d', [[0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 0, 1]])
    """
    counts = count_lines(split_lines(text, source))
    refuse_empty(counts, source, "topology")
    topologies = _read_topologies(parse_yaml(text, source), source)
    chosen = next((t for t in topologies if t.cluster_default.lower() not in _FALSE), topologies[0])
    remarks = [
        Finding(
            other.line,
            "other-topology",
            f"topology {other.topology} is left out: {chosen.topology} is the default",
            "Slurm uses it for the partitions that name it",
            fault=False,
        )
        for other in topologies
        if other is not chosen
    ]
    parameters: dict[str, object] = {"topology": chosen.topology}
    if chosen.torus3d:
        torus = chosen.torus3d.toruses[0]
        nodes = _place_nodes(torus, source)
        names = () if nodes.name is None else tuple(nodes.name.tolist())
        switches: tuple[SwitchRecord, ...] = (SwitchRecord(torus.name, names, (), torus.line, 0),)
        parameters["extents"] = torus.dims.sizes
        return switch_dump(counts, "torus3d", switches, remarks, parameters, nodes)
    if chosen.block and chosen.block.block_sizes:
        parameters["block_sizes"] = tuple(dict.fromkeys(chosen.block.block_sizes))
    switches, more = resolve_members(_declared_units(chosen), source)
    return switch_dump(counts, _topology_kinds(chosen)[0], switches, [*remarks, *more], parameters)


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
        tori = topology.torus3d is not None and not topology.torus3d.toruses
        if tori or (kinds[0] in ("tree", "block", "ring") and not _declared_units(topology)):
            raise ParseError(source, topology.line, f"topology {topology.topology} is empty")
    return topologies


def _wrap_single(value: Any) -> None:
    """Put an entry that stands alone where a list belongs into a list, as Slurm does."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if key in _LISTS and not isinstance(item, list):
            value[key] = [item]
        if isinstance(item, (dict, list)):
            _wrap_single(item)


def _line_at(root: Any, path: str) -> int:
    """Return the line of the value at msgspec's path, or of what it stands in."""
    value, line = root, line_of(root)
    for step in re.findall(r"[\w@]+", path):
        value = value[int(step)] if isinstance(value, list) else value.get(step)
        line = line_of(value) or line
    return line


def _topology_kinds(topology: YamlTopology) -> list[str]:
    """Return the kinds that a topology has; ``flat: false`` is none."""
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


def cell_coords(dims: tuple[int, ...], anchor: tuple[int, ...] = (0, 0, 0)) -> Ints32:
    """Return x, y, z of the cells of a box, x fastest, as Slurm numbers them.

    Parameters
    ----------
    dims : tuple of int (3,)
        How far the box reaches.
    anchor : tuple of int (3,)
        Its first cell.

    Returns
    -------
    int32 (x * y * z, 3)

    Examples
    --------
    >>> cell_coords((2, 1, 2), (1, 0, 0)).tolist()
    [[1, 0, 0], [2, 0, 0], [1, 0, 1], [2, 0, 1]]
    """
    cells = np.indices(dims[::-1], dtype=np.int32).reshape(3, -1)[::-1]
    return cells.T + np.array(anchor, dtype=np.int32)


def _place_nodes(torus: YamlTorus, source: str) -> NodeRecords:
    """Return the nodes in their cells, x fastest."""
    every_cell = YamlRegion(line=torus.line, dims=torus.dims, nodes=torus.nodes)
    regions = [every_cell] if torus.nodes else torus.regions
    names: list[str] = []
    places, lines = [np.empty((0, 3), dtype=np.int32)], []
    for region in regions:
        listed = expand(region.nodes, source, region.line, "nodes")
        dims, anchor = region.dims.sizes, region.anchor.sizes if region.anchor else (0, 0, 0)
        if len(listed) != math.prod(dims):
            shape = "x".join(map(str, dims))
            text = f"{len(listed)} nodes for the {math.prod(dims)} cells of {shape}"
            raise ParseError(source, region.line, text, "each cell needs one node")
        if any(a + d > e for a, d, e in zip(anchor, dims, torus.dims.sizes, strict=True)):
            raise ParseError(source, region.line, "a region reaches out of the torus")
        names += listed
        places.append(cell_coords(dims, anchor))
        lines += [region.line] * len(listed)
    if not 0 < len(names) <= MOST_NODES:
        what = f"more than {MOST_NODES:,} nodes" if names else "no nodes"
        raise ParseError(source, torus.line, f"torus {torus.name} has {what}")
    coords = np.concatenate(places)
    if len(set(names)) < len(names) or len(np.unique(coords, axis=0)) < len(coords):
        what = f"torus {torus.name}: a node in two cells, or two nodes in one"
        raise ParseError(source, torus.line, what, "regions must not overlap")
    order = np.lexsort(coords.T)
    line = np.array(lines, dtype=np.int32)
    return NodeRecords(line[order], name=np.array(names)[order], coords=coords[order])
