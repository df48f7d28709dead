# SPDX-License-Identifier: Apache-2.0
"""``flux resource list``: which nodes are free, allocated or down.

A node with some cores free and some taken stands in both rows: it counts as
allocated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nidmap.placement.readers import count_lines, dump_format, split_lines, strange_line
from nidmap.placement.readers.node_states import StatedNode, states_dump
from nidmap.placement.readers.slurm_switches import expand
from nidmap.placement.records import Dump

_HEADER = re.compile(r"\s*STATE\s.*\bNNODES\s.*\bNODELIST\s*")
_ROW = re.compile(r"\s*(free|allocated|down)\s(?:.*\s)?(\d+)\s+(\d+)\s+(\d+)(?:\s+(\S+))?\s*")


def sniff(head: str) -> bool:
    r"""Say whether the first line is the header of ``flux resource list``."""
    first = next((line for line in head.split("\n") if line.strip()), "")
    return bool(_HEADER.fullmatch(first))


@dump_format("flux-resources", "states", sniff)
def read(text: str, source: str) -> Dump:
    r"""Read the output of ``flux resource list``.

    One row a node in the order of the rows.
    """
    lines = split_lines(text, source)
    headers = sum(bool(_HEADER.fullmatch(line)) for line in lines)
    nodes = _read_nodes(lines, source)
    return states_dump(source, count_lines(lines, headers), nodes)


def _read_nodes(lines: list[str], source: str) -> Iterator[StatedNode]:
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#") or _HEADER.fullmatch(line):
            continue
        row = _ROW.fullmatch(line)
        if row is None or (row[2] != "0") != bool(row[5]):
            what = "a row of flux resource list"
            raise strange_line("flux-resources", source, number, line, what, "is it complete?")
        if row[5]:
            for name in expand(row[5], source, number, "NODELIST"):
                yield StatedNode(name, "idle" if row[1] == "free" else row[1], line=number)
