"""From single links to `Links`: parallel ones counted, ends in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from placement.errors import UsageError
from placement.machine import Links
from placement.support.array_types import Floats, Ints

__all__ = ["MAX_LINKS", "all_pairs", "bundle_links", "refuse_many"]

#: More rows than this are refused: a spec's typing error must not eat the memory.
MAX_LINKS = 20_000_000


def refuse_many(count: float, what: str) -> None:
    """Raise UsageError where `count` links would be too many to list."""
    if count > MAX_LINKS:
        raise UsageError(
            f"{what} would have {count:.0f} links", f"at most {MAX_LINKS} can be listed"
        )


def all_pairs(count: int) -> tuple[Ints, Ints]:
    """Return all pairs (i, j), i < j, of `count` things.

    Examples
    --------
    >>> [x.tolist() for x in all_pairs(3)]
    [[0, 0, 1], [1, 2, 2]]
    """
    refuse_many(count * (count - 1) / 2, f"a clique of {count}")
    return np.triu_indices(count, 1)


def bundle_links(
    a: Ints, b: Ints, kind: NDArray[np.int8], kinds: Sequence[str], count: Ints, bandwidth: Floats
) -> Links:
    """Join parallel links: one row a pair of routers and class, sorted by class, a, b.

    Where the links of a row are not equally fast each one's rate is kept.

    Parameters
    ----------
    a, b : int (m,)
        Router indices in any order, one row a link or a bundle.
    kind : int8 (m,)
        Index into `kinds`.
    kinds : sequence of str
    count : int (m,)
        Parallel links in the row.
    bandwidth : float64 (m,)
        GB/s a direction of the whole row; NaN where unknown (a bundle with
        an unknown link is unknown).

    Returns
    -------
    Links

    Examples
    --------
    >>> import numpy as np
    >>> links = bundle_links(np.array([1, 0]), np.array([0, 1]), np.zeros(2, np.int8), ("up1",),
    ...                np.array([1, 2]), np.array([2.5, 25.0]))
    >>> links.a.tolist(), links.b.tolist(), links.count.tolist(), links.bandwidth.tolist()
    ([0], [1], [3], [27.5])
    >>> links.cable.tolist()
    [2.5, 12.5, 12.5]
    """
    low, high = np.minimum(a, b), np.maximum(a, b)
    span = int(high.max(initial=0)) + 1
    key = (kind.astype(np.int64) * span + low) * span + high
    unique, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    size = len(unique)
    rate = bandwidth / np.maximum(count, 1)
    usual = rate[first][inverse]
    alike = (rate == usual) | (np.isnan(rate) & np.isnan(usual))
    order = np.argsort(inverse, kind="stable")
    return Links(
        a=low[first].astype(np.int32),
        b=high[first].astype(np.int32),
        kind=kind[first].astype(np.int8),
        kinds=tuple(kinds),
        count=np.bincount(inverse, count, size).astype(np.int32),
        bandwidth=np.bincount(inverse, bandwidth, size).astype(np.float64),
        cable=None if alike.all() else np.repeat(rate[order], count[order]),
    )
