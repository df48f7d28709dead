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


def chunks(size: int, slice_bytes: int, limit: int = 0) -> Iterator[slice]:
    """Yield slices of an axis, each of about `CHUNK` bytes (or `limit`).

    Examples
    --------
    >>> list(chunks(5, 100, limit=200))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, (limit or CHUNK) // max(slice_bytes, 1))
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
        self._field = field
        self._kernel = kernel
        self._forward, self._backward = NORMS[norm]

    def forward(self, x: Array, out: Array, axes: Sequence[int]) -> None:
        """Transform `x` along axes in this order into `out`; `x` is left as it is.

        The two may be one array where they have one shape and type.
        """
        for step in self._steps(axes):
            self._one_forward(x, out, step)
            x = out
        _moved(x, out)

    def backward(self, x: Array, out: Array, axes: Sequence[int]) -> None:
        """Transform back along axes in this order into `out`; see `forward`.

        Where the last axis is the one of which half a spectrum is kept, `x`
        is overwritten.
        """
        for step in reversed(self._steps(reversed(axes))):
            if self._field.half in step:
                target = out
                self._kernel.c2r(x, step[0], self._backward, out)
            else:
                target = x if x.dtype != out.dtype else out
                self._one_backward(x, target, step)
            x = target
        _moved(x, out)

    def _steps(self, axes: Iterable[int]) -> list[tuple[int, ...]]:
        """Return the axes in order, those that one call can do put together.

        The one of which half a spectrum is kept comes first: what was real
        before it is complex behind it.
        """
        steps: list[tuple[int, ...]] = []
        for axis in sorted(axes, key=lambda axis: axis != self._field.half):
            if self._idle(axis):
                continue
            if steps and self._plain(axis) and self._plain(steps[-1][0]):
                steps[-1] = (*steps[-1], axis)
            else:
                steps.append((axis,))
        return steps

    def _idle(self, axis: int) -> bool:
        """Tell whether nothing happens along an axis: an exponential of one element."""
        field = self._field
        return field.letters[axis] == "F" and field.shape[axis] == 1 and axis != field.half

    def _plain(self, axis: int) -> bool:
        return self._field.letters[axis] == "F" and axis != self._field.half

    def _one_forward(self, x: Array, out: Array, step: tuple[int, ...]) -> None:
        letter = self._field.letters[step[0]]
        if letter != "F":
            real, target = _as_real(x), _as_real(out)
            self._kernel.wall(real, step[0], letter, True, self._forward, target)
        elif self._field.half in step:
            self._kernel.r2c(x, step[0], self._forward, out)
        else:
            self._kernel.c2c(x, step, True, self._forward, out)

    def _one_backward(self, x: Array, out: Array, step: tuple[int, ...]) -> None:
        letter = self._field.letters[step[0]]
        if letter != "F":
            real, target = _as_real(x), _as_real(out)
            self._kernel.wall(real, step[0], letter, False, self._backward, target)
        else:
            self._kernel.c2c(x, step, False, self._backward, out)


def _as_real(x: Array) -> Array:
    """Return complex data as real ones with an axis more; real data as they are."""
    if x.dtype.kind != "c":
        return x
    return x[..., None].view(x.real.dtype)


def _moved(x: Array, out: Array) -> None:
    """Copy where no transform has done so."""
    if x is not out:
        np.copyto(out, x)
