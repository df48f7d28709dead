"""How the groups of a dragonfly are joined: rules by name.

A rule takes the groups that are present by their rank (0 … G-1), so that an
absent group leaves no gap, and lists every link of every pair g < h by the
routers at both ends, numbered chassis-major inside the group. What a rule
says of routers that are not there is dropped by the caller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.errors import UsageError
from placement.support.array_types import Ints
from placement.topologies import all_pairs, refuse_many

#: The rule of a synthetic dragonfly where its spec names none.
DEFAULT = "consecutive"


@dataclass(frozen=True, slots=True, eq=False)
class DragonflyShape:
    """A dragonfly as a wiring rule sees it.

    Attributes
    ----------
    groups : int
        Groups present.
    chassis, blades : int
        Chassis a group and routers a chassis (Slingshot: 1 and the switches).
    links : int
        Links a group pair.
    sizes : int64 (groups,) or None
        Routers of each group where they differ; None where every group has
        `routers`.
    table : int64 (groups, groups) or None
        Links of each group pair where they differ; None where every pair has
        `links`.
    """

    groups: int
    chassis: int
    blades: int
    links: int
    sizes: Ints | None = None
    table: Ints | None = None

    @property
    def routers(self) -> int:
        """Routers a full group."""
        return self.chassis * self.blades


@dataclass(frozen=True, slots=True, eq=False)
class Cables:
    """Links between groups, one row each (or each bundle of `count`).

    Attributes
    ----------
    g, h : int64 (m,)
        Ranks of the two groups, g < h.
    a, b : int64 (m,)
        Router of g and of h, numbered chassis-major inside the group.
    count : int
        Parallel links in every row.
    """

    g: Ints
    h: Ints
    a: Ints
    b: Ints
    count: int = 1


def cables(rule: str, shape: DragonflyShape) -> Cables:
    """Return the links that `rule` makes.

    Raises
    ------
    UsageError
        Where there is no such rule, or `shape.links` is not a number it can make.

    Examples
    --------
    >>> found = cables("consecutive", DragonflyShape(groups=2, chassis=1, blades=3, links=2))
    >>> found.a.tolist(), found.b.tolist()
    ([0, 1], [0, 1])
    """
    check(rule, shape)
    most = shape.links if shape.table is None else int(shape.table.max(initial=0))
    refuse_many(shape.groups * (shape.groups - 1) / 2 * most, f"wiring {rule}")
    return RULES[rule](shape)


def default_links(rule: str, shape: DragonflyShape, ports: int) -> int:
    """Return the links a group pair where nothing states them.

    `aligned` takes one link a router pair, `same-chassis` two blades a chassis
    as Edison has, and any other rule as many as the routers' ports allow, at
    least one.

    Examples
    --------
    >>> default_links("consecutive", DragonflyShape(groups=9, chassis=6, blades=16, links=0), 10)
    120
    """
    if rule == "aligned":
        return shape.routers
    if rule == "same-chassis":
        return 2 * min(2, shape.blades) * shape.chassis
    return max(1, ports * shape.routers // max(1, shape.groups - 1))


def check(rule: str, shape: DragonflyShape) -> None:
    """Refuse a rule that there is not, or that cannot make `shape.links` links a pair.

    Raises
    ------
    UsageError
    """
    if rule not in RULES:
        raise UsageError(f"no wiring rule {rule!r}", f"there are {', '.join(RULES)}")
    if rule != "consecutive" and (shape.table is not None or shape.sizes is not None):
        raise UsageError(
            f"wiring {rule} needs groups of one size and as many links for every pair",
            "consecutive does not",
        )
    unit = {"aligned": shape.routers, "same-chassis": 2}.get(rule, 1)
    if shape.links < 1 or shape.links % unit:
        raise UsageError(
            f"wiring {rule} cannot make {shape.links} links a group pair",
            f"it makes a multiple of {unit}",
        )


def _spread_links(shape: DragonflyShape, count: int) -> tuple[Ints, ...]:
    """Return g, h and k for `count` links (k = 0 …) of every group pair."""
    g, h = all_pairs(shape.groups)
    k = np.tile(np.arange(count, dtype=np.int64), len(g))
    return np.repeat(g, count), np.repeat(h, count), k


def _wire_aligned(shape: DragonflyShape) -> Cables:
    """Router r of every group to router r of every other (the job-placement paper's cube)."""
    g, h, k = _spread_links(shape, shape.routers)
    return Cables(g, h, k, k, shape.links // shape.routers)


def _consecutive_routers(shape: DragonflyShape) -> Cables:
    """Let the k-th link from g to h leave router (s·L + k) mod R, s = h if h < g else h - 1.

    s·L is the number of links from g to the groups before h, and that is
    what is taken where the pairs differ.
    """
    routers = np.full(shape.groups, shape.routers) if shape.sizes is None else shape.sizes
    size = (shape.groups, shape.groups)
    table = np.array(np.full(size, shape.links) if shape.table is None else shape.table)
    np.fill_diagonal(table, 0)
    before = np.cumsum(table, axis=1) - table
    g, h = all_pairs(shape.groups)
    count = table[g, h]
    first = np.cumsum(count) - count
    g, h, first = (np.repeat(x, count) for x in (g, h, first))
    k = np.arange(len(g)) - first
    return Cables(g, h, (before[g, h] + k) % routers[g], (before[h, g] + k) % routers[h])


def _same_chassis(shape: DragonflyShape) -> Cables:
    """Blade (k·i(g,h) + j) mod B of g to blade (k·i(h,g) + j) mod B of h, in every chassis.

    i(g,h) is the rank of h among the other groups present, j = 0 … k-1, two
    links each: so it is on all 210 directed group pairs of Edison (k = 2) and
    all 72 of Theta (k = 4). A cable holds the links of two blades, so blades
    are dealt out by twos at least. Where the links are not a multiple of two a
    chassis, which no known machine has, the first chassis have one blade more
    than the others.
    """
    k, more = divmod(shape.links // 2, shape.chassis)
    step = max(k, 2)
    blades = k + (np.arange(shape.chassis) < more)
    first = np.repeat(np.cumsum(blades) - blades, blades)
    g, h, place = _spread_links(shape, shape.links // 2)
    chassis = np.repeat(np.arange(shape.chassis), blades)[place]
    j = place - first[place]
    leave = chassis * shape.blades + (step * (h - 1) + j) % shape.blades
    enter = chassis * shape.blades + (step * g + j) % shape.blades
    return Cables(g, h, leave, enter, 2)


#: The rules by name.
RULES = {
    "aligned": _wire_aligned,
    "consecutive": _consecutive_routers,
    "same-chassis": _same_chassis,
}
