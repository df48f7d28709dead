# SPDX-License-Identifier: Apache-2.0
"""Strategy ``auto`` checked by exhaustive search, every planner, SimGrid, and for speed.

``python -m benchmarks.auto`` runs all parts; ``exhaustive [N]``, ``simgrid [N]`` and ``speed``
one of them, the first two on N random machines. Larger ones: `benchmarks.questions`.

exhaustive
    Small machines of every kind with at most 20 free nodes. Every set of
    nodes, and for patterns that are not all alike every order of the nodes
    (few nodes) or every order by name (more nodes), is timed by a table of
    the routes of all pairs that is made here. Shown: auto's time over the
    least.
simgrid
    Tori and fat trees, nodes busy at random; auto's plan and Slurm's own,
    each as all-to-all or stencil of single ranks, through SimGrid's own
    torus or fat tree, all messages started at once. Shown: auto's time over
    the default's, by SimGrid and as predicted.
speed
    Whole processes of ``nidmap plan --strategy auto``.
"""

from __future__ import annotations

import itertools
import math
import sys
import time
from statistics import median
from typing import Any, cast

import numpy as np

from benchmarks.simgrid_check import alltoall, ask_simgrid, interpreter, stencil
from benchmarks.timing import calibration, process, table
from nidmap import plan
from nidmap.placement.network import Demand, channels, loads, routings
from nidmap.placement.network.channel_loads import injection_bandwidth
from nidmap.placement.options import with_figures
from nidmap.placement.placement import Placement
from nidmap.placement.specs import parse_spec
from nidmap.placement.traffic import Traffic
from nidmap.rankmap import orders
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.predict import Job
from nidmap.rankmap.predict.constants import machine_constants

#: Machines of the exhaustive part.
SMALL = (
    "dragonfly:groups=4,chassis=2,blades=4,nodes=2,global=8,injection=10",
    "dragonfly:groups=3,chassis=3,blades=3,nodes=2,global=2,injection=10",
    "dragonfly:groups=6,chassis=1,blades=4,nodes=2,global=4,wiring=same-chassis,injection=10",
    "slingshot:groups=4,switches=4,nodes=4,global=2,nics=2",
    "torus:4x4x4,bw=1",
    "torus:5x3x4,bw=2,nodes=2,injection=10",
    "torus:8x8,bw=1",
    "fattree:leaf=4,leaves=8,spines=2,bw=1",
    "fattree:down=3x3x3,up=1x2x2,bw=1",
    "tree:4x4x4,bw=1",
    "tree:3x2x3x2,bw=1",
)

#: Patterns of so many ranks on so many nodes, one a node.
PATTERNS = {
    4: ("alltoall", "fft:2x2", "stencil:2x2", "ring"),
    5: ("alltoall", "ring", "stencil:5"),
    6: ("alltoall", "fft:2x3", "stencil:2x3", "fft:3x2", "ring"),
    8: ("alltoall", "fft:2x4", "stencil:2x2x2", "stencil:2x4,periodic"),
    9: ("alltoall", "fft:3x3", "stencil:3x3"),
    10: ("alltoall", "fft:2x5", "stencil:5x2"),
}

#: Every order of the nodes is tried up to so many nodes.
ALL_ORDERS = 5

#: States timed at once.
BATCH = 2000


def additive_routing(machine):
    """Return a routing under which the loads of several messages simply add up."""
    found = routings(machine)
    return "minimal" if "adaptive" in found else found[0]


def routes(machine, free):
    """Return seconds per byte between any two free nodes on each link, (f, f, c)."""
    found = channels(machine)
    own = injection_bandwidth(machine) * machine_constants(machine).reach
    routing = additive_routing(machine)
    out = np.zeros((len(free), len(free), len(found) + 2 * len(free)))
    for i, a in enumerate(free):
        for j, b in enumerate(free):
            if i != j:
                sent = Demand.of(machine, Traffic.of(np.array([a]), np.array([b]), 1.0))
                load = loads(machine, sent, routing).load
                out[i, j, : len(found)] = load / (found.bandwidth * 1e9)
                out[i, j, len(found) + i] = 1 / (own[a] * 1e9)
                out[i, j, len(found) + len(free) + j] = 1 / (own[b] * 1e9)
    used = out.any(axis=(0, 1))
    return out[:, :, used]


def phases_of(pattern, ranks):
    """Return the bytes between ranks, phase by phase, for 1 MB messages; reimplemented here."""
    kind, _, rest = pattern.partition(":")
    out = []
    if kind == "alltoall":
        out.append(np.ones((ranks, ranks)) - np.eye(ranks))
    elif kind == "ring":
        out.append(np.roll(np.eye(ranks), 1, axis=1))
    elif kind == "fft":
        p, q = map(int, rest.split("x"))
        row, column = np.divmod(np.arange(p * q), q)
        out = [(x[:, None] == x[None, :]) - np.eye(ranks) for x in (row, column)]
    else:
        grid, _, wrap = rest.partition(",")
        dims = tuple(map(int, grid.split("x")))
        one = np.zeros((ranks, ranks))
        np.add.at(one, stencil(np.arange(ranks), dims, bool(wrap)), 1.0)
        out.append(one)
    return [np.asarray(x, dtype=float) * 1e6 for x in out]


def least(seconds, sent, placements):
    """Return the least time of some placements, given as each rank's free node per row."""
    best = np.inf
    for chunk in batches(placements):
        pairs = seconds[chunk[:, :, None], chunk[:, None, :]]
        times = sum(np.einsum("ij,bijc->bc", one, pairs, optimize=True).max(axis=1) for one in sent)
        best = min(best, float(times.min()))
    return best


def batches(placements):
    """Yield placements as arrays, in batches."""
    walk = iter(placements)
    while chunk := list(itertools.islice(walk, BATCH)):
        yield np.array(chunk)


def placements_of(machine, free, count, pattern):
    """Yield every placement of the exhaustive search."""
    for some in itertools.combinations(range(len(free)), count):
        if pattern == "alltoall":
            yield some
        elif count <= ALL_ORDERS:
            yield from itertools.permutations(some)
        else:
            for slots in named_orders(machine, free[list(some)], pattern):
                yield np.array(some)[slots]


def named_orders(machine, rows, pattern):
    """Yield the slots of every named order that needs no compiled search."""
    slots = Placement(machine.names[rows], np.ones(len(rows), dtype=np.int64), machine, rows)
    fitted = parse_pattern(pattern).on(slots)
    for name in ("row-major", "hilbert", "column-major", "folded", "hierarchical"):
        try:
            yield orders.find(name)(fitted, slots).slot_of_rank
        except Exception:  # an order that does not fit is none
            continue


def case(rng, most):
    """Return (spec, free rows, count, pattern) of a random case."""
    spec = SMALL[int(rng.integers(len(SMALL)))]
    count = int(rng.choice(list(PATTERNS)))
    pattern = PATTERNS[count][int(rng.integers(len(PATTERNS[count])))]
    most = most if pattern == "alltoall" else 12 if count <= ALL_ORDERS else 11
    machine = parse_spec(spec)
    many = int(rng.integers(count, most + 1))
    free = np.sort(rng.choice(np.flatnonzero(machine.free), min(many, len(machine)), replace=False))
    return machine, free, count, pattern


def exhaustive(cases=60, seed=0, most=20):
    """Print auto's time relative to the least of all placements."""
    rng = np.random.default_rng(seed)
    ratios, took = {}, []
    for _ in range(cases):
        machine, free, count, pattern = case(rng, most)
        mask = np.zeros(len(machine), dtype=bool)
        mask[free] = True
        began = time.perf_counter()
        found = plan(
            with_figures(machine, latency=0, routing=additive_routing(machine)),
            count,
            job=Job(pattern),
            strategy="auto",
            candidates=mask,
            deadline=60,
        )
        took.append(time.perf_counter() - began)
        seconds, sent = routes(machine, free), phases_of(pattern, count)
        best = least(seconds, sent, placements_of(machine, free, count, pattern))
        mine = node_of_ranks(found, free)
        own = least(seconds, sent, [mine])
        predicted = found.facts["predicted"]["time_s"]
        assert math.isclose(own, predicted, rel_tol=1e-9), (own, predicted)
        key = machine.topology.kind, pattern.partition(":")[0]
        fastest = found.facts["predicted"]["search"]["best"]["cost"]  # the answer may keep together
        own = min(own, fastest)
        ratios.setdefault(key, []).append(own / best)
        if own > best * 1.01:
            print("BEHIND", machine.name, free.tolist(), count, pattern, own / best, flush=True)
    rows = [
        [*key, str(len(x)), f"{max(x):.4f}", f"{np.mean(np.array(x) > 1.01):.0%}"]
        for key, x in sorted(ratios.items())
    ]
    table("auto over exhaustive", ["network", "pattern", "cases", "worst", "behind 1 %"], rows)
    print(f"auto took {median(took):.2f} s in the median, {max(took):.2f} s at most")


def node_of_ranks(found, free):
    """Return the free node of every rank of a plan, as an index of the free nodes."""
    order = found.order
    return np.searchsorted(free, found.rows[order.node_of_rank])


#: Machines of the SimGrid part: kind, extents or (down, up), jobs.
TORI: tuple[Any, ...] = (
    ((8, 8, 8), ((27, (3, 3, 3)), (64, (4, 4, 4)))),
    ((6, 4, 5), ((24, (2, 3, 4)),)),
)
TREES: tuple[Any, ...] = (
    (((6, 6, 3), (1, 2, 4)), ((24, (2, 3, 4)),)),
    (((8, 12), (1, 4)), ((32, (4, 8)),)),
)


def simgrid(cases=40, seed=0):
    """Print auto's time relative to the default's, by SimGrid."""
    python = interpreter()
    if not python:
        print("skipped: no Python here can import simgrid (Debian: apt install python3-simgrid)")
        return
    rng = np.random.default_rng(seed)
    rows = {}
    for _ in range(cases):
        spec, job, count, dims = simulation(rng)
        machine = parse_spec(spec)
        share = rng.uniform(0.3, 0.9)
        free = machine.free & draw_free_nodes(machine, rng, share)
        while free.sum() < count:
            free[rng.integers(len(free))] = True
        pattern = str(rng.choice(["alltoall", f"stencil:{'x'.join(map(str, dims))}"]))
        found = plan(
            with_figures(machine, latency=0),
            count,
            job=Job(pattern),
            strategy="auto",
            candidates=free,
            deadline=60,
        )
        default = plan(machine, count, strategy="slurm-none", candidates=free)
        auto = ran(
            python, job, found.rows[cast("Placement", found.order).node_of_rank], pattern, dims
        )
        base = ran(python, job, default.rows, pattern, dims)
        expected = found.facts["predicted"]["ratio"]
        key = job["kind"], pattern.partition(":")[0]
        rows.setdefault(key, []).append((auto / base, expected))
        if auto > base * 1.001:
            print("WORSE", spec, pattern, count, auto / base, expected, flush=True)
    lines = []
    for key, x in sorted(rows.items()):
        by, expected = np.array(x).T
        worse = f"{np.mean(by > 1.001):.0%}"
        apart = f"{np.abs(by / expected - 1).max():.1%}"
        lines.append([*key, str(len(x)), f"{median(by):.2f}", f"{by.max():.3f}", worse, apart])
    head = ["network", "pattern", "cases", "median", "worst", "worse", "from predicted"]
    table("auto over the default, by SimGrid", head, lines)


def draw_free_nodes(machine, rng, share):
    """Return a mask of free nodes: busy ones singly, or in runs as left by jobs."""
    if rng.random() < 0.5:
        return rng.random(len(machine)) < share
    free = np.ones(len(machine), dtype=bool)
    while free.mean() > share:
        low = int(rng.integers(len(machine)))
        free[low : low + int(rng.integers(1, max(2, len(machine) // 8)))] = False
    return free


def simulation(rng):
    """Return spec, SimGrid's job, nodes and grid of a random machine."""
    if rng.random() < 0.6:
        extents, jobs = TORI[int(rng.integers(len(TORI)))]
        count, dims = jobs[int(rng.integers(len(jobs)))]
        spec = f"torus:{'x'.join(map(str, extents))},bw=1"
        return spec, {"kind": "torus", "extents": extents, "gbs": 1}, count, dims
    (down, up), jobs = TREES[int(rng.integers(len(TREES)))]
    count, dims = jobs[int(rng.integers(len(jobs)))]
    spec = "fattree:down={},up={},bw=1".format(*("x".join(map(str, x)) for x in (down, up)))
    return spec, {"kind": "fattree", "down": down, "up": up, "gbs": 1}, count, dims


def ran(python, job, rows, pattern, dims):
    """Return SimGrid's seconds with the ranks on these rows."""
    a, b = alltoall(rows) if pattern == "alltoall" else stencil(rows, dims, False)
    flows = [[int(s), int(t), 10**6] for s, t in zip(a, b, strict=True)]
    return ask_simgrid(python, job | {"flows": flows})["seconds"]


def speed():
    """Print the seconds of complete processes."""
    print(f"calibration: numpy sorts 10^7 int64 in {calibration():.2f} s")
    jobs = (
        "-m shaheen2 -N 512",
        "-m shaheen2 -N 512 --ppn 32 --pattern fft:128x128",
        "-m shaheen2 -N 512 --ppn 32 --pattern stencil:32x32x16",
        "-m shaheen2 -N 512 --ppn 32 --pattern sort",
        "-m shaheen2 -N 4096 --pattern alltoall",
        "-m torus:16x16x24,nodes=2,bw=4.68 -N 512 --pattern alltoall",
        "-m torus:16x16x24,nodes=2,bw=4.68 -N 512 --ppn 16 --pattern stencil:32x16x16",
        "-m fattree:leaf=18,leaves=324,spines=18,bw=12.5 -N 512 --pattern alltoall",
    )
    rows = []
    for words in jobs:
        run = process(
            "-m", "nidmap", "plan", *words.split(), "--strategy", "auto", "-o", "/dev/null"
        )
        run()
        took = []
        for _ in range(3):
            began = time.perf_counter()
            run()
            took.append(time.perf_counter() - began)
        rows.append([words, f"{min(took):.2f} s", f"{max(took):.2f} s"])
    table("nidmap plan --strategy auto, whole process", ["words", "least", "most of 3"], rows)


def main():
    """Run the named parts, or all."""
    parts = {"exhaustive": exhaustive, "simgrid": simgrid, "speed": speed}
    name, *numbers = sys.argv[1:] or ["all"]
    for part, run in parts.items():
        if name in (part, "all"):
            run(*map(int, numbers))


if __name__ == "__main__":
    main()
