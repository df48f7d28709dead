"""Contradictions that a reader sees in bulk, as `Fault`s that name their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from placement.records import Fault
from placement.support.array_types import Ints

__all__ = ["MOST", "duplicates", "in_order", "list_faults"]

#: Faults of one kind that are listed; more are only counted.
MOST = 100


def list_faults(
    rows: Ints | NDArray[np.intp],
    line: NDArray[np.int32],
    kind: str,
    text: Callable[[int], str],
    *,
    hint: str = "",
    fatal: bool = True,
) -> list[Fault]:
    """Return one fault a row, at most `MOST`, and one that counts the rest.

    Parameters
    ----------
    rows : int (k,)
        The faulty rows, in the order of their lines.
    line : int32 (n,)
        Line of every row.
    kind : str
    text : callable
        Says of a row what is wrong with it.
    hint : str
    fatal : bool

    Examples
    --------
    >>> import numpy as np
    >>> found = list_faults(np.arange(300), np.arange(1, 301), "hex", "row {}".format)
    >>> len(found), found[0].line, found[-1].text
    (101, 1, '200 more of kind hex')
    """
    said = [(row, text(row)) for row in rows[:MOST].tolist()]
    if len(rows) > MOST:
        said.append((rows[MOST], f"{len(rows) - MOST} more of kind {kind}"))
    return [Fault(int(line[row]), kind, words, hint, fatal) for row, words in said]


def duplicates(
    keys: Ints, line: NDArray[np.int32], kind: str, name: Callable[[int], str]
) -> list[Fault]:
    """Return a fault for every row whose key stood on an earlier line.

    Parameters
    ----------
    keys : int64 (n,)
    line : int32 (n,)
    kind : str
        ``duplicate-nid`` …
    name : callable
        What to call a row's key in the message.

    Examples
    --------
    >>> import numpy as np
    >>> [fault] = duplicates(np.array([7, 8, 7]), np.array([2, 3, 4]), "duplicate-nid",
    ...                      lambda row: "NID 7")
    >>> fault.line, fault.text
    (4, 'NID 7 again, first on line 2')
    """
    if bool(np.all(keys[1:] > keys[:-1])):
        return []
    order = np.argsort(keys, kind="stable")
    new = np.ones(len(keys), dtype=np.bool_)
    new[1:] = keys[order][1:] != keys[order][:-1]
    earliest = np.empty(len(keys), dtype=np.int64)
    earliest[order] = order[np.flatnonzero(new)[np.cumsum(new) - 1]]
    rows = np.sort(order[~new])
    return list_faults(
        rows,
        line,
        kind,
        lambda row: f"{name(row)} again, first on line {line[earliest[row]]}",
        hint="was the dump taken twice?",
    )


def in_order(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return the faults by line, fatal ones first where they share one."""
    return tuple(sorted(faults, key=lambda fault: (fault.line, not fault.fatal)))
