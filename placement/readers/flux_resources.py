# SPDX-License-Identifier: Apache-2.0
"""``flux resource list``, ``flux resource status``: which nodes are free, allocated or down.

A node with some cores free and some taken is in both rows: it counts as
allocated. What ``status`` calls ``avail`` counts as up: it does not say who uses it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from nidmap.placement.readers import count_lines, dump_format, split_lines, strange_line
from nidmap.placement.readers.node_states import StatedNode, states_dump
from nidmap.placement.readers.slurm_switches import expand
from nidmap.placement.records import Dump

#: Older versions of ``status`` call the state so.
_HEADER = re.compile(r"\s*(?:STATE|STATUS)\s.*\bNNODES\b.*\sNODELIST\s*")
#: Columns that may be empty in a row.
_MAY_BE_EMPTY = ("QUEUE", "PROPERTIES", "REASON")
#: Flux's words for a state and ours; the rows ``all`` and ``up`` repeat the others.
_STATES = {
    "free": "idle", "avail": "up", "online": "up", "allocated": "allocated", "down": "down",
    "offline": "down", "drain": "drained", "drained": "drained", "draining": "draining",
    "exclude": "inactive", "excluded": "inactive", "torpid": "inactive", "lost": "down",
}  # fmt: skip
_SUMS = ("all", "up")


def sniff(head: str) -> bool:
    r"""Tell whether the first line is the header of ``flux resource list``."""
    first = next((line for line in head.split("\n") if line.strip()), "")
    return bool(_HEADER.fullmatch(first))


@dump_format("flux-resources", "states", sniff)
def read(text: str, source: str) -> Dump:
    r"""Read the output of ``flux resource list``.

    One row per node in the order of the rows.
    """
    lines = split_lines(text, source)
    headers = sum(bool(_HEADER.fullmatch(line)) for line in lines)
    nodes = _read_nodes(lines, source)
    return states_dump(source, count_lines(lines, headers), nodes)


def _read_nodes(lines: list[str], source: str) -> Iterator[StatedNode]:
    columns: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if _HEADER.fullmatch(line):
            columns = ["STATE" if word == "STATUS" else word for word in line.split()]
            continue
        row = _read_row(line.split(), columns)
        if row is None:
            what = "a row of flux resource list"
            raise strange_line("flux-resources", source, number, line, what, "is it complete?")
        if row["STATE"] not in _SUMS and "NODELIST" in row:
            for name in expand(row["NODELIST"], source, number, "NODELIST"):
                yield StatedNode(name, _STATES[row["STATE"]], line=number)


def _read_row(words: list[str], columns: list[str]) -> dict[str, str] | None:
    """Return the cells of a row by column; None if they do not fit.

    Cells of some columns may be empty, of the list where there are no nodes.
    """
    hidden = [name for name in columns if name in _MAY_BE_EMPTY]
    for count in range(len(hidden) + 1):
        for empty in itertools.combinations(hidden, count):
            kept = [name for name in columns if name not in empty]
            row = dict(zip(kept, words, strict=False))
            row["STATE"] = row.get("STATE", "").rstrip("*")  # its nodes are offline as well
            if not row.get("NNODES", "").isdigit() or row["STATE"] not in (*_STATES, *_SUMS):
                continue
            full = len(words) == len(kept) - (row["NNODES"] == "0")
            if full and all(row[k].isdigit() for k in ("NCORES", "NGPUS") if k in row):
                return row
    return None
