# SPDX-License-Identifier: Apache-2.0
"""``bhosts``, ``bhosts -w``, ``lshosts`` (LSF): states of hosts, cores.

A host that is ``ok`` without jobs is idle; with some it has free slots, and is mixed. What
``lshosts`` prints has no states: hosts whose number of CPUs it knows have reported: they are up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nidmap.placement.errors import ParseError
from nidmap.placement.readers import count_lines, dump_format, split_lines, strange_line
from nidmap.placement.readers.node_states import StatedNode, states_dump
from nidmap.placement.records import Dump

#: States of a host in ``bhosts``, and our words; after ``closed_`` its ``-w`` form gives the
#: reason.
STATES = {
    "ok": "idle", "unavail": "down", "unreach": "not_responding", "unlicensed": "down",
    "closed_adm": "drained", "closed_lock": "drained", "closed_wind": "inactive",
    "closed_full": "allocated", "closed_excl": "allocated", "closed_cu_excl": "allocated",
    "closed_busy": "allocated", "closed_lim": "down", "closed_ego": "inactive",
    "closed_rc": "inactive",
}  # fmt: skip

_NAME = re.compile(r"[A-Za-z0-9_][\w.\-]*", re.ASCII)
_STATES_HEADER = re.compile(r"^[ \t]*HOST_NAME\s+STATUS\s+JL/U\s+MAX\s+NJOBS\s+RUN\s", re.M)
_HOSTS_HEADER = re.compile(r"^[ \t]*HOST_NAME\s+type\s+model\s+cpuf\s+ncpus\s", re.M)


def sniff(head: str) -> bool:
    """Tell whether the first lines look like bhosts or lshosts."""
    return bool(_STATES_HEADER.search(head) or _HOSTS_HEADER.search(head))


@dump_format("bhosts", "states", sniff)
def read(text: str, source: str) -> Dump:
    """Read the output of bhosts or lshosts."""
    lines = split_lines(text, source)
    if _STATES_HEADER.search(text) and _HOSTS_HEADER.search(text):
        raise ParseError(source, 0, "bhosts and lshosts in one file", "name both files with -m")
    states = _STATES_HEADER.search(text) is not None
    header = _STATES_HEADER if states else _HOSTS_HEADER
    headers = sum(header.match(line) is not None for line in lines)
    rows = _read_rows(lines, header, states, source)
    return states_dump(source, count_lines(lines, headers), rows)


def _read_rows(
    lines: list[str], header: re.Pattern[str], states: bool, source: str
) -> Iterator[StatedNode]:
    begun, width = False, 0
    full: set[str] = set()  # names as wide as their column, maybe cut off
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0][0] == "#":
            continue
        if header.match(line):
            begun, width = True, len(re.sub(r"(\S\s+)\S.*", r"\1", line.strip())) - 1
            continue
        make = _stated_host if states else _listed_host
        node = make(words, number) if begun and _NAME.fullmatch(words[0]) else None
        if node is None:
            what = f"a row of {'bhosts' if states else 'lshosts'}"
            raise strange_line("bhosts", source, number, line, what)
        if words[0] in full or words[0].endswith(".."):
            what = f"'{words[0]}' is cut off: several hosts may begin like this"
            raise ParseError(source, number, what, "bhosts -w prints names whole")
        full |= {words[0]} if len(words[0]) >= width else set()
        yield node


def _stated_host(words: list[str], line: int) -> StatedNode | None:
    """Parse a host of bhosts: name, status, job limit per user, slots, jobs, …; None: no row."""
    if len(words) < 9 or not words[4].isdigit() or not words[8].isdigit():
        return None
    status, most, jobs, reserved = words[1].lower(), words[3], int(words[4]), int(words[8])
    state = STATES.get(status, status)
    if status == "closed":  # without -w: full by its slots, else closed by somebody
        state = "allocated" if most.isdigit() and jobs >= int(most) > 0 else "drained"
    elif state == "idle" and (jobs or reserved):
        state = "mixed" if jobs else "reserved"
    return StatedNode(words[0], state, line=line)


def _listed_host(words: list[str], line: int) -> StatedNode | None:
    """Parse a host of lshosts: name, type, model, factor, CPUs, …; None: no row."""
    if len(words) < 8:
        return None
    known = words[4].isdigit()
    cores = int(words[4]) if known else 0
    return StatedNode(words[0], "up" if known else "unknown", line=line, figures={"cores": cores})
