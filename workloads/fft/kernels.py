"""Local transforms along axes of this rank's array: ducc0, else scipy, else numpy.

ducc0 (extra ``[fft]``) writes into the caller's array and is the fastest of
the three by a factor; scipy makes a copy on the way; numpy knows no sines
and cosines.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from placement.errors import UsageError
from workloads.words import check_word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]

__all__ = ["LIBRARIES", "NORMS", "Kernel", "kernel", "library"]

#: By speed, the fastest first.
LIBRARIES = ("ducc0", "scipy", "numpy")

#: By name of a norm, as scipy has them: whether forward and backward divide by N, sqrt(N) (1) or
#: not (0); 2 divides by N.
NORMS = {"backward": (0, 2), "ortho": (1, 1), "forward": (2, 0)}

#: numpy's and scipy's words for that, seen from forward.
_WORDS = ("backward", "ortho", "forward")


class Kernel:
    """The transforms of ``scipy.fft`` or ``numpy.fft``; `norm` is 0, 1 or 2 as in `NORMS`.

    `out` may be the input, except where the two differ in shape or type.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.fft: Any = import_module("ducc0" if name == "ducc0" else f"{name}.fft")

    def c2c(self, x: Array, axes: Sequence[int], forward: bool, norm: int, out: Array) -> None:
        """Transform complex data along axes."""
        run = self.fft.fftn if forward else self.fft.ifftn
        out[...] = run(x, axes=tuple(axes), norm=_WORDS[norm if forward else 2 - norm])

    def r2c(self, x: Array, axis: int, norm: int, out: Array) -> None:
        """Transform real data along an axis to half a spectrum."""
        out[...] = self.fft.rfft(x, axis=axis, norm=_WORDS[norm])

    def c2r(self, x: Array, axis: int, norm: int, out: Array) -> None:
        """Transform half a spectrum along an axis to real data of the extent of `out`."""
        out[...] = self.fft.irfft(x, out.shape[axis], axis=axis, norm=_WORDS[2 - norm])

    def wall(self, x: Array, axis: int, letter: str, forward: bool, norm: int, out: Array) -> None:
        """Transform real data along an axis to sines ("S") or cosines ("C"), or back."""
        run = getattr(self.fft, ("" if forward else "i") + ("dst" if letter == "S" else "dct"))
        out[...] = run(x, type=2, axis=axis, norm=_WORDS[norm if forward else 2 - norm])


class _Ducc(Kernel):
    """The transforms of ducc0."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.fft = self.fft.fft

    def c2c(self, x: Array, axes: Sequence[int], forward: bool, norm: int, out: Array) -> None:
        self.fft.c2c(x, axes=tuple(axes), forward=forward, inorm=norm, out=out)

    def r2c(self, x: Array, axis: int, norm: int, out: Array) -> None:
        self.fft.r2c(x, axes=(axis,), inorm=norm, out=out)

    def c2r(self, x: Array, axis: int, norm: int, out: Array) -> None:
        size = out.shape[axis]
        self.fft.c2r(x, axes=(axis,), lastsize=size, forward=False, inorm=norm, out=out)

    def wall(self, x: Array, axis: int, letter: str, forward: bool, norm: int, out: Array) -> None:
        run = self.fft.dst if letter == "S" else self.fft.dct
        run(x, type=2 if forward else 3, axes=(axis,), inorm=norm, out=out)


def library() -> str:
    """Return the best library that is installed: ``ducc0``, ``scipy`` or ``numpy``."""
    return next(name for name in LIBRARIES if find_spec(name))


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
    >>> import numpy as np
    >>> x = np.array([[1.0, 2.0, 3.0]]) + 0j
    >>> kernel("numpy").c2c(x, (1,), True, 0, x)
    >>> x[0, 0]
    np.complex128(6+0j)
    """
    chosen = name or library()
    check_word("library", chosen, LIBRARIES)
    if chosen == "numpy" and set(letters) - {"F"}:
        hint = "pip install 'nidmap[fft]'"
        raise UsageError("sine and cosine transforms need ducc0 or scipy", hint)
    return _Ducc(chosen) if chosen == "ducc0" else Kernel(chosen)
