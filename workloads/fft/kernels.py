"""Local transforms along axes of this rank's array: ducc0, else scipy, else numpy.

ducc0 (extra ``[fft]``) writes into the caller's array and is the fastest of
the three by a factor; scipy makes a copy on the way; numpy knows no sines
and cosines.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from placement.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]

__all__ = ["NORMS", "Kernel", "kernel", "library"]

#: By name of a norm, as scipy has them: whether forward and backward divide by N, sqrt(N) (1) or
#: not (0); 2 divides by N.
NORMS = {"backward": (0, 2), "ortho": (1, 1), "forward": (2, 0)}

_WORDS = {0: "backward", 1: "ortho", 2: "forward"}


class Kernel(Protocol):
    """What a library of local transforms must do; `norm` is 0, 1 or 2 as in `NORMS`.

    `out` may be the input, except where the two differ in shape or type.
    """

    name: str

    def c2c(self, x: Array, axes: Sequence[int], forward: bool, norm: int, out: Array) -> None:
        """Transform complex data along axes."""

    def r2c(self, x: Array, axis: int, norm: int, out: Array) -> None:
        """Transform real data along an axis to half a spectrum."""

    def c2r(self, x: Array, axis: int, norm: int, out: Array) -> None:
        """Transform half a spectrum along an axis to real data of the extent of `out`."""

    def wall(self, x: Array, axis: int, letter: str, forward: bool, norm: int, out: Array) -> None:
        """Transform real data along an axis to sines ("S") or cosines ("C"), or back."""


class _Ducc:
    name = "ducc0"

    def __init__(self) -> None:
        self._fft: Any = import_module("ducc0").fft

    def c2c(self, x: Array, axes: Sequence[int], forward: bool, norm: int, out: Array) -> None:
        self._fft.c2c(x, axes=tuple(axes), forward=forward, inorm=norm, out=out)

    def r2c(self, x: Array, axis: int, norm: int, out: Array) -> None:
        self._fft.r2c(x, axes=(axis,), inorm=norm, out=out)

    def c2r(self, x: Array, axis: int, norm: int, out: Array) -> None:
        size = out.shape[axis]
        self._fft.c2r(x, axes=(axis,), lastsize=size, forward=False, inorm=norm, out=out)

    def wall(self, x: Array, axis: int, letter: str, forward: bool, norm: int, out: Array) -> None:
        run = self._fft.dst if letter == "S" else self._fft.dct
        run(x, type=2 if forward else 3, axes=(axis,), inorm=norm, out=out)


class _Scipy:
    name = "scipy"

    def __init__(self) -> None:
        self._fft: Any = import_module("scipy.fft")

    def c2c(self, x: Array, axes: Sequence[int], forward: bool, norm: int, out: Array) -> None:
        run = self._fft.fftn if forward else self._fft.ifftn
        out[...] = run(x, axes=tuple(axes), norm=_word(norm, forward))

    def r2c(self, x: Array, axis: int, norm: int, out: Array) -> None:
        out[...] = self._fft.rfft(x, axis=axis, norm=_word(norm, True))

    def c2r(self, x: Array, axis: int, norm: int, out: Array) -> None:
        out[...] = self._fft.irfft(x, out.shape[axis], axis=axis, norm=_word(norm, False))

    def wall(self, x: Array, axis: int, letter: str, forward: bool, norm: int, out: Array) -> None:
        name = ("" if forward else "i") + ("dst" if letter == "S" else "dct")
        out[...] = getattr(self._fft, name)(x, type=2, axis=axis, norm=_word(norm, forward))


class _Numpy:
    name = "numpy"

    def c2c(self, x: Array, axes: Sequence[int], forward: bool, norm: int, out: Array) -> None:
        run = np.fft.fftn if forward else np.fft.ifftn
        out[...] = run(x, axes=tuple(axes), norm=_word(norm, forward))

    def r2c(self, x: Array, axis: int, norm: int, out: Array) -> None:
        out[...] = np.fft.rfft(x, axis=axis, norm=_word(norm, True))

    def c2r(self, x: Array, axis: int, norm: int, out: Array) -> None:
        out[...] = np.fft.irfft(x, out.shape[axis], axis=axis, norm=_word(norm, False))

    def wall(self, x: Array, axis: int, letter: str, forward: bool, norm: int, out: Array) -> None:
        raise UsageError(_NO_WALLS, "pip install 'nidmap[fft]'")


_NO_WALLS = "sine and cosine transforms need ducc0 or scipy"

_KINDS: dict[str, Callable[[], Kernel]] = {"ducc0": _Ducc, "scipy": _Scipy, "numpy": _Numpy}


def _word(norm: int, forward: bool) -> Any:
    """Return scipy's word for dividing by N, sqrt(N) or not in this direction."""
    return _WORDS[norm if forward else 2 - norm]


def library() -> str:
    """Return the best library that is installed: ``ducc0``, ``scipy`` or ``numpy``."""
    from importlib.util import find_spec

    return next((name for name in ("ducc0", "scipy") if find_spec(name)), "numpy")


@lru_cache(maxsize=8)
def kernel(name: str = "", letters: str = "") -> Kernel:
    """Return the local transforms of a library.

    Parameters
    ----------
    name : str
        ``ducc0``, ``scipy`` or ``numpy``; '' for the best that is installed.
    letters : str
        The basis that it must know.

    Raises
    ------
    UsageError
        No such library, or one without sines and cosines.
    ModuleNotFoundError
        It is not installed.

    Examples
    --------
    >>> x = np.array([[1.0, 2.0, 3.0]]) + 0j
    >>> kernel("numpy").c2c(x, (1,), True, 0, x)
    >>> x[0, 0]
    np.complex128(6+0j)
    """
    chosen = name or library()
    if chosen not in _KINDS:
        raise UsageError(f"no library {chosen!r}", f"there are {', '.join(_KINDS)}")
    if chosen == "numpy" and set(letters) - {"F"}:
        raise UsageError(_NO_WALLS, "pip install 'nidmap[fft]'")
    return _KINDS[chosen]()
