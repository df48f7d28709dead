"""The passes of an FFT over this rank's arrays, forward and backward, piece by piece."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from workloads.fft.exchange import Pool, exchange
from workloads.fft.local import chunks
from workloads.fft.window import Window, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpi4py import MPI
    from numpy.typing import NDArray

    from workloads.fft.exchange import Exchange
    from workloads.fft.local import Local
    from workloads.fft.parts import Swap
    from workloads.fft.plan import Layout
    from workloads.phases import Phases

    Array = NDArray[Any]

__all__ = ["Engine"]

_ALL = slice(None)


class Engine:
    """The two directions of an FFT on arrays of three axes. Collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    layout : Layout
    local : Local
    dtype : numpy.dtype
        Of the spectrum.
    method : str
        A way to transpose, or ``auto``.
    phases : Phases

    Attributes
    ----------
    methods : dict of str to str
        The way taken inside the ``rows`` and the ``columns`` of the grid.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        layout: Layout,
        local: Local,
        dtype: np.dtype[Any],
        method: str,
        phases: Phases,
    ) -> None:
        self.methods: dict[str, str] = {}
        self._layout, self._local, self._dtype, self._phases = layout, local, dtype, phases
        self._comms: list[MPI.Intracomm] = []
        self._windows: list[Window] = []
        self._gate: Callable[[], None] | None = None
        self._pool = Pool(dtype)
        self._pairs: dict[str, tuple[Exchange, Exchange]] = {}
        rows, columns = layout.grid
        if rows > 1:
            self._join("columns", comm, layout.column, layout.row, method)
        if columns > 1:
            self._join("rows", comm, layout.row, layout.column, method)
        if not layout.slab and not all(one.natural for p in self._pairs.values() for one in p):
            self._pool.reserve("middle", _middle(layout))

    def _join(self, name: str, comm: MPI.Intracomm, color: int, key: int, method: str) -> None:
        """Make the exchanges inside this rank's column or row of the process grid."""
        part = cast("MPI.Intracomm", comm.Split(color, key))
        self._comms.append(part)
        layout = self._layout
        both = (
            (layout.forward_rows(), layout.backward_rows())
            if name == "columns"
            else (layout.forward_columns(), layout.backward_columns())
        )
        piece = _largest(both, part.Get_size()) * self._dtype.itemsize
        chosen = joined(comm, part, method, piece)
        window = Window(part, piece) if chosen == "shared" else None
        self._windows += [window] if window else []
        self.methods[name] = chosen
        forward, backward = (
            exchange(chosen, part, swaps, self._pool, self._phases, window) for swaps in both
        )
        self._pairs[name] = forward, backward

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        return self._pool.nbytes + sum(w.nbytes for w in self._windows)

    def close(self) -> None:
        """Free what MPI keeps. Collective."""
        for pair in self._pairs.values():
            for one in pair:
                one.close()
        self._pairs.clear()
        for window in self._windows:
            window.close()
        for part in self._comms:
            part.Free()

    # Forward: axes 2, 1, 0.

    def forward(self, x: Array, y: Array, gate: Callable[[], None]) -> None:
        """Transform this rank's part in space into its part of the spectrum; no overlap.

        `gate` is called on every rank before anything is exchanged, and may raise.
        """
        self._gate = gate
        for piece in range(self._layout.count):
            part = self._layout.forward_piece(piece).slice
            if self._layout.slab:
                self._slab_forward(piece, x[part], y)
            else:
                self._pencil_forward(piece, x[part], y)
        self._pass_gate()
        self._transform(y, y, (0,), forward=True)

    def _pencil_forward(self, piece: int, x: Array, y: Array) -> None:
        """Take a piece through both transpositions."""
        columns, rows = self._pairs["rows"][0], self._pairs.get("columns", (None, None))[0]
        self._through(columns, piece, x, 0, (2,), forward=True)
        layout = self._layout
        if rows is None:
            middle = y[layout.forward_piece(piece).slice]
        else:
            shape = len(x), layout.field.spectrum[1], layout.local_spectrum[2]
            middle = self._between(rows, piece, shape)
        self._finish(columns, piece, middle)
        if rows is None:
            self._transform(middle, middle, (1,), forward=True)
        else:
            self._through(rows, piece, middle, 0, (1,), forward=True)
            self._finish(rows, piece, y)

    def _between(self, way: Exchange, piece: int, shape: tuple[int, int, int]) -> Array:
        """Return the array of a piece between two transpositions: the next one's own if it can."""
        if way.natural:
            return way.target(piece, (_ALL, _ALL, _ALL))
        return self._pool.get("middle", shape)

    def _slab_forward(self, piece: int, x: Array, y: Array) -> None:
        """Transform a piece and gather axis 0 over the rows of the grid."""
        if "columns" not in self._pairs:
            part = self._layout.forward_piece(piece).slice
            self._transform(x, y[part], (2, 1), forward=True)
            return
        rows = self._pairs["columns"][0]
        self._through(rows, piece, x, 0, (2, 1), forward=True)
        self._finish(rows, piece, y)

    # Backward: axes 0, 1, 2.

    def backward(self, z: Array, work: Array, out: Array, gate: Callable[[], None]) -> None:
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
        gate : callable
            See `forward`.
        """
        self._gate = gate
        layout = self._layout
        for piece in range(layout.count):
            part = layout.backward_piece(piece).slice
            if layout.slab:
                self._from_rows(piece, z[:, part], work, work[:, part])
            else:
                self._pencil_backward(piece, z[:, :, part], work)
        self._pass_gate()
        self._last(work, out, (1, 2) if layout.slab else (2,))

    def _pencil_backward(self, piece: int, z: Array, work: Array) -> None:
        shape = self._layout.local[0], self._layout.field.spectrum[1], z.shape[2]
        columns = self._pairs["rows"][1]
        middle = self._between(columns, piece, shape)
        self._from_rows(piece, z, middle, middle)
        self._through(columns, piece, middle, 0, (1,), forward=False)
        self._finish(columns, piece, work)

    def _from_rows(self, piece: int, z: Array, target: Array, own: Array) -> None:
        """Transform a piece along axis 0 and scatter that over the rows of the grid.

        `own` is where the piece stands in `target` if there is one row only.
        """
        if "columns" not in self._pairs:
            self._transform(z, own, (0,), forward=False)
            return
        rows = self._pairs["columns"][1]
        self._through(rows, piece, z, 1, (0,), forward=False)
        self._finish(rows, piece, target)

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

    def _pass_gate(self) -> None:
        if self._gate is not None:
            gate, self._gate = self._gate, None
            gate()

    def _finish(self, way: Exchange, piece: int, target: Array) -> None:
        self._pass_gate()
        way.finish(piece, target)

    def _through(
        self,
        way: Exchange,
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
            index = tuple(part if k == axis else _ALL for k in range(3))
            target = way.target(piece, index)
            self._transform(x[index], target, axes, forward=forward)
            way.put(piece, index, target)

    def _transform(self, x: Array, out: Array, axes: Sequence[int], *, forward: bool) -> None:
        if not x.size:
            return
        with self._phases("transform"):
            if forward:
                self._local.forward(x, out, axes)
            else:
                self._local.backward(x, out, axes)


def _middle(layout: Layout) -> int:
    """Return the elements of a piece between the two transpositions of a pencil."""
    there = layout.forward_piece(0).size * layout.local_spectrum[2]
    back = layout.local[0] * layout.backward_piece(0).size
    return layout.field.spectrum[1] * max(there, back)


def _largest(both: Sequence[Sequence[Swap]], ranks: int) -> int:
    """Return the elements of the largest source array of any rank, piece and direction."""
    return max(
        math.prod(swap.source_shape(rank))
        for swaps in both
        for swap in swaps
        for rank in range(ranks)
    )
