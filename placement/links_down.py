"""Links that are down or degraded: ``-m links-down:FILE`` beside other words.

FILE has one cable a line, as the names of the routers at its ends (as
``nidmap machine export`` names them); of several cables between two routers
each has a line of its own::

    g0c0b0  g0c0b3
    g0c0b0  g1c0b0  2.5     # degraded: GB/s a direction that are left

A list of the links that there are today (``rtr --interconnect``, ibnetdiscover) is a dump like
others: ``-m FILE`` has the machine with these links and their rates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from placement.errors import ParseError, at_line
from placement.machine import Machine
from placement.readers import resembling
from placement.support.arrays import add_by_key
from placement.support.quantities import counted
from placement.support.reading import load
from placement.topologies import links as links_of
from placement.topologies import router_names

__all__ = ["WORD", "without_links"]

#: How the word begins.
WORD = "links-down:"


def without_links(machine: Machine, sources: Sequence[str]) -> Machine:
    """Return the machine without the links that files say are down.

    Parameters
    ----------
    machine : Machine
    sources : sequence of str
        The files. Each is a whole list: what several name is the same cable.

    Raises
    ------
    ParseError
        A line that names no link of the machine, or more cables than it has.
    """
    cables = _RemainingCables(machine)
    for source in sources:
        text = load(source)
        if dump := resembling(text[:4096]):
            hint = f"-m {source} alone has the machine with the links of today"
            raise ParseError(
                source, 0, f"is a dump, {dump}, not a list of links that are down", hint
            )
        cables.sources.append(source)
        cables.touched[:] = False  # each source counts its cables anew
        for line, ends, gbs in _read_lines(text, source):
            cables.take(line, ends, gbs)
    return cables.machine_left()


def _read_lines(text: str, source: str) -> Iterator[tuple[int, tuple[str, str], float]]:
    """Yield line number, the routers at both ends and the GB/s left of each cable listed."""
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


class _RemainingCables:
    """Every cable of a machine, and what is left of it.

    Attributes
    ----------
    sources : list of str
        What says which are down.
    row : int64 (c,)
        Bundle of each cable, ascending.
    left : float64 (c,)
        GB/s; NaN where unknown, 0 where it is down.
    touched : bool (c,)
        Cables that the last source has named.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine, self.sources = machine, list[str]()
        self.links, self.names = links_of(machine), router_names(machine)
        self.row = np.repeat(np.arange(len(self.links)), self.links.count)
        self.full = self.links.rates()
        self.left = self.full.copy()
        self.touched = np.zeros(len(self.row), dtype=bool)
        self.first: list[int] = [0, *np.cumsum(self.links.count).tolist()]
        self.index = {name: k for k, name in enumerate(self.names.tolist())}
        self.bundles: dict[tuple[int, int], list[int]] = {}
        for k, ends in enumerate(zip(self.links.a.tolist(), self.links.b.tolist(), strict=True)):
            self.bundles.setdefault(ends, []).append(k)

    def take(self, line: int, ends: tuple[str, str], gbs: float) -> None:
        """Leave so many GB/s of one more cable between two routers."""
        cables = (
            cable
            for bundle in self._between(line, ends)
            for cable in range(self.first[bundle], self.first[bundle + 1])
            if not self.touched[cable]
        )
        cable = next(cables, None)
        if cable is None:
            raise ParseError(
                self.sources[-1], line, f"{ends[0]} and {ends[1]} have no further links"
            )
        self.touched[cable] = True
        self.left[cable] = np.fmin(gbs, self.left[cable])

    def _between(self, line: int, ends: tuple[str, str]) -> list[int]:
        """Return the bundles between two routers."""
        for name in ends:
            if name not in self.index:
                there = f"there are {self.names[0]} to {self.names[-1]}" if len(self.names) else ""
                text = f"{self.machine.name} has no router {name}"
                raise ParseError(self.sources[-1], line, text, there)
        a, b = sorted(self.index[name] for name in ends)
        if (a, b) not in self.bundles:
            raise ParseError(self.sources[-1], line, f"no link joins {ends[0]} and {ends[1]}")
        return self.bundles[a, b]

    def machine_left(self) -> Machine:
        """Return the machine with what is left of its cables."""
        links, down = self.links, self.left == 0
        slow = int((~down & (self.left < self.full)).sum())
        count = np.bincount(self.row[~down], minlength=len(links)).astype(np.int32)
        gbs = add_by_key(self.row, self.left, len(links))
        kept = np.flatnonzero(count)
        named = ", ".join(at_line(source) for source in self.sources)
        note = f"{named}: {counted(int(down.sum()), 'link')} down, {slow} degraded"
        left = replace(
            links,
            a=links.a[kept],
            b=links.b[kept],
            kind=links.kind[kept],
            count=count[kept],
            bandwidth=gbs[kept],
            cable=self.left[~down] if slow else None,
        )
        machine = self.machine
        return replace(
            machine,
            links=left,
            router_names=self.names,
            sources=(*machine.sources, *self.sources),
            notes=(*machine.notes, note),
            _cache={},
        )
