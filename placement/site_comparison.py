# SPDX-License-Identifier: Apache-2.0
"""Differences between a site's file and the fabric that the machine itself reports.

Together they make one machine, in which each has its part; what the other says of that part is
compared here and not used. All are remarks: the file may be old, or a host may be off today.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.errors import NidmapError
from nidmap.placement.machine import Machine
from nidmap.placement.records import Dump, Finding
from nidmap.placement.support.quantities import counted
from nidmap.placement.views import summarise

if TYPE_CHECKING:
    from nidmap.placement.topologies.source import Source

#: Bandwidths that differ by a smaller share are the same, rounded.
_ROUNDED = 0.02

#: Names that are listed; more are counted.
_NAMED = 3


def compare_with_fabric(site: Source, dumps: Sequence[Dump]) -> list[Finding]:
    """Return remarks on nodes, switches, links and bandwidths that differ in a fabric.

    `dumps`: those without links say nothing of it. Nothing where either alone makes no machine.
    """
    fabric = [dump for dump in dumps if dump.links is not None]
    if not fabric:
        return []
    try:
        records = site.records()
        stated, printed = assemble([records], site), assemble(fabric, None)
    except NidmapError:
        return []  # faults in either are reported where it is read
    source = fabric[0].source
    texts = [*_compare_links(stated, printed, source)]
    if any(dump.nodes is not None for dump in fabric):  # otherwise names are derived from positions
        texts = [*_compare_names(stated, printed, source), *texts]
    return [Finding(0, "site", text, fault=False, source=records.source) for text in texts]


def _compare_names(stated: Machine, printed: Machine, source: str) -> Iterator[str]:
    """Yield remarks on nodes missing from either side, if both use the same kind of names."""
    mine, theirs = set(stated.names.tolist()), set(printed.names.tolist())
    if not mine & theirs:
        return
    lacking = sorted(set(stated.names[stated.compute].tolist()) - theirs)
    if lacking:
        yield f"{counted(len(lacking), 'node')} not in {source}: {_list_names(lacking)}"
    strange = sorted(theirs - mine)
    if strange:
        yield f"{counted(len(strange), 'node')} of {source} not in the file: {_list_names(strange)}"


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (" …" if len(names) > _NAMED else "")


def _compare_links(stated: Machine, printed: Machine, source: str) -> Iterator[str]:
    """Yield remarks on switches, on links by class, and on their bandwidths."""
    in_site, in_fabric = summarise(stated), summarise(printed)
    if in_site["kind"] != in_fabric["kind"]:
        yield f"is a {in_site['kind']}, {source} shows a {in_fabric['kind']}"
        return
    if in_site["routers"] != in_fabric["routers"]:
        yield f"has {in_site['routers']} switches, {source} has {in_fabric['routers']}"
    theirs = {row["class"]: row for row in in_fabric["links"]}
    for row in in_site["links"]:
        if row["class"] in theirs:
            yield from _compare_class(row, theirs[row["class"]], source)
    hosts, cables = in_site["attachments"], in_fabric["attachments"]
    yield from _compare_rates(hosts["class"], _rates_of(hosts), _rates_of(cables), source)


def _compare_class(mine: dict[str, Any], theirs: dict[str, Any], source: str) -> Iterator[str]:
    if mine["links"] != theirs["links"]:
        yield f"has {mine['links']} links {mine['class']}, {source} has {theirs['links']}"
    yield from _compare_rates(mine["class"], mine["gbs"], theirs["gbs"], source)


def _rates_of(attachments: dict[str, Any]) -> list[float] | None:
    rates: list[float] | None = attachments["gbs_range"]
    return rates


def _compare_rates(
    kind: str, mine: list[float] | None, theirs: list[float] | None, source: str
) -> Iterator[str]:
    """Yield a remark on one class's minimum and maximum bandwidths, if both are known."""
    if mine is None or theirs is None:
        return
    if any(abs(a - b) > _ROUNDED * max(a, b) for a, b in zip(mine, theirs, strict=True)):
        yield f"links {kind} have {_rate_text(mine)} GB/s, in {source} {_rate_text(theirs)}"


def _rate_text(rates: list[float]) -> str:
    low, high = rates
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
