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
taken with ``pieces=1``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any, cast

import numpy as np

from placement.support.array_types import Array
from workloads.fft.exchange import METHODS, BufferPool, Transpositions
from workloads.fft.local import Local, axis_chunks, local_transforms
from workloads.fft.plan import ArrayLayout, Swap, field_of, process_grid
from workloads.trials import Phases, require_fit
from workloads.world import Comm


class Engine:
    """The two directions of an FFT on arrays of three axes. Collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    layout : ArrayLayout
    local : Local
    dtype : numpy.dtype
        Of the spectrum.
    method : str
        The way to transpose.
    phases : Phases
    """

    def __init__(
        self,
        comm: Comm,
        layout: ArrayLayout,
        local: Local,
        dtype: np.dtype[Any],
        method: str,
        phases: Phases,
    ) -> None:
        self._layout, self._local, self._dtype, self._phases = layout, local, dtype, phases
        self._comms: list[Comm] = []
        self._pool = BufferPool(dtype)
        self._pairs: dict[str, tuple[Transpositions, Transpositions]] = {}
        rows, columns = layout.grid
        if rows > 1:
            part = comm.Split(layout.column, layout.row)
            self._join("columns", cast("Comm", part), layout.column_swaps(), method)
        if columns > 1:
            part = comm.Split(layout.row, layout.column)
            self._join("rows", cast("Comm", part), layout.row_swaps(), method)
        if not layout.slab and not all(one.natural for p in self._pairs.values() for one in p):
            there = layout.forward_pieces[0].size * layout.local_spectrum[2]
            back = layout.local[0] * layout.backward_pieces[0].size
            self._pool.reserve("middle", layout.field.spectrum[1] * max(there, back))

    def _join(
        self,
        name: str,
        part: Comm,
        both: tuple[Sequence[Swap], Sequence[Swap]],
        method: str,
    ) -> None:
        """Make the exchanges inside this rank's column or row of the process grid."""
        self._comms.append(part)
        forward, backward = (
            METHODS[method](part, swaps, self._pool, self._phases) for swaps in both
        )
        self._pairs[name] = forward, backward

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        return self._pool.nbytes

    def close(self) -> None:
        """Free what MPI keeps. Collective."""
        for one in chain(*self._pairs.values()):
            one.close()
        self._pairs.clear()
        for part in self._comms:
            part.Free()

    # Forward: axes 2, 1, 0.

    def forward(self, x: Array, y: Array) -> None:
        """Transform this rank's part in space into its part of the spectrum; no overlap."""
        for piece, part in enumerate(self._layout.forward_pieces):
            if self._layout.slab:
                self._forward_columns(piece, x[part.slice], (2, 1), y, y[part.slice])
            else:
                self._forward_pencil(piece, x[part.slice], y, y[part.slice])
        self._transform(y, y, (0,), forward=True)

    def _forward_columns(
        self, piece: int, x: Array, axes: tuple[int, ...], y: Array, own: Array
    ) -> None:
        """Transform a piece along axes and gather axis 0 over the rows of the grid.

        `own` is where the piece stands in `y` if there is one row only.
        """
        if "columns" not in self._pairs:
            self._transform(x, own, axes, forward=True)
            return
        way = self._pairs["columns"][0]
        self._through(way, piece, x, 0, axes, forward=True)
        way.finish(piece, y)

    def _forward_pencil(self, piece: int, x: Array, y: Array, own: Array) -> None:
        """Take a piece through both transpositions."""
        way, layout = self._pairs["rows"][0], self._layout
        self._through(way, piece, x, 0, (2,), forward=True)
        middle = own
        if "columns" in self._pairs:
            shape = len(x), layout.field.spectrum[1], layout.local_spectrum[2]
            middle = self._between(self._pairs["columns"][0], piece, shape)
        way.finish(piece, middle)
        self._forward_columns(piece, middle, (1,), y, own)

    # Backward: axes 0, 1, 2.

    def backward(self, z: Array, work: Array, out: Array) -> None:
        """Transform this rank's part of the spectrum into its part in space.

        Parameters
        ----------
        z : ndarray
            Part of the spectrum; overlaps with none of the others.
        work : ndarray
            As the part in space, with the spectrum's extents and type.
        out : ndarray
            May be `work`, or begin where it begins: it is written behind what
            is read.
        """
        slab = self._layout.slab
        for piece, part in enumerate(self._layout.backward_pieces):
            if slab:
                self._backward_columns(piece, z[:, part.slice], work, work[:, part.slice])
            else:
                self._backward_pencil(piece, z[:, :, part.slice], work)
        self._last(work, out, (1, 2) if slab else (2,))

    def _backward_pencil(self, piece: int, z: Array, work: Array) -> None:
        shape = self._layout.local[0], self._layout.field.spectrum[1], z.shape[2]
        way = self._pairs["rows"][1]
        middle = self._between(way, piece, shape)
        self._backward_columns(piece, z, middle, middle)
        self._through(way, piece, middle, 0, (1,), forward=False)
        way.finish(piece, work)

    def _backward_columns(self, piece: int, z: Array, target: Array, own: Array) -> None:
        """Transform a piece along axis 0 and scatter that over the rows of the grid.

        `own` is where the piece stands in `target` if there is one row only.
        """
        if "columns" not in self._pairs:
            self._transform(z, own, (0,), forward=False)
            return
        way = self._pairs["columns"][1]
        self._through(way, piece, z, 1, (0,), forward=False)
        way.finish(piece, target)

    def _last(self, work: Array, out: Array, axes: tuple[int, ...]) -> None:
        """Transform along the axes that are whole in space, chunk by chunk."""
        parts = list(axis_chunks(len(work), work[:1].nbytes))
        apart = out is work or not np.shares_memory(work, out)
        scratch = out if apart or not parts else np.empty_like(out[parts[0]])
        for part in parts:
            target = out[part] if apart else scratch[: part.stop - part.start]
            self._transform(work[part], target, axes, forward=False)
            if not apart:
                out[part] = target

    # Both.

    def _between(self, way: Transpositions, piece: int, shape: tuple[int, int, int]) -> Array:
        """Return the array of a piece between two transpositions: the next one's own if it can."""
        if way.natural:
            return way.target(piece, (slice(None),) * 3)
        return self._pool.get("middle", shape)

    def _through(
        self,
        way: Transpositions,
        piece: int,
        x: Array,
        axis: int,
        axes: tuple[int, ...],
        *,
        forward: bool,
    ) -> None:
        """Transform `x` along `axes`, chunk by chunk along `axis`, and hand it to an exchange."""
        if not x.size:
            return
        size = x.shape[axis]
        for part in axis_chunks(size, x.nbytes // size):
            index = tuple(part if k == axis else slice(None) for k in range(3))
            target = way.target(piece, index)
            self._transform(x[index], target, axes, forward=forward)
            way.put(piece, index, target)

    def _transform(self, x: Array, out: Array, axes: Sequence[int], *, forward: bool) -> None:
        if x.size:
            with self._phases("transform"):
                (self._local.forward if forward else self._local.backward)(x, out, axes)


class Transform:
    """An FFT of one shape on one communicator. Collective, as are its methods.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        Its rank order is the order of the process grid, row by row.
    shape : sequence of int
        Global extents, two or three; any sizes, also smaller than the number
        of ranks. FFTK's 2-D fields are (N_x, 1, N_z).
    real : bool
        Whether the field is real, float64, so that its spectrum keeps N/2 + 1
        elements of the last axis; else it is complex128.
    grid : str or (int, int)
        ``slab``, ``pencil``, or rows and columns; see
        `workloads.fft.plan.process_grid`.
    method : str
        How to transpose: ``alltoall`` or ``vector`` (see `workloads.fft.exchange`).
    pieces : int
        Pieces that an array is worked on in; 0: by size. 1 sends a direction
        in the fewest messages and takes more memory.
    library : str
        ``ducc0``, ``scipy`` or ``numpy``; '' for the best that is there.

    Attributes
    ----------
    shape, spectrum_shape : tuple of int
        Global extents in space and of the spectrum.
    local_shape, local_spectrum_shape : tuple of int
        This rank's.
    slices, spectrum_slices : tuple of slice
        Where they stand in the global arrays.
    dtype, spectrum_dtype : numpy.dtype
    phases : workloads.trials.Phases
        Seconds spent since it was last cleared: ``transform``, ``rearrange``
        (copies before and after a message) and ``exchange``.

    Raises
    ------
    UsageError, NidmapError
        A shape or grid that does not fit; on all ranks alike more than the nodes' memory.

    Notes
    -----
    Forward is the plain sum of the paper's eq. 1, and backward divides.
    """

    def __init__(
        self,
        comm: Comm,
        shape: Sequence[int],
        *,
        real: bool = False,
        grid: str | Sequence[int] = "slab",
        method: str = "alltoall",
        pieces: int = 0,
        library: str = "",
    ) -> None:
        field = field_of(tuple(shape), real)
        self.comm, self.grid = comm, process_grid(grid, comm.Get_size(), field)
        self.dtype: np.dtype[Any] = np.dtype(np.float64 if real else np.complex128)
        self.spectrum_dtype = np.dtype(np.complex128)
        self.phases = Phases()
        item, packed = self.spectrum_dtype.itemsize, method == "alltoall"
        self._layout = layout = ArrayLayout(field, self.grid, comm.Get_rank(), item, pieces, packed)
        self.shape, self.spectrum_shape = field.outside(field.shape), field.outside(field.spectrum)
        self.local_shape = field.outside(layout.local)
        self.local_spectrum_shape = field.outside(layout.local_spectrum)
        self.slices = field.outside(layout.slices)
        self.spectrum_slices = field.outside(layout.spectrum_slices)
        middle = field.spectrum[1] if layout.slab else layout.local[1]
        self._work_shape = layout.local[0], middle, field.spectrum[2]
        require_fit(comm, 3 * self.local_bytes, f"an FFT of {'x'.join(map(str, self.shape))}")
        local = Local(field, local_transforms(library))
        self._engine = Engine(comm, layout, local, self.spectrum_dtype, method, self.phases)

    @property
    def local_bytes(self) -> int:
        """Bytes of the larger of this rank's parts in space and of the spectrum."""
        space = math.prod(self.local_shape) * self.dtype.itemsize
        return max(space, math.prod(self.local_spectrum_shape) * self.spectrum_dtype.itemsize)

    @property
    def buffer_bytes(self) -> int:
        """Bytes of this rank's buffers, apart from the user's arrays."""
        return self._engine.nbytes

    # Arrays.

    def empty(self) -> Array:
        """Return an array for this rank's part in space, without values.

        Its memory begins with the complex array that `backward` works in, where that is larger.
        """
        return self._space(np.empty(self._work_shape, self.spectrum_dtype))

    def _space(self, work: Array) -> Array:
        """Return this rank's part in space in the memory of what `backward` works in."""
        size = math.prod(self.local_shape) * self.dtype.itemsize
        return work.reshape(-1).view(np.uint8)[:size].view(self.dtype).reshape(self.local_shape)

    def empty_spectrum(self) -> Array:
        """Return an array for this rank's part of the spectrum, without values."""
        return np.empty(self.local_spectrum_shape, self.spectrum_dtype)

    # The transforms.

    def forward(self, values: Array, out: Array) -> None:
        """Transform this rank's part in space into its part of the spectrum.

        Parameters
        ----------
        values : ndarray, shape `local_shape`
            Contiguous; left as it is.
        out : ndarray, shape `local_spectrum_shape`
            Contiguous; it shares no memory with `values`.
        """
        space, waves = self._layout.local, self._layout.local_spectrum
        self._engine.forward(values.reshape(space), out.reshape(waves))

    def backward(self, spectrum: Array, out: Array) -> None:
        """Transform this rank's part of the spectrum into its part in space.

        Parameters
        ----------
        spectrum : ndarray, shape `local_spectrum_shape`
            Contiguous; left as it is.
        out : ndarray
            One that `empty` made, whose memory is worked in.
        """
        work = out.base
        assert isinstance(work, np.ndarray)  # what `empty` made it of
        inner = out.reshape(self._layout.local)
        self._engine.backward(spectrum.reshape(self._layout.local_spectrum), work, inner)

    def close(self) -> None:
        """Free communicators and datatypes. Collective."""
        self._engine.close()
