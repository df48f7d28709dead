"""The cells of a torus of Slurm's topology/torus3d: which node stands where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement.errors import ParseError, printable
from placement.readers.slurm_switches import MAX_NODES, expand, first_repeat
from placement.records import Fault, NodeRecords, SwitchRecord
from placement.support.array_types import Strs

__all__ = ["Region", "Torus", "cell_coords", "read_torus"]

Triple = tuple[int, int, int]


class Region(NamedTuple):
    """Part of a torus: where it begins, how far it reaches, its nodes."""

    line: int
    anchor: Triple
    dims: Triple
    nodes: str


class Torus(NamedTuple):
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
    cells = np.indices(dims[::-1], dtype=np.int32).reshape(3, -1)[::-1]
    return cells.T + np.array(anchor, dtype=np.int32)


def read_torus(torus: Torus, source: str) -> tuple[SwitchRecord, NodeRecords | None, list[Fault]]:
    """Place the nodes of a torus.

    Returns
    -------
    switch : SwitchRecord
        The torus by name, nodes in cell order.
    nodes : NodeRecords or None
        With x, y, z; None where no node is given.
    faults : list of Fault

    Raises
    ------
    ParseError
        Where a list of nodes is malformed or too long.
    """
    faults = _shape_faults(torus)
    boxes = [] if faults else _boxes(torus, source, faults)
    names = np.array([name for _, _, listed in boxes for name in listed], dtype=np.str_)
    if len(names) > MAX_NODES:
        raise ParseError(source, torus.line, f"more than {MAX_NODES:,} nodes in one torus")
    twice = first_repeat(names.tolist())
    if twice:
        text = f"torus {printable(torus.name)}: node {printable(twice)} stands in two cells"
        faults.append(Fault(torus.line, "duplicate-name", text))
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
    torus: Torus, source: str, faults: list[Fault]
) -> list[tuple[int, NDArray[np.int32], tuple[str, ...]]]:
    """Return line, coordinates and names of each part that fills its cells."""
    whole = Region(torus.line, (0, 0, 0), torus.dims, torus.nodes)
    boxes = []
    for line, anchor, dims, folded in (whole,) if torus.nodes else torus.regions:
        names = expand(folded, source, line, "nodes")
        cells = dims[0] * dims[1] * dims[2]
        if len(names) == cells:
            boxes.append((line, cell_coords(dims, anchor), names))
        else:
            text = f"{len(names)} nodes for the {cells} cells of {'x'.join(map(str, dims))}"
            faults.append(Fault(line, "cells", text, "each cell needs one node"))
    return boxes


def _shape_faults(torus: Torus) -> list[Fault]:
    """Find what Slurm refuses in the numbers alone."""
    name = printable(torus.name)
    if not all(torus.dims):
        return [Fault(torus.line, "extent", f"torus {name} needs x, y and z above 0")]
    if torus.nodes and torus.regions:
        text = f"torus {name} has both nodes and regions"
        return [Fault(torus.line, "both-nodes-and-regions", text, "Slurm takes one of them")]
    return [*_region_faults(torus), *_placement_faults(torus)]


def _region_faults(torus: Torus) -> Iterator[Fault]:
    for region in torus.regions:
        ends = (a + d for a, d in zip(region.anchor, region.dims, strict=True))
        if not all(region.dims):
            yield Fault(region.line, "extent", "a region needs x, y and z above 0")
        elif any(e > t for e, t in zip(ends, torus.dims, strict=True)):
            yield Fault(region.line, "coordinates", "a region reaches out of the torus")
        elif not region.nodes:
            yield Fault(region.line, "cells", "a region without nodes")


def _placement_faults(torus: Torus) -> Iterator[Fault]:
    keys = ("dims", "anchor_spacing", "anchor_seed")
    for placement in torus.placements:
        for size, step, seed, most in zip(*(placement[k] for k in keys), torus.dims, strict=True):
            if not (0 < size <= most and 0 < step <= most and seed < most):
                shape = "x".join(map(str, placement["dims"]))
                text = f"torus {printable(torus.name)}: placement {shape} does not fit into it"
                yield Fault(torus.line, "placement", text)
                break


def _overlaps(torus: Torus, coords: NDArray[np.int32], names: Strs) -> Iterator[Fault]:
    """Find a cell that two regions fill."""
    _, first, of = np.unique(coords, axis=0, return_index=True, return_inverse=True)
    second = np.flatnonzero(first[of.ravel()] != np.arange(len(coords)))
    if second.size:
        at = second[np.lexsort(coords[second].T)[0]]
        where = tuple(coords[at].tolist())
        text = f"cell {where} of torus {printable(torus.name)} has two nodes"
        text += f", {names[at]} the second"
        yield Fault(torus.line, "coordinates", text, "regions must not overlap")
