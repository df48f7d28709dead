# SPDX-License-Identifier: Apache-2.0
"""``meshcoords``: NIDs, cnames, roles, cores and coordinates.

Header ``NID NODENAME TYPE CORES X Y Z``, rows like
``2305 c0-1c0s0n1 compute 68 6 0 0``; rows without the header are taken too.
The coordinates are (group, chassis, slot) on an XC, the torus's elsewhere.
"""

from __future__ import annotations

from nidmap.placement.errors import NidmapError
from nidmap.placement.readers import dump_format, sniffing
from nidmap.placement.readers import rows as r
from nidmap.placement.readers.cray_formats import cray_dump
from nidmap.placement.records import Dump

sniff = sniffing(
    rf"^[ \t]*(?:NID[ \t]+NODENAME\b|[0-9]+[ \t]+{r.NODE}[ \t]+[a-z]+(?:[ \t]+[0-9]+){{4}}[ \t]*$)"
)
_HEADER = ["nid", "nodename", "type", "cores", "x", "y", "z"]
_COLUMNS = (r.NID, r.NODE_CNAME, r.ROLE, r.CORES, *r.XYZ)


@dump_format("meshcoords", "places", sniff)
def read(text: str, source: str) -> Dump:
    """Read the output of ``meshcoords``.

    Nodes with nid, cname, role, cores and coordinates; fabric ``aries`` where the coordinates are
    an XC's, else ``gemini``. Faults: ``duplicate-nid``, ``duplicate-cname``, ``cname``,
    ``coordinates``.
    """
    return cray_dump(r.read_rows(text, source, "meshcoords", _line_layout))


def _line_layout(line: str) -> r.RowColumns | None:
    words = line.lower().split()
    if words[0] == "nid":
        if words != _HEADER:
            raise NidmapError("the header is not NID NODENAME TYPE CORES X Y Z")
        return None
    return r.row_layout(line, _COLUMNS)
