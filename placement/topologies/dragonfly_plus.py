"""DragonFly+: groups of leaf and spine switches, and links between the spines of groups.

Nodes hang on leaves; in a group every leaf is joined to every spine. The links of
all group pairs are dealt over each group's spines in turn, so that none has two more than
another (A. Shpiner et al., "Dragonfly+: Low cost topology for scaling
datacenters", HiPINEB 2017). Switches are numbered leaves first, group by
group, then spines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.topologies.bundles import bundle, pairs, refuse_many

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from placement.machine import Links
    from placement.support.array_types import Strs

__all__ = ["leaf_spine_links", "switches"]


def leaf_spine_links(
    groups: int, leaves: int, spines: int, between: int, bandwidth: Mapping[str, float]
) -> Links:
    """Return the links between switches.

    Parameters
    ----------
    groups, leaves, spines : int
        Groups, and leaf and spine switches of each.
    between : int
        Links of each group pair.
    bandwidth : mapping of str to float
        GB/s a direction of one link, ``local`` (leaf to spine) and ``global``.

    Returns
    -------
    Links

    Examples
    --------
    >>> found = leaf_spine_links(2, 1, 2, 2, {"local": 25.0, "global": 25.0})
    >>> list(zip(found.a.tolist(), found.b.tolist(), strict=True))
    [(0, 2), (0, 3), (1, 4), (1, 5), (2, 4), (3, 5)]
    """
    refuse_many(groups * (leaves * spines + groups * between / 2), "this DragonFly+")
    group, leaf, spine = (x.ravel() for x in np.indices((groups, leaves, spines)))
    first = groups * leaves
    low, high = (np.repeat(end, between) for end in pairs(groups))
    turn = np.tile(np.arange(between), len(low) // between)
    # In each group the links to the others, in their order, go to the spines in turn.
    here = ((high - 1) * between + turn) % spines
    there = (low * between + turn) % spines
    ends = (
        np.concatenate([group * leaves + leaf, first + low * spines + here]),
        np.concatenate([first + group * spines + spine, first + high * spines + there]),
    )
    kind = np.repeat(np.array([0, 1], dtype=np.int8), [len(leaf), len(low)])
    kinds = ("local", "global")
    gbs = np.array([bandwidth[name] for name in kinds])[kind]
    return bundle(*ends, kind, kinds, np.ones(len(kind), dtype=np.int64), gbs)


def switches(groups: int, leaves: int, spines: int) -> tuple[NDArray[np.int32], Strs]:
    """Return coordinates (group, leaf; -1 for a spine) and names of all switches.

    Examples
    --------
    >>> switches(2, 1, 1)[1].tolist()
    ['g0leaf0', 'g1leaf0', 'g0spine0', 'g1spine0']
    """
    leaf = np.indices((groups, leaves)).reshape(2, -1).T
    spine = np.column_stack([np.repeat(np.arange(groups), spines), np.full(groups * spines, -1)])
    names = [f"g{g}leaf{k}" for g in range(groups) for k in range(leaves)]
    names += [f"g{g}spine{k}" for g in range(groups) for k in range(spines)]
    return np.concatenate([leaf, spine]).astype(np.int32), np.array(names, dtype=np.str_)
