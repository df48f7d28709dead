# SPDX-License-Identifier: Apache-2.0
"""What the Cray formats share: cnames from numbers, their limits, and faults in bulk.

A cabinet has cages 0 to 2, a cage slots 0 to 15 (0 to 7 on XT and XE), a
blade nodes 0 to 3. On XC the printed coordinates are (group, chassis, slot)
with two cabinets per group; facts checked on Edison's xtdb2proc and on the
link lists of Edison and Theta (2,304 routers).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nidmap.placement.names import write_names
from nidmap.placement.readers.rows import PARTS, Rows
from nidmap.placement.records import Dump, Finding, NodeRecords
from nidmap.placement.support.array_types import Ints, Ints32, Mask, Strs

#: The highest column, row, cage, slot and node that a cname can name.
LIMITS = (999, 999, 2, 15, 3)

#: Faults of one kind that are listed; more are only counted.
MOST = 100

_WHAT = ("columns", "rows", "cages", "slots", "nodes")


def cray_dump(
    rows: Rows,
    *,
    fabric: str = "",
    router: Strs | None = None,
    faults: Sequence[Finding] = (),
) -> Dump:
    """Return the dump for rows of Cray nodes.

    `rows`: with the numbers nid, col, row, cage, slot, node; the numbers hex, x, y, z and cores
    and the words role, state and mode where the format has them. `fabric`: '' to tell it from the
    coordinates. `router` (n,): name of the router of each node. `faults`: what the reader has
    found itself. Faults are those given and ``hex``, ``duplicate-nid``, ``duplicate-cname``,
    ``cname`` and ``coordinates``.
    """
    parts, nid = rows.table(PARTS), rows.column("nid").astype(np.int64)
    names = write_names(parts, ("c", "-", "c", "s", "n"))
    findings = [*_hex_faults(rows, nid), *faults, *_node_faults(rows.line, nid, parts, names)]
    xyz = rows.table("xyz") if rows.having("x").all() else None
    if xyz is not None:
        fabric = fabric or _tell_fabric(parts, xyz)
        findings += _coordinate_faults(rows.line, parts, xyz, names, fabric)
    words = {
        key: np.where((column := rows.column(key)) == "-", "", column)
        for key in ("role", "state", "mode")
        if key in rows.columns
    }
    cores = np.maximum(rows.column("cores"), 0) if "cores" in rows.columns else None
    nodes = NodeRecords(
        line=rows.line, nid=nid, cname=names, coords=xyz, router=router, cores=cores, **words
    )
    return Dump(rows.counts, nodes, fabric=fabric, findings=findings)


def node_key(parts: Ints32) -> Ints:
    """Return one number per node or blade, ordered by columns, rows, cages, slots, nodes."""
    key = np.zeros(len(parts), dtype=np.int64)
    for values, limit in zip(parts.T, LIMITS, strict=False):
        key = key * (limit + 1) + values
    return key


def _node_faults(line: Ints32, nid: Ints, parts: Ints32, names: Strs) -> list[Finding]:
    """Return the faults in the NIDs and cnames of a node list."""
    fine = _possible_rows(parts)
    some = names[fine]

    def impossible(row: int) -> str:
        which = int(np.argmax(parts[row] > np.array(LIMITS)))
        return f"there is no {names[row]}: {_WHAT[which]} are 0 to {LIMITS[which]}"

    return [
        *duplicates(nid, line, "duplicate-nid", lambda row: f"NID {nid[row]}"),
        *list_faults(np.flatnonzero(~fine), line, "cname", impossible),
        *duplicates(
            node_key(parts[fine]), line[fine], "duplicate-cname", lambda i: f"cname {some[i]}"
        ),
    ]


def _possible_rows(parts: Ints32) -> Mask:
    """Return which rows of (column, row, cage, slot, node) are possible."""
    return np.asarray(np.all((parts >= 0) & (parts <= np.array(LIMITS)), axis=1))


def _hex_faults(rows: Rows, nid: Ints) -> list[Finding]:
    """Return faults where the hexadecimal NID differs from the decimal one."""
    printed = rows.column("hex")
    return list_faults(
        np.flatnonzero((printed != nid) & (printed >= 0)),
        rows.line,
        "hex",
        lambda row: f"HEX 0x{printed[row]:x} is not NID {nid[row]} (0x{nid[row]:x})",
    )


def infer_positions(col: Ints32, row: Ints32, group: Ints32) -> int:
    """Return the number of cabinet positions per row of an XC; 0 if unknown.

    From ``group = row * (positions / 2) + col // 2``: the value that most
    cabinets outside the first row agree on, if more than half of them do.
    """
    later = row > 0
    half, left = np.divmod(group[later] - col[later] // 2, row[later])
    half = half[(left == 0) & (half > 0) & (half <= LIMITS[0])]
    if not half.size:
        return 0
    votes = np.bincount(half)
    best = int(votes.argmax())
    return 2 * best if 2 * votes[best] > np.count_nonzero(later) else 0


def expected_coords(parts: Ints32, xyz: Ints32) -> Ints32:
    """Return the (group, chassis, slot) implied by XC cnames; -1 for an unknown group.

    `parts` (n, 4 or 5): column, row, cage, slot. `xyz` (n, 3): what is printed: the groups tell
    how many cabinets a row has.
    """
    col, row, cage, slot = parts[:, :4].T
    half = infer_positions(col, row, xyz[:, 0]) // 2
    group = np.where((row > 0) & (half == 0), -1, row * half + col // 2)
    return np.stack([group, cage + 3 * (col % 2), slot], axis=1).astype(np.int32)


def _tell_fabric(parts: Ints32, xyz: Ints32) -> str:
    """Return ``aries`` if most coordinates are those implied by XC cnames, else ``gemini``."""
    expected = expected_coords(parts, xyz)
    same = np.all((expected == xyz) | (expected < 0), axis=1)
    return "aries" if 2 * np.count_nonzero(same) > len(same) else "gemini"


def _coordinate_faults(
    line: Ints32, parts: Ints32, xyz: Ints32, names: Strs, fabric: str
) -> list[Finding]:
    """Return faults for coordinates that contradict a cname.

    On an XC the cname says what they must be; on a torus the nodes of a
    Gemini (n0 and n1, n2 and n3 of a blade) must share theirs.
    """
    if fabric == "aries":
        expected, why = expected_coords(parts, xyz), "an XC's name says"
    else:
        _, first, of = np.unique(node_key(parts) // 2, return_index=True, return_inverse=True)
        expected, why = xyz[first[of]], "another node of its Gemini is at"
    wrong = np.any((expected != xyz) & (expected >= 0), axis=1) & _possible_rows(parts)
    return list_faults(
        np.flatnonzero(wrong),
        line,
        "coordinates",
        lambda row: (
            f"{names[row]} is at {coordinate_text(xyz[row])},"
            f" {why} {coordinate_text(expected[row])}"
        ),
    )


def coordinate_text(xyz: Ints32, mark: str = ",") -> str:
    """Return coordinates as a dump prints them; ? for unknown values."""
    return f"({mark.join('?' if x < 0 else str(x) for x in xyz.tolist())})"


def list_faults(
    rows: Ints,
    line: Ints32,
    kind: str,
    text: Callable[[int], str],
    *,
    hint: str = "",
) -> list[Finding]:
    """Return one fault per row, at most `MOST`, and one that counts the rest.

    `rows` (k,): the faulty rows, in the order of their lines. `line` (n,): line of every row.
    `text`: says of a row what is wrong with it.
    """
    texts = [(row, text(row)) for row in rows[:MOST].tolist()]
    if len(rows) > MOST:
        texts.append((rows[MOST], f"{len(rows) - MOST} more of kind {kind}"))
    return [Finding(int(line[row]), kind, words, hint) for row, words in texts]


def duplicates(keys: Ints, line: Ints32, kind: str, name: Callable[[int], str]) -> list[Finding]:
    """Return a fault for every row whose key already occurs on an earlier line.

    `keys` (n,). `line` (n,). `kind`: ``duplicate-nid`` …. `name`: what to call a row's key in the
    message.
    """
    values = keys.tolist()
    if len(set(values)) == len(values):  # almost always, and ten times as fast to check
        return []
    first: dict[int, int] = {}
    rows = [row for row, key in enumerate(values) if first.setdefault(key, row) != row]
    return list_faults(
        np.array(rows, dtype=np.int64),
        line,
        kind,
        lambda row: f"{name(row)} again, first on line {line[first[values[row]]]}",
        hint="was the dump taken twice?",
    )
