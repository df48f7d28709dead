"""Where the nodes of a Cray sit, and which Cray it is: XC or XE/XK, decided by fit.

The rule that gives every node its NID wins; where one node in hundreds
disagrees, that node's line is wrong and is named. A small Gemini machine
numbers its nodes differently: then its coordinate file is what counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from placement.dumps.tables import Table
from placement.errors import ParseError
from placement.geometry.network import Geometry, Rule, numbering_of
from placement.names.gemini import GeminiNumbering
from placement.names.xc import Xc
from placement.records import Dump
from placement.support.array_types import Ints, Ints32
from placement.support.lazy import lazy

if TYPE_CHECKING:
    from placement.geometry import aries, gemini
    from placement.topologies.source import Source
else:
    aries = lazy("placement.geometry.aries")
    gemini = lazy("placement.geometry.gemini")

__all__ = ["first_wrong", "locate_cray", "most_follow", "wrong_nid"]


def locate_cray(
    table: Table,
    parts: Ints32,
    dumps: Sequence[Dump],
    site: Source | None,
    places: Ints32 | None,
) -> Geometry:
    """Return the network that cnames tell.

    Parameters
    ----------
    table : Table
    parts : int32 (n, 5)
        Places of the nodes by their cnames.
    dumps : sequence of Dump
        For links, and the fabric that coordinates or links tell.
    site : Source or None
    places : int32 (m, levels) or None
        Where that site has nodes, listed or not.

    Raises
    ------
    ParseError
        Where a node is not where its NID, its name or another dump says.
    """
    if site is None:
        fabrics = {d.fabric for d in dumps} & {"aries", "gemini"}
        stated, rule = None, _fitting(table, parts, min(fabrics) if len(fabrics) == 1 else "")
    else:
        stated = site.topology()
        rule = numbering_of(stated)
        if rule is None:
            what = f"{site.name} is {stated.fabric or stated.kind}"
            raise table.error(0, f"its nodes are a Cray XC's or XE's, but {what}")
        if isinstance(rule, Xc) or not table.has("coords"):  # a torus's coordinates win
            _refuse_wrong_nids(table, parts, rule, f"as {site.name} has")
    if isinstance(rule, Xc):
        return aries.locate_xc(table, parts, rule, dumps, stated, places)
    return gemini.locate_xe(table, parts, rule, dumps, stated)


def _fitting(table: Table, parts: Ints32, fabric: str) -> Rule | None:
    """Return the numbering that gives every node its NID; None on a torus that follows none."""
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
        if (rule := _majority(kind, parts, nid)) is not None:
            by = f"the {rule.title} rule that most nodes follow"
            _refuse_wrong_nids(table, parts, rule, by)
    text, hint = "its nodes have no NIDs", "name the site too: -m SITE -m DUMP"
    if table.has("nid"):
        text = "its NIDs follow neither the numbering of an XC nor that of an XE or XK"
        hint = "add a coordinate file of the machine, or name its site: -m SITE -m DUMP"
    raise ParseError(table.sources[0], 0, text, hint)


def most_follow(parts: Ints32, nid: Ints) -> Rule | None:
    """Return the numbering that more than half of some nodes follow: an XC's, else an XE's."""
    return _majority(Xc, parts, nid) or _majority(GeminiNumbering, parts, nid)


def _majority(kind: type[Xc] | type[GeminiNumbering], parts: Ints32, nid: Ints) -> Rule | None:
    voted = kind.vote(parts, nid)
    return voted[0] if voted is not None and 2 * voted[1].sum() > len(nid) else None


def first_wrong(table: Table, parts: Ints32, rule: Rule) -> Ints:
    """Return the rows whose NID is not what the rule gives to their cname."""
    nid = table["nid"]
    return np.flatnonzero((nid >= 0) & (rule.nid(parts) != nid))


def _refuse_wrong_nids(table: Table, parts: Ints32, rule: Rule, hint: str) -> None:
    """Raise ParseError at the first node whose NID is not what the rule gives to its cname."""
    wrong = first_wrong(table, parts, rule)
    if len(wrong):
        row, more = int(wrong[0]), f"; {len(wrong)} such nodes in all" if len(wrong) > 1 else ""
        raise table.error(row, wrong_nid(table, parts, rule, row), hint + more)


def wrong_nid(table: Table, parts: Ints32, rule: Rule, row: int) -> str:
    """Say what is wrong with the NID of a row."""
    expected = int(rule.nid(parts[row : row + 1])[0])
    name, nid = table.called(row), int(table["nid"][row])
    if expected < 0:
        return f"{name} is outside a machine of {rule.floor}"
    return f"NID {nid} is not {name}'s, which is {expected} with {rule.floor}"
