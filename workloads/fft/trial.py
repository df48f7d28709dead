"""One FFT on a communicator, forward and backward, ready to be repeated."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from placement.errors import NidmapError
from placement.support.array_types import Array
from workloads.fft.plan import field_of, process_grid
from workloads.fft.transform import Transform
from workloads.phases import check_word, read_extents
from workloads.world import Comm, raise_together

__all__ = ["FFT", "message_bytes", "parse_extents", "pattern", "trial"]

#: Elements of the spectrum that `FFT.verify` computes by their sums.
_MODES = 4

_TYPES = {"c2c": "complex128", "r2c": "float64"}


def parse_extents(text: str) -> tuple[int, ...]:
    """Return the sizes in ``128x128x64``, or ``128`` for a cube.

    Examples
    --------
    >>> parse_extents("8x1x6"), parse_extents("64")
    ((8, 1, 6), (64, 64, 64))
    """
    sizes = read_extents(text, "size", "e.g. 128x128x64, or 128 for a cube")
    return sizes * 3 if len(sizes) == 1 else sizes


def pattern(ranks: int, shape: str = "128x128x128", grid: str = "slab", kind: str = "c2c") -> str:
    """Return who talks to whom, as `rankmap.pattern` names it.

    Examples
    --------
    >>> pattern(64), pattern(64, grid="pencil")
    ('fft:64', 'fft:8x8')
    """
    rows, columns = process_grid(grid, ranks, field_of(parse_extents(shape), kind == "r2c"))
    return f"fft:{ranks}" if 1 in (rows, columns) else f"fft:{rows}x{columns}"


def message_bytes(pattern: str, shape: str = "128x128x128", kind: str = "c2c", **_: Any) -> float:
    """Return the bytes that a pair of ranks of one row (or column) exchange in one direction.

    Examples
    --------
    >>> message_bytes("fft:4", shape="64"), message_bytes("fft:2x2", shape="64")
    (262144.0, 524288.0)
    """
    sizes = [int(word) for word in pattern.partition(":")[2].split("x")]
    item = np.dtype(_TYPES[kind]).itemsize
    local = math.prod(parse_extents(shape)) * item / math.prod(sizes)
    return local / max(sizes)


class FFT:
    """An FFT of random data, there and back in place of the data. Collective.

    Memory: data, spectrum and buffers, at most 3 times the local array
    (see `workloads.fft.transform`).

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        Its rank order is the order of the process grid, row by row.
    shape : str
        ``128x128x64``; ``128`` is a cube; ``128x1x64`` or ``128x64`` are 2-D.
    grid
        See `workloads.fft.transform.Transform`.
    kind : {"c2c", "r2c"}
    transpose : str
        `Transform`'s ``method``.
    seed : int

    Raises
    ------
    UsageError, NidmapError
        On all ranks alike.

    Attributes
    ----------
    transform : Transform
    """

    def __init__(
        self,
        comm: Comm,
        *,
        shape: str = "128x128x128",
        kind: str = "c2c",
        grid: str = "slab",
        transpose: str = "alltoall",
        seed: int = 0,
    ) -> None:
        with raise_together(comm):
            check_word("kind of data", kind, tuple(_TYPES))
            sizes = parse_extents(shape)
        self._seed = seed
        self.transform = transform = Transform(
            comm, sizes, real=kind == "r2c", grid=grid, method=transpose
        )
        with raise_together(comm):
            self._values = transform.empty()
            self._spectrum = transform.empty_spectrum()
            for row, plane in zip(self._values, self._planes(), strict=True):
                row[...] = plane

    def _planes(self) -> Iterator[Array]:
        """Yield this rank's data plane by plane: uniform in -1/2 to 1/2, by seed and rank."""
        rng = np.random.default_rng([self._seed, self.transform.comm.Get_rank()])
        count, *shape = self.transform.local_shape
        kind = self.transform.dtype
        real = np.empty(0, kind).real.dtype.type
        half = kind.type(0.5 + 0.5j if kind.kind == "c" else 0.5)
        for _ in range(count):
            plane = np.empty(shape, kind)
            rng.random(out=plane.reshape(-1).view(real), dtype=real)
            plane -= half
            yield plane

    def run(self) -> dict[str, float]:
        """Transform and return seconds: in all, in messages and copies, and by direction."""
        transform = self.transform
        transform.phases.clear()
        began = time.perf_counter()
        transform.forward(self._values, self._spectrum)
        there = time.perf_counter()
        transform.backward(self._spectrum, self._values)
        ended = time.perf_counter()
        spent = transform.phases.seconds
        return {
            "total": ended - began,
            "communication": spent.get("exchange", 0.0),
            **{phase: spent.get(phase, 0.0) for phase in ("transform", "rearrange")},
            "forward": there - began,
            "backward": ended - there,
        }

    def verify(self) -> None:
        """Compare the data with what they were, and elements of the spectrum with their sums.

        Raises
        ------
        NidmapError
            On all ranks alike.
        """
        transform = self.transform
        small = 1e-10
        rng = np.random.default_rng(self._seed)  # the same elements on all ranks
        modes = [rng.integers(transform.spectrum_shape).tolist() for _ in range(_MODES)]
        waves = [_wave_weights(transform, mode) for mode in modes]
        summed, off = np.zeros(len(modes), np.complex128), 0.0
        for row, plane in enumerate(self._planes()):
            off = max(off, float(np.abs(plane - self._values[row]).max(initial=0.0)))
            for k, (first, *others) in enumerate(waves):
                found: Any = plane
                for wave in reversed(others):
                    found = found @ wave
                summed[k] += first[row] * found
        with raise_together(transform.comm):
            if not off < small * 10:
                raise NidmapError(f"forward and backward differ from the data by {off:.2g}")
        expected = np.empty_like(summed)
        transform.comm.Allreduce(summed, expected)
        scale = math.sqrt(math.prod(transform.shape)) * 8
        with raise_together(transform.comm):
            for mode, value in zip(modes, expected.tolist(), strict=True):
                own = [(k, part) for k, part in zip(mode, transform.spectrum_slices, strict=True)]
                if not all(part.start <= k < part.stop for k, part in own):
                    continue
                got = complex(self._spectrum[tuple(k - part.start for k, part in own)])
                if not abs(got - value) < small * scale:
                    raise NidmapError(
                        f"element {tuple(mode)} of the spectrum is {got:.6g}, its sum {value:.6g}"
                    )

    def close(self) -> None:
        """Free what the transform keeps. Collective."""
        self.transform.close()


trial = FFT


def _wave_weights(transform: Transform, mode: Sequence[int]) -> list[Array]:
    """Return what each axis's local elements are weighted with in one element of the spectrum."""
    waves: list[Array] = []
    for k, extent, part in zip(mode, transform.shape, transform.slices, strict=True):
        x = np.arange(part.start, part.stop)
        waves.append(np.exp(-2j * np.pi * ((k * x) % extent) / extent))
    return waves
