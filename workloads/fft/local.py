# SPDX-License-Identifier: Apache-2.0
"""Local transforms along one or two axes, in chunks that fit into the cache.

They are ducc0's, else scipy's, else numpy's. ducc0 (extra ``[fft]``) writes
into the caller's array and is the fastest of the three by a factor; scipy
makes a copy on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from nidmap.placement.support.array_types import Array
from nidmap.workloads.fft.plan import Field

#: Bytes that are processed at a time: half of a typical L2 cache.
CHUNK = 1 << 19


def axis_chunks(size: int, slice_bytes: int, limit: int = CHUNK) -> Iterator[slice]:
    """Yield slices of an axis, each of about this many bytes."""
    length = max(1, limit // max(slice_bytes, 1))
    for start in range(0, size, length):
        yield slice(start, min(start + length, size))


#: By speed, the fastest first.
LIBRARIES = ("ducc0", "scipy", "numpy")


class Kernel:
    """The transforms of ``scipy.fft`` or ``numpy.fft``; backward divides by N.

    `out` may be the input, except where the two differ in shape or type.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.fft: Any = import_module("ducc0" if name == "ducc0" else f"{name}.fft")

    def c2c(self, x: Array, axes: Sequence[int], forward: bool, out: Array) -> None:
        """Transform complex data along axes."""
        run = self.fft.fftn if forward else self.fft.ifftn
        out[...] = run(x, axes=tuple(axes))

    def r2c(self, x: Array, axis: int, out: Array) -> None:
        """Transform real data along an axis to half a spectrum."""
        out[...] = self.fft.rfft(x, axis=axis)

    def c2r(self, x: Array, axis: int, out: Array) -> None:
        """Transform half a spectrum along an axis to real data of the extent of `out`."""
        out[...] = self.fft.irfft(x, out.shape[axis], axis=axis)


class _Ducc(Kernel):
    """The transforms of ducc0."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.fft = self.fft.fft

    def c2c(self, x: Array, axes: Sequence[int], forward: bool, out: Array) -> None:
        self.fft.c2c(x, axes=tuple(axes), forward=forward, inorm=0 if forward else 2, out=out)

    def r2c(self, x: Array, axis: int, out: Array) -> None:
        self.fft.r2c(x, axes=(axis,), out=out)

    def c2r(self, x: Array, axis: int, out: Array) -> None:
        size = out.shape[axis]
        self.fft.c2r(x, axes=(axis,), lastsize=size, forward=False, inorm=2, out=out)


def best_library() -> str:
    """Return the fastest library installed: ``ducc0``, ``scipy`` or ``numpy``."""
    return next(name for name in LIBRARIES if find_spec(name))


@lru_cache(maxsize=8)
def local_transforms(name: str = "") -> Kernel:
    """Return the local transforms of a library.

    `name`: ``ducc0``, ``scipy`` or ``numpy``; '' for the best that is installed.
    """
    chosen = name or best_library()
    return _Ducc(chosen) if chosen == "ducc0" else Kernel(chosen)


class Local:
    """The transforms of a field's axes on this rank's arrays."""

    def __init__(self, field: Field, kernel: Kernel) -> None:
        self._field, self._kernel = field, kernel

    def transform(self, x: Array, out: Array, axes: Sequence[int], forward: bool) -> None:
        """Transform `x` along axes into `out`, forward or backward.

        The two may be one array where they have one shape and type. `x` is left as it
        is, but backward where it has several axes and `out` is real.
        """
        for together in self._axes_of_calls(axes)[:: 1 if forward else -1]:
            half = self._field.half in together
            target = out if forward or half or x.dtype == out.dtype else x
            if half:
                (self._kernel.r2c if forward else self._kernel.c2r)(x, together[0], target)
            else:
                self._kernel.c2c(x, together, forward, target)
            x = target
        if x is not out:
            np.copyto(out, x)

    def _axes_of_calls(self, axes: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the axes that each single call can do, in the order of a forward transform.

        The one of which half a spectrum is kept comes first: what was real
        before it is complex after it. An axis of one element is
        left out: nothing happens along it.
        """
        half, shape = self._field.half, self._field.shape
        others = tuple(axis for axis in axes if axis != half and shape[axis] > 1)
        return [some for some in ((half,) if half in axes else (), others) if some]
