"""A distributed array whose regions can be copied, wherever they lie: DASH's local copies.

The objectives of section 3.3 of "Effective use of the PGAS Paradigm", one by
one: copies are asynchronous where asked for (`BlockArray.start`); a region of the
global index space is what is copied; what lies on this unit or on its node is
copied by loads and stores out of shared windows, without MPI; transfers are
cut into chunks of a size that can be tuned (`BlockArray.tune`, or
``$NIDMAP_CHUNK``); and a region that spans several units is fetched by as
many transfers at once.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from operator import mul
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from placement.errors import UsageError, printable
from placement.support.array_types import Array
from workloads.fft.local import chunks
from workloads.fft.plan import AxisStretch, cuts
from workloads.memory import fits
from workloads.node_memory import NodeMemory
from workloads.phases import seconds_of
from workloads.stencil.grid import check_grid
from workloads.world import Comm, same, together

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["CHUNK", "BlockArray", "Copy", "Share"]

Region = tuple[slice, ...]

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
    requests, types : list
        What is on its way, and the datatypes to be freed then.
    """

    def __init__(self, values: Array) -> None:
        self.values = values
        self.requests: list[Any] = []
        self.types: list[Any] = []

    def wait(self) -> Array:
        """Return the values, once all of them are there."""
        from mpi4py import MPI

        MPI.Request.Waitall(self.requests)
        for made in self.types:
            made.Free()
        self.requests, self.types = [], []
        return self.values


class BlockArray:
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
        comm: Comm,
        shape: Sequence[int],
        dims: Sequence[int] | None = None,
        *,
        dtype: DTypeLike = "float64",
        shared: bool = True,
        chunk: int = 0,
    ) -> None:
        from mpi4py import MPI

        units, rank = comm.Get_size(), comm.Get_rank()
        with together(comm):
            self.shape = tuple(int(extent) for extent in shape)
            if not 1 <= len(self.shape) <= 3 or min(self.shape) < 1:
                raise UsageError(f"{_by_x(self.shape)} is not a shape", "one to three extents")
            plain = (units, *(1,) * (len(self.shape) - 1))
            self.dims = plain if dims is None else tuple(int(count) for count in dims)
            check_grid(self.dims, units)
            if len(self.dims) != len(self.shape):
                raise UsageError(f"a grid of {_by_x(self.dims)} units for {_by_x(self.shape)}")
            self.dtype = np.dtype(dtype)
            self.chunk = chunk or _default_chunk()
        same(comm, shape=self.shape, dims=self.dims, dtype=self.dtype.str, shared=shared)
        self.comm = comm
        self._strides = [math.prod(self.dims[axis + 1 :]) for axis in range(len(self.dims))]
        pairs = zip(self.shape, self.dims, strict=True)
        self._cuts = [cuts(extent, count) for extent, count in pairs]
        self.region: Region = tuple(part.slice for part in self._parts(rank))
        size = math.prod(self._shape_of(rank)) * self.dtype.itemsize
        fits(comm, size, f"an array of {_by_x(self.shape)}")
        self._memory = NodeMemory(comm, size)
        self.local = self._block(self._memory.mine, rank)
        near = self._memory.near.items() if shared else ()
        self._near = {unit: self._block(raw, unit) for unit, raw in near}
        self._window = MPI.Win.Create(self._memory.mine, 1, comm=comm)
        self._window.Lock_all(MPI.MODE_NOCHECK)

    def _block(self, raw: NDArray[np.uint8], unit: int) -> Array:
        """Return a unit's block out of the bytes that hold it."""
        shape = self._shape_of(unit)
        block: Array = raw[: math.prod(shape) * self.dtype.itemsize].view(self.dtype)
        return block.reshape(shape)

    def _parts(self, unit: int) -> tuple[AxisStretch, ...]:
        """Return where a unit's block stands along each axis."""
        places = np.unravel_index(unit, self.dims)
        return tuple(row[int(place)] for row, place in zip(self._cuts, places, strict=True))

    def _shape_of(self, unit: int) -> tuple[int, ...]:
        return tuple(part.size for part in self._parts(unit))

    def sync(self) -> None:
        """Make what all units wrote into their blocks visible to all. Collective."""
        self._memory.sync()
        self._window.Sync()
        self.comm.Barrier()
        self._memory.sync()
        self._window.Sync()

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
        shares = [share for share in self._shares(self._spans(region)) if math.prod(share.shape)]
        return sorted(shares, key=lambda share: ("local", "node", "remote").index(share.where))

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
            unit = sum(map(mul, places, self._strides))
            source, target = [], []
            for row, place, (start, stop) in zip(self._cuts, places, spans, strict=True):
                part = row[place]
                low, high = max(start, part.start), min(stop, part.stop)
                source.append(slice(low - part.start, high - part.start))
                target.append(slice(low - start, high - start))
            where = "node" if unit in self._near else "remote"
            where = "local" if unit == self.comm.Get_rank() else where
            yield Share(unit, where, tuple(source), tuple(target))

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
        first, shift = share.source[0], share.target[0].start - share.source[0].start
        for rows in chunks(share.shape[0], row, self.chunk):
            start, stop = first.start + rows.start, first.start + rows.stop
            source = self._type(whole, (slice(start, stop), *share.source[1:]), made)
            into = slice(start + shift, stop + shift), *share.target[1:]
            target = self._type(made.values.shape, into, made)
            request = self._window.Rget([made.values, 1, target], share.unit, target=[0, 1, source])
            made.requests.append(request)

    def _type(self, shape: Sequence[int], region: Region, made: Copy) -> MPI.Datatype:
        from mpi4py import MPI

        sizes = [part.stop - part.start for part in region]
        starts = [part.start for part in region]
        kind = MPI._typedict[self.dtype.char]
        found = kind.Create_subarray(list(shape), sizes, starts).Commit()
        made.types.append(found)
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
        first, *others = self._parts(unit)
        row = math.prod(part.size for part in others) * self.dtype.itemsize
        rows = min(first.size, max(1, size // max(row, 1)))
        region = (slice(first.start, first.start + rows), *(part.slice for part in others))
        out = np.empty([rows, *(part.size for part in others)], self.dtype)
        found: dict[int, float] = {}
        for power in range(14, 25, 2):
            self.chunk = 1 << power
            copy = partial(self.copy, region, out)
            found[self.chunk] = min(seconds_of(copy) for _ in range(rounds))
        self.chunk = min(found, key=lambda chunk: found[chunk])
        return found

    def close(self) -> None:
        """Free the windows. Collective."""
        self.comm.Barrier()
        self.local = np.empty(0, self.dtype)
        self._near.clear()
        self._window.Unlock_all()
        self._window.Free()
        self._memory.close()


def _by_x(extents: Sequence[int]) -> str:
    return "x".join(map(str, extents))


def _default_chunk() -> int:
    """Return the chunk size that the environment asks for, else the default."""
    text = os.environ.get(CHUNK, "") or str(_DEFAULT)
    if not (text.isascii() and text.isdigit() and int(text[:15]) > 0):
        raise UsageError(f"${CHUNK} is {printable(text)!r}, not a number of bytes")
    return int(text)
