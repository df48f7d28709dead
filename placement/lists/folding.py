"""Folding: names that end in consecutive numbers become one range, in the order given.

The characters of all names are compared at once in numpy; Python only
touches the runs that are left.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from placement.names.columns import name_numbers
from placement.support.array_types import Mask

__all__ = ["fold", "nid_ranges", "numeric_order"]

#: Names looked at together: bounds the memory that one very long name costs.
_CHUNK = 65_536
_NUMBER = re.compile(r"(\d+)", re.ASCII)


def fold(names: Sequence[str]) -> str:
    """Write names as Slurm folds them, keeping their order.

    A range is as wide as its first number, as Slurm expands it: ``n9,n10`` is
    ``n[9-10]`` and ``n09,n10`` is ``n[09-10]``, but ``n9,n010`` is two numbers.

    Parameters
    ----------
    names : sequence of str

    Returns
    -------
    str

    Examples
    --------
    >>> fold(["nid00045", "nid00012", "nid00013", "login"])
    'nid[00045,00012-00013],login'
    """
    if len(names) < 2:
        return "".join(names)
    heads, follows, together = _joints(names)
    starts = np.flatnonzero(~follows)
    ends = np.append(starts[1:], len(names)) - 1
    texts = [
        names[s][heads[s] :] if s == e else f"{names[s][heads[s] :]}-{names[e][heads[e] :]}"
        for s, e in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    firsts = np.flatnonzero(~together[starts])
    lasts = np.append(firsts[1:], len(starts))
    groups = []
    for a, b in zip(firsts.tolist(), lasts.tolist(), strict=True):
        first, alone = starts[a].item(), starts[a] == ends[b - 1]
        name = names[first]
        groups.append(name if alone else f"{name[: heads[first]]}[{','.join(texts[a:b])}]")
    return ",".join(groups)


def nid_ranges(values: Iterable[int]) -> str:
    """Fold ascending runs of NIDs, keeping the order.

    Examples
    --------
    >>> nid_ranges((45, 12, 13, 14, 13))
    '45,12-14,13'
    """
    return fold([str(value) for value in values]).strip("[]")


def _joints(names: Sequence[str]) -> tuple[list[int], Mask, Mask]:
    """Compare every name with the one before it.

    Returns
    -------
    heads : list of int
        Characters before the number at each name's end.
    follows : bool (n,)
        True where a name is the one before it plus one, in a range's writing.
    together : bool (n,)
        True where both differ in their number only.
    """
    heads: list[int] = []
    follows = np.zeros(len(names), dtype=bool)
    together = np.zeros(len(names), dtype=bool)
    for start in range(0, len(names), _CHUNK):
        stop = min(start + _CHUNK, len(names))
        begin = max(start - 1, 0)  # one more, to compare across the seam
        texts = np.array(names[begin:stop], dtype=np.str_)
        prefixes, numbers, widths = name_numbers(texts)
        lengths = np.char.str_len(texts)
        heads += (lengths - widths)[start - begin :].tolist()
        same = (prefixes[1:] == prefixes[:-1]) & (widths[1:] > 0) & (widths[:-1] > 0)
        full = 10 ** widths[:-1].astype(np.int64)
        grown = (widths[1:] == widths[:-1] + 1) & (numbers[1:] == full)
        step = (numbers[1:] == numbers[:-1] + 1) & ((widths[1:] == widths[:-1]) | grown)
        together[begin + 1 : stop] = same
        follows[begin + 1 : stop] = same & step
    return heads, follows, together


def numeric_order(names: Sequence[str]) -> list[int]:
    """Return the order that sorts names with every number in them by its value.

    Equal numbers of different width stand narrow first; names that are the
    same keep their order.

    Examples
    --------
    >>> names = ["n10", "n9", "n09", "m"]
    >>> [names[k] for k in numeric_order(names)]
    ['m', 'n9', 'n09', 'n10']
    """
    if not len(names):
        return []
    prefixes, numbers, widths = name_numbers(np.array(names, dtype=np.str_))
    different, which = np.unique(prefixes, return_inverse=True)
    keys = [_parts(prefix) for prefix in different.tolist()]
    by_prefix = sorted(range(len(keys)), key=keys.__getitem__)
    order: list[int] = np.lexsort((widths, numbers, np.argsort(by_prefix)[which])).tolist()
    return order


def _parts(text: str) -> list[tuple[str, int, int]]:
    """Return a key that compares text as text and the numbers in it as numbers."""
    words = _NUMBER.split(text)
    numbers = [*words[1::2], ""]
    return [
        (word, int(number or -1), len(number))
        for word, number in zip(words[::2], numbers, strict=True)
    ]
