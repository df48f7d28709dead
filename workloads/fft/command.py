# SPDX-License-Identifier: Apache-2.0
"""``nidmap bench fft``: repeated forward and backward FFTs on a communicator."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import click
import numpy as np

from nidmap.placement.errors import NidmapError
from nidmap.placement.support.array_types import Array
from nidmap.placement.support.quantities import time_text
from nidmap.placement.support.tables import align_columns
from nidmap.placement.ui import say
from nidmap.workloads.fft.local import best_library
from nidmap.workloads.fft.transform import Transform
from nidmap.workloads.options import Common, Words, bench_callback, option_with_default
from nidmap.workloads.session import Session
from nidmap.workloads.trials import SEED, read_extents
from nidmap.workloads.world import Comm, raise_together

#: Elements of the spectrum that `FFT.verify` computes by their sums.
_MODES = 4


@click.command("fft")
@option_with_default(
    "--shape",
    str,
    "128",
    "128x128x64; 128 is a cube; 256x1x128 or 256x128 are 2-D.",
    metavar="SIZE",
)
@option_with_default(
    "--grid",
    str,
    "slab",
    "slab, pencil, or rows and columns of the process grid: 8x16.",
    metavar="GRID",
)
@option_with_default("--kind", ["c2c", "r2c"], "c2c", "Complex or real data.")
@option_with_default(
    "--transpose ways",
    Words(("alltoall", "vector")),
    "alltoall",
    "alltoall (rearranged locally), vector (MPI_Type_vector), or both, separated by a comma; all.",
    metavar="WAYS",
)
@bench_callback
def fft(common: Common, ways: tuple[str, ...], **options: Any) -> int:
    """Time FFTs in two and three dimensions on slabs and pencils.

    The time is that of a pair of transforms, forward and backward, of the
    slowest rank; "exchange" is what of it is spent in messages, and the
    result is checked against the sums of the definition outside the timing.

    \b
    nidmap bench fft -n 4 --shape 256
    nidmap bench fft -n 4 --shape 128x96x64 --grid pencil --kind r2c --transpose all
    srun -n 2048 nidmap bench fft --shape 2048 --grid 32x64 -o fft.csv
    """
    with Session(common, "fft", {**options, "transpose": list(ways)}) as session:
        for way in ways:
            if not session.over():
                _measure_way(session, way, options)
    if session.root:
        if session.finished:
            _say_library()
        _show_session(session)
    return session.exit_code


def _measure_way(session: Session, way: str, options: dict[str, Any]) -> None:
    trial = FFT(session.comm, transpose=way, **options)
    session.measure(
        trial,
        n="x".join(map(str, parse_extents(options["shape"]))),
        cut=options["grid"] if options["grid"] in ("slab", "pencil") else "grid",
        grid="x".join(map(str, trial.transform.grid)),
        kind=options["kind"],
        transpose=way,
        ranks=session.comm.Get_size(),
    )
    trial.close()


def _say_library() -> None:
    """Report which library does the local FFTs, if faster ones exist."""
    used = best_library()
    if used != "ducc0":
        say(f"nidmap: local FFTs by {used}; ducc0 is faster: pip install 'nidmap[fft]'")


def _show_session(session: Session) -> None:
    rows = [["transpose", "ranks", "grid", "best", "median", "exchange", "transform", "rearrange"]]
    for result in session.finished:
        phases = ("total", "communication", "transform", "rearrange")
        times = [result.best(), *(result.median(phase) for phase in phases)]
        what = (result.labels[name] for name in ("transpose", "ranks", "grid"))
        rows.append([*what, *map(time_text, times)])
    session.common.show(session.document(), align_columns(rows))


def parse_extents(text: str) -> tuple[int, ...]:
    """Parse sizes such as ``128x128x64``, or ``128`` for a cube."""
    sizes = read_extents(text, "size", "e.g. 128x128x64, or 128 for a cube")
    if len(sizes) == 2:
        return sizes[0], 1, sizes[1]
    return sizes * 3 if len(sizes) == 1 else sizes


class FFT:
    """An in-place FFT of random data, forward and backward. Collective.

    Memory: data, spectrum and buffers, at most 3 times the local array
    (see `nidmap.workloads.fft.transform`).

    `comm`: its rank order is the order of the process grid, row by row. `shape`: ``128x128x64``;
    ``128`` is a cube; ``128x1x64`` or ``128x64`` are 2-D. `transpose`: `Transform`'s ``method``.
    """

    def __init__(
        self,
        comm: Comm,
        *,
        shape: str = "128x128x128",
        kind: str = "c2c",
        grid: str = "slab",
        transpose: str = "alltoall",
    ) -> None:
        self.transform = transform = Transform(
            comm, parse_extents(shape), real=kind == "r2c", grid=grid, method=transpose
        )
        with raise_together(comm):
            self._values = transform.empty()
            self._spectrum = transform.empty_spectrum()
            for row, plane in zip(self._values, self._planes(), strict=True):
                row[...] = plane

    def _planes(self) -> Iterator[Array]:
        """Yield this rank's data plane by plane: uniform in -1/2 to 1/2, by seed and rank."""
        rng = np.random.default_rng([SEED, self.transform.comm.Get_rank()])
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
        """Transform and return seconds: in total, in messages and copies, and by direction."""
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
        """Compare the data with the original, and elements of the spectrum with direct sums."""
        transform = self.transform
        small = 1e-10
        rng = np.random.default_rng(SEED)  # the same elements on all ranks
        modes = [rng.integers(transform.spectrum_shape).tolist() for _ in range(_MODES)]
        waves = [_wave_weights(transform, mode) for mode in modes]
        summed, off = np.zeros(len(modes), np.complex128), 0.0
        for row, plane in enumerate(self._planes()):
            off = max(off, float(np.abs(plane - self._values[row]).max(initial=0.0)))
            for k, (first, *others) in enumerate(waves):
                coefficient: Any = plane
                for wave in reversed(others):
                    coefficient = coefficient @ wave
                summed[k] += first[row] * coefficient
        with raise_together(transform.comm):
            if not off < small * 10:
                raise NidmapError(
                    f"forward and backward transforms differ from the data by {off:.2g}"
                )
        expected = np.empty_like(summed)
        transform.comm.Allreduce(summed, expected)
        scale = math.sqrt(math.prod(transform.shape)) * 8
        with raise_together(transform.comm):
            for mode, value in zip(modes, expected.tolist(), strict=True):
                places = [
                    (k, part) for k, part in zip(mode, transform.spectrum_slices, strict=True)
                ]
                if not all(part.start <= k < part.stop for k, part in places):
                    continue
                got = complex(self._spectrum[tuple(k - part.start for k, part in places)])
                if not abs(got - value) < small * scale:
                    raise NidmapError(
                        f"element {tuple(mode)} of the spectrum is {got:.6g}, not {value:.6g}"
                    )

    def close(self) -> None:
        """Free the transform's resources. Collective."""
        self.transform.close()


def _wave_weights(transform: Transform, mode: Sequence[int]) -> list[Array]:
    """Return the weights of each axis's local elements in one element of the spectrum."""
    waves: list[Array] = []
    for k, extent, part in zip(mode, transform.shape, transform.slices, strict=True):
        x = np.arange(part.start, part.stop)
        waves.append(np.exp(-2j * np.pi * ((k * x) % extent) / extent))
    return waves
