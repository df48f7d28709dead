# SPDX-License-Identifier: Apache-2.0
"""What answers cost: processor time and memory, by the size of jobs and of machines.

``python -m benchmarks.costs`` runs all parts; ``sizes``, ``sites``, ``questions [N [SEED]]`` and
``orders`` one of them. Processor seconds are those of the answer, without reading the machine; in
``orders`` they are those of the whole process, as its memory is.

sizes
    Jobs of 64 nodes on machines of about 1,000, 10,000 and 100,000, half of whose nodes are busy,
    and of 4,096 on a dragonfly of a million: the time is to follow the job, not the machine.
sites
    Jobs of 64, 512 and 4,096 nodes on every site that has so many.
questions
    N questions (40) of `benchmarks.questions` of up to 512 nodes: median and most.
orders
    ``nidmap order --strategy auto`` of a graph of a million ranks with ``--deadline 2``, and of an
    FFT of 100,000 ranks on a torus.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

import nidmap
from benchmarks.questions import answer, draw, free_in_stretches
from benchmarks.timing import calibration, table
from nidmap.placement.errors import NidmapError
from nidmap.placement.sites import site_names
from nidmap.rankmap.predict import Job

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine

#: Machines of about 1,000, 10,000 and 100,000 nodes of each kind of network.
MACHINES = (
    ("dragonfly:groups={},chassis={},blades=16,nodes=4", ((4, 4), (26, 6), (261, 6))),
    ("slingshot:groups={},switches={},nodes=8", ((8, 16), (80, 16), (200, 64))),
    ("torus:{0}x{0}x{0},bw=4.68", ((10,), (22,), (46,))),
    ("fattree:leaf=18,leaves={},spines=9,bw=12.5", ((56,), (560,), (5600,))),
)

#: Jobs of so many nodes: a pattern, ranks a node.
JOBS = {
    64: (("alltoall", 1), ("stencil:16x16x16", 64), ("fft:32x64", 32)),
    512: (("alltoall", 1), ("stencil:32x32x16", 32), ("fft:128x128", 32)),
    4096: (("alltoall", 1), ("stencil:32x32x32", 8), ("fft:128x256", 8)),
}

#: A dragonfly of a million nodes, and what such a job asks there.
MILLION = "dragonfly:groups=2605,chassis=6,blades=16,nodes=4"


def seconds_of(machine: Machine, count: int, pattern: str, ppn: int) -> tuple[float, int]:
    """Return the processor seconds of a plan, and how many placements it evaluated."""
    free = free_in_stretches(machine, 0.5, np.random.default_rng(1))
    began = time.process_time()
    plan = nidmap.plan(machine, count, candidates=free, strategy="auto", job=Job(pattern, ppn))
    took = time.process_time() - began
    return took, plan.facts["predicted"]["search"]["judged"]


def cells(machine: Machine, count: int) -> list[str]:
    """Return the seconds of each job with this many nodes on a machine."""
    texts = []
    for pattern, ppn in JOBS[count]:
        try:
            took, judged = seconds_of(machine, count, pattern, ppn)
            texts.append(f"{took:.2f} s ({judged})")
        except NidmapError as error:
            texts.append(error.message[:40])
    return texts


def sizes() -> None:
    """Print the cost of equal jobs on machines of several sizes."""
    rows = []
    for spec, shapes in MACHINES:
        for shape in shapes:
            machine = nidmap.load_machine(spec.format(*shape))
            rows.append([machine.topology.kind, f"{len(machine):,}", "64", *cells(machine, 64)])
    machine = nidmap.load_machine(MILLION)
    rows.append([machine.topology.kind, f"{len(machine):,}", "4096", *cells(machine, 4096)])
    head = ["network", "nodes", "job", "all-to-all", "stencil", "fft"]
    table("processor time of a plan (judged)", head, rows)


def sites() -> None:
    """Print the cost of jobs of several sizes on all sites' machines."""
    rows: list[list[str]] = []
    took: dict[int, list[float]] = {count: [] for count in JOBS}
    for name in site_names():
        machine = nidmap.load_machine(name)
        for count, jobs in JOBS.items():
            for pattern, ppn in jobs:
                try:
                    seconds, judged = seconds_of(machine, count, pattern, ppn)
                except NidmapError:
                    continue  # too few nodes are free
                took[count].append(seconds)
                rows.append([name, str(count), pattern, f"{seconds:.2f} s", str(judged)])
    table("processor time of a plan", ["site", "nodes", "pattern", "seconds", "judged"], rows)
    summary = [
        [str(count), str(len(times)), f"{median(times):.2f} s", f"{max(times):.2f} s"]
        for count, times in took.items()
    ]
    table("by the size of the job", ["nodes", "plans", "median", "most"], summary)


def questions(count: int = 40, seed: int = 0) -> None:
    """Print the processor time of random questions of up to 512 nodes."""
    took: list[float] = []
    while len(took) < count:
        question = draw(seed)
        seed += 1
        if question.count > 512:
            continue
        try:
            took.append(answer(question)[1])
        except NidmapError:  # its nodes are not of one kind
            continue
        print(f"{question}: {took[-1]:.2f} s", flush=True)
    share = float(np.mean(np.array(took) <= 1.0))
    print(f"median {median(took):.2f} s, most {max(took):.2f} s, {share:.0%} within a second")


def run_measured(*argv: str) -> tuple[float, float, float]:
    """Return wall seconds, processor seconds and MB of a command."""
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "nidmap", *argv],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"nidmap {' '.join(argv)} failed with {child.returncode}")
    wall = time.perf_counter() - began
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def write_graph(path: Path, ranks: int, edges: int) -> None:
    """Write a graph with most edges between ranks that are close, as a matrix for scipy."""
    rng = np.random.default_rng(0)
    source = rng.integers(0, ranks, edges)
    target = (source + rng.geometric(0.01, edges)) % ranks
    order = np.argsort(source, kind="stable")
    indptr = np.append(0, np.cumsum(np.bincount(source, minlength=ranks)))
    weight = rng.integers(1, 100, edges).astype(float)
    matrix: dict[str, Any] = {
        "format": np.array(b"csr"), "shape": np.array([ranks, ranks]), "indptr": indptr,
        "indices": target[order], "data": weight,
    }  # fmt: skip
    np.savez_compressed(path, **matrix)


def orders() -> None:
    """Print the time and memory of orders of very many ranks."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder) / "graph.npz"
        write_graph(graph, 10**6, 4 * 10**6)
        tree = "fattree:leaf=32,leaves=512,spines=16,bw=12.5"
        for words in (
            f"-m {tree} --nodes #0-15624 --ppn 64 --pattern matrix:{graph} --deadline 2",
            "-m torus:50x50x40,bw=4.68 --ppn 1 --pattern fft:250x400",
            "-m torus:25x25x20,nodes=2,bw=4.68 --ppn 4 --pattern fft:250x400",
        ):
            out = ("--strategy", "auto", "-o", str(Path(folder) / "order.slots"))
            wall, processor, size = run_measured("order", *words.split(), *out)
            named = words.replace(str(graph), "graph.npz")
            rows.append([named, f"{wall:.1f} s", f"{processor:.1f} s", f"{size:,.0f} MB"])
    table("nidmap order --strategy auto", ["words", "wall", "processor", "memory"], rows)


def main() -> None:
    """Run the named part, or all."""
    parts = {"sizes": sizes, "sites": sites, "questions": questions, "orders": orders}
    name, *numbers = sys.argv[1:] or ["all"]
    for part, run in parts.items():
        if name in (part, "all"):
            run(*map(int, numbers))
    print(f"\ncalibration: numpy sorts 10^7 int64 in {calibration():.2f} s")


if __name__ == "__main__":
    main()
