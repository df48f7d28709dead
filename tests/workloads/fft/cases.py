# SPDX-License-Identifier: Apache-2.0
"""A rank's program: transforms of many kinds against a serial reference of dense sums."""

import itertools
import random
import sys

import numpy as np


def wave(extent, half=False):
    """Return the matrix of the plain Fourier sum."""
    k = np.arange(extent // 2 + 1 if half else extent)[:, None]
    return np.exp(-2j * np.pi * k * np.arange(extent) / extent)


def spectrum(values):
    """Return the spectrum by the sums of the definition."""
    last = values.ndim - 1 if values.dtype.kind == "f" else -1
    for axis, extent in enumerate(values.shape):
        matrix = wave(extent, axis == last)
        values = np.moveaxis(np.tensordot(matrix, values, (1, axis)), 0, axis)
    return values


def by_scipy(values):
    """Return the spectrum by scipy's serial transforms."""
    import scipy.fft

    return (scipy.fft.rfftn if values.dtype.kind == "f" else scipy.fft.fftn)(values)


def field(shape, kind, seed=0):
    """Return the same random field on every rank: real (d) or complex (D)."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    return values if kind == "d" else values + 1j * rng.standard_normal(shape)


def check(comm, shape, kind, reference=spectrum, **options):
    """Transform there and back and compare."""
    from nidmap.workloads.fft.transform import Transform

    whole = field(shape, kind)
    expected = reference(whole)
    small = 1e-11
    fft = Transform(comm, shape, real=kind == "d", **options)
    assert fft.spectrum_shape == expected.shape, (fft.spectrum_shape, expected.shape)
    values, got = fft.empty(), fft.empty_spectrum()
    values[...] = whole[fft.slices]
    fft.forward(values, got)
    scale = np.abs(expected).max()
    error = np.abs(got - expected[fft.spectrum_slices]).max(initial=0) / scale
    assert error < small, (shape, kind, options, error)
    kept, back = got.copy(), fft.empty()
    fft.backward(got, back)
    assert np.abs(back - values).max(initial=0) < 30 * small, (shape, kind, options)
    assert np.array_equal(kept, got), "backward must leave its input alone"
    assert np.array_equal(values, whole[fft.slices]), "forward must leave its input alone"
    fft.close()


def grids(ranks):
    """Return all process grids."""
    return [f"{rows}x{ranks // rows}" for rows in range(1, ranks + 1) if ranks % rows == 0]


def every(comm, most=10**6, library=""):
    """Run the cases, so many at most, spread over all kinds; return how many there were."""
    from nidmap.workloads.fft.exchange import METHODS

    shapes = [(8, 8, 8), (5, 6, 7), (3, 2, 9), (1, 6, 4), (6, 1, 5), (12, 4, 3)]
    cases = [
        case
        for case in itertools.product(shapes, "Dd", grids(comm.size))
        if 1 not in case[0] or "1" in case[2].split("x")
    ]
    cases = random.Random(comm.size).sample(cases, min(most, len(cases)))
    ways = itertools.cycle(METHODS)
    for shape, kind, grid in cases:
        options = {"grid": grid, "method": next(ways)}
        check(comm, shape, kind, library=library, **options)
    for shape in ((9, 1, 7), (4, 1, 6)):
        check(comm, shape, "d", library=library, method=next(ways))
    return len(cases) + 2


def on_parts(world, sizes, most, library=""):
    """Run the cases on the first ranks of each of these sizes, the others asleep meanwhile."""
    from nidmap.workloads.session import quiet_barrier

    for size in sizes:
        inside = world.rank < size
        part = world.Split(int(not inside), world.rank)
        if inside:
            every(part, most, library)
        quiet_barrier(world, asleep=not inside)
        part.Free()


def refusals(comm):
    """Return what is refused: (words, error) of each case, once all ranks agree on it."""
    from nidmap.placement.errors import NidmapError
    from nidmap.workloads.fft.transform import Transform

    rank, said = comm.rank, []
    cases = {
        "grid": lambda: Transform(comm, (8, 8, 8), grid="3x2"),
        "grid word": lambda: Transform(comm, (8, 8, 8), grid="cube"),
        "flat pencils": lambda: Transform(comm, (8, 1, 8), grid=f"2x{comm.size // 2}"),
        "extent": lambda: Transform(comm, (8, 0, 8)),
        "axes": lambda: Transform(comm, (8,)),
        "four axes": lambda: Transform(comm, (2, 2, 2, 2)),
        "memory": lambda: Transform(comm, (1 << 14, 1 << 14, 1 << 14)),
        "negative": lambda: Transform(comm, (8, 8, -1)),
    }
    for name, run in cases.items():
        try:
            run()
            error = None
        except NidmapError as raised:
            error = type(raised).__name__, str(raised)
        everyone = comm.allgather(error)
        assert error is not None, f"{name} was not refused on rank {rank}"
        assert len(set(everyone)) == 1, f"{name}: {everyone}"
        said.append((name, *error))
    return said


def memory(comm, shape, **options):
    """Return by how much memory a transform there and back takes at most, over the local array."""
    import tracemalloc

    from nidmap.workloads.fft.transform import Transform

    def pair(shape):
        fft = Transform(comm, shape, **options)
        values, waves = fft.empty(), fft.empty_spectrum()
        values[...] = 1
        fft.forward(values, waves)
        fft.backward(waves, values)
        return fft

    pair((4, 4, 4)).close()
    tracemalloc.start()
    fft = pair(shape)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    fft.close()
    assert peak < 2 * fft.local_bytes + fft.buffer_bytes + (2 << 20)
    return (peak - (1 << 19)) / fft.local_bytes


def lines(comm):
    """A line is a field as well."""
    for line in ((1, 1, 24), (24, 1, 1), (1, 24, 1)):
        check(comm, line, "d")


if __name__ == "__main__":
    from mpi4py import MPI

    print(every(MPI.COMM_WORLD, *(int(word) for word in sys.argv[1:])), "cases")
