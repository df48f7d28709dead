"""From rows of nodes with coordinates to a `Dump`: what three formats share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.readers import rows as r
from placement.readers.cray import cnames, coordinate_faults, fabric_of, node_faults
from placement.readers.faults import in_order
from placement.records import Dump, NodeRecords

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from placement.records import Fault

__all__ = ["dump_of"]


def dump_of(
    rows: r.Rows,
    name: str,
    *,
    fabric: str = "",
    router: NDArray[np.str_] | None = None,
    faults: Sequence[Fault] = (),
) -> Dump:
    """Return the dump that rows of nid, cname and x, y, z make.

    Parameters
    ----------
    rows : Rows
        With the numbers nid, col, row, cage, slot, node, x, y, z; the number
        cores and the word role where the format has them.
    name : str
        The format's.
    fabric : str
        '' to tell it from the coordinates.
    router : str (n,) or None
        Name of the router of each node.
    faults : sequence of Fault
        What the reader has found itself.

    Returns
    -------
    Dump
    """
    parts, xyz = rows.table(r.PARTS), rows.table("xyz")
    names = cnames(parts)
    nid = rows.number("nid").astype(np.int64)
    fabric = fabric or fabric_of(parts, xyz)
    found = [*faults, *node_faults(rows, nid, parts, names)]
    found += coordinate_faults(rows.line, parts, xyz, names, fabric)
    nodes = NodeRecords(
        line=rows.line,
        nid=nid,
        cname=names,
        role=rows.word("role") if rows.having("role").any() else None,
        coords=xyz,
        router=router,
        cores=rows.number("cores") if rows.having("cores").any() else None,
    )
    return Dump(name, rows.source, rows.counts, nodes, fabric=fabric, faults=in_order(found))
