"""What the Cray formats share: cnames from numbers, and what is possible in them.

A cabinet has cages 0 to 2, a cage slots 0 to 15 (0 to 7 on XT and XE), a
blade nodes 0 to 3. On XC the printed coordinates are (group, chassis, slot)
with two cabinets a group; facts checked on Edison's xtdb2proc and on the
link lists of Edison and Theta (2,304 routers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.readers.faults import duplicates, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from placement.readers.rows import Rows
    from placement.records import Fault

__all__ = [
    "LIMITS",
    "cnames",
    "coordinate_faults",
    "fabric_of",
    "hex_faults",
    "node_faults",
    "node_key",
    "positions_of",
    "possible",
    "written",
]

#: The highest column, row, cage, slot and node that a cname can name.
LIMITS = (999, 999, 2, 15, 3)

#: The highest coordinate taken for real.
FARTHEST = 65_535

_WHAT = ("columns", "rows", "cages", "slots", "nodes")


def cnames(parts: NDArray[np.int32]) -> NDArray[np.str_]:
    """Return the cnames of nodes.

    Parameters
    ----------
    parts : int32 (n, 5)
        Column, row, cage, slot and node, none negative.

    Returns
    -------
    str (n,)

    Examples
    --------
    >>> import numpy as np
    >>> cnames(np.array([[11, 2, 0, 15, 3]], dtype=np.int32)).tolist()
    ['c11-2c0s15n3']
    """
    return written(parts, ("c", "-", "c", "s", "n"))


def written(table: NDArray[np.int32], before: Sequence[str]) -> NDArray[np.str_]:
    """Write rows of numbers as names, position by position for all rows together.

    Parameters
    ----------
    table : int32 (n, k)
        None negative.
    before : sequence of k or k + 1 str
        What stands before each number, and behind the last.

    Returns
    -------
    str (n,)

    Examples
    --------
    >>> import numpy as np
    >>> written(np.array([[1, 20], [300, 4]], dtype=np.int32), ("c", "-", "a0")).tolist()
    ['c1-20a0', 'c300-4a0']
    """
    digits = np.ones(table.shape, dtype=np.int64)
    power = 10
    while (table >= power).any():
        digits += table >= power
        power *= 10
    width = sum(map(len, before)) + int(digits.sum(axis=1).max(initial=0))
    codes = np.zeros((len(table), max(width, 1)), dtype=np.uint32)
    flat, at = codes.reshape(-1), np.arange(len(table)) * codes.shape[1]
    for i, letters in enumerate(before):
        for letter in letters:
            flat[at] = ord(letter)
            at += 1
        if i < table.shape[1]:
            _write_digits(flat, at, table[:, i], digits[:, i])
            at += digits[:, i]
    return codes.view(f"U{codes.shape[1]}").reshape(len(table))


def _write_digits(
    flat: NDArray[np.uint32],
    at: NDArray[np.int64],
    value: NDArray[np.int32],
    digits: NDArray[np.int64],
) -> None:
    last = at + digits - 1
    flat[last] = 48 + value % 10
    for digit in range(1, int(digits.max(initial=0))):
        rows = np.flatnonzero(digits > digit)
        flat[last[rows] - digit] = 48 + value[rows] // 10**digit % 10


def possible(parts: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which rows of (column, row, cage, slot, …) can exist.

    Examples
    --------
    >>> import numpy as np
    >>> possible(np.array([[0, 0, 2, 15, 3], [0, 0, 7, 0, 0]])).tolist()
    [True, False]
    """
    limits = np.array(LIMITS[: parts.shape[1]], dtype=np.int64)
    return np.asarray(np.all((parts >= 0) & (parts <= limits), axis=1))


def node_key(parts: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return one number a node or blade, in the order of columns, rows, cages, slots, nodes.

    Examples
    --------
    >>> import numpy as np
    >>> node_key(np.array([[0, 0, 0, 0, 3], [0, 0, 0, 1, 0]])).tolist()
    [3, 4]
    """
    key = np.zeros(len(parts), dtype=np.int64)
    for values, limit in zip(parts.T, LIMITS, strict=False):
        key = key * (limit + 1) + values
    return key


def node_faults(
    rows: Rows, nid: NDArray[np.int64], parts: NDArray[np.int32], names: NDArray[np.str_]
) -> list[Fault]:
    """Return what is wrong with the NIDs and cnames of a list of nodes.

    Parameters
    ----------
    rows : Rows
    nid : int64 (n,)
    parts : int32 (n, 5)
    names : str (n,)
        The same as `parts`, written.

    Returns
    -------
    list of Fault
        Of kinds ``duplicate-nid``, ``duplicate-cname``, ``cname``.
    """
    fine = possible(parts)
    found = duplicates(nid, rows.line, "duplicate-nid", lambda row: f"NID {nid[row]}")
    found += listed(
        np.flatnonzero(~fine), rows.line, "cname", lambda row: _impossible(names[row], parts[row])
    )
    some = np.flatnonzero(fine)
    found += duplicates(
        node_key(parts[some]),
        rows.line[some],
        "duplicate-cname",
        lambda row: f"cname {names[some[row]]}",
    )
    return found


def hex_faults(
    line: NDArray[np.int32], nid: NDArray[np.int64], printed: NDArray[np.int64]
) -> list[Fault]:
    """Return the rows whose NID in hexadecimal is another one.

    Parameters
    ----------
    line : int32 (n,)
    nid : int64 (n,)
    printed : int64 (n,)
        What stands under HEX; the NID itself where nothing does.

    Returns
    -------
    list of Fault
        Of kind ``hex``.
    """
    return listed(
        np.flatnonzero(printed != nid),
        line,
        "hex",
        lambda row: f"HEX 0x{printed[row]:x} is not NID {nid[row]} (0x{nid[row]:x})",
    )


def _impossible(name: str, parts: NDArray[np.int32]) -> str:
    which = int(np.argmax(parts > np.array(LIMITS)))
    return f"there is no {name}: {_WHAT[which]} are 0 to {LIMITS[which]}"


def positions_of(col: NDArray[np.int32], row: NDArray[np.int32], group: NDArray[np.int32]) -> int:
    """Return how many cabinet positions a row of cabinets has on an XC, 0 where unknown.

    From ``group = row * (positions / 2) + col // 2``: the value that most
    cabinets outside the first row agree on, if more than half of them do.

    Examples
    --------
    >>> import numpy as np
    >>> positions_of(np.array([0, 3]), np.array([0, 2]), np.array([0, 9]))
    8
    """
    later = row > 0
    half, left = np.divmod(group[later] - col[later] // 2, row[later])
    half = half[(left == 0) & (half > 0) & (half <= LIMITS[0])]
    if not half.size:
        return 0
    votes = np.bincount(half)
    best = int(votes.argmax())
    return 2 * best if 2 * votes[best] > np.count_nonzero(later) else 0


def _expected(parts: NDArray[np.int32], xyz: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the (group, chassis, slot) that XC cnames stand for; -1 where a group is unknown."""
    col, row, cage, slot = parts[:, :4].T
    half = positions_of(col, row, xyz[:, 0]) // 2
    group = row * half + col // 2
    group[(row > 0) & (half == 0)] = -1
    return np.stack([group, cage + 3 * (col % 2), slot], axis=1)


def fabric_of(parts: NDArray[np.int32], xyz: NDArray[np.int32]) -> str:
    """Return ``aries`` where most coordinates are an XC's (group, chassis, slot), else ``gemini``.

    Parameters
    ----------
    parts : int32 (n, 4 or 5)
        Column, row, cage, slot.
    xyz : int32 (n, 3)

    Examples
    --------
    >>> import numpy as np
    >>> fabric_of(np.array([[2, 3, 0, 2, 0]]), np.array([[13, 0, 2]]))
    'aries'
    """
    expected = _expected(parts, xyz)
    same = np.all(expected[:, 1:] == xyz[:, 1:], axis=1)
    same &= (expected[:, 0] == xyz[:, 0]) | (expected[:, 0] < 0)
    return "aries" if 2 * np.count_nonzero(same) > len(same) else "gemini"


def coordinate_faults(
    line: NDArray[np.int32],
    parts: NDArray[np.int32],
    xyz: NDArray[np.int32],
    names: NDArray[np.str_],
    fabric: str,
) -> list[Fault]:
    """Return the coordinates that cannot be, or that contradict a cname.

    On an XC the cname says what they must be; on a torus the nodes of a
    Gemini (n0 and n1, n2 and n3 of a blade) must share theirs.

    Parameters
    ----------
    line : int32 (n,)
    parts : int32 (n, 5)
    xyz : int32 (n, 3)
    names : str (n,)
    fabric : str
        ``aries`` or ``gemini``.

    Returns
    -------
    list of Fault
        Of kind ``coordinates``.
    """
    found = listed(
        np.flatnonzero(np.any(xyz > FARTHEST, axis=1)),
        line,
        "coordinates",
        lambda row: f"{names[row]} cannot be at {_at(xyz[row])}",
    )
    expected = _expected(parts, xyz) if fabric == "aries" else _of_sibling(parts, xyz)
    wrong = np.any((expected != xyz) & (expected >= 0), axis=1) & possible(parts)
    why = "an XC's name says" if fabric == "aries" else "another node of its Gemini is at"
    return found + listed(
        np.flatnonzero(wrong),
        line,
        "coordinates",
        lambda row: f"{names[row]} is at {_at(xyz[row])}, {why} {_at(expected[row])}",
    )


def _at(xyz: NDArray[np.int32]) -> str:
    return "(" + ",".join("?" if x < 0 else str(x) for x in xyz.tolist()) + ")"


def _of_sibling(parts: NDArray[np.int32], xyz: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the coordinates of the first node listed on the same Gemini."""
    gemini = node_key(parts) // 2
    _, first, inverse = np.unique(gemini, return_index=True, return_inverse=True)
    return xyz[first[inverse]]
