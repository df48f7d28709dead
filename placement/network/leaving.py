"""Bytes that leave parts of a network, the parts told apart by a label a router."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement.network.arrays import summed
from placement.network.lines import Lines

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.network.demand import Demand

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Folded", "all_to_all", "between", "leaving"]

#: A table of this many (line, label) pairs is filled without sorting.
_TABLE = 1 << 16


class Folded(NamedTuple):
    """A demand between units: what `leaving` reads of a `Demand`."""

    source: Ints
    target: Ints
    amount: Floats
    within: Lines


def between(label: Ints, count: int, source: Ints, target: Ints, amount: Floats) -> Floats:
    """Return the listed bytes that leave each label.

    Parameters
    ----------
    label : int64 (routers,)
        0 … count-1; -1 for a router of no part.
    count : int
    source, target : int64 (m,)
        Routers.
    amount : float64 (m,)

    Returns
    -------
    float64 (count,)

    Examples
    --------
    >>> import numpy as np
    >>> a = np.array
    >>> between(a([0, 0, 1]), 2, a([0, 1, 2]), a([1, 2, 0]), a([5.0, 7.0, 1.0])).tolist()
    [7.0, 1.0]
    """
    apart = (label[source] != label[target]) & (label[source] >= 0)
    return summed(label[source[apart]], amount[apart], count)


def all_to_all(label: Ints, count: int, lines: Lines) -> Floats:
    """Return the bytes of all-to-alls that leave each label; as many come in.

    Parameters
    ----------
    label, count
        As for `between`.
    lines : Lines

    Returns
    -------
    float64 (count,)
    """
    whole = summed(lines.line, lines.weight, len(lines))
    inside = np.flatnonzero(label[lines.router] >= 0)
    key = lines.line[inside] * count + label[lines.router[inside]]
    if len(lines) * count <= 4 * len(key) + _TABLE:
        weight = summed(key, lines.weight[inside], len(lines) * count)
        found = np.flatnonzero(weight)
        weight = weight[found]
    else:
        found, place = np.unique(key, return_inverse=True)
        weight = summed(place, lines.weight[inside], len(found))
    line, part = np.divmod(found, max(1, count))
    return summed(part, lines.scale[line] * weight * (whole[line] - weight), count)


def leaving(label: Ints, count: int, demand: Demand | Folded) -> tuple[Floats, Floats]:
    """Return the bytes of a demand that leave and that enter each label.

    Examples
    --------
    >>> import numpy as np
    >>> from placement.network.demand import Demand
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("torus:4")
    >>> out, into = leaving(np.array([0, 0, 1, 1]), 2, Demand.complete(m, np.arange(3), 1, 1.0))
    >>> out.tolist(), into.tolist()
    ([2.0, 2.0], [2.0, 2.0])
    """
    both = all_to_all(label, count, demand.within)
    ends = (demand.source, demand.target), (demand.target, demand.source)
    out, into = (between(label, count, s, t, demand.amount) + both for s, t in ends)
    return np.maximum(out, 0.0), np.maximum(into, 0.0)
