# SPDX-License-Identifier: Apache-2.0
"""From a resource manager's node rows to one record per node, in the worst of its states.

Slurm shortens the words for a state (``drng``), appends a sign for a flag (``idle*``),
joins several with ``+`` in its complete form and cuts them at the width of a
column. Here they become one lower-case word each, so that the same node reads
the same however it was printed. `WORDS`, `ORDER`, `NEUTRAL` and `SIGNS` are the states, flags and
signs of Slurm 22.05 to 26.05: every word that its sources print of a node's state
(``node_state_string`` and ``node_state_string_compact`` of slurm_protocol_defs.c) and every flag of
its JSON (``NODE_STATES`` of the data parsers, to v0.0.46).

A node that is powered down (``idle~``) or powering up (``idle#``) is one that a job may have, and
waits for: Slurm takes those that are up first, whatever their weights. One that is powering
down (``idle%``) or about to (``idle!``) is not to be had until it is down (checked on slurmctld
22.05.8).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from nidmap.placement.errors import ParseError
from nidmap.placement.readers import MOST_NODES
from nidmap.placement.records import FREE_STATES, Dump, Finding, LineCounts, NodeRecords

#: Short forms (and longer synonyms) and the word for them.
WORDS = {
    "alloc": "allocated", "boot": "reboot", "comp": "completing", "drain": "drained",
    "drng": "draining", "err": "error", "failg": "failing", "futr": "future",
    "maintenance": "maint", "mix": "mixed", "npc": "perfctrs", "plnd": "planned",
    "invalid_reg": "inval", "block": "blocked", "net": "perfctrs", "power_drain": "drained",
    "pow_dn": "power_down", "pow_up": "powering_up", "power_dn": "power_down",
    "powered_dn": "powered_down", "powring_dn": "powering_down",
    "canc_r": "reboot_canceled", "cancel_reboot": "reboot_canceled", "ext": "external",
    "resm": "resume", "power_up": "powering_up", "power_saving": "powered_down",
    "invalid": "unknown",
    "reboot_issued": "reboot", "reboot_requested": "reboot", "resv": "reserved", "unk": "unknown",
}  # fmt: skip

#: From states in which a job can start at once to those that never become usable.
ORDER = (
    "up", "idle", "planned", "powering_up", "powered_down", "power_down", "powering_down",
    "mixed", "allocated", "completing", "perfctrs", "blocked", "reserved", "inactive",
    "maint", "reboot", "draining", "drained", "failing", "fail", "future", "inval",
    "error", "unknown", "not_responding", "down",
)  # fmt: skip

#: Flags that do not affect whether a node is free.
NEUTRAL = {
    *("cloud", "dynamic_norm", "dynamic_future", "external"),
    *("resume", "undrain", "reboot_canceled"),
}

#: Flags after the word, and the resulting state of an idle node; ``-`` is planned.
SIGNS = {
    "*": "not_responding", "$": "maint", "@": "reboot", "^": "reboot",
    "~": "powered_down", "#": "powering_up", "!": "power_down", "%": "powering_down",
}  # fmt: skip

_PART = re.compile(r"([a-z_]+)([*~#!%$@^-]*)")
_RANK = {word: i for i, word in enumerate(ORDER)}
_LONG = sorted({*ORDER, *WORDS, *NEUTRAL})

#: Further figures of a node besides its state, and the type of their column.
FIGURES = {
    **dict.fromkeys(("sockets", "cores", "gpus"), np.int32),
    **dict.fromkeys(("memory_mb", "weight"), np.int64),
    "features": np.str_,
}


class StatedNode(NamedTuple):
    """One node as printed in one row."""

    name: str
    state: str  # one of `ORDER`
    planned: bool = False  # promised to a pending job
    line: int = 0  # 0 where lines mean nothing, as in JSON
    figures: Mapping[str, int | str] = {}  # by the names of `FIGURES`, as far as they are printed
    up: bool = True  # in a partition that is up: an idle node that is in none is ``inactive``


def slurm_state(words: str, source: str, line: int = 0) -> tuple[str, bool]:
    """Return Slurm's state as one word, and whether backfill has planned the node."""
    state = node_state(words)
    if state is None:
        raise ParseError(source, line, f"{words!r} is not a node state")
    return state


def states_dump(
    source: str,
    counts: LineCounts,
    printed: Iterable[StatedNode],
    *,
    jobs: bool = False,
    empty: str = "lists no nodes",
) -> Dump:
    """Return the dump of a format that lists nodes with their states.

    `printed`: a node may come again, as once per partition: the worst state counts. `jobs`: True
    where the format lists jobs: what it does not name may be free. `empty`: what to say where no
    node is named.
    """
    by_name: dict[str, StatedNode] = {}
    for node in printed:
        before = by_name.setdefault(node.name, node)
        if before is not node:
            state = max(before.state, node.state, key=badness_of)
            planned, up = before.planned or node.planned, before.up or node.up
            by_name[node.name] = before._replace(state=state, planned=planned, up=up)
        elif len(by_name) > MOST_NODES:
            raise ParseError(source, node.line, f"more than {MOST_NODES:,} nodes")
    parameters = {"jobs": True} if jobs else {}
    if not by_name:
        fault = Finding(0, "no-nodes", empty, "is this the right cluster?", fault=not jobs)
        return Dump(counts, parameters=parameters, findings=(fault,))
    nodes = list(by_name.values())
    free = (*FREE_STATES, "planned")
    figures = {
        key: np.array([node.figures.get(key, kind()) for node in nodes], dtype=kind)
        for key, kind in FIGURES.items()
        if any(key in node.figures for node in nodes)
    }
    records = NodeRecords(
        line=np.array([node.line for node in nodes], dtype=np.int32),
        name=np.array(list(by_name)),
        state=np.array(["inactive" if n.state in free and not n.up else n.state for n in nodes]),
        planned=np.array([node.planned for node in nodes]),
        **figures,
    )
    return Dump(counts, records, parameters=parameters)


def node_state(text: str) -> tuple[str, bool] | None:
    """Return one word for a state as sinfo prints it, and whether backfill has planned it.

    `text`: such as ``idle``, ``drng*``, ``ALLOCATED+``, ``idle+drain+not_respo``,
    ``DOWN*+DRAIN``. The word in lower case (``idle~`` is ``powered_down``, ``idle*``
    ``not_responding``; what is allocated, drained or down stays that) and True for planned
    (``plnd`` or the sign ``-``); None where `text` is not a state at all.
    """
    parts = [_PART.fullmatch(part) for part in text.lower().rstrip("+").split("+")]
    words = [_long_state(part[1]) for part in parts if part]
    if len(words) < len(parts) or not text[0].isalpha():
        return None
    signs = "".join(part[2] for part in parts if part)
    planned = "-" in signs or "planned" in words
    if "not_responding" in words:
        signs += "*"
    counted = [w for w in words if w not in NEUTRAL and w != "not_responding"] or words[:1]
    state = _worst_known(counted)
    if state == "down" and "reboot_issued" in text.lower():  # sinfo's boot^: it will come back
        state = "reboot"
    if state == "drained" and {"allocated", "mixed", "completing"} & set(counted):
        state = "draining"
    if state in (*FREE_STATES, "planned"):
        state = max([state, *(SIGNS[s] for s in signs if s in SIGNS)], key=badness_of)
    return state, planned


def _worst_known(words: list[str]) -> str:
    """Return the worst of some states; a truncated word never makes a node free."""
    known = [w for w in words if w in _RANK]
    if len(known) == len(words) or len(words) == 1:
        return max(words, key=badness_of)
    state = max(known, key=badness_of, default="unknown")
    return state if badness_of(state) > badness_of("planned") else "unknown"


def badness_of(word: str) -> int:
    """Return how far from usable a state is; unknown words count as bad."""
    return _RANK.get(word, _RANK["unknown"])


def _long_state(word: str) -> str:
    """Return the full word for an abbreviated or truncated state."""
    if word not in WORDS and word not in _RANK and len(word) >= 5:  # sinfo's widths: 6, 11, 20
        full = {WORDS.get(w, w) for w in _LONG if w.startswith(word)}
        if len(full) == 1:
            return full.pop()
    return WORDS.get(word, word)
