# SPDX-License-Identifier: Apache-2.0
"""What slurmctld rejects in a topology file that still describes a machine.

A site learns it otherwise when the controller does not start. Rules of trees were tried on a
slurmctld 22.05.8; those of blocks and rings are read in the plugins of 23.11 to 26.05.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from nidmap.placement.records import Finding, SwitchRecord

#: The kind of such a finding: a fault for ``machine check`` only.
REFUSED = "slurmctld"

#: Most nodes of a ring (topology/ring's MAX_RING_SIZE).
MOST_IN_RING = 16

_NUMBER = re.compile(r"\d{1,9}|0x[0-9a-f]{1,8}|unlimited|infinite", re.IGNORECASE)


def refuse_switch(line: int, name: str, words: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what slurmctld rejects in a switch's line, given by its lower-case keywords."""
    if "level" in words:  # printed by a controller that runs
        return
    nodes, children = words.get("nodes", ""), words.get("switches", "")
    speed = words.get("linkspeed", "0")
    if nodes and children:
        yield _refused(line, f"switch {name}: it has both Nodes and Switches")
    if not nodes and not children:
        yield _refused(line, f"switch {name}: it has neither Nodes nor Switches")
    if not _NUMBER.fullmatch(speed):
        yield _refused(line, f"switch {name}: LinkSpeed {speed!r} is not a number")


def refuse_units(
    kind: str, units: Sequence[SwitchRecord], sizes: Sequence[int], line: int
) -> Iterator[Finding]:
    """Yield what slurmctld rejects in blocks and rings.

    `kind`: ``block``, ``ring``; of others nothing is known here. `sizes`: block sizes as stated.
    `line`: where they are.
    """
    if kind not in ("block", "ring"):
        return
    base = sizes[0] if sizes else 0
    for size in sizes:
        if size not in {base << k for k in range(16)}:
            yield _refused(
                line, f"block size {size}: not the base size {base} times a power of two"
            )
    for unit in units:
        if kind == "ring" and len(unit.nodes) > MOST_IN_RING:
            has = f"{len(unit.nodes)} nodes, more than {MOST_IN_RING}"
            yield _refused(unit.line, f"ring {unit.name}: it has {has}")
        if not unit.nodes:
            yield _refused(unit.line, f"{kind} {unit.name}: it has no nodes of its own")


def _refused(line: int, text: str) -> Finding:
    hint = "the controller does not start with this file"
    return Finding(line, REFUSED, f"slurmctld refuses {text}", hint, fault=False)
