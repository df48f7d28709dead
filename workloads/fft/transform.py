# SPDX-License-Identifier: Apache-2.0
"""FFTs of distributed arrays: slabs and pencils, forward and backward.

What moves
----------
The process grid has rows and columns, ranks row by row. In space a rank holds
a stretch of axis 0 (by its row), a stretch of axis 1 (by its column) and all
of axis 2; of the spectrum all of axis 0, a stretch of axis 1 (row) and a
stretch of axis 2 (column). So there are two all-to-alls a direction, one
inside each row and one inside each column (the pattern ``fft:RxC``); on slabs
one of them is nothing.

Between two all-to-alls an array is transformed chunk by chunk: a chunk is
taken out of what came, transformed and put where it is sent from while it is
in the cache.

Memory
------
What is sent is in the memory of the output, and what comes in a buffer.
So input, output and buffer together take 3 times the local array (the larger
of this rank's parts in space, of the spectrum and between them), and half a
MiB for the chunk in work.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, cast

import numpy as np

from nidmap.placement.support.array_types import Array
from nidmap.workloads.fft.exchange import METHODS, Scratch, Transposition, array_in
from nidmap.workloads.fft.local import Local, axis_chunks, local_transforms
from nidmap.workloads.fft.plan import ArrayLayout, field_of, index_along, process_grid
from nidmap.workloads.trials import Phases, require_fit
from nidmap.workloads.world import Comm

#: Bytes of an element of a spectrum.
ITEM = 16

#: Axes that are transformed one after another, and how the array is transposed after them.
Stage = tuple[tuple[int, ...], "Transposition | None"]


class Transform:
    """An FFT of one shape on one communicator. Collective, as are its methods.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        Its rank order is the order of the process grid, row by row.
    shape : sequence of int
        Three global extents; any sizes, also smaller than the number of
        ranks. FFTK's 2-D fields are (N_x, 1, N_z).
    real : bool
        Whether the field is real, float64, so that its spectrum keeps N/2 + 1
        elements of the last axis; else it is complex128.
    grid : str
        See `nidmap.workloads.fft.plan.process_grid`.
    method : str
        How to transpose: ``alltoall`` or ``vector`` (see `nidmap.workloads.fft.exchange`).
    library : str
        ``ducc0``, ``scipy`` or ``numpy``; '' for the best that is there.

    Attributes
    ----------
    shape, spectrum_shape : tuple of int
        Global extents in space and of the spectrum.
    local_shape, local_spectrum_shape : tuple of int
        This rank's.
    slices, spectrum_slices : tuple of slice
        Where they are in the global arrays.
    dtype, spectrum_dtype : numpy.dtype
    phases : nidmap.workloads.trials.Phases
        Seconds spent since it was last cleared: ``transform``, ``rearrange``
        (copies before and after a message) and ``exchange``.

    Raises
    ------
    UsageError, NidmapError
        A shape or grid that does not fit; on all ranks alike more than the nodes' memory.

    Notes
    -----
    Forward is the plain sum of the paper's eq. 1, and backward divides.

    Examples
    --------
    On one rank; ``mpiexec -n 6 python program.py`` with COMM_WORLD and ``grid="2x3"`` has pencils:

    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> fft = Transform(MPI.COMM_SELF, (4, 6, 8), real=True, grid="1x1")
    >>> field, spectrum = fft.empty(), fft.empty_spectrum()
    >>> field[:] = np.arange(field.size).reshape(fft.local_shape)
    >>> fft.forward(field, spectrum)
    >>> bool(np.allclose(spectrum, np.fft.rfftn(field)))
    True
    >>> back = fft.empty()
    >>> fft.backward(spectrum, back)
    >>> bool(np.allclose(back, field))
    True
    """

    def __init__(
        self,
        comm: Comm,
        shape: Sequence[int],
        *,
        real: bool = False,
        grid: str = "slab",
        method: str = "alltoall",
        library: str = "",
    ) -> None:
        field = field_of(tuple(shape), real)
        self.comm, self.grid = comm, process_grid(grid, comm.Get_size(), field)
        self.dtype: np.dtype[Any] = np.dtype(np.float64 if real else np.complex128)
        self.spectrum_dtype = np.dtype(np.complex128)
        self.phases = Phases()
        self._layout = layout = ArrayLayout(field, self.grid, comm.Get_rank())
        self.shape, self.spectrum_shape = field.outside(field.shape), field.outside(field.spectrum)
        self.local_shape = field.outside(layout.local)
        self.local_spectrum_shape = field.outside(layout.local_spectrum)
        self.slices = field.outside(layout.slices)
        self.spectrum_slices = field.outside(layout.spectrum_slices)
        self._largest = max(
            math.prod(shape)
            for swap in (layout.row_swap, layout.column_swap)
            for shape in (swap.source_shape, swap.target_shape)
        )
        require_fit(comm, 3 * self.local_bytes, f"an FFT of {'x'.join(map(str, self.shape))}")
        self._local = Local(field, local_transforms(library))
        self._scratch = Scratch(self.spectrum_dtype)
        self._buffer: Array = np.empty(self._largest, self.spectrum_dtype)
        self._comms: list[Comm] = []
        self._forward, self._backward = self._stages(method)

    def _stages(self, method: str) -> tuple[list[Stage], list[Stage]]:
        """Return the stages forward and backward; axes without an exchange between are merged."""
        layout, (rows, columns) = self._layout, self.grid
        groups: list[tuple[int, ...]] = [(2,)]
        pairs: list[tuple[Transposition, Transposition]] = []
        for axis, swap, count, line in (
            (1, layout.row_swap, columns, layout.row),
            (0, layout.column_swap, rows, layout.column),
        ):
            if count == 1:
                groups[-1] += (axis,)
                continue
            part = cast("Comm", self.comm.Split(line, swap.rank))
            self._comms.append(part)
            make = partial(METHODS[method], part, scratch=self._scratch, phases=self.phases)
            pairs.append((make(swap=swap), make(swap=swap.reverse())))
            groups.append((axis,))
        forward = zip_longest(groups, [there for there, _ in pairs])
        backward = zip_longest(reversed(groups), [back for _, back in reversed(pairs)])
        return list(forward), list(backward)

    @property
    def local_bytes(self) -> int:
        """Bytes of the largest of this rank's arrays."""
        return self._largest * self.spectrum_dtype.itemsize

    @property
    def buffer_bytes(self) -> int:
        """Bytes of this rank's buffer, besides the user's arrays."""
        return int(self._buffer.nbytes)

    # Arrays.

    def empty(self) -> Array:
        """Return an uninitialised array for this rank's part in space.

        It is in the memory that `backward` works in.
        """
        size = math.prod(self.local_shape)
        memory = np.empty(self._largest, self.spectrum_dtype)
        return memory.view(self.dtype)[:size].reshape(self.local_shape)

    def empty_spectrum(self) -> Array:
        """Return an uninitialised array for this rank's part of the spectrum; see `empty`."""
        memory = np.empty(self._largest, self.spectrum_dtype)
        return array_in(memory, self.local_spectrum_shape)

    # The transforms.

    def forward(self, values: Array, out: Array) -> None:
        """Transform this rank's part in space into its part of the spectrum.

        Parameters
        ----------
        values : ndarray, shape `local_shape`
            Contiguous; left as it is.
        out : ndarray
            One that `empty_spectrum` made, whose memory is worked in.
        """
        source = values.reshape(self._layout.local)
        self._run(source, out.reshape(self._layout.local_spectrum), forward=True)

    def backward(self, spectrum: Array, out: Array) -> None:
        """Transform this rank's part of the spectrum into its part in space.

        Parameters
        ----------
        spectrum : ndarray, shape `local_spectrum_shape`
            Contiguous; left as it is.
        out : ndarray
            One that `empty` made, whose memory is worked in.
        """
        source = spectrum.reshape(self._layout.local_spectrum)
        if len(self._backward) == 1:  # input that becomes real data is overwritten
            copy = array_in(self._buffer, source.shape)
            np.copyto(copy, source)
            source = copy
        self._run(source, out.reshape(self._layout.local), forward=False)

    def _run(self, source: Array, out: Array, forward: bool) -> None:
        """Pass an array through all stages, sending from the memory of `out` into a buffer."""
        memory = cast("Array", out.base)
        before: Transposition | None = None
        for axes, behind in self._forward if forward else self._backward:
            shape = out.shape if behind is None else behind.swap.source_shape
            for chunk in _chunks_of(shape, axes):
                values = source[chunk] if before is None else before.take(self._buffer, chunk)
                place = out[chunk] if behind is None else behind.place(memory, chunk)
                if values.size:
                    with self.phases("transform"):
                        self._local.transform(values, place, axes, forward)
                if behind is not None:
                    behind.put(memory, chunk, place)
            if behind is not None:
                behind.exchange(memory, self._buffer)
            before = behind

    def close(self) -> None:
        """Free communicators and datatypes. Collective."""
        for _, transposition in (*self._forward, *self._backward):
            if transposition is not None:
                transposition.close()
        for part in self._comms:
            part.Free()


def _chunks_of(shape: Sequence[int], axes: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Yield the chunks of an array to transform along axes, cut along another axis."""
    whole = next((axis for axis in range(3) if axis not in axes), None)
    if whole is None:
        yield (slice(None),) * 3
        return
    size = shape[whole]
    for part in axis_chunks(size, math.prod(shape) * ITEM // max(size, 1)):
        yield index_along(whole, part)
