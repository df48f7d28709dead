"""A Cray's floor: cabinets in columns and rows, and what stands in each place.

The floor is one array over (row, column, chassis, slot, node); a selector, a
cname with ranges in it, marks a part of it. Everything is filled by slices,
so 27,648 places cost no more than a few hundred.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from placement.errors import printable
from placement.sites.schema import Cabinets
from placement.sites.shared import WrongFigure, bounds

Index = NDArray[np.intp]

__all__ = ["COMPUTE", "SERVICE", "VACANT", "cabinet_count", "floor", "select"]

VACANT, COMPUTE, SERVICE = 0, 1, 2

#: Where the numbers of a cname (column, row, cage, slot, node) stand in the floor's axes.
_AXES = (1, 0, 2, 3, 4)

#: A floor of more cabinets is a typing error (the largest machines have some 300).
_MOST = 4096

_PART = r"(\*|\d{1,4}|\[[\d,-]{1,200}\])"
_CNAME = re.compile(rf"c{_PART}-{_PART}(?:c{_PART}(?:s{_PART}(?:n{_PART})?)?)?", re.ASCII)


def floor(cabinets: Cabinets, slots: int) -> NDArray[np.int8]:
    """Return what stands in every place of the floor.

    Parameters
    ----------
    cabinets : Cabinets
    slots : int
        Blades of a chassis: 16 on XC, 8 on XE and XK.

    Returns
    -------
    int8 (rows, columns, 3, slots, 4)
        0 vacant or absent, 1 compute, 2 service.

    Raises
    ------
    WrongFigure
        A selector that is no cname or reaches outside the floor.

    Examples
    --------
    >>> from placement.sites.schema import Cabinets, Figure
    >>> one = Figure(1, "assumed", "an example")
    >>> blades = Figure(["c0-0c*s0"], "assumed", "an example")
    >>> found = floor(Cabinets(columns=one, rows=one, service_blades=blades), 16)
    >>> found[0, 0, 0, 0].tolist(), int((found == COMPUTE).sum())
    ([0, 2, 2, 0], 180)
    """
    columns, rows = cabinets.columns.value, cabinets.rows.value
    if columns * rows > _MOST:
        text = f"{rows} rows of {columns} cabinets; more than {_MOST} are taken for an error"
        raise WrongFigure("cabinets.rows", text)
    places = np.full((rows, columns, 3, slots, 4), COMPUTE, np.int8)
    kinds: tuple[tuple[str, int, list[int]], ...] = (
        *(("service_blades", SERVICE, [1, 2]), ("service_blades", VACANT, [0, 3])),
        *(("service", SERVICE, []), ("vacant", VACANT, []), ("absent", VACANT, [])),
    )
    for key, value, nodes in kinds:
        figure = getattr(cabinets, key)
        for text in figure.value if figure else ():
            parts = _parts(f"cabinets.{key}", text, places.shape)
            parts[4] = np.array(nodes) if nodes else parts[4]
            places[np.ix_(*parts)] = value
    return places


def cabinet_count(places: NDArray[np.int8]) -> int:
    """Return how many cabinets of the floor hold a node."""
    return int((places != VACANT).any(axis=(2, 3, 4)).sum())


def select(key: str, selectors: Sequence[str], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return the mask of the places that any of the selectors names.

    Examples
    --------
    >>> select("where", ["c[0-1]-0c2s15n*"], (1, 12, 3, 16, 4)).sum()
    np.int64(8)
    """
    mask = np.zeros(shape, dtype=bool)
    for text in selectors:
        mask[np.ix_(*_parts(key, text, shape))] = True
    return mask


def _parts(key: str, text: str, shape: tuple[int, ...]) -> list[Index]:
    """Return the indices that a selector names on each axis of the floor."""
    match = _CNAME.fullmatch(text)
    if match is None:
        raise WrongFigure(key, f"'{printable(text)}' is no cname such as c0-0 or c[0-3]-*c2s15n1")
    parts = [np.empty(0, np.intp)] * 5
    for axis, part in zip(_AXES, match.groups(), strict=True):
        parts[axis] = _numbers(key, text, part or "*", shape[axis])
    return parts


def _numbers(key: str, text: str, part: str, size: int) -> Index:
    """Return the numbers of one part of a selector, all of them below `size`."""
    if part == "*":
        return np.arange(size)
    numbers: set[int] = set()
    for run in part.strip("[]").split(","):
        ends = bounds(run)
        if ends is None:
            what = f"'{printable(text)}' has the range '{run}'; write 7 or 0-3"
            raise WrongFigure(key, what)
        low, high = ends
        if low > high:
            raise WrongFigure(key, f"'{printable(text)}' has the range '{run}' backwards")
        if high >= size:
            what = f"'{printable(text)}' names {high} where there are 0 to {size - 1}"
            raise WrongFigure(key, what)
        numbers.update(range(low, high + 1))
    return np.array(sorted(numbers))
