"""Which Cray a list of cnames and NIDs is of: XC or XE/XK, decided by fit.

The rule that gives every node its NID wins; where one node in hundreds
disagrees, that node's line is wrong and is named. A small Gemini machine
numbers its nodes differently: then its coordinate file is what counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placement.dumps.tables import Table
from placement.errors import ParseError
from placement.machine import Topology
from placement.names.gemini import GeminiNumbering
from placement.names.xc import Xc
from placement.support.array_types import Ints

__all__ = ["first_wrong", "most_follow", "numbering", "numbering_of", "refuse_wrong_nids"]


def numbering(table: Table, parts: NDArray[np.int32], fabric: str) -> Xc | GeminiNumbering | None:
    """Return the numbering that gives every node its NID.

    Parameters
    ----------
    table : Table
    parts : int32 (n, 5)
        Places of the nodes by their cnames.
    fabric : str
        ``aries`` or ``gemini`` where coordinates or links tell, '' where not.

    Returns
    -------
    Xc, Gemini or None
        None where the fabric is known to be a torus and no rule fits.

    Raises
    ------
    ParseError
        Where most nodes follow a rule and one does not (its line), or no
        rule is followed at all.
    """
    nid = table["nid"]
    kinds: tuple[type[Xc] | type[GeminiNumbering], ...] = (Xc, GeminiNumbering)
    if fabric:
        kinds = (Xc,) if fabric == "aries" else (GeminiNumbering,)
    for kind in kinds:
        if (rule := kind.fit(parts, nid)) is not None:
            return rule
    if fabric == "gemini":
        return None
    for kind in kinds:
        if (guess := _majority(kind, parts, nid)) is not None:
            refuse_wrong_nids(table, parts, guess)
    raise _neither(table)


def _neither(table: Table) -> ParseError:
    where = table.sources[0]
    if not table.has("nid"):
        return ParseError(where, 0, "its nodes have no NIDs", "name the site too: -m SITE -m DUMP")
    return ParseError(
        where,
        0,
        "its NIDs follow neither the numbering of an XC nor that of an XE or XK",
        "add a coordinate file of the machine, or name its site: -m SITE -m DUMP",
    )


def most_follow(parts: NDArray[np.int32], nid: Ints) -> Xc | GeminiNumbering | None:
    """Return the numbering that more than half of some nodes follow: an XC's, else an XE's.

    Examples
    --------
    >>> import numpy as np
    >>> from placement.names.gemini import GeminiNumbering
    >>> parts = np.array([[x, 0, 0, slot, 0] for x in range(4) for slot in range(8)])
    >>> nids = GeminiNumbering(4, 2).nid(parts)
    >>> nids[7] = 1
    >>> most_follow(parts, nids)
    GeminiNumbering(columns=4, rows=2)
    """
    return _majority(Xc, parts, nid) or _majority(GeminiNumbering, parts, nid)


def _majority(
    kind: type[Xc] | type[GeminiNumbering], parts: NDArray[np.int32], nid: Ints
) -> Xc | GeminiNumbering | None:
    voted = kind.vote(parts, nid)
    return voted[0] if voted is not None and 2 * voted[1].sum() > len(nid) else None


def numbering_of(topology: Topology) -> Xc | GeminiNumbering | None:
    """Return the numbering that a network states, None where it states none."""
    parameters = topology.parameters
    if topology.fabric == "aries" and "positions" in parameters:
        return Xc(int(parameters["positions"]))
    if topology.fabric == "gemini" and {"columns", "rows"} <= parameters.keys():
        return GeminiNumbering(int(parameters["columns"]), int(parameters["rows"]))
    return None


def first_wrong(table: Table, parts: NDArray[np.int32], rule: Xc | GeminiNumbering) -> Ints:
    """Return the rows whose NID is not what the rule gives to their cname."""
    nid = table["nid"]
    return np.flatnonzero((nid >= 0) & (rule.nid(parts) != nid))


def refuse_wrong_nids(
    table: Table, parts: NDArray[np.int32], rule: Xc | GeminiNumbering, owner: str = ""
) -> None:
    """Raise at the first node whose NID is not what the rule gives to its cname.

    Parameters
    ----------
    owner : str
        Whose rule it is: a site's name, '' where most nodes of the dump say so.

    Raises
    ------
    ParseError
    """
    wrong = first_wrong(table, parts, rule)
    if not len(wrong):
        return
    row = int(wrong[0])
    raise table.error(row, wrong_nid(table, parts, rule, row), _hint(rule, len(wrong), owner))


def wrong_nid(table: Table, parts: NDArray[np.int32], rule: Xc | GeminiNumbering, row: int) -> str:
    """Say what is wrong with the NID of a row."""
    expected = int(rule.nid(parts[row : row + 1])[0])
    name, nid = table.called(row), int(table["nid"][row])
    if expected < 0:
        return f"{name} is outside a machine of {floor(rule)}"
    return f"NID {nid} is not {name}'s, which is {expected} with {floor(rule)}"


def floor(rule: Xc | GeminiNumbering) -> str:
    """Return the shape of the machine room in words."""
    if isinstance(rule, Xc):
        return f"{rule.positions} cabinet positions in a row"
    return f"{rule.columns} x {rule.rows} cabinets"


def _hint(rule: Xc | GeminiNumbering, wrong: int, owner: str) -> str:
    kind = "XC" if isinstance(rule, Xc) else "XE or XK"
    by = f"as {owner} has" if owner else f"the {kind} rule that most nodes follow"
    return f"{by}; {wrong} such nodes in all" if wrong > 1 else by
