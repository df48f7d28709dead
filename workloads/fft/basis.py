"""The letters of a basis: which transform stands along which axis.

``F`` an exponential (periodic) axis, ``S`` a sine and ``C`` a cosine axis
(non-periodic walls). FFTK offers FFF, SFF, SSF and SSS, where S "signifies
Sin/Cos Fourier transform": sine and cosine are told apart here, so that CFF,
SCF, … are bases too. Sine is DST-II forward and DST-III back, cosine DCT-II
and DCT-III (FFTW's RODFT10, RODFT01, REDFT10 and REDFT01), which suits
fields on points between the walls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

from placement.errors import UsageError, printable

__all__ = ["Field", "field_of"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Field:
    """A global array and its spectrum, axes in the order in which they are worked on.

    Inside, every array has three axes, those of extent 1 last: FFTK's 2-D
    fields (N_y = 1) and plain 2-D ones are the same thing then, and no copy
    is needed between the user's shape and this one.

    Attributes
    ----------
    shape, spectrum : tuple of int
        Extents in space and of the spectrum, three of each.
    letters : str
        Basis, a letter an axis.
    order : tuple of int
        The user's axis that stands at each place; -1 for one that was added.
    half : int
        The axis of which a real field's spectrum keeps N/2 + 1 elements; -1 for none.
    real : bool
        Whether the field is real.

    Examples
    --------
    >>> field = field_of((8, 1, 6), "SFF", real=True)
    >>> field.shape, field.spectrum, field.letters, field.half
    ((8, 6, 1), (8, 4, 1), 'SFF', 1)
    """

    shape: tuple[int, int, int]
    spectrum: tuple[int, int, int]
    letters: str
    order: tuple[int, ...]
    half: int
    real: bool

    @property
    def flat(self) -> bool:
        """Whether there are two axes at most that are more than one element long."""
        return self.shape[2] == 1

    @property
    def real_spectrum(self) -> bool:
        """Whether the spectrum is real: a real field on sines and cosines alone."""
        return self.real and self.half < 0

    def outside(self, things: tuple[T, ...]) -> tuple[T, ...]:
        """Return what belongs to the three axes inside by the user's axes."""
        found = dict(zip(self.order, things, strict=True))
        return tuple(found[axis] for axis in range(3) if axis in found)


def field_of(shape: tuple[int, ...], basis: str, real: bool) -> Field:
    """Return the field of a user's shape.

    Parameters
    ----------
    shape : tuple of int
        Two or three extents, each at least 1.
    basis : str
        ``''``: all F; else S and C for the first axes, F for the rest. A 2-D
        shape takes the three letters of FFTK's 2-D runs too (the middle one
        belongs to N_y = 1).
    real : bool

    Raises
    ------
    UsageError
    """
    if len(shape) not in (2, 3) or min(shape, default=0) < 1:
        raise UsageError(
            f"an FFT of {'x'.join(map(str, shape)) or 'nothing'} is none",
            "two or three sizes, each at least 1",
        )
    letters = _letters(basis, len(shape))
    waves = [axis for axis, letter in enumerate(letters) if letter == "F"]
    half = waves[-1] if real and waves else -1
    order = sorted(range(3), key=lambda axis: axis >= len(shape) or shape[axis] == 1)
    if order[0] == half:  # a line: the real axis goes first, and the first axis is the last one
        order[:2] = order[1::-1]
    a, b, c = order
    extents = [*shape, 1]
    waves_of = [n // 2 + 1 if axis == half else n for axis, n in enumerate(extents)]
    return Field(
        (extents[a], extents[b], extents[c]),
        (waves_of[a], waves_of[b], waves_of[c]),
        "".join((letters + "F")[axis] for axis in order),
        tuple(axis if axis < len(shape) else -1 for axis in order),
        order.index(half) if half >= 0 else -1,
        real,
    )


def _letters(basis: str, axes: int) -> str:
    word = (basis or "").upper() or "F" * axes
    if len(word) == 3 and axes == 2:
        word = word[0] + word[2]
    if len(word) != axes or not re.fullmatch("[SC]*F*", word):
        raise UsageError(
            f"{printable(basis)!r} is not a basis of {axes} axes",
            "FFF, SFF, SSF or SSS, with C for a cosine in place of a sine",
        )
    return word
