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


def field(shape, dtype, seed=0):
    """Return the same random field on every rank."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def check(comm, shape, dtype, reference=spectrum, **options):
    """Transform there and back and compare; return how the grid transposed."""
    from workloads.fft import Transform

    whole = field(shape, dtype)
    expected = reference(whole.astype("D" if whole.dtype.kind == "c" else "d"))
    small = 3e-5 if np.dtype(dtype).char in "fF" else 1e-11
    with Transform(comm, shape, dtype=dtype, **options) as fft:
        assert fft.spectrum_shape == expected.shape, (fft.spectrum_shape, expected.shape)
        values = fft.empty()
        values[...] = whole[fft.slices]
        got = fft.forward(values)
        scale = np.abs(expected).max()
        assert got.shape == fft.local_spectrum_shape
        error = np.abs(got - expected[fft.spectrum_slices]).max(initial=0) / scale
        assert error < small, (shape, dtype, options, error)
        kept = got.copy()
        back = fft.backward(got, fft.empty())
        assert np.abs(back - values).max(initial=0) < 30 * small, (shape, dtype, options)
        assert np.array_equal(kept, got), "backward must leave its input alone"
        plain = fft.backward(got, np.empty(fft.local_shape, fft.dtype))
        assert np.array_equal(plain, back)
        assert np.array_equal(values, whole[fft.slices]), "forward must leave its input alone"
        return fft.methods


def grids(ranks):
    """Return all process grids."""
    return [(rows, ranks // rows) for rows in range(1, ranks + 1) if ranks % rows == 0]


def every(comm, most=10**6, library=""):
    """Run the cases, so many at most, spread over all kinds; return how many there were."""
    from workloads.fft.exchange import METHODS

    shapes = [(8, 8, 8), (5, 6, 7), (3, 2, 9), (1, 6, 4), (6, 1, 5), (12, 4, 3)]
    cases = [
        case
        for case in itertools.product(shapes, "DdFf", grids(comm.size))
        if 1 not in case[0] or 1 in case[2]
    ]
    cases = random.Random(comm.size).sample(cases, min(most, len(cases)))
    ways, pieces = itertools.cycle([*METHODS, "auto"]), itertools.cycle([0, 1, 2, 3])
    for shape, kind, grid in cases:
        options = {"grid": grid, "method": next(ways), "pieces": next(pieces)}
        check(comm, shape, kind, library=library, **options)
    for shape in ((9, 7), (4, 6)):
        check(comm, shape, "d", library=library, method=next(ways))
    return len(cases) + 2


def on_parts(world, sizes, most, library=""):
    """Run the cases on the first ranks of each of these sizes, the others asleep meanwhile."""
    from workloads.session import quiet_barrier

    for size in sizes:
        inside = world.rank < size
        part = world.Split(int(not inside), world.rank)
        if inside:
            every(part, most, library)
        quiet_barrier(world, asleep=not inside)
        part.Free()


def refusals(comm):
    """Return what is refused: (words, error) of each case, once all ranks agree on it."""
    from placement.errors import NidmapError
    from workloads.fft import Transform

    rank, said = comm.rank, []
    cases = {
        "grid": lambda: Transform(comm, (8, 8, 8), grid=(3, 2)),
        "grid word": lambda: Transform(comm, (8, 8, 8), grid="cube"),
        "flat pencils": lambda: Transform(comm, (8, 1, 8), grid=(2, comm.size // 2)),
        "extent": lambda: Transform(comm, (8, 0, 8)),
        "axes": lambda: Transform(comm, (8,)),
        "four axes": lambda: Transform(comm, (2, 2, 2, 2)),
        "type": lambda: Transform(comm, (8, 8, 8), dtype="int64"),
        "method": lambda: Transform(comm, (8, 8, 8), method="pigeons"),
        "norm": lambda: Transform(comm, (8, 8, 8), norm="none"),
        "library": lambda: Transform(comm, (8, 8, 8), library="fftw"),
        "memory": lambda: Transform(comm, (1 << 14, 1 << 14, 1 << 14)),
        "unequal shapes": lambda: Transform(comm, (8, 8, 8 + rank)),
        "unequal types": lambda: Transform(comm, (8, 8, 8), dtype="dD"[rank % 2]),
        "unequal methods": lambda: Transform(comm, (8, 8, 8), method=["vector", "auto"][rank % 2]),
        "one rank wrong": lambda: Transform(comm, (8, 8, 8 if rank else -1)),
        "wrong array": lambda: wrong(comm, np.zeros((1, 2, 3 + rank))),
        "wrong out": lambda: wrong(comm, None, np.zeros((1, 2))),
        "one array wrong": lambda: wrong(comm, np.zeros((9, 9, 9)) if rank == 2 else None),
        "complex into real": lambda: wrong(comm, 1j, dtype="d"),
        "closed": lambda: closed(comm),
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


def wrong(comm, values, out=None, dtype="D"):
    """Call forward with what does not fit."""
    from workloads.fft import Transform

    with Transform(comm, (8, 8, 8), dtype=dtype) as fft:
        given = fft.empty() if values is None else values
        if np.shape(given) == ():
            given = np.full(fft.local_shape, given)
        try:
            fft.forward(given, out)
        finally:  # what was refused leaves the transform as it was
            whole = field((8, 8, 8), dtype)
            got = fft.forward(whole[fft.slices])
            assert np.allclose(got, spectrum(whole)[fft.spectrum_slices])
            fft.backward(got)


def closed(comm):
    """Call forward after close."""
    from workloads.fft import Transform

    fft = Transform(comm, (8, 8, 8))
    values = fft.empty()
    fft.close()
    fft.forward(values)


def memory(comm, shape, **options):
    """Return by how much memory a transform there and back takes at most, over the local array."""
    import tracemalloc

    from workloads.fft import Transform

    warm = Transform(comm, (4, 4, 4), **options)
    warm.backward(warm.forward(warm.empty()))
    warm.close()
    tracemalloc.start()
    with Transform(comm, shape, **options) as fft:
        values = fft.empty()
        values[...] = 1
        spectrum = fft.forward(values)
        fft.backward(spectrum, values)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        windows = sum(window.nbytes for window in fft._engine._windows)
        assert peak + windows < 2 * fft.local_bytes + fft.buffer_bytes + (2 << 20)
        return (peak + windows - (1 << 19)) / fft.local_bytes


def other_ways(comm):
    """Try what the cases leave out: norms, arrays that are one, several at once, odd inputs."""
    from workloads.fft import Transform

    for line in ((1, 1, 24), (24, 1, 1), (1, 24, 1)):  # a line is a field as well
        check(comm, line, "d")
    shape = (6, 5, 8)
    whole = field(shape, "D")
    expected = spectrum(whole)
    for norm, there, back in (("forward", 240, 1), ("ortho", 240**0.5, 240**0.5)):
        with Transform(comm, shape, norm=norm) as fft:
            got = fft.forward(whole[fft.slices])
            assert np.allclose(got, expected[fft.spectrum_slices] / there)
            again = fft.backward(got * there)
            assert np.allclose(again * back, 240 * whole[fft.slices])
    with Transform(comm, (8, 8, 8)) as fft, Transform(comm, (8, 8, 8), grid="pencil") as other:
        cube = field((8, 8, 8), "D")
        turned = np.asfortranarray(cube[fft.slices])
        assert np.allclose(fft.forward(turned), spectrum(cube)[fft.spectrum_slices])
        values = cube[other.slices].copy()
        if other.local_shape == other.local_spectrum_shape:
            assert other.forward(values, values) is values  # one array for both
            assert np.allclose(values, spectrum(cube)[other.spectrum_slices])
        else:
            other.forward(values)


if __name__ == "__main__":
    from mpi4py import MPI

    print(every(MPI.COMM_WORLD, *(int(word) for word in sys.argv[1:])), "cases")
