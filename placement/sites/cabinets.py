"""A Cray's floor: cabinets in columns and rows, and what stands in each place.

The floor is one array over (row, column, chassis, slot, node); a selector, a
cname with ranges in it, marks a part of it. Everything is filled by slices,
so 27,648 places cost no more than a few hundred.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import printable
from placement.sites.wrong import WrongFigure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from placement.sites.schema import Cabinets, Figure

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
    _mark(places, "cabinets.service_blades", cabinets.service_blades, SERVICE, nodes=(1, 2))
    _mark(places, "cabinets.service_blades", cabinets.service_blades, VACANT, nodes=(0, 3))
    _mark(places, "cabinets.service", cabinets.service, SERVICE)
    _mark(places, "cabinets.vacant", cabinets.vacant, VACANT)
    _mark(places, "cabinets.absent", cabinets.absent, VACANT)
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


def _mark(
    places: NDArray[np.int8],
    key: str,
    figure: Figure[list[str]] | None,
    value: int,
    nodes: tuple[int, ...] = (),
) -> None:
    for text in figure.value if figure else ():
        parts = _parts(key, text, places.shape)
        if nodes:
            parts[4] = np.array(nodes)
        places[np.ix_(*parts)] = value


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
    runs = [_run(key, text, run) for run in part.strip("[]").split(",")]
    top = max(last for _, last in runs)
    if top >= size:
        raise WrongFigure(key, f"'{printable(text)}' names {top} where there are 0 to {size - 1}")
    return np.array(sorted({n for first, last in runs for n in range(first, last + 1)}))


def _run(key: str, text: str, run: str) -> tuple[int, int]:
    """Return the first and last number of ``7`` or ``0-3``."""
    first, dash, last = run.partition("-")
    if not (run.isascii() and first.isdigit() and (last.isdigit() or not dash)) or len(run) > 16:
        raise WrongFigure(key, f"'{printable(text)}' has the range '{run}'; write 7 or 0-3")
    low, high = int(first), int(last or first)
    if low > high:
        raise WrongFigure(key, f"'{printable(text)}' has the range '{run}' backwards")
    return low, high
