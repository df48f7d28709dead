"""``rtr --system-map`` (Gemini): NIDs, cnames, Geminis and coordinates.

Two header lines, then ``nid hex node_cname gemini_cname x y z`` a row, as
read by public converters of Cray XE maps; the text of the headers is not
looked at.
"""

from __future__ import annotations

import numpy as np

from placement.names import write_names
from placement.readers import dump_format, sniffing
from placement.readers import rows as r
from placement.readers.cray import cray_dump, hex_faults, list_faults
from placement.records import Dump, Finding

_GEMINI = r.CNAME + "g[0-9]+"
sniff = sniffing(
    rf"^[ \t]*[0-9]+[ \t]+(?:0x)?[0-9a-f]+[ \t]+{r.NODE}[ \t]+{_GEMINI}"
    r"(?:[ \t]+[0-9]+){3}[ \t]*$"
)
_HOME = ("gcol", "grow", "gcage", "gslot", "gemini")
_COLUMNS = (
    r.NID,
    r.HEX_NID,
    r.NODE_CNAME,
    r.Column("gemini", "Gemini's cname", _GEMINI, _HOME, hint="such as c0-0c0s0g1"),
    *r.XYZ,
)
_BARE = (r.NID, r.Column("hex", "hexadecimal NID", "[0-9a-f]+"), *_COLUMNS[2:])


@dump_format("system-map", "places", sniff)
def read(text: str, source: str) -> Dump:
    """Read the output of ``rtr --system-map``.

    Parameters
    ----------
    text : str
    source : str
        Named in errors.

    Returns
    -------
    Dump
        Nodes with nid, cname, (x, y, z) and router (the Gemini's cname);
        fabric ``gemini``. Faults: ``hex``, ``duplicate-nid``,
        ``duplicate-cname``, ``cname``, ``coordinates``, ``router`` (the
        Gemini is not on the node's blade).

    Raises
    ------
    ParseError
        At the first line behind the headers that is not a row, comment or blank.

    Examples
    --------
    >>> dump = read("nid hex node gemini x y z\\n---\\n2 0x2 c0-0c0s1n0 c0-0c0s1g0 0 0 1", "map")
    >>> dump.nodes.router.tolist(), dump.counts.headers
    (['c0-0c0s1g0'], 2)
    """
    rows = r.Rows.read(text, source, "system-map", _SystemMapLines())
    home, node, nid = rows.table(_HOME), rows.table(r.PARTS), rows.number("nid")
    router = write_names(home, ("c", "-", "c", "s", "g"))
    wrong = np.any(node[:, :4] != home[:, :4], axis=1) | (node[:, 4] // 2 != home[:, 4])
    faults = _hex_faults(rows, text) + list_faults(
        np.flatnonzero(wrong),
        rows.line,
        "router",
        lambda row: f"{router[row]} is not the Gemini of NID {nid[row]}",
    )
    return cray_dump(rows, fabric="gemini", router=router, faults=faults)


def _hex_faults(rows: r.Rows, text: str) -> list[Finding]:
    printed = rows.number("hex").astype(np.int64)
    bare = np.flatnonzero(~rows.having("hex"))
    if bare.size:  # digits without 0x: no number in bulk, so each by itself
        lines = text.split("\n")
        words = (lines[i - 1].split()[1][:9] for i in rows.line[bare].tolist())
        printed[bare] = [int(word, 16) for word in words]
    return hex_faults(rows.line, rows.number("nid"), printed)


class _SystemMapLines:
    """Interprets one line after the other; the first two may be headers."""

    def __init__(self) -> None:
        self.headers: dict[str, None] = {}
        self.begun = False

    def __call__(self, line: str) -> r.Row | None:
        """Return how to read a row, None for a header."""
        words = line.split()
        if not self.begun and not words[0].isdigit():
            self.headers |= {line: None}
            if len(self.headers) <= 2:
                return None
        row = r.read_columns(line, _COLUMNS if words[1:2] and "x" in words[1].lower() else _BARE)
        self.begun = True
        return row
