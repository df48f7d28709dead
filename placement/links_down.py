"""Links that are down or degraded: ``-m links-down:FILE`` beside other words.

FILE has one cable a line, as the names of the routers at its ends (as
``nidmap machine export`` names them); of several cables between two routers
each has a line of its own::

    g0c0b0  g0c0b3
    g0c0b0  g1c0b0  2.5     # degraded: GB/s a direction that are left

Or it is a list of the links of today (``rtr --interconnect``, ibnetdiscover): what
the machine has and the list has not is down, and what runs at a lower rate is
degraded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from nidmap.placement.errors import ParseError, at_line
from nidmap.placement.machine import Machine
from nidmap.placement.readers import find, resembling
from nidmap.placement.records import LinkRecords
from nidmap.placement.support.arrays import add_by_key
from nidmap.placement.support.quantities import counted
from nidmap.placement.support.reading import load
from nidmap.placement.topologies import links as links_of
from nidmap.placement.topologies import router_names

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
        name = resembling(text[:4096])
        form = find(name) if name else None
        cables.sources.append(source)
        cables.touched[:] = False  # each source counts its cables anew
        if form and form.kind in ("links", "cables"):
            cables.compare(form.read(text, source).links)
        else:
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


def _listed_links(listed: LinkRecords | None) -> Iterator[tuple[str, int, str, int, float]]:
    """Yield the ends, their ports and the GB/s (NaN: not listed) of each link in a list."""
    if listed is not None:
        gbs = np.full(len(listed), np.nan) if listed.bandwidth is None else listed.bandwidth
        columns = (listed.a, listed.a_port, listed.b, listed.b_port, gbs)
        yield from zip(*(column.tolist() for column in columns), strict=True)


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
    between : dict of (str, str) to list of int
        Cables that join two routers, by their names, the lower one first.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine, self.sources = machine, list[str]()
        self.links, self.names = links_of(machine), router_names(machine)
        self.row = np.repeat(np.arange(len(self.links)), self.links.count)
        self.full = self.links.rates()
        self.left = self.full.copy()
        self.touched = np.zeros(len(self.row), dtype=bool)
        self.between: dict[tuple[str, ...], list[int]] = {}
        ends = (self.names[end[self.row]].tolist() for end in (self.links.a, self.links.b))
        for cable, pair in enumerate(zip(*ends, strict=True)):
            self.between.setdefault(tuple(sorted(pair)), []).append(cable)

    def take(self, line: int, ends: tuple[str, str], gbs: float) -> None:
        """Leave so many GB/s of one more cable between two routers."""
        cables = self.between.get(tuple(sorted(ends)), [])
        untouched = [cable for cable in cables if not self.touched[cable]]
        if not untouched:
            raise self._no_cable(line, ends, bool(cables))
        self.touched[untouched[0]] = True
        self.left[untouched[0]] = np.fmin(gbs, self.left[untouched[0]])

    def _no_cable(self, line: int, ends: tuple[str, str], joined: bool) -> ParseError:
        """Return the error for a cable that the machine has not, or has no more."""
        names, hint = self.names.tolist(), ""
        missing = [name for name in ends if name not in names]
        if missing:
            text = f"{self.machine.name} has no router {missing[0]}"
            hint = f"there are {names[0]} to {names[-1]}" if names else ""
        elif joined:
            text = f"{ends[0]} and {ends[1]} have no further links"
        else:
            text = f"no link joins {ends[0]} and {ends[1]}"
        return ParseError(self.sources[-1], line, text, hint)

    def compare(self, listed: LinkRecords | None) -> None:
        """Take away what a list of today's links has not."""
        today: dict[tuple[str, ...], dict[tuple[int, int], float]] = {}
        for a, port, b, other, rate in _listed_links(listed):
            low, high, ports = (a, b, (port, other)) if a < b else (b, a, (other, port))
            today.setdefault((low, high), {})[ports] = rate
        if self.between and not today.keys() & self.between.keys():
            text = f"no link of {self.machine.name} is in this list"
            raise ParseError(
                self.sources[-1], 0, text, "is it the list of another machine, or incomplete?"
            )
        for pair, cables in self.between.items():
            self._compare_bundle(list(cables), list(today.get(pair, {}).values()))

    def _compare_bundle(self, cables: list[int], rates: list[float]) -> None:
        """Leave the cables between two routers what they run at today.

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
