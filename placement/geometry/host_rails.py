# SPDX-License-Identifier: Apache-2.0
"""Which of a host's adapters determines its position, and the order of its attachments.

The order of the lines of a dump says nothing. Adapters whose switches no cable joins are rails of
their own; otherwise a rail is what all hosts call alike (``mlx5_0``). Of several rails the first
by name counts, but for one that looks like a storage or management network next to another: it
is slower, hosts that have no other adapter are on it, or all of it is one switch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nidmap.placement.nodelist import numeric_order
from nidmap.placement.support.array_types import Floats, Ints, Mask, Strs
from nidmap.placement.support.arrays import count_distinct, rank_within

#: Minimum share of multi-adapter hosts on a rail, relative to the widest rail.
WIDE = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class HostCables:
    """Cables of hosts, one per row."""

    host: Ints  # (c,), row of the host
    switch: Ints  # (c,)
    adapter: Strs  # (c,), the host's name for its end, '' if unknown
    gbs: Floats  # (c,), GB/s per direction, NaN where unknown


class Attachments(NamedTuple):
    """The attachments of n hosts, at most k each; -1 and NaN for missing ones."""

    switch: Ints
    gbs: Floats
    notes: tuple[str, ...]


class _Rail(NamedTuple):
    """A rail that hosts with several adapters have in common."""

    number: int
    rows: Ints
    hosts: int
    gbs: float
    alone: int
    switches: int


def attach_hosts(
    cables: HostCables, part: Ints, hosts: int, wanted: Sequence[str] = ()
) -> Attachments:
    """Return each host's attachments, the one on the first rail first.

    `part` (s,): equal for switches that cables join. `wanted`: adapters that the user named, in
    the order that counts; none: all.
    """
    label, words = _number_rails(cables, wanted)
    counts = np.bincount(cables.host, minlength=hosts)
    several = counts[cables.host] > 1
    notes: tuple[str, ...] = ()
    if several.any():
        here = part[cables.switch]
        network, apart = _choose_rail(_find_rails(cables, here, label, several), bool(wanted))
        inside = here == network.number
        rails = _find_rails(cables, label, label, several & inside)
        rail, why = _choose_rail(rails, bool(wanted))
        others = _find_rails(cables, label, label, several)
        notes = () if wanted else _say_choice(cables, words, rail, others, apart or why)
        away = np.where(inside, label != rail.number, 2)
        label = label + len(words) * away
    place = rank_within(cables.host, label, cables.switch)
    shape = hosts, int(counts.max(initial=1))
    switch, gbs = np.full(shape, -1, dtype=np.int64), np.full(shape, np.nan)
    switch[cables.host, place], gbs[cables.host, place] = cables.switch, cables.gbs
    return Attachments(switch, gbs, notes)


def _number_rails(cables: HostCables, wanted: Sequence[str]) -> tuple[Ints, list[str]]:
    """Return each cable's rail by its name, in natural order, and the names of the rails.

    Where a host calls several adapters alike, or nothing, they are counted instead.
    """
    names, which = np.unique(cables.adapter, return_inverse=True)
    listed = names.tolist()
    order = sorted(numeric_order(listed), key=lambda k: _place_in(listed[k], wanted))
    rank = np.argsort(np.array(order, dtype=np.int64))[which]
    words = [listed[k] for k in order]
    same = cables.host * (len(words) + 1) + rank
    _, back, counts = np.unique(same, return_inverse=True, return_counts=True)
    plain = (counts[back] > 1) | (cables.adapter == "")
    within = rank_within(cables.host, rank, cables.switch)
    label = np.where(plain, len(words) + within, rank)
    return label, [*words, *(f"adapter {k + 1}" for k in range(int(within.max(initial=0)) + 1))]


def _place_in(name: str, wanted: Sequence[str]) -> int:
    for place, word in enumerate(wanted):
        if name in (word, f"{word}/{name.rpartition('/')[2]}"):
            return place
    return len(wanted)


def _find_rails(cables: HostCables, unit: Ints, label: Ints, among: Mask) -> list[_Rail]:
    """Return a rail for each unit of cables, in the order of their adapters' names."""
    rails = []
    single = np.bincount(cables.host)[cables.host] == 1
    for number in np.unique(unit[among]).tolist():
        rows = np.flatnonzero(among & (unit == number))
        switches = np.unique(cables.switch[rows])
        others = cables.host[single & np.isin(cables.switch, switches)]
        known = cables.gbs[rows][cables.gbs[rows] > 0]
        rail = _Rail(
            number=number,
            rows=rows,
            hosts=count_distinct(cables.host[rows]),
            gbs=float(np.median(known)) if len(known) else 0.0,
            alone=count_distinct(others),
            switches=len(switches),
        )
        rails.append((float(np.median(label[rows])), rail))
    return [rail for _, rail in sorted(rails, key=lambda pair: pair[0])]


def _choose_rail(rails: list[_Rail], as_named: bool) -> tuple[_Rail, str]:
    """Return the rail that locates the nodes, and why, if there are several."""
    if as_named or len(rails) == 1:
        return rails[0], ""
    why = "the first by name"
    for narrow, words in (
        (_widest, "most hosts have it"),
        (_fastest, "it is the fastest"),
        (_shared_least, "hosts without another adapter are on the others"),
        (_on_several_switches, "the others are on one switch"),
    ):
        kept = narrow(rails)
        if 0 < len(kept) < len(rails):
            rails, why = kept, words
    return rails[0], why


def _widest(rails: list[_Rail]) -> list[_Rail]:
    most = max(rail.hosts for rail in rails)
    return [rail for rail in rails if rail.hosts >= WIDE * most]


def _fastest(rails: list[_Rail]) -> list[_Rail]:
    most = max(rail.gbs for rail in rails)
    return [rail for rail in rails if rail.gbs == most]


def _shared_least(rails: list[_Rail]) -> list[_Rail]:
    """Return the rails with the fewest hosts that have no other rail (storage servers)."""
    least = min(rail.alone for rail in rails)
    return [rail for rail in rails if rail.alone < max(2, 2 * least + 1)]


def _on_several_switches(rails: list[_Rail]) -> list[_Rail]:
    return [rail for rail in rails if rail.switches > 1]


def _say_choice(
    cables: HostCables, words: Sequence[str], rail: _Rail, rails: Sequence[_Rail], why: str
) -> tuple[str, ...]:
    """Report which rail was chosen, if another would give nodes different neighbours."""
    others = [
        words[r.number]
        for r in rails
        if r.number != rail.number and _divides_otherwise(cables, rail, r)
    ]
    if not others:
        return ()
    some = ", ".join(others[:3]) + (" …" if len(others) > 3 else "")
    name = words[rail.number]
    return (
        f"nodes are placed by {name}, not by {some}: {why}"
        f" (-m FILE,rails={others[0]} selects another)",
    )


def _divides_otherwise(cables: HostCables, rail: _Rail, other: _Rail) -> bool:
    """Tell whether two rails group the hosts by switch differently."""
    _, a, b = np.intersect1d(cables.host[rail.rows], cables.host[other.rows], return_indices=True)
    here, there = cables.switch[rail.rows][a], cables.switch[other.rows][b]
    pairs = len(np.unique(np.stack([here, there]), axis=1).T)
    return not pairs == count_distinct(here) == count_distinct(there)
