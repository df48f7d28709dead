"""Groups of switches, found from their cables alone: no name and no GUID says anything.

*DragonFly+.* Leaves have hosts and cables to spines of their own group only. So what
cables at leaves hold together is a group, and cables between spines join groups.
A spine may have a few hosts of its own (ibdiagnet looks for spines in the same way).

*Dragonfly.* All switches of a group are joined. Two that are have all of the group as
neighbours, two of different groups hardly any: by the share of neighbours that the ends of
a cable have in common the cables inside groups stand out.

Cables may be missing: a partition is taken where most of what it needs is there, and
none where it is not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placement.support.array_types import Floats, Ints, Mask
from placement.support.arrays import components, product

__all__ = ["Islands", "find_islands", "idle_leaves"]

#: What share of the pairs of groups has to be joined, and of a dragonfly's group of its own pairs.
MOST_PAIRS, MOST_OF_A_GROUP = 0.5, 0.7

#: What share of the switches without hosts may be joined to no leaf.
LOOSE = 0.2

#: A switch with no more hosts than this share of the usual number may be a spine.
FEW_HOSTS = 0.25

#: Switches up to which all pairs of them are looked at.
MOST_SWITCHES = 5000


class Islands(NamedTuple):
    """A partition of s switches.

    Attributes
    ----------
    kind : str
        ``dragonfly`` or ``dragonfly+``.
    group : int64 (s,)
        Any number for each group.
    level : int64 (s,)
        0 where nodes are, or would be; 1 at a spine.
    """

    kind: str
    group: Ints
    level: Ints


def find_islands(a: Ints, b: Ints, hosts: Ints) -> Islands | None:
    """Return the groups of a DragonFly+ or a dragonfly; None where the cables make neither.

    Parameters
    ----------
    a, b : int64 (m,)
        Ends of cables between switches.
    hosts : int64 (s,)
        Hosts on each switch.

    Examples
    --------
    Two leaves and a spine, twice:

    >>> found = find_islands(np.array([0, 1, 3, 4, 2]), np.array([2, 2, 5, 5, 5]),
    ...                      np.array([9, 9, 0, 9, 9, 0]))
    >>> found.kind, found.group.tolist(), found.level.tolist()
    ('dragonfly+', [0, 0, 0, 3, 3, 3], [0, 0, 1, 0, 0, 1])
    """
    usual = np.median(hosts[hosts > 0]) if hosts.any() else 0.0
    for limit in sorted({0, *hosts[hosts <= FEW_HOSTS * usual].tolist()}):
        islands = _with_spines(a, b, hosts > limit)
        if islands is not None:
            return islands._replace(level=np.where(hosts > 0, 0, islands.level))
    return _of_cliques(a, b, hosts)


def _with_spines(a: Ints, b: Ints, leaf: Mask) -> Islands | None:
    """Return the groups of a DragonFly+ whose leaves are known."""
    count = len(leaf)
    leaf = leaf | idle_leaves(a, b, leaf)
    group = _first_switch(a, b, leaf)
    between = ~leaf[a] & ~leaf[b]
    if not between.any() or (leaf[a] & leaf[b]).any() or (group[a] == group[b])[between].any():
        return None
    loose = ~leaf & (np.bincount(group[leaf], minlength=count) == 0)[group]
    if loose.sum() > LOOSE * (~leaf).sum():
        return None
    groups = np.intersect1d(group[leaf], group[~leaf])
    ends = group[a[between]], group[b[between]]
    if not _mostly_joined(ends, groups):
        return None
    return Islands("dragonfly+", group, (~leaf).astype(np.int64))


def _first_switch(a: Ints, b: Ints, leaf: Mask) -> Ints:
    """Return a number for what the cables at leaves hold together: that of its first switch."""
    inside = leaf[a] | leaf[b]
    return components(len(leaf), a[inside], b[inside])


def idle_leaves(a: Ints, b: Ints, leaf: Mask) -> Mask:
    """Return the switches without hosts all of whose cables go to the spines of one group.

    Those are leaves whose hosts are all switched off; a spine's cables go to other groups,
    and so do those of the core of a fat tree, to other pods.

    Parameters
    ----------
    a, b : int64 (m,)
        Ends of cables between switches.
    leaf : bool (s,)
        Those with hosts.

    Examples
    --------
    >>> idle_leaves(np.array([0, 0, 1, 1]), np.array([2, 3, 2, 3]),
    ...             np.array([True, False, False, False])).tolist()
    [False, True, False, False]
    """
    count, group = len(leaf), _first_switch(a, b, leaf)
    alone = ~leaf & (np.bincount(np.concatenate([a[leaf[b]], b[leaf[a]]]), minlength=count) == 0)
    ends = np.concatenate([a, b]), np.concatenate([b, a])
    low, high = np.full(count, count), np.full(count, -1)
    np.minimum.at(low, ends[0], group[ends[1]])
    np.maximum.at(high, ends[0], group[ends[1]])
    degree = np.bincount(ends[0], minlength=count)
    return np.asarray(alone & (low == high) & (degree > 1))


def _of_cliques(a: Ints, b: Ints, hosts: Ints) -> Islands | None:
    """Return the groups of a dragonfly: of all that are nearly cliques the largest."""
    count = len(hosts)
    if count > MOST_SWITCHES or (hosts > 0).sum() < count / 2:
        return None
    near = np.eye(count)
    near[a, b] = near[b, a] = 1
    a, b = np.nonzero(np.triu(near, 1))
    common = product(near, near)[a, b]
    degree = near.sum(axis=1)
    alike = common / (degree[a] + degree[b] - common)
    for least in np.unique(np.round(alike, 3)).tolist():
        inside = alike >= least - 5e-4
        group = components(count, a[inside], b[inside])
        across = group[a] != group[b]
        groups = np.unique(group)
        if _nearly_cliques(group, near) and _mostly_joined(
            (group[a[across]], group[b[across]]), groups
        ):
            return Islands("dragonfly", group, np.zeros(count, dtype=np.int64))
    return None


def _nearly_cliques(group: Ints, near: Floats) -> bool:
    """Return whether most of the switches of every group are joined, and none is alone."""
    size = np.bincount(group)
    rows, columns = np.nonzero(near)
    inside = group[rows] == group[columns]
    joined = np.bincount(group[rows[inside]], minlength=len(size))
    there = size > 0
    return bool((size[there] > 1).all() and (joined >= MOST_OF_A_GROUP * size**2)[there].all())


def _mostly_joined(ends: tuple[Ints, Ints], groups: Ints) -> bool:
    """Return whether there are several groups, and cables join most pairs of them.

    Parameters
    ----------
    ends : tuple of int64 (m,)
        Groups at the ends of cables between groups.
    groups : int64 (g,)
        The groups that count.
    """
    low, high = np.minimum(*ends), np.maximum(*ends)
    counts = np.isin(low, groups) & np.isin(high, groups)
    pairs = len(np.unique(low[counts] << 32 | high[counts]))
    return len(groups) > 1 and pairs >= MOST_PAIRS * len(groups) * (len(groups) - 1) / 2
