# SPDX-License-Identifier: Apache-2.0
"""Small dumps in the shape of real machines, made by the numbering rules."""

HEADER = "   NID    (HEX)    NODENAME     TYPE    STATUS        MODE\n"


def row(nid, name, kind="compute", status="up", mode="batch"):
    """Return one row of an XC xtprocadmin."""
    return f"{nid:6d} {hex(nid):>8s} {name:>11s} {kind:>8s} {status:>9s} {mode:>11s}\n"


def xc_dump(columns, rows, service=()):
    """Return the dump of a full XC of `columns` x `rows` cabinets; `service` NIDs are service."""
    cells = [
        (192 * (r * columns + c) + 64 * h + 4 * s + n, f"c{c}-{r}c{h}s{s}n{n}")
        for r in range(rows)
        for c in range(columns)
        for h in range(3)
        for s in range(16)
        for n in range(4)
    ]
    return HEADER + "".join(
        row(nid, name, "service" if nid in service else "compute") for nid, name in cells
    )
