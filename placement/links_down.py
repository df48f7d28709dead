# SPDX-License-Identifier: Apache-2.0
"""Links that are down or degraded: ``-m links-down:FILE`` alongside other ``-m`` options.

FILE has one cable per line, as the names of the routers at its ends (as
``nidmap machine export`` names them), or of a node and its router; of several cables between
two routers each has a line of its own::

    g0c0b0  g0c0b3
    g0c0b0  g1c0b0  2.5     # degraded: GB/s per direction that are left

Or it is a list of the links of today (``rtr --interconnect``, ibnetdiscover): what
the machine has and the list has not is down, and what runs at a lower rate is
degraded; a node that it lacks is down.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nidmap.placement.errors import ParseError, at_line
from nidmap.placement.machine import Links, Machine
from nidmap.placement.readers import find, resembling
from nidmap.placement.records import LinkRecords
from nidmap.placement.support.arrays import add_by_key
from nidmap.placement.support.quantities import counted
from nidmap.placement.support.reading import load
from nidmap.placement.topologies import links as links_of
from nidmap.placement.topologies import router_names
from nidmap.placement.views import attachment_rates

#: How the word begins.
WORD = "links-down:"

#: State of a node without a cable.
DOWN = "down"


def without_links(machine: Machine, sources: Sequence[str]) -> Machine:
    """Return the machine without the links that the files list as down.

    `sources`: the files. Each is a whole list: what several name is the same cable.
    """
    cables = _RemainingCables(machine)
    for source in sources:
        text = load(source)
        name = resembling(text[:4096])
        form = find(name) if name else None
        cables.sources.append(source)
        cables.touched[:] = False  # each source counts its cables from the start
        if form and form.kind in ("links", "cables"):
            cables.compare(form.read(text, source).links)
        else:
            for line, ends, gbs in _read_lines(text, source):
                cables.take(line, ends, gbs)
    return cables.machine_left()


def _read_lines(text: str, source: str) -> Iterator[tuple[int, tuple[str, str], float]]:
    """Yield line number, both routers and the remaining GB/s of each listed cable."""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            gbs = float(words[2]) if len(words) == 3 else 0.0
        except ValueError:
            gbs = math.nan
        if len(words) not in (2, 3) or not 0 <= gbs < math.inf:
            raise ParseError(
                source,
                number,
                f"'{line.strip()}' is not a link",
                "two routers, and the remaining GB/s if it is only degraded",
            )
        yield number, (words[0], words[1]), gbs


def _listed_links(listed: LinkRecords) -> Iterator[tuple[tuple[str, str], tuple[Any, Any], float]]:
    """Yield ends, ports and GB/s (NaN: not listed) of each link in a list."""
    gbs = np.full(len(listed), np.nan) if listed.bandwidth is None else listed.bandwidth
    columns = (listed.a, listed.a_port, listed.b, listed.b_port, gbs)
    for a, port, b, other, rate in zip(*(column.tolist() for column in columns), strict=True):
        yield ((a, b), (port, other), rate) if a < b else ((b, a), (other, port), rate)


class _RemainingCables:
    """A machine's cables and their remaining bandwidth: between routers, then to nodes.

    `sources`: what says which are down.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine, self.sources = machine, list[str]()
        self.links, self.names = links_of(machine), router_names(machine)
        # (c,), bundle of each cable between routers, ascending
        self.row = np.repeat(np.arange(len(self.links)), self.links.count)
        # (h,), node and attachment of each cable of a node
        self.ends = np.nonzero(machine.router >= 0)
        rates = attachment_rates(machine)[self.ends]
        self.full = np.concatenate([self.links.rates(), rates])
        self.left = self.full.copy()  # (c + h,), GB/s; NaN where unknown, 0 where it is down
        # (c + h,), cables that the last source has named
        self.touched = np.zeros(len(self.full), dtype=bool)
        a, b = (self.names[end[self.row]].tolist() for end in (self.links.a, self.links.b))
        # between, of_nodes: cables that join two routers, or a node and a router, by their names in
        # order
        self.between = _by_pair(a, b, 0)
        nodes = machine.names[self.ends[0]].tolist()
        routers = self.names[machine.router[self.ends]].tolist()
        self.of_nodes = _by_pair(nodes, routers, len(self.row))

    def take(self, line: int, ends: tuple[str, str], gbs: float) -> None:
        """Lower one more cable between two routers, or node and router, to this many GB/s."""
        pair = (min(ends), max(ends))
        cables = self.between.get(pair) or self.of_nodes.get(pair, [])
        untouched = [cable for cable in cables if not self.touched[cable]]
        if not untouched:
            raise self._no_cable(line, ends, bool(cables))
        self.touched[untouched[0]] = True
        self.left[untouched[0]] = np.fmin(gbs, self.left[untouched[0]])

    def _no_cable(self, line: int, ends: tuple[str, str], joined: bool) -> ParseError:
        """Return the error for a cable that the machine lacks, or lacks by now."""
        names, hint = self.names.tolist(), ""
        known = {*names, *self.machine.names.tolist()}
        missing = [name for name in ends if name not in known]
        if missing:
            text = f"{self.machine.name} has no router {missing[0]}"
            hint = f"there are {names[0]} to {names[-1]}" if names else ""
        elif joined:
            text = f"{ends[0]} and {ends[1]} have no further links"
        else:
            text = f"no link joins {ends[0]} and {ends[1]}"
        return ParseError(self.sources[-1], line, text, hint)

    def compare(self, listed: LinkRecords | None) -> None:
        """Remove links missing from a list of today's links; nodes' links only if it has any."""
        today: dict[tuple[str, str], dict[tuple[Any, Any], float]] = {}
        for pair, ports, rate in () if listed is None else _listed_links(listed):
            today.setdefault(pair, {})[ports] = rate
        if self.between and not today.keys() & self.between.keys():
            text = f"no link of {self.machine.name} is in this list"
            raise ParseError(
                self.sources[-1], 0, text, "is it the list of another machine, or incomplete?"
            )
        for pairs in (self.between, self.of_nodes):
            if today.keys() & pairs.keys():
                for pair, cables in pairs.items():
                    self._compare_bundle(list(cables), list(today.get(pair, {}).values()))

    def _compare_bundle(self, cables: list[int], rates: list[float]) -> None:
        """Set the cables between two routers to their current rates.

        A rate belongs to the last cable that should run at it, what remains to the last of the
        other cables: the first are gone, as in lists of what is down.
        """
        for cable in cables[::-1]:
            if self.full[cable] in rates:
                rates.remove(self.full[cable])
                cables.remove(cable)
        today = np.zeros(len(cables))
        slow = np.sort(rates)[::-1][: len(cables)]  # NaN first
        today[len(cables) - len(slow) :] = slow[::-1]
        self.left[cables] = np.fmin(today, self.left[cables])

    def machine_left(self) -> Machine:
        """Return the machine with the remaining bandwidth of its cables."""
        down = self.left == 0
        slow = int((~down & (self.left < self.full)).sum())
        named = ", ".join(at_line(source) for source in self.sources)
        note = f"{named}: {counted(int(down.sum()), 'link')} down, {slow} degraded"
        machine = self._with_nodes_left()
        cut = machine.names[(machine.router < 0).all(axis=1) & (machine.state == DOWN)]
        if len(cut):
            more = f" and {len(cut) - 1} more" if len(cut) > 1 else ""
            note += f"; no cable left of {cut[0]}{more}"
        return replace(
            machine,
            links=self._links_left(),
            router_names=self.names,
            sources=(*machine.sources, *self.sources),
            notes=(*machine.notes, note),
            _cache={},
        )

    def _links_left(self) -> Links:
        """Return the remaining links between routers."""
        links, left = self.links, self.left[: len(self.row)]
        down = left == 0
        slow = (~down & (left < self.full[: len(self.row)])).any()
        count = np.bincount(self.row[~down], minlength=len(links)).astype(np.int32)
        gbs = add_by_key(self.row, left, len(links))
        kept = np.flatnonzero(count)
        return replace(
            links,
            a=links.a[kept],
            b=links.b[kept],
            kind=links.kind[kept],
            count=count[kept],
            bandwidth=gbs[kept],
            cable=left[~down] if slow else None,
        )

    def _with_nodes_left(self) -> Machine:
        """Return the machine with its nodes' remaining cables; nodes without any are down."""
        machine, left = self.machine, self.left[len(self.row) :]
        if np.array_equal(left, self.full[len(self.row) :], equal_nan=True):
            return machine
        gbs = np.full(machine.router.shape, np.nan)
        gbs[self.ends] = left
        router = np.where(gbs == 0, -1, machine.router)
        order = np.argsort(router < 0, axis=1, kind="stable")  # the cables that are left first
        router, gbs = (np.take_along_axis(table, order, axis=1) for table in (router, gbs))
        cut = (router < 0).all(axis=1) & (machine.router >= 0).any(axis=1)
        state = np.where(cut, DOWN, machine.state)
        rates = np.where(router < 0, np.nan, gbs)
        return replace(machine, router=router, attachment_gbs=rates, state=state)


def _by_pair(a: list[str], b: list[str], first: int) -> dict[tuple[str, str], list[int]]:
    """Return the cable numbers, from `first` on, between each pair of names."""
    cables: dict[tuple[str, str], list[int]] = {}
    for cable, (x, y) in enumerate(zip(a, b, strict=True), first):
        cables.setdefault((min(x, y), max(x, y)), []).append(cable)
    return cables
