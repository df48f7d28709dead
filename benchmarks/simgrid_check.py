# SPDX-License-Identifier: Apache-2.0
"""Tori and fat trees against SimGrid, an independent fluid simulator (not a dependency).

``python -m benchmarks.simgrid_check`` prints, case by case, our time (the
busiest channel's load / bandwidth) over SimGrid's (the end of the last of the
flows, all started at once). Without SimGrid it says so and leaves.

Columns: `routed` is SimGrid sharing links along our routes; `own` is SimGrid
with its own torus or fat tree. Both are 1 where the routes are the same. They
are, but for one case: exactly half an even ring goes to + here always, in
SimGrid's torus not from coordinate extent / 2 to 0, which goes to -. `ties`
counts such pairs, and `own` shows what they alone make.
On a fat tree with several cables between two switches SimGrid takes the cable
down by the source, which no switch could that forwards by the destination;
`likewise` is `own` with those cables, and the same cables up; on tori it is `own`.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.fair_sharing import fair_ends
from nidmap.placement.network import Demand, channels, loads
from nidmap.placement.network.channel_loads import injection_bandwidth
from nidmap.placement.network.routes import walk_paths
from nidmap.placement.specs import parse_spec
from nidmap.placement.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nidmap.placement.machine import Machine

HERE = Path(__file__).resolve().parent

TORI = (
    ((8, 8), 16, (4, 4)),
    ((7, 5), 12, (3, 4)),
    ((2, 2, 2), 8, (2, 2, 2)),
    ((4, 4, 4), 27, (3, 3, 3)),
    ((6, 4, 2), 24, (2, 3, 4)),
    ((5, 7, 3), 60, (5, 4, 3)),
    ((8, 8, 8), 64, (4, 4, 4)),
    ((8, 8, 8), 100, (5, 5, 4)),
)

TREES = (
    ((4, 4), (1, 2), (1, 1), 12, (3, 4)),
    ((18, 16), (1, 9), (1, 1), 100, (5, 5, 4)),
    ((3, 4, 2), (1, 2, 3), (1, 1, 1), 24, (2, 3, 4)),
    ((4, 3, 3), (1, 3, 2), (1, 1, 1), 24, (2, 3, 4)),
    ((6, 6, 3), (1, 2, 4), (1, 1, 1), 100, (5, 5, 4)),
    ((4, 4), (1, 2), (1, 2), 12, (3, 4)),
    ((6, 4), (1, 1), (1, 3), 24, (2, 3, 4)),
    ((18, 16), (1, 3), (1, 6), 100, (5, 5, 4)),
    ((4, 3, 3), (1, 3, 2), (1, 1, 2), 24, (2, 3, 4)),
)

#: Bytes of a message.
BYTES = 10**6


def interpreter() -> str:
    """Return a Python that can import simgrid; '' for none."""
    names = (sys.executable, shutil.which("python3"), "/usr/bin/python3")
    for name in filter(None, names):
        words = [name, "-c", "import simgrid"]
        if subprocess.run(words, capture_output=True, check=False).returncode == 0:
            return name
    return ""


def ask_simgrid(python: str, job: Mapping[str, object]) -> dict[str, float]:
    """Return SimGrid's answer, and the time of its complete process."""
    began = time.perf_counter()
    words = [python, str(HERE / "simgrid_flows.py")]
    done = subprocess.run(words, input=json.dumps(job), capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1]) | {"process": time.perf_counter() - began}


def alltoall(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all ordered pairs."""
    a, b = (x.ravel() for x in np.meshgrid(rows, rows, indexing="ij"))
    return a[a != b], b[a != b]


def stencil(
    rows: np.ndarray, dims: tuple[int, ...], periodic: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the directed neighbours of a grid of ranks, row-major."""
    grid = np.arange(math.prod(dims)).reshape(dims)
    ends = []
    for axis, step in product(range(len(dims)), (1, -1)):
        other = np.roll(grid, -step, axis)
        inside = np.ones(dims, dtype=bool)
        if not periodic:
            edge = dims[axis] - 1 if step == 1 else 0
            inside &= np.indices(dims)[axis] != edge
        ends.append((grid[inside], other[inside]))
    a, b = (np.concatenate([e[i] for e in ends]) for i in (0, 1))
    return rows[a[a != b]], rows[b[a != b]]


def ties(extents: tuple[int, ...], a: np.ndarray, b: np.ndarray) -> int:
    """Return the pairs that SimGrid's torus routes the other way round a ring."""
    found, stride = np.zeros(len(a), dtype=bool), 1
    for extent in extents:
        start, end = a // stride % extent, b // stride % extent
        found |= (extent % 2 == 0) & (start == extent // 2) & (end == 0)
        stride *= extent
    return int(found.sum())


def down_by_source(
    machine: Machine, source: np.ndarray, channel: np.ndarray, parallel: tuple[int, ...]
) -> np.ndarray:
    """Return channels in which the message's source determines the downward cables."""
    found = channels(machine)
    of_kind = [parallel[int(k[4:])] if k.startswith("down") else 1 for k in found.kinds]
    cables = np.append(np.array(of_kind)[found.kind], [1] * (2 * len(machine)))[channel]
    place = np.append(found.earlier(slice(None)), [0] * (2 * len(machine)))[channel]
    return np.where(cables > 1, channel - place + source % cables, channel)


def print_ratio(
    python: str, spec: str, job: Mapping[str, object], a: np.ndarray, b: np.ndarray
) -> None:
    """Print one line: our time, and its ratio to SimGrid's."""
    machine = parse_spec(spec)
    ours = loads(machine, Demand.of(machine, Traffic.of(a, b, float(BYTES)))).worst().seconds
    own = injection_bandwidth(machine)
    gbs = np.concatenate([channels(machine, "single").bandwidth, own, own])
    message, channel = walk_paths(machine, a, b, "single")
    inner, every = len(channels(machine, "single")), np.arange(len(a))
    message = np.concatenate([message, every, every])
    channel = np.concatenate([channel, inner + a, inner + len(machine) + b])
    order = np.argsort(message, kind="stable")
    routes = np.split(channel[order], np.flatnonzero(np.diff(message[order])) + 1)
    real = [[int(c) for c in path if np.isfinite(gbs[c])] for path in routes]
    ends = list(zip(a.tolist(), b.tolist(), strict=True))
    merged: dict[tuple[int, int], int] = {}
    for end in ends:
        merged[end] = merged.get(end, 0) + BYTES
    route = dict(zip(ends, real, strict=True))
    flows = [[s, t, x, route[s, t]] for (s, t), x in merged.items()]
    finite = np.where(np.isfinite(gbs), gbs, 1e6).tolist()
    routed = ask_simgrid(python, {"kind": "routes", "gbs": finite, "flows": flows})
    theirs = ask_simgrid(python, {**job, "flows": [[s, t, BYTES] for s, t in ends]})
    last = fair_ends(machine, a, b, float(BYTES)).max()
    demand = Demand.of(machine, Traffic.of(a, b, float(BYTES)))
    if job["kind"] == "torus":
        likewise = loads(machine, demand).worst().seconds
    else:
        channel = down_by_source(machine, a[message], channel, job["parallel"])  # type: ignore[arg-type]
        likewise = float((np.bincount(channel, minlength=len(gbs)) * BYTES / gbs / 1e9).max())
    likewise /= theirs["seconds"]
    odd = ties(job["extents"], a, b) if job["kind"] == "torus" else 0  # type: ignore[arg-type]
    print(
        f"{ours:10.6f} s  makespan {last / ours:.6f}  routed {ours / routed['seconds']:.6f}  "
        f"own {ours / theirs['seconds']:.6f}  likewise {likewise:.6f}  ties {odd}",
        flush=True,
    )


def cases(count: int, size: int, dims: tuple[int, ...]):
    """Yield name and ends of each pattern on a contiguous and a random set of nodes."""
    scattered = np.random.default_rng(size).permutation(count)[:size]
    for where, rows in (("contiguous", np.arange(size)), ("random", scattered)):
        yield f"{where} all-to-all", alltoall(rows)
        yield f"{where} stencil", stencil(rows, dims, False)
        yield f"{where} periodic", stencil(rows, dims, True)


def print_race(python: str) -> None:
    """Print the time of both complete processes for the same all-to-all on 216 nodes."""
    words = (
        "-m torus:8x8x8,bw=4.68,latency=0 --nodes 0-215 --pattern alltoall --bytes 1000000 --json"
    )
    ours = [sys.executable, "-m", "nidmap", "predict", *words.split()]
    a, b = alltoall(np.arange(216))
    job = {"kind": "torus", "extents": (8, 8, 8), "gbs": 4.68}
    theirs = ask_simgrid(python, job | {"flows": [[s, t, BYTES] for s, t in zip(a.tolist(), b.tolist(), strict=True)]})  # fmt: skip  # noqa: E501
    took = []
    for _ in range(3):
        began = time.perf_counter()
        done = subprocess.run(ours, capture_output=True, text=True, check=False, cwd=HERE.parent)
        took.append(time.perf_counter() - began)
    if done.returncode:
        print(f"nidmap predict: {done.stderr.strip()}")
        return
    found = json.loads(done.stdout)["time_s"]
    print(
        f"216 nodes, whole process: nidmap predict {min(took):.2f} s, SimGrid "
        f"{theirs['process']:.2f} s, {theirs['process'] / min(took):.0f} x; time_s {found:.6f} "
        f"against {theirs['seconds']:.6f}"
    )


def main() -> None:
    """Run all cases."""
    python = interpreter()
    if not python:
        print("skipped: no Python here can import simgrid (Debian: apt install python3-simgrid)")
        return
    for extents, size, dims in TORI:
        spec = f"torus:{'x'.join(map(str, extents))},bw=1"
        job = {"kind": "torus", "extents": extents, "gbs": 1}
        for name, ends in cases(math.prod(extents), size, dims):
            print(f"{spec:22} {size:4} {name:23}", end=" ")
            print_ratio(python, spec, job, *ends)
    for down, up, parallel, size, dims in TREES:
        sizes = ("x".join(map(str, x)) for x in (down, up, parallel))
        spec = "fattree:down={},up={},parallel={},bw=1".format(*sizes)
        job = {"kind": "fattree", "down": down, "up": up, "parallel": parallel, "gbs": 1}
        for name, ends in cases(math.prod(down), size, dims):
            print(f"{spec:54} {size:4} {name:23}", end=" ")
            print_ratio(python, spec, job, *ends)
    print_race(python)


if __name__ == "__main__":
    main()
