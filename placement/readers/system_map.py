# SPDX-License-Identifier: Apache-2.0
"""``rtr --system-map`` (Gemini): NIDs, cnames, Geminis and coordinates.

Two header lines, then ``nid hex node_cname gemini_cname x y z`` a row, as
read by public converters of Cray XE maps; the text of the headers is not
looked at.
"""

from __future__ import annotations

import numpy as np

from nidmap.placement.names import write_names
from nidmap.placement.readers import dump_format, sniffing
from nidmap.placement.readers import rows as r
from nidmap.placement.readers.cray_formats import cray_dump, list_faults
from nidmap.placement.records import Dump

sniff = sniffing(
    rf"^[ \t]*[0-9]+[ \t]+(?:0x)?[0-9a-f]+[ \t]+{r.NODE}[ \t]+{r.BLADE}g[0-9]+"
    r"(?:[ \t]+[0-9]+){3}[ \t]*$"
)
_HOME = ("gcol", "grow", "gcage", "gslot", "gemini")
_COLUMNS = (
    r.NID,
    r.Column("hexadecimal NID", "(?:0x)?([0-9a-f]{1,8})", ("hex",)),
    r.NODE_CNAME,
    r.Column("Gemini's cname", f"{r.BLADE}g{r.NUMBER}", _HOME, "such as c0-0c0s0g1"),
    *r.XYZ,
)


@dump_format("system-map", "places", sniff)
def read(text: str, source: str) -> Dump:
    """Read the output of ``rtr --system-map``.

    Nodes with nid, cname, (x, y, z) and router (the Gemini's cname); fabric ``gemini``. Faults:
    ``hex``, ``duplicate-nid``, ``duplicate-cname``, ``cname``, ``coordinates``, ``router`` (the
    Gemini is not on the node's blade).
    """
    rows = r.read_rows(text, source, "system-map", _SystemMapLines())
    home, node, nid = rows.table(_HOME), rows.table(r.PARTS), rows.column("nid")
    router = write_names(home, ("c", "-", "c", "s", "g"))
    wrong = np.any(node[:, :4] != home[:, :4], axis=1) | (node[:, 4] // 2 != home[:, 4])
    faults = list_faults(
        np.flatnonzero(wrong),
        rows.line,
        "router",
        lambda row: f"{router[row]} is not the Gemini of NID {nid[row]}",
    )
    return cray_dump(rows, fabric="gemini", router=router, faults=faults)


class _SystemMapLines:
    """Interprets lines in sequence; the first two may be headers."""

    headers = 0
    begun = False

    def __call__(self, line: str) -> r.RowColumns | None:
        """Return how to read a row; None for a header."""
        self.begun = self.begun or line.split()[0].isdigit()
        if not self.begun and self.headers < 2:
            self.headers += 1
            return None
        return r.row_layout(line, _COLUMNS)
