"""A distributed array whose regions can be copied, wherever they lie: DASH's local copies.

The objectives of section 3.3 of "Effective use of the PGAS Paradigm", one by
one: copies are asynchronous where asked for (`Blocks.start`); a region of the
global index space is what is copied; what lies on this unit or on its node is
copied by loads and stores out of shared windows, without MPI; transfers are
cut into chunks of a size that can be tuned (`Blocks.tune`, or
``$NIDMAP_CHUNK``); and a region that spans several units is fetched by as
many transfers at once.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from placement.errors import UsageError, printable
from workloads.fft.parts import cuts
from workloads.memory import fits
from workloads.world import same, together

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mpi4py import MPI
    from numpy.typing import DTypeLike, NDArray

    from workloads.fft.parts import Part

    Array = NDArray[Any]
    Region = tuple[slice, ...]

__all__ = ["CHUNK", "Blocks", "Copy", "Share"]

#: Names the bytes of a chunk.
CHUNK = "NIDMAP_CHUNK"

_DEFAULT = 1 << 20


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a region that one unit holds.

    Attributes
    ----------
    unit : int
    where : str
        ``local``, ``node`` or ``remote``.
    source : tuple of slice
        In the unit's block.
    target : tuple of slice
        In the copy.
    """

    unit: int
    where: str
    source: tuple[slice, ...]
    target: tuple[slice, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the part."""
        return tuple(part.stop - part.start for part in self.source)


class Copy:
    """A copy on its way.

    Attributes
    ----------
    values : ndarray
        The copy; complete after `wait`.
    """

    def __init__(self, values: Array) -> None:
        self.values = values
        self._requests: list[Any] = []
        self._types: list[Any] = []

    def wait(self) -> Array:
        """Return the values, once all of them are there."""
        from mpi4py import MPI

        MPI.Request.Waitall(self._requests)
        for made in self._types:
            made.Free()
        self._requests, self._types = [], []
        return self.values

    def done(self) -> bool:
        """Tell whether all values are there."""
        from mpi4py import MPI

        return bool(MPI.Request.Testall(self._requests)) if self._requests else True


class Blocks:
    """An array of up to three axes, a block on each unit. Collective to make and to close.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    shape : sequence of int
        Global extents.
    dims : sequence of int or None
        Grid of units, as many extents as `shape`; None: the first axis is cut.
    dtype : dtype
    shared : bool
        Whether blocks on the same node are read by loads and stores.
    chunk : int
        Bytes of a transfer; 0: ``$NIDMAP_CHUNK``, else 1 MiB, until `tune` finds a better one.

    Attributes
    ----------
    local : ndarray
        This unit's block.
    region : tuple of slice
        Where it stands.

    Raises
    ------
    UsageError, NidmapError
        On every unit alike: a grid that does not fit, too little memory.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        shape: Sequence[int],
        dims: Sequence[int] | None = None,
        *,
        dtype: DTypeLike = "float64",
        shared: bool = True,
        chunk: int = 0,
    ) -> None:
        with together(comm):
            self.shape, self.dims = _checked(shape, dims, comm.Get_size())
            self.dtype = np.dtype(dtype)
            self.chunk = chunk or _chunk()
        same(comm, shape=self.shape, dims=self.dims, dtype=self.dtype.str, shared=shared)
        self.comm = comm
        pairs = zip(self.shape, self.dims, strict=True)
        self._cuts = [cuts(extent, count) for extent, count in pairs]
        self.region: Region = tuple(part.slice for part in self._parts(comm.Get_rank()))
        size = math.prod(self._shape_of(comm.Get_rank())) * self.dtype.itemsize
        fits(comm, size, f"an array of {'x'.join(map(str, self.shape))}")
        self._near: dict[int, Array] = {}
        self._open(size, shared)

    def _open(self, size: int, shared: bool) -> None:
        """Allocate the block and the windows on it."""
        from mpi4py import MPI

        rank = self.comm.Get_rank()
        self._node = cast("MPI.Intracomm", self.comm.Split_type(MPI.COMM_TYPE_SHARED))
        self._memory = MPI.Win.Allocate_shared(max(size, 8), 1, comm=self._node)
        self._memory.Lock_all(MPI.MODE_NOCHECK)
        here = self._node.Get_rank()
        raw = np.frombuffer(_buffer(self._memory, here), np.uint8)[:size]
        self.local: Array = raw.view(self.dtype).reshape(self._shape_of(rank))
        self._window = MPI.Win.Create(raw, 1, comm=self.comm)
        self._window.Lock_all(MPI.MODE_NOCHECK)
        if shared:
            for unit, at in enumerate(self._on_node()):
                if at >= 0 and unit != rank:
                    shape = self._shape_of(unit)
                    count = math.prod(shape) * self.dtype.itemsize
                    other = np.frombuffer(_buffer(self._memory, at), np.uint8)[:count]
                    self._near[unit] = other.view(self.dtype).reshape(shape)

    def _on_node(self) -> list[int]:
        """Return each unit's rank on this node, -1 for those elsewhere."""
        from mpi4py import MPI

        everyone, node = self.comm.Get_group(), self._node.Get_group()
        found = everyone.Translate_ranks(None, node)
        everyone.Free()
        node.Free()
        return [-1 if at == MPI.UNDEFINED else int(at) for at in found]

    def _parts(self, unit: int) -> tuple[Part, ...]:
        """Return where a unit's block stands along each axis."""
        found = []
        for axis in range(len(self.dims) - 1, -1, -1):
            unit, place = divmod(unit, self.dims[axis])
            found.append(self._cuts[axis][place])
        return tuple(reversed(found))

    def _shape_of(self, unit: int) -> tuple[int, ...]:
        return tuple(part.size for part in self._parts(unit))

    def sync(self) -> None:
        """Make what all units wrote into their blocks visible to all. Collective."""
        for window in (self._memory, self._window):
            window.Sync()
        self.comm.Barrier()
        for window in (self._memory, self._window):
            window.Sync()

    # DASH's local_range.

    def split(self, region: Region) -> list[Share]:
        """Return the parts of a region by unit, this unit's and its node's first.

        Parameters
        ----------
        region : tuple of slice
            One slice an axis, without steps; see numpy's.

        Raises
        ------
        UsageError
            A region that the array does not have.
        """
        spans = self._spans(region)
        shares = [share for share in self._shares(spans) if math.prod(share.shape)]
        order = ("local", "node", "remote")
        return sorted(shares, key=lambda share: order.index(share.where))

    def _spans(self, region: Region) -> list[tuple[int, int]]:
        if len(region) != len(self.shape):
            raise UsageError(f"{len(region)} slices for an array of {len(self.shape)} axes")
        found = []
        for part, extent in zip(region, self.shape, strict=True):
            start, stop, step = part.indices(extent)
            if step != 1:
                raise UsageError(f"a region with steps of {step} cannot be copied")
            found.append((start, max(start, stop)))
        return found

    def _shares(self, spans: Sequence[tuple[int, int]]) -> Iterator[Share]:
        """Yield what each unit has of the spans; only units that they reach are looked at."""
        reached = [
            [k for k, part in enumerate(row) if part.start < stop and part.stop > start]
            for row, (start, stop) in zip(self._cuts, spans, strict=True)
        ]
        for places in product(*reached):
            unit = 0
            for place, count in zip(places, self.dims, strict=True):
                unit = unit * count + place
            source, target = [], []
            for row, place, (start, stop) in zip(self._cuts, places, spans, strict=True):
                part = row[place]
                low, high = max(start, part.start), min(stop, part.stop)
                source.append(slice(low - part.start, high - part.start))
                target.append(slice(low - start, high - start))
            yield Share(unit, self._where(unit), tuple(source), tuple(target))

    def _where(self, unit: int) -> str:
        if unit == self.comm.Get_rank():
            return "local"
        return "node" if unit in self._near else "remote"

    # DASH's copy.

    def copy(self, region: Region, out: Array | None = None) -> Array:
        """Return the values of a region, wherever they are; not collective.

        Parameters
        ----------
        region : tuple of slice
        out : ndarray or None
            Contiguous, of the region's shape; None: a new array.
        """
        return self.start(region, out).wait()

    def start(self, region: Region, out: Array | None = None) -> Copy:
        """Begin to copy a region; what is near is there at once, the rest after `Copy.wait`."""
        shares = self.split(region)
        shape = tuple(stop - start for start, stop in self._spans(region))
        if out is None:
            out = np.empty(shape, self.dtype)
        elif out.shape != shape or out.dtype != self.dtype or not out.flags.c_contiguous:
            raise UsageError(f"out must be contiguous {self.dtype} of shape {shape}")
        made = Copy(out)
        for share in reversed(shares):  # those far away first: they take longest
            if share.where == "remote":
                self._fetch(share, made)
            else:
                block = self.local if share.where == "local" else self._near[share.unit]
                out[share.target] = block[share.source]
        return made

    def _fetch(self, share: Share, made: Copy) -> None:
        """Ask for a unit's part, chunk by chunk, all on their way at once."""
        whole = self._shape_of(share.unit)
        row = math.prod(share.shape[1:]) * self.dtype.itemsize
        first, span = share.source[0], share.target[0].start
        step = max(1, self.chunk // max(row, 1))
        for start in range(first.start, first.stop, step):
            stop = min(start + step, first.stop)
            rows = slice(start, stop)
            into = slice(start - first.start + span, stop - first.start + span)
            source = self._type(whole, (rows, *share.source[1:]), made)
            target = self._type(made.values.shape, (into, *share.target[1:]), made)
            request = self._window.Rget([made.values, 1, target], share.unit, target=[0, 1, source])
            made._requests.append(request)

    def _type(self, shape: Sequence[int], region: Region, made: Copy) -> MPI.Datatype:
        from mpi4py import MPI

        sizes = [part.stop - part.start for part in region]
        starts = [part.start for part in region]
        kind = MPI._typedict[self.dtype.char]
        found = kind.Create_subarray(list(shape), sizes, starts).Commit()
        made._types.append(found)
        return found

    def tune(self, unit: int, size: int = 1 << 23, rounds: int = 3) -> dict[int, float]:
        """Find the chunk size that fetches fastest from a unit, and keep it; not collective.

        Parameters
        ----------
        unit : int
            One that is not near.
        size : int
            Bytes that are fetched, as far as the unit has them.
        rounds : int
            The best of so many counts.

        Returns
        -------
        dict of int to float
            Seconds by bytes of a chunk.
        """
        parts = self._parts(unit)
        row = math.prod(part.size for part in parts[1:]) * self.dtype.itemsize
        rows = min(parts[0].size, max(1, size // max(row, 1)))
        head = slice(parts[0].start, parts[0].start + rows)
        region = (head, *(part.slice for part in parts[1:]))
        out = np.empty([rows, *(part.size for part in parts[1:])], self.dtype)
        found: dict[int, float] = {}
        for power in range(14, 25, 2):
            self.chunk = 1 << power
            found[self.chunk] = min(self._timed(region, out) for _ in range(rounds))
        self.chunk = min(found, key=lambda chunk: found[chunk])
        return found

    def _timed(self, region: Region, out: Array) -> float:
        began = time.perf_counter()
        self.copy(region, out)
        return time.perf_counter() - began

    def close(self) -> None:
        """Free the windows. Collective."""
        self.comm.Barrier()
        self.local = np.empty(0, self.dtype)
        self._near.clear()
        for window in (self._window, self._memory):
            window.Unlock_all()
            window.Free()
        self._node.Free()


def _buffer(window: MPI.Win, rank: int) -> Any:
    return window.Shared_query(rank)[0]


def _checked(
    shape: Sequence[int], dims: Sequence[int] | None, units: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    extents = tuple(int(extent) for extent in shape)
    grid = (units, *(1,) * (len(extents) - 1)) if dims is None else tuple(int(n) for n in dims)
    if not 1 <= len(extents) <= 3 or min(extents) < 1:
        raise UsageError(f"{'x'.join(map(str, extents))} is no shape", "one to three extents")
    if len(grid) != len(extents) or min(grid) < 1 or math.prod(grid) != units:
        raise UsageError(
            f"a grid of {'x'.join(map(str, grid))} units does not fit {units} "
            f"rank{'s' * (units != 1)} and {len(extents)} axes"
        )
    return extents, grid


def _chunk() -> int:
    """Return the chunk size that the environment asks for, else the default."""
    text = os.environ.get(CHUNK, "")
    if not text:
        return _DEFAULT
    if not (text.isascii() and text.isdigit() and int(text[:15]) > 0):
        raise UsageError(f"${CHUNK} is {printable(text)!r}, not a number of bytes")
    return int(text)
