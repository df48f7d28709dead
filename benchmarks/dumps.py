# SPDX-License-Identifier: Apache-2.0
"""Machine-shaped dumps for the benchmarks, made by the numbering rules."""

from __future__ import annotations

import random

ROW = "{nid:6d} {hex:>8s} {name:>11s} {type:>8s} {status:>9s} {mode:>11s}\n"
HEADER = "   NID    (HEX)    NODENAME     TYPE    STATUS        MODE\n"


def xtprocadmin(columns: int, rows: int, keep: int | None = None, seed: int = 1) -> str:
    """Return an XC dump of `columns` x `rows` cabinets, `keep` compute nodes, the rest service."""
    cells = [
        (192 * (r * columns + c) + 64 * h + 4 * s + n, f"c{c}-{r}c{h}s{s}n{n}")
        for r in range(rows)
        for c in range(columns)
        for h in range(3)
        for s in range(16)
        for n in range(4)
    ]
    service = random.Random(seed).sample(range(len(cells)), len(cells) - (keep or len(cells)))
    spared = set(service)
    lines = [
        ROW.format(
            nid=nid,
            hex=hex(nid),
            name=name,
            type="service" if i in spared else "compute",
            status="up",
            mode="interactive" if i in spared else "batch",
        )
        for i, (nid, name) in enumerate(cells)
    ]
    return HEADER + "".join(lines)
