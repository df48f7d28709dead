# SPDX-License-Identifier: Apache-2.0
"""``qhost``, ``qhost -q``, ``qhost -j`` (Grid Engine): hosts, cores; states of their queues.

A host that reports no load is down. ``-q`` prints the slots and the state of each queue below its
host: of a host with several queues the worst counts, and one with used slots is mixed, or
allocated where none is left. Without ``-q`` nothing says who uses a host: it counts as up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nidmap.placement.readers import count_lines, dump_format, split_lines, strange_line
from nidmap.placement.readers.node_states import StatedNode, badness_of, states_dump
from nidmap.placement.records import Dump

_HEADER = re.compile(r"^[ \t]*HOSTNAME\s+ARCH\s+NCPU\s(?:.*\s)?N?LOAD\s(?:.*\s)?SWAPUS\s*$", re.M)
_QUEUE = re.compile(r"\s+(\S+)\s+([BIPCTN]{1,5})\s+(?:(\d+)/)?(\d+)/(\d+)(?:\s+([A-Za-z]+))?\s*")
_JOB = re.compile(r"\s+(?:job-ID\s.*|-+\s*|\d+\s+[\d.]+\s.*)")
_VALUE = re.compile(r"\s+[a-z]+:[a-z_]+=.*")
#: Letters of a queue's state and our words, the worst first; a load alarm closes it.
_LETTERS = {"u": "not_responding", "E": "error", "d": "drained", "D": "drained", "c": "error",
            "s": "inactive", "S": "inactive", "C": "inactive", "o": "inactive", "a": "allocated",
            "A": "allocated", "P": "inactive"}  # fmt: skip


def sniff(head: str) -> bool:
    """Tell whether the first lines look like qhost."""
    return bool(_HEADER.search(head))


@dump_format("qhost", "states", sniff)
def read(text: str, source: str) -> Dump:
    """Read the output of qhost."""
    lines = split_lines(text, source)
    headers = sum(_HEADER.match(line) is not None or not line.strip("- ") for line in lines)
    blank = sum(not line.strip() for line in lines)
    nodes = _with_queues(lines, source)
    return states_dump(source, count_lines(lines, headers - blank), nodes)


def _with_queues(lines: list[str], source: str) -> Iterator[StatedNode]:
    """Yield each host in the state that its queues leave it in."""
    columns: list[str] = []
    margin = 0  # of a table that was pasted indented
    host: StatedNode | None = None
    queues: list[str] = []
    for number, whole in enumerate(lines, 1):
        line = whole[margin:] if whole[:margin].isspace() else whole
        if _HEADER.match(line):
            columns, margin = whole.split(), len(whole) - len(whole.lstrip())
        elif not columns:
            if line.strip():
                raise strange_line("qhost", source, number, line, "the header of qhost")
        elif not line.strip("- \t") or _JOB.fullmatch(line) or _VALUE.fullmatch(line):
            continue
        elif queue := _QUEUE.fullmatch(line):
            queues.append(_queue_state(queue))
        else:
            if host is not None:
                yield _settled(host, queues)
            host, queues = _host(line, columns, source, number), []
    if host is not None:
        yield _settled(host, queues)


def _host(line: str, columns: list[str], source: str, number: int) -> StatedNode | None:
    """Return a host's row; None for ``global``, which is not a host."""
    words = line.split()
    if len(words) != len(columns) or line[:1].isspace():
        raise strange_line("qhost", source, number, line, "a row of qhost")
    row = dict(zip(columns, words, strict=True))
    if row["HOSTNAME"] == "global":
        return None
    figures = {"cores": _plain_number(row.get("NCOR", row["NCPU"]))}
    if "NSOC" in row:
        figures["sockets"] = _plain_number(row["NSOC"])
    load = row.get("NLOAD", row.get("LOAD"))  # Son of Grid Engine's is for each core
    state = "down" if load == "-" else "up"
    return StatedNode(row["HOSTNAME"], state, line=number, figures=figures)


def _plain_number(word: str) -> int:
    return int(word) if word.isdigit() and len(word) < 10 else 0


def _queue_state(queue: re.Match[str]) -> str:
    """Return a host's resources in a queue: reserved, used and total slots, state letters."""
    _, _, reserved, used, total, letters = queue.groups()
    states = [_LETTERS.get(letter, "unknown") for letter in letters or ""]
    if int(used):
        states.append("allocated" if int(used) >= int(total) else "mixed")
    if int(reserved or 0):
        states.append("reserved")
    return max(states, key=badness_of, default="idle")


def _settled(host: StatedNode, queues: list[str]) -> StatedNode:
    """Return the host in the worst of its own state and its queues' states."""
    return host._replace(state=max([host.state, *queues], key=badness_of))
