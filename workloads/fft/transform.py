"""FFTs of arrays that are spread over ranks: slabs and pencils, forward and backward.

What moves
----------
The process grid has rows and columns, ranks row by row. In space a rank holds
a stretch of axis 0 (by its row), a stretch of axis 1 (by its column) and all
of axis 2; of the spectrum all of axis 0, a stretch of axis 1 (row) and a
stretch of axis 2 (column). So there are two all-to-alls a direction, one
inside each row and one inside each column (the pattern ``fft:RxC``); on slabs
one of them is nothing.

Forward works piece by piece along axis 0, backward along axis 2 (pencils) or
1 (slabs): a piece is transformed, put in order and exchanged while it is in
the cache, and no second copy of the array is needed.

Memory
------
Input, output and buffers together take at most 3 times the local array (the
larger of this rank's parts in space and of the spectrum), and half a MiB for
the chunk in work; measured 2.4 to 2.8 times above 8 MiB a rank, 3.0 below.
Below 1 MiB there is one piece only, which may take 4 times. One array more is
taken for a real `out` of `backward` that `Transform.empty` did not make, and
with ``pieces=1``. A window that is shared counts once, with the rank that
owns it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import DTypeLike

from placement.errors import UsageError, printable
from placement.support.array_types import Array
from workloads.fft.engine import Engine
from workloads.fft.exchange import METHODS
from workloads.fft.local import NORMS, Local, kernel
from workloads.fft.plan import ArrayLayout, field_of, process_grid
from workloads.fft.window import one_node
from workloads.memory import fits
from workloads.phases import Phases
from workloads.words import check_word
from workloads.world import Comm, same, together

__all__ = ["Transform"]

#: Types of a field in space and of its spectrum.
_TYPES = "complex128, complex64, float64 or float32"
_SPECTRA = {"f": "F", "d": "D", "F": "F", "D": "D"}


class Transform:
    """An FFT of one shape on one communicator. Collective, as are its methods.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        Its rank order is the order of the process grid, row by row.
    shape : sequence of int
        Global extents, two or three; any sizes, also smaller than the number
        of ranks. FFTK's 2-D fields are (N_x, 1, N_z).
    dtype : dtype
        Of the field in space: complex128, complex64, float64 or float32. A
        real field's spectrum keeps N/2 + 1 elements of the last axis.
    grid : str or (int, int)
        ``slab``, ``pencil``, or rows and columns; see
        `workloads.fft.plan.process_grid`.
    method : str
        How to transpose: ``alltoall``, ``vector``, ``alltoallw``, ``shared``
        (see `workloads.fft.exchange`) or ``auto``: shared inside a row or
        column of which all ranks are on one node, else alltoall.
    norm : str
        ``backward``: forward is the plain sum of the paper's eq. 1 and
        backward divides; ``forward``: the other way round; ``ortho``.
        What each divides by is what scipy's fftn does.
    pieces : int
        Pieces that an array is worked on in; 0: by size. 1 sends a direction
        in the fewest messages and takes more memory.
    library : str
        ``ducc0``, ``scipy`` or ``numpy``; '' for the best that is there.
    checked : bool
        Whether every call makes sure first that all ranks were given arrays
        that fit, by a small MPI_Allreduce.

    Attributes
    ----------
    shape, spectrum_shape : tuple of int
        Global extents in space and of the spectrum.
    local_shape, local_spectrum_shape : tuple of int
        This rank's.
    slices, spectrum_slices : tuple of slice
        Where they stand in the global arrays.
    dtype, spectrum_dtype : numpy.dtype
    phases : workloads.phases.Phases
        Seconds spent since it was last cleared: ``transform``, ``rearrange``
        (copies before and after a message) and ``exchange``.

    Raises
    ------
    UsageError, NidmapError
        On every rank alike: a shape or grid that does not fit, more
        than the nodes' memory, a library that is missing, arguments that
        differ between ranks.

    Examples
    --------
    >>> from mpi4py import MPI  # doctest: +SKIP
    >>> with Transform(MPI.COMM_WORLD, (64, 64, 64), grid="pencil") as fft:  # doctest: +SKIP
    ...     values = fft.empty()
    ...     values[:] = 1
    ...     spectrum = fft.forward(values)
    ...     back = fft.backward(spectrum)
    """

    def __init__(
        self,
        comm: Comm,
        shape: Sequence[int],
        *,
        dtype: DTypeLike = "complex128",
        grid: str | Sequence[int] = "slab",
        method: str = "auto",
        norm: str = "backward",
        pieces: int = 0,
        library: str = "",
        checked: bool = True,
    ) -> None:
        self._engine: Engine | None = None
        with together(comm):
            kind = _dtype(dtype)
            check_word("way to transpose", method, ("auto", *METHODS))
            check_word("norm", norm, NORMS)
            if not isinstance(pieces, int) or pieces < 0:
                raise UsageError(f"{printable(str(pieces))} is not a number of pieces")
            field = field_of(_extents(shape), kind.kind == "f")
            self.grid = process_grid(grid, comm.Get_size(), field)
            functions = kernel(library)
        asked = {"shape": tuple(shape), "dtype": kind.name}
        same(comm, **asked, grid=self.grid, method=method, norm=norm, pieces=pieces)
        self.comm, self.dtype, self.library = comm, kind, functions.name
        self.spectrum_dtype = np.dtype(_SPECTRA[kind.char])
        self.phases = Phases()
        item = self.spectrum_dtype.itemsize
        packed = method == "alltoall" or (method == "auto" and not one_node(comm))
        self._layout = layout = ArrayLayout(field, self.grid, comm.Get_rank(), item, pieces, packed)
        self._checked = checked
        self._roomy: WeakValueDictionary[int, Array] = WeakValueDictionary()
        self.shape, self.spectrum_shape = field.outside(field.shape), field.outside(field.spectrum)
        self.local_shape = field.outside(layout.local)
        self.local_spectrum_shape = field.outside(layout.local_spectrum)
        self.slices = field.outside(layout.slices)
        self.spectrum_slices = field.outside(layout.spectrum_slices)
        middle = field.spectrum[1] if layout.slab else layout.local[1]
        self._work_shape = layout.local[0], middle, field.spectrum[2]
        self._work_bytes = math.prod(self._work_shape) * item
        fits(comm, 3 * self.local_bytes, f"an FFT of {'x'.join(map(str, self.shape))}")
        local = Local(field, functions, norm)
        self._engine = Engine(comm, layout, local, self.spectrum_dtype, method, self.phases)

    @property
    def local_bytes(self) -> int:
        """Bytes of the larger of this rank's parts in space and of the spectrum."""
        space = math.prod(self.local_shape) * self.dtype.itemsize
        return max(space, math.prod(self.local_spectrum_shape) * self.spectrum_dtype.itemsize)

    @property
    def buffer_bytes(self) -> int:
        """Bytes of this rank's buffers, apart from the user's arrays."""
        return self._open().nbytes

    @property
    def methods(self) -> dict[str, str]:
        """How the ``rows`` and the ``columns`` of the process grid transpose."""
        return dict(self._open().methods)

    # Arrays.

    def empty(self) -> Array:
        """Return an array for this rank's part in space, without values.

        Where the field is real its memory has room behind it, which
        `backward` works in.
        """
        size = math.prod(self.local_shape) * self.dtype.itemsize
        raw = np.empty(max(size, self._work_bytes), np.uint8)
        self._roomy[raw.ctypes.data] = raw
        return raw[:size].view(self.dtype).reshape(self.local_shape)

    def empty_spectrum(self) -> Array:
        """Return an array for this rank's part of the spectrum, without values."""
        return np.empty(self.local_spectrum_shape, self.spectrum_dtype)

    # The transforms.

    def forward(self, values: Array, out: Array | None = None) -> Array:
        """Transform this rank's part in space into its part of the spectrum.

        Parameters
        ----------
        values : ndarray, shape `local_shape`
            Left as it is.
        out : ndarray or None, shape `local_spectrum_shape`
            Contiguous, of `spectrum_dtype`; None: a new one. It may share
            memory with `values`, which costs a copy.

        Returns
        -------
        ndarray
            `out`.

        Raises
        ------
        UsageError
            On every rank alike: an array that does not fit.
        """
        return self._run(values, out, forward=True)

    def backward(self, spectrum: Array, out: Array | None = None) -> Array:
        """Transform this rank's part of the spectrum into its part in space.

        Parameters
        ----------
        spectrum : ndarray, shape `local_spectrum_shape`
            Left as it is.
        out : ndarray or None, shape `local_shape`
            Contiguous, of `dtype`; None: a new one. It may share memory with
            `spectrum`, which costs a copy.

        Returns
        -------
        ndarray
            `out`.

        Raises
        ------
        UsageError
            On every rank alike: an array that does not fit.
        """
        return self._run(spectrum, out, forward=False)

    def _work(self, out: Array) -> Array:
        """Return the array that backward works in: `out`, its memory, or a new one."""
        if out.dtype == self.spectrum_dtype:
            return out
        raw = self._roomy.get(out.ctypes.data) if out.size else None
        if raw is None:
            return np.empty(self._work_shape, self.spectrum_dtype)
        return raw[: self._work_bytes].view(self.spectrum_dtype).reshape(self._work_shape)

    def _run(self, given: Array, out: Array | None, *, forward: bool) -> Array:
        """Transform, or raise on all ranks what one of them finds wrong with its arrays."""
        with together(self.comm) if self._checked else nullcontext():
            engine = self._open()
            x, y = self._arrays(given, out, forward)
        space, waves = self._layout.local, self._layout.local_spectrum
        if forward:
            engine.forward(x.reshape(space), y.reshape(waves))
        else:
            inner = y.reshape(space)
            engine.backward(x.reshape(waves), self._work(inner), inner)
        return y

    def _arrays(self, given: Array, out: Array | None, forward: bool) -> tuple[Array, Array]:
        """Return the arrays to transform from and into, made to fit or refused."""
        space, waves = (
            (self.local_shape, self.dtype),
            (self.local_spectrum_shape, self.spectrum_dtype),
        )
        (shape, kind), (out_shape, out_kind) = (space, waves) if forward else (waves, space)
        x = np.asarray(given)
        if x.shape != shape:
            raise UsageError(f"an array of shape {x.shape}, this rank's part is {shape}")
        if x.dtype.kind not in ("fc" if kind.kind == "c" else "f"):
            raise UsageError(f"an array of {printable(str(x.dtype))}, the transform's is {kind}")
        x = np.ascontiguousarray(x, kind)
        if out is None:
            return x, self.empty_spectrum() if forward else self.empty()
        if out.shape != out_shape or out.dtype != out_kind or not out.flags.c_contiguous:
            raise UsageError(
                f"out is {out.dtype} of shape {out.shape}",
                f"it must be contiguous {out_kind} of shape {out_shape}",
            )
        return (x.copy() if np.may_share_memory(x, out) else x), out

    def _open(self) -> Engine:
        if self._engine is None:
            raise UsageError("this Transform is closed")
        return self._engine

    def close(self) -> None:
        """Free communicators, datatypes and shared memory. Collective."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def __enter__(self) -> Transform:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:  # else the other ranks may be elsewhere
            self.close()


def _dtype(dtype: DTypeLike) -> np.dtype[Any]:
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise UsageError(f"{printable(str(dtype))} is not a number type", _TYPES) from None
    if kind.char not in _SPECTRA or not kind.isnative:
        raise UsageError(f"no FFT of {printable(str(kind))}", _TYPES)
    return kind


def _extents(shape: Sequence[int]) -> tuple[int, ...]:
    extents = tuple(shape) if not isinstance(shape, (str, int)) else ()
    if not extents or not all(isinstance(n, (int, np.integer)) for n in extents):
        raise UsageError(f"{printable(str(shape))} is not a shape", "two or three sizes")
    return tuple(int(n) for n in extents)
