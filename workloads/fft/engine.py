"""The passes of an FFT over this rank's arrays, forward and backward, piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, cast

import numpy as np

from placement.support.array_types import Array
from workloads.fft.exchange import METHODS, BufferPool, Transpositions
from workloads.fft.local import Local, chunks
from workloads.fft.plan import ArrayLayout, Swap
from workloads.phases import Phases
from workloads.world import Comm

__all__ = ["Engine"]


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
        parts = list(chunks(len(work), work[:1].nbytes))
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
        for part in chunks(size, x.nbytes // size):
            index = tuple(part if k == axis else slice(None) for k in range(3))
            target = way.target(piece, index)
            self._transform(x[index], target, axes, forward=forward)
            way.put(piece, index, target)

    def _transform(self, x: Array, out: Array, axes: Sequence[int], *, forward: bool) -> None:
        if x.size:
            with self._phases("transform"):
                (self._local.forward if forward else self._local.backward)(x, out, axes)
