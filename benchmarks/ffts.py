# SPDX-License-Identifier: Apache-2.0
"""FFTs on four ranks against mpi4py-fft, interleaved: forward and backward, as ratios.

mpi4py-fft (which brings FFTW in) is run where it is installed: in this
environment, or in the one that $NIDMAP_PEERS_FFT names, a directory with
``bin/python`` and ``bin/mpiexec`` that has mpi4py, mpi4py-fft, numpy, ducc0,
click and msgspec. It is not a dependency. Both plan with what they do by
default; the peer's arrays are its own, and every round runs each once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from statistics import median
from typing import Any

from benchmarks.timing import table

#: Shape, kind, cut, and the ratio that is to be reached.
CASES = (
    (128, "c2c", "slab", 1.7),
    (256, "c2c", "slab", 2.5),
    (128, "c2c", "pencil", 1.5),
    (256, "c2c", "pencil", 1.5),
    (128, "r2c", "slab", 1.7),
    (256, "r2c", "slab", 2.5),
    (128, "r2c", "pencil", 1.5),
    (256, "r2c", "pencil", 1.5),
)

RANKS = 4

#: Ways to transpose.
WAYS = ("alltoall", "vector")

Row = dict[str, Any]


def main() -> None:
    """Print the ratios of each case."""
    place = os.environ.get("NIDMAP_PEERS_FFT", "")
    python = os.path.join(place, "bin", "python") if place else sys.executable
    mpiexec = os.path.join(os.path.dirname(python), "mpiexec")
    if not place and find_spec("mpi4py_fft") is None:
        print("\nffts: mpi4py-fft is not here; name its environment in NIDMAP_PEERS_FFT")
        return
    rows = []
    for shape, kind, cut, least in CASES:
        words = [python, "-m", "benchmarks.ffts", str(shape), kind, cut]
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        done = subprocess.run(
            [mpiexec, "-n", str(RANKS), *words],
            env={**os.environ, "PYTHONPATH": root},
            check=True,
            capture_output=True,
            text=True,
        )
        rows.append(_row(json.loads(done.stdout.splitlines()[-1]), least))
    head = ["case", "mpi4py-fft", *WAYS, *(f"ratio {way}" for way in WAYS), "to reach", "memory"]
    table(f"FFT forward + backward on {RANKS} ranks", head, rows)


def _row(found: Row, least: float) -> list[str]:
    times = found["seconds"]
    ratios = [_ratio(times["peer"], times[way]) for way in WAYS]
    return [
        found["case"],
        f"{1e3 * median(times['peer']):.1f} ms",
        *(f"{1e3 * median(times[way]):.1f} ms" for way in WAYS),
        *(f"{ratio:.2f}" for ratio in ratios),
        f"{least}",
        f"{found['memory']:.2f} x",
    ]


def _ratio(peer: list[float], ours: list[float]) -> float:
    return median(a / b for a, b in zip(peer, ours, strict=True))


def rank(shape: int, kind: str, cut: str) -> None:
    """Time one case on this rank; rank 0 prints it as JSON."""
    import numpy as np
    from mpi4py import MPI

    from nidmap.workloads.fft.transform import Transform

    comm = MPI.COMM_WORLD
    dtype = np.dtype("D" if kind == "c2c" else "d")
    runs = {"peer": _peer(comm, shape, dtype, cut)}
    memory = 0.0
    for way in WAYS:
        fft = Transform(comm, (shape,) * 3, real=kind == "r2c", grid=cut, method=way)
        runs[way] = _pair(fft)
        memory = max(memory, 2 + fft.buffer_bytes / fft.local_bytes)
    for run in runs.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(max(5, 40 * 64**3 // shape**3 * 4)):
        for name, run in runs.items():
            comm.Barrier()
            began = time.perf_counter()
            run()
            comm.Barrier()
            seconds[name].append(time.perf_counter() - began)
    if comm.rank == 0:
        case = f"{shape}^3 {kind} {cut}"
        print(json.dumps({"case": case, "seconds": seconds, "memory": memory}))


def _pair(fft: Any) -> Any:
    import numpy as np

    values, spectrum = fft.empty(), fft.empty_spectrum()
    values[...] = np.random.default_rng(fft.comm.rank).random(values.shape)

    def run() -> None:
        fft.forward(values, spectrum)
        fft.backward(spectrum, values)

    return run


def _peer(comm: Any, shape: int, dtype: Any, cut: str) -> Any:
    import numpy as np
    from mpi4py_fft import PFFT, newDistArray

    grid = (-1,) if cut == "slab" else None
    fft = PFFT(comm, [shape] * 3, axes=(0, 1, 2), dtype=dtype, grid=grid)
    values, spectrum = newDistArray(fft, False), newDistArray(fft, True)
    values[...] = np.random.default_rng(comm.rank).random(values.shape)

    def run() -> None:
        fft.forward(values, spectrum)
        fft.backward(spectrum, values)

    return run


if __name__ == "__main__":
    rank(int(sys.argv[1]), sys.argv[2], sys.argv[3])
