# SPDX-License-Identifier: Apache-2.0
"""Torus coordinate files: NIDs, cnames, roles and coordinates, without a header.

As kept for Cray XE and XK systems (``2 c0-0c0s1n0 compute 0 0 1``); the
rules were checked on Titan's file (19,200 nodes, no exception).
"""

from __future__ import annotations

from nidmap.placement.readers import dump_format, sniffing
from nidmap.placement.readers import rows as r
from nidmap.placement.readers.cray_formats import cray_dump
from nidmap.placement.records import Dump

sniff = sniffing(rf"^[ \t]*[0-9]+[ \t]+{r.NODE}[ \t]+[a-z]+(?:[ \t]+[0-9]+){{3}}[ \t]*$")
_COLUMNS = (r.NID, r.NODE_CNAME, r.ROLE, *r.XYZ)


@dump_format("torus-coordinates", "places", sniff)
def read(text: str, source: str) -> Dump:
    """Read a torus coordinate file.

    Nodes with nid, cname, role and (x, y, z); fabric ``gemini``. Faults: ``duplicate-nid``,
    ``duplicate-cname``, ``cname``, ``coordinates`` (two nodes of one Gemini apart).
    """
    rows = r.read_rows(text, source, "torus-coordinates", lambda line: r.row_layout(line, _COLUMNS))
    return cray_dump(rows, fabric="gemini")
