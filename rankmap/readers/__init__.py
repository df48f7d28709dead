# SPDX-License-Identifier: Apache-2.0
"""Readers of graphs and measured matrices: one module per format, file in, entries out.

Each module has ``read(raw, source) -> Entries``. The format is seen from the
file's first bytes; its name decides where these leave a choice.
"""

from __future__ import annotations

import os
from importlib import import_module

from nidmap.placement.errors import ParseError
from nidmap.placement.support.reading import read_bytes
from nidmap.rankmap.readers.entries import MOST_BYTES, Entries
from nidmap.rankmap.readers.monitoring import read_directory

#: The formats that are read, in words for a message.
FORMATS = "METIS, npz, csv and Open MPI's monitoring files are read"

#: Format implied by a file's name if its first bytes do not tell.
_ENDINGS = {
    **dict.fromkeys((".graph", ".metis", ".chaco"), "metis"),
    **dict.fromkeys((".csv", ".tsv", ".txt", ".mat"), "csv"),
    ".prof": "monitoring",
}


def read(path: str) -> Entries:
    """Return the entries of a file, or of a directory of Open MPI's monitoring files."""
    if os.path.isdir(path):
        return read_directory(path)
    raw = read_bytes(path, "the pattern's -", MOST_BYTES)
    raw = raw.removeprefix(b"\xef\xbb\xbf")  # a byte order mark, as editors on Windows write
    if not raw.strip():
        raise ParseError(path, 0, "the file is empty")
    _refuse_unread(raw, path)
    module = import_module(f"nidmap.rankmap.readers.{recognise(raw[:65536], path)}")
    entries: Entries = module.read(raw, path)
    return entries


def recognise(head: bytes, path: str = "") -> str:
    """Return the module that reads files with this beginning."""
    if head.startswith((b"PK\x03\x04", b"\x93NUMPY")):
        return "npz"
    lower = head.lower()
    if b"msgs sent" in lower or lower.startswith(b"# point to point"):
        return "monitoring"
    named = _ENDINGS.get(os.path.splitext(path.removesuffix(".gz"))[1].lower())
    if named:
        return named
    return "csv" if b"," in head or b";" in head else "metis"


#: Beginnings of common but unsupported files -> why, and what to do.
_UNREAD = {
    b"@ mpip": ("mpiP's report says how much each rank sends, not to whom", "nidmap record does"),
    b"craypat/x": (
        "CrayPat's report says how much each rank sends, not to whom",
        "nidmap record does",
    ),
    b"%%matrixmarket": (
        "MatrixMarket is not supported",
        "scipy.sparse.save_npz(FILE, scipy.sparse.csr_array(scipy.io.mmread(THIS))) writes npz",
    ),
}


def _refuse_unread(raw: bytes, path: str) -> None:
    """Raise ParseError for a file of a known but unsupported kind."""
    head = raw[:256].lstrip().lower()
    for begin, (what, hint) in _UNREAD.items():
        if head.startswith(begin):
            raise ParseError(path, 0, what, f"{hint}; {FORMATS}")
