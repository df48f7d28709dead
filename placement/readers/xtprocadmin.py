# SPDX-License-Identifier: Apache-2.0
"""``xtprocadmin`` (XC and XT-era headers): NIDs, cnames, roles, states and modes.

The columns follow the header (XC: ``NID (HEX) NODENAME TYPE STATUS MODE``;
XT: ``… TYPE ARCH OS CORES`` or ``… OS CPUS``; columns that we do not know
are passed over). A long cname pushes its row to the right, so words are told
apart by white space alone. Rows without any header (what ``grep`` leaves)
are taken for those of an XC. Facts checked on Piz Daint's dump (7,634
nodes, no exception).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from nidmap.placement.errors import NidmapError
from nidmap.placement.readers import dump_format
from nidmap.placement.readers import rows as r
from nidmap.placement.readers.cray_formats import cray_dump
from nidmap.placement.records import Dump

_SNIFF = re.compile(
    r"^[ \t]*[0-9]+[ \t]+0x[0-9a-f]+[ \t]+c[0-9]+-[0-9]+c[0-9]+s[0-9]+n[0-9]+[ \t]+"
    r"(?:compute|service)\b",
    re.I | re.M | re.A,
)
_STATUS = r.Column("STATUS such as up or down", "([a-z][a-z_-]{0,31}|-)", ("state",))
_MODES = "(interactive|batch|other|-)"
_MODE = r.Column("MODE (interactive, batch or other)", _MODES, ("mode",))
#: The last column of a row for an XT's compute node that is down, which ends there.
_DOWN = r.Column("TYPE", "((compute))", ("role", "down"))
_KNOWN = {
    "nid": r.NID,
    "(hex)": r.HEX_NID,
    "hex": r.HEX_NID,
    "nodename": r.NODE_CNAME,
    "type": r.ROLE,
    "status": _STATUS,
    "mode": _MODE,
    "cores": r.CORES,
    "cpus": r.CORES,
}
_XC = ("nid", "(hex)", "nodename", "type", "status", "mode")
_NEEDED = ("nid", "nodename", "type")
_XT = {"arch", "os", "cores", "cpus"}


def sniff(head: str) -> bool:
    """Tell whether the beginning of a text has the header or a row of xtprocadmin."""
    return _SNIFF.search(head) is not None or any(map(_is_header, head.lower().split("\n")))


def _is_header(line: str) -> bool:
    """Tell whether a line is a header, in any column order, but not that of ``meshcoords``."""
    return "nodename" in line and "hex" in line and {"nid", "nodename"} <= set(line.split())


@dump_format("xtprocadmin", "inventory", sniff)
def read(text: str, source: str) -> Dump:
    """Read the output of ``xtprocadmin``.

    Nodes with nid, cname, role, state, mode, and cores where the header has them. Faults: ``hex``
    (it is not the NID), ``duplicate-nid``, ``duplicate-cname``, ``cname`` (no such cage, slot or
    node).
    """
    rows = r.read_rows(text, source, "xtprocadmin", _StatusLines())
    if "down" in rows.columns:
        rows.columns["state"] = np.where(rows.having("down"), "down", rows.column("state"))
    return cray_dump(rows)


class _StatusLines:
    """Interprets lines in sequence; the header names the columns."""

    header: Sequence[str] = ()
    expected = tuple(_KNOWN[name] for name in _XC)
    xt = False

    def __call__(self, line: str) -> r.RowColumns | None:
        """Return how to read a row; None for a header."""
        words = line.lower().split()
        if _is_header(" ".join(words)):
            self._take_header(words)
            return None
        if len(words) == 4 and self.xt and words[3] == "compute":
            return r.row_layout(line, (*self.expected[:3], _DOWN))
        return r.row_layout(line, self.expected)

    def _take_header(self, words: Sequence[str]) -> None:
        if words == self.header:
            return
        if self.header:
            raise NidmapError(
                "the header differs from the one above", "put each dump into its own file"
            )
        missing = [name for name in _NEEDED if name not in words]
        if missing or len(set(words)) != len(words):
            what = f"lacks {missing[0].upper()}" if missing else "names a column twice"
            raise NidmapError(f"the header {what}: '{' '.join(words)}'")
        self.header = words
        self.expected = tuple(_KNOWN.get(name) or r.Column(name.upper(), r"\S+") for name in words)
        self.xt = bool(_XT & set(words)) and tuple(words[:4]) == _XC[:4]
