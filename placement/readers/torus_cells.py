"""The cells of a torus of Slurm's topology/torus3d: which node stands where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import ParseError, printable
from placement.readers.slurm_switches import MAX_NODES, expand
from placement.records import Fault, NodeRecords, SwitchRecord

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Triple = tuple[int, int, int]

__all__ = ["Region", "Torus", "TorusWords", "cell_coords", "read_torus"]


@dataclass(frozen=True, slots=True)
class Region:
    """Part of a torus: where it begins, how far it reaches, its nodes."""

    line: int
    anchor: tuple[int, int, int]
    dims: tuple[int, int, int]
    nodes: str


@dataclass(frozen=True, slots=True)
class TorusWords:
    """One torus as the file words it."""

    line: int
    name: str
    dims: tuple[int, int, int]
    nodes: str
    regions: tuple[Region, ...]
    placements: tuple[dict[str, tuple[int, int, int]], ...]


@dataclass(frozen=True, slots=True)
class Torus:
    """A torus, its nodes placed.

    Attributes
    ----------
    switch : SwitchRecord
        The torus by name, nodes in cell order.
    nodes : NodeRecords
        With x, y, z; None where no node is given.
    extents : tuple of int (3,)
    placements : tuple of dict
        Shapes that a job may take: ``dims``, ``anchor_seed``, ``anchor_spacing``.
    faults : tuple of Fault
    """

    switch: SwitchRecord
    nodes: NodeRecords | None
    extents: tuple[int, int, int]
    placements: tuple[dict[str, tuple[int, int, int]], ...]
    faults: tuple[Fault, ...]


def cell_coords(dims: Triple, anchor: Triple = (0, 0, 0)) -> NDArray[np.int32]:
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
    x, y, z = dims
    cell = np.arange(x * y * z, dtype=np.int32)
    axes = (cell % x, cell // x % y, cell // (x * y))
    return np.stack(axes, axis=1).astype(np.int32) + np.array(anchor, dtype=np.int32)


def read_torus(words: TorusWords, source: str) -> Torus:
    """Place the nodes of a torus.

    Raises
    ------
    ParseError
        Where a list of nodes is malformed or too long.
    """
    faults = _shape_faults(words)
    boxes = [] if faults else _boxes(words, source, faults)
    names = [name for _, _, listed in boxes for name in listed]
    if len(names) > MAX_NODES:
        raise ParseError(source, words.line, f"more than {MAX_NODES:,} nodes in one torus")
    faults += _repeats(words, names)
    nodes = None
    if names:
        coords = np.concatenate([box for _, box, _ in boxes])
        faults += _overlaps(words, coords, names)
        lines = np.repeat([line for line, _, _ in boxes], [len(n) for _, _, n in boxes])
        order = np.lexsort((coords[:, 0], coords[:, 1], coords[:, 2]))
        nodes = NodeRecords(
            line=lines.astype(np.int32)[order], name=np.array(names)[order], coords=coords[order]
        )
        names = [str(n) for n in nodes.name] if nodes.name is not None else names
    switch = SwitchRecord(words.name, tuple(names), (), words.line, 0)
    return Torus(switch, nodes, words.dims, words.placements, tuple(faults))


def _boxes(
    words: TorusWords, source: str, faults: list[Fault]
) -> list[tuple[int, NDArray[np.int32], tuple[str, ...]]]:
    """Return line, coordinates and names of each part that fills its cells."""
    parts = [(r.line, r.anchor, r.dims, r.nodes) for r in words.regions]
    if words.nodes:
        parts = [(words.line, (0, 0, 0), words.dims, words.nodes)]
    boxes = []
    for line, anchor, dims, text in parts:
        names = expand(text, source, line, "nodes")
        cells = dims[0] * dims[1] * dims[2]
        if len(names) == cells:
            boxes.append((line, cell_coords(dims, anchor), names))
        else:
            shape = "x".join(map(str, dims))
            what = f"{len(names)} nodes for the {cells} cells of {shape}"
            faults.append(Fault(line, "cells", what, "each cell needs one node"))
    return boxes


def _shape_faults(words: TorusWords) -> list[Fault]:
    """Find what Slurm refuses in the numbers alone."""
    name = printable(words.name)
    if not all(words.dims):
        return [Fault(words.line, "extent", f"torus {name} needs x, y and z above 0")]
    if words.nodes and words.regions:
        text = f"torus {name} has both nodes and regions"
        return [Fault(words.line, "both-nodes-and-regions", text, "Slurm takes one of them")]
    return [*_region_faults(words), *_placement_faults(words, name)]


def _region_faults(words: TorusWords) -> list[Fault]:
    faults = []
    for region in words.regions:
        ends = [a + d for a, d in zip(region.anchor, region.dims, strict=True)]
        if not all(region.dims):
            faults.append(Fault(region.line, "extent", "a region needs x, y and z above 0"))
        elif any(e > t for e, t in zip(ends, words.dims, strict=True)):
            faults.append(Fault(region.line, "coordinates", "a region reaches out of the torus"))
        elif not region.nodes:
            faults.append(Fault(region.line, "cells", "a region without nodes"))
    return faults


def _placement_faults(words: TorusWords, name: str) -> list[Fault]:
    faults = []
    for placement in words.placements:
        dims, spacing = placement["dims"], placement["anchor_spacing"]
        seed = placement["anchor_seed"]
        fits = all(0 < d <= t for d, t in zip(dims, words.dims, strict=True))
        spaced = all(0 < s <= t for s, t in zip(spacing, words.dims, strict=True))
        seeded = all(s < t for s, t in zip(seed, words.dims, strict=True))
        if not (fits and spaced and seeded):
            text = f"torus {name}: placement {'x'.join(map(str, dims))} does not fit into it"
            faults.append(Fault(words.line, "placement", text))
    return faults


def _repeats(words: TorusWords, names: list[str]) -> list[Fault]:
    if len(set(names)) == len(names):
        return []
    seen: set[str] = set()
    for name in names:
        if name in seen:
            break
        seen.add(name)
    text = f"torus {printable(words.name)}: node {printable(name)} stands in two cells"
    return [Fault(words.line, "duplicate-name", text)]


def _overlaps(words: TorusWords, coords: NDArray[np.int32], names: list[str]) -> list[Fault]:
    """Find cells that two regions fill."""
    x, y, _ = words.dims
    cell = coords[:, 0] + x * (coords[:, 1].astype(np.int64) + y * coords[:, 2].astype(np.int64))
    order = np.argsort(cell, kind="stable")
    twice = np.flatnonzero(np.diff(cell[order]) == 0)
    if not len(twice):
        return []
    at = order[twice[0] + 1]
    where = tuple(int(c) for c in coords[at])
    text = f"cell {where} of torus {printable(words.name)} has two nodes, {names[at]} the second"
    return [Fault(words.line, "coordinates", text, "regions must not overlap")]
