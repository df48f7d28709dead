# SPDX-License-Identifier: Apache-2.0
"""Output of Open MPI's monitoring components: one file per rank, ``NAME.<rank>.prof``.

Lines of tab-separated words begin with the kind of traffic: ``E`` for
messages of the program, ``I`` for those inside collectives, ``S`` and ``R``
for one-sided puts and gets, ``C`` for the collectives once more, by algorithm;
then from, to, ``108 bytes``, ``27 msgs sent`` and sizes. What a rank sends
is in its own file. E, I and S count; C would count collectives twice, and
R is the same traffic as S seen from the other end.
"""

from __future__ import annotations

import itertools
import os
import re

import numpy as np

from nidmap.placement.errors import ParseError, printable
from nidmap.placement.placement import MOST_RANKS
from nidmap.placement.support.reading import read_bytes
from nidmap.placement.traffic import Traffic, join_traffic
from nidmap.rankmap.readers.entries import Entries, check_entries

_LINE = re.compile(
    rb"^(?:\[[^\]\n]*\](?:<\w+>)?:?\s*)?([EISR])[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+)[ \t]+bytes\b",
    re.MULTILINE,
)
_FILE = re.compile(r".*\.(\d+)\.prof")
_BEGUN = re.compile(rb"^([EISR])[ \t]+[^\n]*$", re.MULTILINE)
_COUNTED = b"EIS"


def read(raw: bytes, source: str) -> Entries:
    r"""Return the entries of one monitoring file, or of several joined."""
    lines = [match.groups() for match in _LINE.finditer(raw)]
    begun = list(_BEGUN.finditer(raw))
    for match in begun if len(begun) > len(lines) else ():
        if not _LINE.match(match[0]):
            line = raw.count(b"\n", 0, match.start()) + 1
            shown = printable(match[0].decode("utf-8", "replace"), 60)
            raise ParseError(source, line, f"'{shown}' is cut short")
    if not lines:
        raise ParseError(source, 0, "not a line of Open MPI's monitoring")
    kept = [tuple(map(int, numbers)) for kind, *numbers in lines if kind in _COUNTED]
    last = max((max(a, b) for a, b, _ in kept), default=0)
    if last >= MOST_RANKS:  # before they are numbers of numpy's, which end at 2^63
        raise ParseError(source, 0, f"rank {last}: at most {MOST_RANKS} ranks are supported")
    a, b, size = np.array(kept, dtype=np.float64).reshape(-1, 3).T
    sent = Traffic.of(a.astype(np.int64), b.astype(np.int64), size)
    return check_entries(Entries(last + 1, sent, stated=False), source)


def read_directory(path: str) -> Entries:
    """Return the entries of all ``.prof`` files of one run in a directory."""
    named = {name: m for name in os.listdir(path) if (m := _FILE.fullmatch(name))}
    if not named:
        raise ParseError(path, 0, "a directory without Open MPI's NAME.<rank>.prof files")
    ranks = sorted(int(m[1]) for m in named.values())
    if len(set(ranks)) < len(ranks):
        twice = next(x for x, y in itertools.pairwise(ranks) if x == y)
        raise ParseError(path, 0, f"two files for rank {twice}", "keep one run's files only")
    missing = sorted(set(range(ranks[-1] + 1)) - set(ranks))
    if missing:
        raise ParseError(path, 0, f"the file for rank {missing[0]} is missing")
    parts = [read(read_bytes(os.path.join(path, name)), name) for name in named]
    n = max(len(ranks), *(p.ranks for p in parts))
    if n > len(ranks):
        raise ParseError(path, 0, f"messages go to rank {n - 1}, but there are {len(ranks)} files")
    return check_entries(Entries(n, join_traffic(p.sent for p in parts)), path)
