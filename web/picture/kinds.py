"""What a node is to a viewer: free, busy, held back, down, or a service node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.machine import FREE_STATES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine
    from web.snapshot import Snapshot

__all__ = ["KINDS", "kinds"]

#: Kinds in the order of their codes, with the words of the legend.
KINDS = {
    "free": "free",
    "busy": "allocated",
    "held": "reserved, planned or draining",
    "down": "down",
    "service": "service",
}

_BUSY = ("allocated", "alloc", "mixed", "mix", "completing", "comp")
_HELD = (
    "reserved", "resv", "maint", "planned", "plnd", "draining", "drng", "inactive", "blocked",
    "routing", "future", "powering_up", "powering_down", "powered_down", "reboot",
)  # fmt: skip


def kinds(machine: Machine, now: Snapshot) -> NDArray[np.int8]:
    """Return the code of each node's kind, int8 (n,), an index into `KINDS`.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> from web.snapshot import of_dump
    >>> machine = parse_spec("torus:2x2")
    >>> kinds(machine, of_dump(machine)).tolist()
    [0, 0, 0, 0]
    """
    words = list(KINDS)
    found = np.full(len(machine), words.index("down"), dtype=np.int8)
    found[np.isin(now.state, FREE_STATES)] = words.index("free")
    found[np.isin(now.state, _BUSY)] = words.index("busy")
    found[np.isin(now.state, _HELD)] = words.index("held")
    idle = found == words.index("free")
    found[idle & now.planned] = words.index("held")
    for job in now.jobs:
        found[job.rows] = words.index("busy")
    up = np.isin(now.state, (*FREE_STATES, *_BUSY, *_HELD, ""))
    found[(machine.role == "service") & up] = words.index("service")
    return found
