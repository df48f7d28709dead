"""The local transforms of a field along one or two axes, in chunks that stay in the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from workloads.fft.kernels import NORMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from workloads.fft.basis import Field
    from workloads.fft.kernels import Kernel

    Array = NDArray[Any]

__all__ = ["CHUNK", "Local", "chunks"]

#: Bytes that are worked on at a time: half of a core's second cache on the machines of today.
CHUNK = 1 << 19


def chunks(size: int, slice_bytes: int, limit: int = CHUNK) -> Iterator[slice]:
    """Yield slices of an axis, each of about so many bytes.

    Examples
    --------
    >>> list(chunks(5, 100, limit=200))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, limit // max(slice_bytes, 1))
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))


class Local:
    """The transforms of a field's axes on this rank's arrays.

    Parameters
    ----------
    field : Field
    kernel : Kernel
    norm : str
        See `NORMS`.
    """

    def __init__(self, field: Field, kernel: Kernel, norm: str) -> None:
        self._field, self._kernel = field, kernel
        self._forward, self._backward = NORMS[norm]

    def forward(self, x: Array, out: Array, axes: Sequence[int]) -> None:
        """Transform `x` along axes in this order into `out`; `x` is left as it is.

        The two may be one array where they have one shape and type.
        """
        for step in self._steps(axes):
            self._transform(x, out, step, True)
            x = out
        if x is not out:
            np.copyto(out, x)

    def backward(self, x: Array, out: Array, axes: Sequence[int]) -> None:
        """Transform back along axes in this order into `out`; see `forward`.

        Where the last axis is the one of which half a spectrum is kept, `x`
        is overwritten.
        """
        for step in reversed(self._steps(reversed(axes))):
            target = out if self._field.half in step or x.dtype == out.dtype else x
            self._transform(x, target, step, False)
            x = target
        if x is not out:
            np.copyto(out, x)

    def _steps(self, axes: Iterable[int]) -> list[tuple[int, ...]]:
        """Return the axes in order, those that one call can do put together.

        The one of which half a spectrum is kept comes first: what was real
        before it is complex behind it. An exponential axis of one element is
        left out: nothing happens along it.
        """
        field = self._field
        steps: list[tuple[int, ...]] = []
        together = False
        for axis in sorted(axes, key=lambda axis: axis != field.half):
            complex_ = field.letters[axis] == "F" and axis != field.half
            if complex_ and field.shape[axis] == 1:
                continue
            if complex_ and together:
                steps[-1] += (axis,)
            else:
                steps.append((axis,))
            together = complex_
        return steps

    def _transform(self, x: Array, out: Array, step: tuple[int, ...], forward: bool) -> None:
        """Do what one call of the library can do."""
        kernel, norm = self._kernel, self._forward if forward else self._backward
        letter = self._field.letters[step[0]]
        if letter != "F":
            kernel.wall(_as_real(x), step[0], letter, forward, norm, _as_real(out))
        elif self._field.half in step:
            (kernel.r2c if forward else kernel.c2r)(x, step[0], norm, out)
        else:
            kernel.c2c(x, step, forward, norm, out)


def _as_real(x: Array) -> Array:
    """Return complex data as real ones with an axis more; real data as they are."""
    return x[..., None].view(x.real.dtype) if x.dtype.kind == "c" else x
