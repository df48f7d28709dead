"""``topology.yaml``: Slurm's switches, blocks, rings or torus.

The file is a list of topologies, each with exactly one kind. The machine is
made from the one that Slurm takes for the whole cluster: the first with
``cluster_default: true``, else the first. Keys and rules are those of Slurm
25.05 to 26.05 (its manual page and the sources of its data parser and
plugins): in a torus the nodes run x fastest, then y, then z, and regions
fill it where nodes are missing.
"""

from __future__ import annotations

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
from placement.readers.trees import Tree, line_of, parse_yaml
from placement.records import Dump, Finding, NodeRecords, SwitchRecord
from placement.support.array_types import Ints32, Strs

__all__ = ["cell_coords", "read", "sniff"]

sniff = sniffing(r"^(?:-[ \t]+|[ \t]+)[\"']?topology[\"']?[ \t]*:", re.M)
_TRUE = ("true", "yes", "on", "1", "y", "t")
_FALSE = ("false", "no", "off", "0", "n", "f", "")
_MAX_EXTENT = 65_535  # Slurm keeps each dimension in sixteen bits


class Found(NamedTuple):
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
        x, y, z and `parameters` the ``extents`` and the ``placements`` that
        it allows; blocks leave ``block_sizes``. `parameters` always has the
        ``topology``'s name.

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


class _YamlFile(Tree):
    """Reads the values that a topology.yaml has besides texts, lists and dictionaries."""

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


def _topology(entry: Any, file: _YamlFile) -> Found:
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
    return KINDS[kind](Found(name, line_of(entry), default, kind), keys[kind], file)


def _flat(topology: Found, value: Any, file: _YamlFile) -> Found:
    if isinstance(value, dict):
        file.dictionary(value, "flat", ("alpha_step_rank",))
    else:
        file.bool(value, "flat")
    return topology


def _switches(topology: Found, value: Any, file: _YamlFile) -> Found:
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


def _torus(topology: Found, value: Any, file: _YamlFile) -> Found:
    """Read the torus of a torus3d topology; a machine has one."""
    keys = file.dictionary(value, "torus3d", ("toruses",))
    allowed = ("name", "nodes", "dims", "placements", "regions")
    tori = [_torus_of(row, file) for row in file.entries(keys.get("toruses"), "toruses", allowed)]
    if not tori:
        raise ParseError(file.source, topology.line, f"topology {topology.name} is empty")
    switch, nodes, faults = read_torus(tori[0], file.source)
    for other in tori[1:]:
        text = f"torus {other.name}: a machine is one torus, and this is one more"
        faults.append(Finding(other.line, "second-torus", text, "keep one of them in a copy"))
    parameters = {"extents": tori[0].dims, "placements": tori[0].placements}
    return topology._replace(switches=(switch,), faults=faults, parameters=parameters, nodes=nodes)


def _torus_of(keys: Entry, file: _YamlFile) -> DeclaredTorus:
    name, dims = file.name(keys, "name", "torus"), file.dims(keys, "dims")
    nodes = file.text(keys.get("nodes"), "nodes")
    regions = [
        Region(
            line_of(region),
            file.dims(region, "anchor", default=(0, 0, 0)),
            file.dims(region, "dims"),
            file.text(region.get("nodes"), "nodes"),
        )
        for region in file.entries(keys.get("regions"), "regions", ("anchor", "dims", "nodes"))
    ]
    shape = ("dims", "anchor_seed", "anchor_spacing")
    placements = file.entries(keys.get("placements"), "placements", shape)
    shapes = tuple(_placement(placement, file) for placement in placements)
    return DeclaredTorus(line_of(keys), name, dims, nodes, tuple(regions), shapes)


def _placement(keys: Entry, file: _YamlFile) -> dict[str, Triple]:
    """Return one placement shape; without a spacing its anchors stand side by side."""
    dims = file.dims(keys, "dims")
    spacing = file.dims(keys, "anchor_spacing", default=(0, 0, 0))
    return {
        "dims": dims,
        "anchor_seed": file.dims(keys, "anchor_seed", default=(0, 0, 0)),
        "anchor_spacing": spacing if any(spacing) else dims,
    }


KINDS: dict[str, Callable[[Found, Any, _YamlFile], Found]] = {
    "tree": _switches,
    "block": _switches,
    "flat": _flat,
    "ring": _switches,
    "torus3d": _torus,
}


Triple = tuple[int, int, int]


class Region(NamedTuple):
    """Part of a torus: where it begins, how far it reaches, its nodes."""

    line: int
    anchor: Triple
    dims: Triple
    nodes: str


class DeclaredTorus(NamedTuple):
    """One torus as the file words it.

    Attributes
    ----------
    line : int
    name : str
    dims : tuple of int (3,)
    nodes : str
        Folded list for all cells; '' where regions have theirs.
    regions : tuple of Region
    placements : tuple of dict
        Shapes that a job may take: ``dims``, ``anchor_seed``, ``anchor_spacing``.
    """

    line: int
    name: str
    dims: Triple
    nodes: str
    regions: tuple[Region, ...]
    placements: tuple[dict[str, Triple], ...]


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


def read_torus(
    torus: DeclaredTorus, source: str
) -> tuple[SwitchRecord, NodeRecords | None, list[Finding]]:
    """Place the nodes of a torus.

    Returns
    -------
    switch : SwitchRecord
        The torus by name, nodes in cell order.
    nodes : NodeRecords or None
        With x, y, z; None where no node is given.
    faults : list of Finding

    Raises
    ------
    ParseError
        Where a list of nodes is malformed or too long.
    """
    faults = list(_shape_faults(torus))
    boxes = [] if faults else _boxes(torus, source, faults)
    names = np.array([name for _, _, listed in boxes for name in listed], dtype=np.str_)
    if len(names) > MOST_NODES:
        raise ParseError(source, torus.line, f"more than {MOST_NODES:,} nodes in one torus")
    twice = first_repeat(names.tolist())
    if twice:
        text = f"torus {torus.name}: node {twice} stands in two cells"
        faults.append(Finding(torus.line, "duplicate-name", text))
    nodes = None
    if len(names):
        coords = np.concatenate([box for _, box, _ in boxes])
        faults += _overlaps(torus, coords, names)
        lines = np.repeat([line for line, _, _ in boxes], [len(n) for _, _, n in boxes])
        order = np.lexsort(coords.T)
        names = names[order]
        nodes = NodeRecords(lines.astype(np.int32)[order], name=names, coords=coords[order])
    return SwitchRecord(torus.name, tuple(names.tolist()), (), torus.line, 0), nodes, faults


def _boxes(
    torus: DeclaredTorus, source: str, faults: list[Finding]
) -> list[tuple[int, Ints32, tuple[str, ...]]]:
    """Return line, coordinates and names of each part that fills its cells."""
    box = Region(torus.line, (0, 0, 0), torus.dims, torus.nodes)
    boxes = []
    for line, anchor, dims, folded in (box,) if torus.nodes else torus.regions:
        names = expand(folded, source, line, "nodes")
        cells = dims[0] * dims[1] * dims[2]
        if len(names) == cells:
            boxes.append((line, cell_coords(dims, anchor), names))
        else:
            text = f"{len(names)} nodes for the {cells} cells of {'x'.join(map(str, dims))}"
            faults.append(Finding(line, "cells", text, "each cell needs one node"))
    return boxes


def _shape_faults(torus: DeclaredTorus) -> Iterator[Finding]:
    """Find what Slurm refuses in the numbers alone."""
    name = torus.name
    if not all(torus.dims):
        yield Finding(torus.line, "extent", f"torus {name} needs x, y and z above 0")
        return
    if torus.nodes and torus.regions:
        text = f"torus {name} has both nodes and regions"
        yield Finding(torus.line, "both-nodes-and-regions", text, "Slurm takes one of them")
        return
    for region in torus.regions:
        ends = (a + d for a, d in zip(region.anchor, region.dims, strict=True))
        if not all(region.dims):
            yield Finding(region.line, "extent", "a region needs x, y and z above 0")
        elif any(e > t for e, t in zip(ends, torus.dims, strict=True)):
            yield Finding(region.line, "coordinates", "a region reaches out of the torus")
        elif not region.nodes:
            yield Finding(region.line, "cells", "a region without nodes")
    keys = ("dims", "anchor_spacing", "anchor_seed")
    for placement in torus.placements:
        for size, step, seed, most in zip(*(placement[k] for k in keys), torus.dims, strict=True):
            if not (0 < size <= most and 0 < step <= most and seed < most):
                shape = "x".join(map(str, placement["dims"]))
                text = f"torus {name}: placement {shape} does not fit into it"
                yield Finding(torus.line, "placement", text)
                break


def _overlaps(torus: DeclaredTorus, coords: Ints32, names: Strs) -> Iterator[Finding]:
    """Find a cell that two regions fill."""
    _, first, of = np.unique(coords, axis=0, return_index=True, return_inverse=True)
    second = np.flatnonzero(first[of.ravel()] != np.arange(len(coords)))
    if second.size:
        at = second[np.lexsort(coords[second].T)[0]]
        where = tuple(coords[at].tolist())
        text = f"cell {where} of torus {torus.name} has two nodes"
        text += f", {names[at]} the second"
        yield Finding(torus.line, "coordinates", text, "regions must not overlap")
