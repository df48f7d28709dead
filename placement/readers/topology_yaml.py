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
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from placement.errors import ParseError
from placement.readers import dump_format
from placement.readers.plain import MOST_NODES, count_lines, refuse_empty, sniffing, split_lines
from placement.readers.slurm_switches import (
    Declared,
    block_size_faults,
    expand,
    first_repeat,
    resolve,
    switch_dump,
)
from placement.readers.topology_conf import sizes_of
from placement.readers.trees import line_of, parse_yaml
from placement.records import Dump, Finding, NodeRecords, SwitchRecord
from placement.support.array_types import Ints32, Strs

__all__ = ["cell_coords", "read", "sniff"]

sniff = sniffing(r"^(?:-[ \t]+|[ \t]+)[\"']?topology[\"']?[ \t]*:", re.M)
_TRUE = ("true", "yes", "on", "1", "y", "t")
_FALSE = ("false", "no", "off", "0", "n", "f", "")
_MAX_EXTENT = 65_535  # Slurm keeps each dimension in sixteen bits


class SlurmTopology(NamedTuple):
    """One topology of the file, read and judged."""

    name: str
    line: int
    default: bool
    kind: str
    switches: tuple[SwitchRecord, ...] = ()
    faults: Sequence[Finding] = ()
    parameters: Mapping[str, object] | None = None
    nodes: NodeRecords | None = None


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
        Where it is not YAML or not of this form. What slurmctld would refuse
        otherwise is a fault.

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
    file, root = _YamlFile(source), parse_yaml(text, source)
    if not isinstance(root, list):
        raise file.error(root, "the file is not a list")
    topologies = [_topology(entry, file) for entry in root]
    if not topologies:
        raise file.error(root, "a list without a topology")
    chosen = next((f for f in topologies if f.default), topologies[0])
    faults = [fault for f in topologies for fault in f.faults]
    for other in (f for f in topologies if f is not chosen):
        text = f"topology {other.name} is left out: {chosen.name} is the default"
        hint = "Slurm uses it for the partitions that name it"
        faults.append(Finding(other.line, "other-topology", text, hint, fault=False))
    parameters = {"topology": chosen.name, **(chosen.parameters or {})}
    kind, switches, nodes = chosen.kind, chosen.switches, chosen.nodes
    return switch_dump(counts, kind, switches, faults, parameters, nodes)


Entry = dict[str, Any]


class _YamlFile(NamedTuple):
    """Takes the values of a file for what they should be, and refuses others at their line."""

    source: str

    def dictionary(self, value: Any, what: str, allowed: Sequence[str]) -> Entry:
        """Return a dictionary, empty where there is none; other keys than `allowed` are refused."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.error(value, f"{what} is not a dictionary")
        for key, item in value.items():
            if key not in allowed:
                there = f"there are {', '.join(allowed)}"
                raise self.error(item, f"unknown key {key!r} in {what}", there)
        return value

    def items(self, value: Any, what: str) -> list[Any]:
        """Return a list, empty where there is none."""
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(value, f"{what} is not a list")
        return value

    def text(self, value: Any, what: str) -> str:
        """Return one value, '' where there is none."""
        if value is None or value in ("", "~", "null"):
            return ""
        if not isinstance(value, str):
            raise self.error(value, f"{what} is not one value", "a folded list is text")
        return value

    def error(self, at: Any, text: str, hint: str = "") -> ParseError:
        """Return the error that blames a value."""
        return ParseError(self.source, line_of(at), text, hint)

    def entries(self, value: Any, what: str, allowed: Sequence[str]) -> list[Entry]:
        """Return the dictionaries of a list, or the only one."""
        entries = [value] if isinstance(value, dict) else self.items(value, what)
        return [self.dictionary(entry, f"an entry of {what}", allowed) for entry in entries]

    def name(self, keys: Entry, key: str, what: str) -> str:
        """Return the name of a thing, which has to have one."""
        name = self.text(keys.get(key), key)
        if not name:
            raise self.error(keys, f"a {what} without a name", f"{key}: NAME")
        return name

    def bool(self, value: Any, what: str) -> bool:
        """Return whether a value is true; an absent one is not."""
        word = self.text(value, what).lower()
        if word not in _TRUE + _FALSE:
            raise self.error(value, f"{what}: {word!r} is not true or false")
        return word in _TRUE

    def dims(self, keys: Entry, what: str, default: Triple | None = None) -> Triple:
        """Return x, y and z, each 0 where it is absent."""
        if what not in keys:
            if default is None:
                raise self.error(keys, f"no {what}", f"{what}: {{x: 4, y: 4, z: 2}}")
            return default
        axes = self.dictionary(keys[what], what, ("x", "y", "z"))
        x, y, z = (self.extent(axes.get(axis), f"{what}.{axis}") for axis in "xyz")
        return x, y, z

    def extent(self, value: Any, what: str) -> int:
        """Return one dimension."""
        word = "0" if value is None else self.text(value, what)
        if not (word.isascii() and word.isdigit() and len(word) < 6 and int(word) <= _MAX_EXTENT):
            raise self.error(value, f"{what}: {word!r} is not a size")
        return int(word)


def _topology(entry: Any, file: _YamlFile) -> SlurmTopology:
    keys = file.dictionary(entry, "a topology", ("topology", "cluster_default", *KINDS))
    name = file.name(keys, "topology", "topology")
    default = file.bool(keys.get("cluster_default"), "cluster_default")
    flat = keys.get("flat")
    off = isinstance(flat, str) and flat.lower() in _FALSE  # as good as absent
    kinds = [k for k in KINDS if k in keys and not (k == "flat" and off)]
    if len(kinds) != 1:
        what = "and ".join(f"{k} " for k in kinds) or f"none of {', '.join(KINDS)} "
        text = f"topology {name} has {what}where one kind belongs"
        raise file.error(entry, text)
    kind = kinds[0]
    return KINDS[kind](SlurmTopology(name, line_of(entry), default, kind), keys[kind], file)


def _flat(topology: SlurmTopology, value: Any, file: _YamlFile) -> SlurmTopology:
    if isinstance(value, dict):
        file.dictionary(value, "flat", ("alpha_step_rank",))
    else:
        file.bool(value, "flat")
    return topology


def _switches(topology: SlurmTopology, value: Any, file: _YamlFile) -> SlurmTopology:
    """Read the switches, blocks or rings of a topology."""
    word, below, more, beside = _LISTS[topology.kind]
    keys = file.dictionary(value, topology.kind, (below, *beside))
    declared = [
        Declared(
            file.name(row, word, word),
            file.text(row.get("nodes"), "nodes"),
            file.text(row.get("children"), "children"),
            line_of(row),
        )
        for row in file.entries(keys.get(below), below, (word, *more, "nodes"))
    ]
    if not declared:
        raise ParseError(file.source, topology.line, f"topology {topology.name} is empty")
    switches, faults = resolve(topology.kind, declared, file.source, both=True)
    listed, parameters = keys.get("block_sizes"), topology.parameters
    if listed is not None:
        items = [listed] if isinstance(listed, str) else file.items(listed, "block_sizes")
        words = [file.text(item, "block_sizes") for item in items]
        sizes = sizes_of(words, file.source, line_of(listed))
        faults += block_size_faults(sizes, line_of(listed), switches)
        parameters = {"block_sizes": sizes}
    return topology._replace(switches=switches, faults=faults, parameters=parameters)


#: Of each kind: what one entry is called, their list, keys of an entry, keys beside the list.
_LISTS: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {
    "tree": ("switch", "switches", ("children",), ()),
    "block": ("block", "blocks", (), ("block_sizes",)),
    "ring": ("ring", "rings", (), ()),
}


def _torus(topology: SlurmTopology, value: Any, file: _YamlFile) -> SlurmTopology:
    """Read the torus of a torus3d topology, x fastest; a machine has one."""
    keys = file.dictionary(value, "torus3d", ("toruses",))
    allowed = ("name", "nodes", "dims", "placements", "regions")
    tori = file.entries(keys.get("toruses"), "toruses", allowed)
    if not tori:
        raise ParseError(file.source, topology.line, f"topology {topology.name} is empty")
    torus, line = tori[0], line_of(tori[0])
    name, extents = file.name(torus, "name", "torus"), file.dims(torus, "dims")
    boxes = _boxes(torus, extents, file)
    faults = list(_box_faults(name, line, extents, boxes))
    if torus.get("nodes") and torus.get("regions"):
        text = f"torus {name} has both nodes and regions"
        faults = [Finding(line, "both-nodes-and-regions", text, "Slurm takes one of them")]
    for other in tori[1:]:
        text = (
            f"torus {file.name(other, 'name', 'torus')}: a machine is one torus, this is one more"
        )
        faults.append(Finding(line_of(other), "second-torus", text, "keep one of them in a copy"))
    nodes = None if faults else _place_nodes(name, line, boxes, file.source, faults)
    names = () if nodes is None or nodes.name is None else tuple(nodes.name.tolist())
    switch = SwitchRecord(name, names, (), line, 0)
    parameters = {"extents": extents}
    return topology._replace(switches=(switch,), faults=faults, parameters=parameters, nodes=nodes)


KINDS: dict[str, Callable[[SlurmTopology, Any, _YamlFile], SlurmTopology]] = {
    "tree": _switches,
    "block": _switches,
    "flat": _flat,
    "ring": _switches,
    "torus3d": _torus,
}


Triple = tuple[int, int, int]


class Box(NamedTuple):
    """Part of a torus: where it begins, how far it reaches, its nodes as a folded list."""

    line: int
    anchor: Triple
    dims: Triple
    nodes: str


def _boxes(torus: Entry, extents: Triple, file: _YamlFile) -> list[Box]:
    """Return the parts of a torus that nodes fill: its regions, or all of it."""
    nodes = file.text(torus.get("nodes"), "nodes")
    if nodes:
        return [Box(line_of(torus), (0, 0, 0), extents, nodes)]
    return [
        Box(
            line_of(region),
            file.dims(region, "anchor", default=(0, 0, 0)),
            file.dims(region, "dims"),
            file.text(region.get("nodes"), "nodes"),
        )
        for region in file.entries(torus.get("regions"), "regions", ("anchor", "dims", "nodes"))
    ]


def _box_faults(name: str, line: int, extents: Triple, boxes: Sequence[Box]) -> Iterator[Finding]:
    """Find what Slurm refuses in the numbers alone."""
    if not all(extents):
        yield Finding(line, "extent", f"torus {name} needs x, y and z above 0")
        return
    for box in boxes:
        ends = (a + d for a, d in zip(box.anchor, box.dims, strict=True))
        if not all(box.dims):
            yield Finding(box.line, "extent", "a region needs x, y and z above 0")
        elif any(e > t for e, t in zip(ends, extents, strict=True)):
            yield Finding(box.line, "coordinates", "a region reaches out of the torus")
        elif not box.nodes:
            yield Finding(box.line, "cells", "a region without nodes")


def cell_coords(dims: Triple, anchor: Triple = (0, 0, 0)) -> Ints32:
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


def _place_nodes(
    name: str, line: int, boxes: Sequence[Box], source: str, faults: list[Finding]
) -> NodeRecords | None:
    """Return the nodes in their cells, x fastest, noting what is wrong with them."""
    filled = []
    for box in boxes:
        names, cells = expand(box.nodes, source, box.line, "nodes"), math.prod(box.dims)
        if len(names) == cells:
            filled.append((box, names))
        else:
            text = f"{len(names)} nodes for the {cells} cells of {'x'.join(map(str, box.dims))}"
            faults.append(Finding(box.line, "cells", text, "each cell needs one node"))
    every = np.array([one for _, names in filled for one in names], dtype=np.str_)
    if len(every) > MOST_NODES:
        raise ParseError(source, line, f"more than {MOST_NODES:,} nodes in one torus")
    if twice := first_repeat(every.tolist()):
        text = f"torus {name}: node {twice} stands in two cells"
        faults.append(Finding(line, "duplicate-name", text))
    if not len(every):
        return None
    coords = np.concatenate([cell_coords(box.dims, box.anchor) for box, _ in filled])
    faults += _overlaps(name, line, coords, every)
    lines = np.repeat([box.line for box, _ in filled], [len(names) for _, names in filled])
    order = np.lexsort(coords.T)
    return NodeRecords(lines.astype(np.int32)[order], name=every[order], coords=coords[order])


def _overlaps(name: str, line: int, coords: Ints32, names: Strs) -> Iterator[Finding]:
    """Find a cell that two regions fill."""
    _, first, of = np.unique(coords, axis=0, return_index=True, return_inverse=True)
    second = np.flatnonzero(first[of.ravel()] != np.arange(len(coords)))
    if second.size:
        at = second[np.lexsort(coords[second].T)[0]]
        where = tuple(coords[at].tolist())
        text = f"cell {where} of torus {name} has two nodes"
        text += f", {names[at]} the second"
        yield Finding(line, "coordinates", text, "regions must not overlap")
