"""Slurm's own order of its nodes: the index that its choices and its task layout follow.

slurmctld sorts its node table by name, digits by value (``n9`` before
``n10``), digits behind a leading zero place by place (``n009`` before
``n01``). A job's nodes, and with them its tasks, stand in this order whatever
order a list was given in. Checked on slurmctld 22.05.8 with 29 names of mixed
prefixes and widths.
"""

from __future__ import annotations

import re

import numpy as np

from placement.names.columns import codes_of
from placement.support.array_types import Ints, Strs

__all__ = ["slurm_order"]

_TOKEN = re.compile(r"[0-9]+|[^0-9]")


def slurm_order(names: Strs) -> Ints:
    """Return the indices that put node names into Slurm's order.

    Parameters
    ----------
    names : str (n,)

    Returns
    -------
    int64 (n,)
        ``names[slurm_order(names)]`` is sorted as slurmctld's node table is.

    Examples
    --------
    >>> import numpy as np
    >>> names = np.array(["n10", "n9", "n1-ib", "n1", "n01", "n009"])
    >>> names[slurm_order(names)].tolist()
    ['n009', 'n01', 'n1', 'n1-ib', 'n9', 'n10']
    """
    if _alike(names):
        if bool((names[:-1] <= names[1:]).all()):
            return np.arange(len(names), dtype=np.int64)
        return np.argsort(names, kind="stable")
    keys = [_key(name) for name in names.tolist()]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def _alike(names: Strs) -> bool:
    """Tell whether all names have their digits in the same places.

    Then comparing them character by character is Slurm's order.
    """
    if not len(names):
        return True
    codes = codes_of(names)
    digit, ended = codes - ord("0") <= 9, codes == 0
    return bool((digit == digit[0]).all() and (ended == ended[0]).all())


def _key(name: str) -> tuple[tuple[int, int, int, str], ...]:
    """Return a key that sorts as Slurm compares: character codes, numbers by value.

    A run of digits stands at its first digit's place among the characters. With a
    leading zero it comes before every run without and is compared as text.
    """
    return tuple(
        (ord("0"), *((0, 0, word) if word[0] == "0" else (1, len(word), word)))
        if word[0] in "0123456789"
        else (ord(word), 0, 0, "")
        for word in _TOKEN.findall(name)
    )
