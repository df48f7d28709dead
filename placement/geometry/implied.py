"""Nodes that a link list implies: four an Aries, two a Gemini, by the numbering rule.

``rtr --interconnect`` lists routers, not nodes. Alone it still makes a
machine: every router has all its nodes, their NIDs follow from the rule, and
as nothing tells service nodes apart, all count as compute nodes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import ParseError
from placement.geometry.listed import blades, router_lists
from placement.records import NodeRecords

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.names.gemini import Gemini
    from placement.names.xc import Xc
    from placement.records import Dump

__all__ = ["with_nodes"]

#: Nodes a router.
NODES = {"aries": 4, "gemini": 2}


def with_nodes(dump: Dump) -> Dump:
    """Return the dump with the nodes of its routers, or as it is where it lists none.

    Raises
    ------
    ParseError
        Where the numbering rule does not follow from the list.

    Examples
    --------
    >>> from placement.readers import read_text
    >>> ends = ["c0-0c0s0a0l00(0:0:0)", "c0-0c0s1a0l00(0:0:1)"]
    >>> text = "".join(f"{a} green -> {b}\\n" for a, b in (ends, ends[::-1]))
    >>> with_nodes(read_text(text)).nodes.nid.tolist()
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    if dump.fabric not in NODES or dump.routers is None or dump.nodes is not None:
        return dump
    per = NODES[dump.fabric]
    names, coords = router_lists([dump])
    parts = np.repeat(blades(names), per, axis=0)
    parts[:, 4] += np.tile(np.arange(per, dtype=np.int32), len(names))
    rule = _xc(dump, parts) if dump.fabric == "aries" else _gemini(dump, parts, coords)
    from placement.names.columns import format_cnames

    nodes = NodeRecords(
        line=np.zeros(len(parts), dtype=np.int32),
        nid=rule.nid(parts),
        cname=format_cnames(parts),
    )
    return replace(dump, nodes=nodes)


def _xc(dump: Dump, parts: NDArray[np.int32]) -> Xc:
    from placement.names.xc import Xc

    stated = dump.parameters.get("positions")
    if isinstance(stated, int):
        return Xc(stated)
    if parts[:, 1].max() > 0:
        hint = "add xtprocadmin's output or name the site"
        raise ParseError(dump.source, 0, "its groups do not tell how many cabinets a row has", hint)
    return Xc(int(parts[:, 0].max()) // 2 * 2 + 2)


def _gemini(dump: Dump, parts: NDArray[np.int32], coords: NDArray[np.int32]) -> Gemini:
    from placement.names.gemini import Gemini

    extents = dump.parameters.get("extents")
    if isinstance(extents, tuple):
        rule = Gemini(int(extents[0]), max(1, int(extents[1]) // 2))
        if bool((rule.coords(parts)[::2, :3] == coords).all()):
            return rule
    hint = "add the nodes: xtprocadmin's output, a system map or a coordinate file"
    raise ParseError(dump.source, 0, "its coordinates do not tell the NIDs of its nodes", hint)
