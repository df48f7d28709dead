# SPDX-License-Identifier: Apache-2.0
"""Graph mappers compared: J and user time of each, on the same graphs and machines.

Peers are run where they are found: ``chszlablib`` (SharedMap) and ``kahip`` of
PyPI, Scotch's ``scotch_gmap`` of Debian on the PATH, and TreeMatch inside Open
MPI 4: ``$TREEMATCH`` names its ``mca_topo_treematch.so`` (Debian's libopenmpi3;
what it needs must be on LD_LIBRARY_PATH). They are not dependencies; install
them in the environment that runs this. KaHIP partitions level by level down the
tree, as global multisection does.
Every J is computed here. A peer that overfills a node is marked, its figure
being no valid order's.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from benchmarks.timing import table


class Case(NamedTuple):
    """A graph on a tree of nodes."""

    name: str
    graph: Any
    sizes: tuple[int, ...]
    far: tuple[int, ...]
    ppn: int


def neighbours(n: int, dimensions: int, seed: int) -> Any:
    """Return a weighted graph of points in the unit cube, each joined to its nearest ones."""
    from nidmap.rankmap.pattern.graph import from_edges

    rng = np.random.default_rng(seed)
    points = rng.random((n, dimensions))
    side = max(1, round((n / 3) ** (1 / dimensions)))
    cell = (points * side).astype(np.int64) @ (side ** np.arange(dimensions))
    order = np.argsort(cell, kind="stable")
    a, b = [], []
    for step in (1, 2, 3):  # ranks of one cell and the next, in the order of the cells
        a.append(order[:-step])
        b.append(order[step:])
    for axis in range(dimensions):
        shifted = np.searchsorted(cell[order], cell + side**axis)
        fine = shifted < n
        a.append(np.flatnonzero(fine))
        b.append(order[shifted[fine]])
    a_all, b_all = np.concatenate(a), np.concatenate(b)
    close = np.abs(points[a_all] - points[b_all]).max(axis=1) < 3 / side
    weight = rng.integers(1, 101, int(close.sum())).astype(float)
    return from_edges(n, a_all[close], b_all[close], weight)


def scale_free(n: int, seed: int) -> Any:
    """Return a weighted graph with a few ranks that very many talk to."""
    from nidmap.rankmap.pattern.graph import from_edges

    rng = np.random.default_rng(seed)
    a = np.repeat(np.arange(1, n), 4)
    b = (a * rng.random(len(a)) ** 2).astype(np.int64)
    return from_edges(n, a, b, rng.integers(1, 101, len(a)).astype(float))


def random_grid(dims: tuple[int, ...], seed: int) -> Any:
    """Return a grid whose edges have random weights."""
    from nidmap.rankmap.pattern.graph import expand_pattern, from_edges
    from nidmap.rankmap.pattern.structured import Stencil

    a, b, _ = expand_pattern(Stencil(dims)).upper()
    weight = np.random.default_rng(seed).integers(1, 101, len(a)).astype(float)
    return from_edges(int(np.prod(dims)), a, b, weight)


def cases(large: bool) -> Iterator[Case]:
    """Yield the graphs: 4,096 ranks on 128 nodes, or 65,536 ranks."""
    from nidmap.rankmap.pattern.graph import expand_pattern
    from nidmap.rankmap.pattern.structured import Stencil

    n, sizes, ppn = (65536, (4, 16, 32), 32) if large else (4096, (4, 8, 4), 32)
    yield Case(f"plane {n}", neighbours(n, 2, 1), sizes, (1, 2, 3), ppn)
    yield Case(f"cube {n}", neighbours(n, 3, 2), sizes, (1, 2, 3), ppn)
    if not large:
        yield Case(f"plane {n}, 1:10:100", neighbours(n, 2, 5), sizes, (1, 10, 100), ppn)
        yield Case(f"cube {n}, 1:10:100", neighbours(n, 3, 3), sizes, (1, 10, 100), ppn)
        yield Case(f"scale-free {n}", scale_free(n, 4), sizes, (1, 2, 3), ppn)
        yield Case(f"scale-free {n}, 1:10:100", scale_free(n, 6), sizes, (1, 10, 100), ppn)
        yield Case("weighted grid 16x16x16", random_grid((16, 16, 16), 7), sizes, (1, 2, 3), ppn)
        stencil = expand_pattern(Stencil((24, 24, 16)))
        yield Case("stencil 24x24x16", stencil, (4, 16, 6), (1, 2, 3), 24)


def ours(case: Case) -> Any:
    """Return the node of each rank by strategy graph."""
    from nidmap.rankmap.refine.mapping import map_ranks

    return map_ranks(case.graph, np.full(nodes(case), case.ppn), distance(case))


def sharedmap(case: Case, mode: str) -> Any:
    """Return SharedMap's nodes, at imbalance 0."""
    import chszlablib

    g = case.graph
    given = chszlablib.Graph.from_csr(g.indptr, g.indices, edge_weights=g.weights.astype(np.int64))
    found = chszlablib.Decomposition.process_map(
        given, list(case.sizes), list(case.far), mode=mode, imbalance=0.0, threads=1, seed=1
    )
    return np.asarray(found.assignment)


def multisect_with(case: Case, part: Callable[[Any, int], Any]) -> Any:
    """Return nodes by applying a partitioner level by level down the tree."""
    node = np.zeros(case.graph.size, dtype=np.int64)
    parts, below = [np.arange(case.graph.size)], nodes(case)
    for size in reversed(case.sizes):
        below //= size
        finer = []
        for ranks in parts:
            block = part(subgraph_of(case.graph, ranks), size) if size > 1 else np.zeros(len(ranks))
            for k in range(size):
                finer.append(ranks[block == k])
                node[finer[-1]] += k * below
        parts = finer
    return node


def subgraph_of(graph: Any, ranks: Any) -> Any:
    """Return the graph of some ranks."""
    from nidmap.rankmap.pattern.graph import from_edges

    local = np.full(graph.size, -1)
    local[ranks] = np.arange(len(ranks))
    a, b, weight = graph.upper()
    inside = (local[a] >= 0) & (local[b] >= 0)
    return from_edges(len(ranks), local[a[inside]], local[b[inside]], weight[inside])


def kahip(case: Case, mode: str, imbalance: float) -> Any:
    """Return nodes by KaHIP."""
    import kahip as library

    def part(g: Any, k: int) -> Any:
        weights = g.weights.astype(int).tolist()
        arguments = (g.indptr.tolist(), weights, g.indices.tolist(), k, imbalance, True, 1)
        return np.array(library.kaffpa([1] * g.size, *arguments, getattr(library, mode))[1])

    return multisect_with(case, part)


def scotch(case: Case) -> Any:
    """Return Scotch's nodes, asked for exact balance."""
    g = case.graph
    with tempfile.TemporaryDirectory() as folder:
        lines = [f"0\n{g.size} {len(g.indices)}\n0 010"]
        for v in range(g.size):
            row = slice(g.indptr[v], g.indptr[v + 1])
            pairs = zip(g.weights[row].astype(int), g.indices[row], strict=True)
            lines.append(f"{row.stop - row.start} " + " ".join(f"{w} {b}" for w, b in pairs))
        files = [os.path.join(folder, name) for name in ("g.grf", "t.tgt", "o.map")]
        with open(files[0], "w") as stream:
            stream.write("\n".join(lines) + "\n")
        far = [b - a for a, b in zip((0, *case.far), case.far, strict=False)]
        levels = " ".join(f"{s} {d}" for s, d in zip(case.sizes[::-1], far[::-1], strict=True))
        with open(files[1], "w") as stream:
            stream.write(f"tleaf {len(case.sizes)} {levels}\n")
        subprocess.run(["scotch_gmap", *files, "-b0"], check=True, capture_output=True)
        found = np.loadtxt(files[2], skiprows=1, dtype=np.int64)
    node = np.empty(g.size, dtype=np.int64)
    node[found[:, 0]] = found[:, 1]
    return node


def treematch(case: Case) -> Any:
    """Return TreeMatch's nodes, called as in Open MPI with a dense matrix."""
    import ctypes as c

    class Solution(c.Structure):
        """The result of tm_compute_mapping: the core of each rank first."""

        _fields_ = [("core", c.POINTER(c.c_int)), ("ranks", c.c_size_t)]

    library = c.CDLL(os.environ["TREEMATCH"], mode=os.RTLD_LAZY)
    steps = ("build_synthetic_topology", "build_affinity_mat", "build_tree_from_topology")
    for name in steps:
        getattr(library, f"tm_{name}").restype = c.c_void_p
    library.tm_compute_mapping.restype = c.POINTER(Solution)
    n, (a, b, weight) = case.graph.size, case.graph.upper()
    dense = np.zeros((n, n))
    dense[a, b] = dense[b, a] = weight
    rows = (c.c_void_p * n)(*(dense.ctypes.data + dense.strides[0] * i for i in range(n)))
    sizes = [*case.sizes[::-1], case.ppn]
    arity = (c.c_int * (len(sizes) + 1))(*sizes, 0)
    cost = (c.c_double * (len(sizes) + 1))(*case.far[::-1], 0.0, 0.0)
    cores = (c.c_int * n)(*range(n))
    tree = c.c_void_p(library.tm_build_synthetic_topology(arity, cost, len(arity), cores, n))
    library.tm_optimize_topology(c.byref(tree))
    matrix = c.c_void_p(library.tm_build_affinity_mat(rows, n))
    groups = c.c_void_p(library.tm_build_tree_from_topology(tree, matrix, None, None))
    found = library.tm_compute_mapping(tree, groups).contents
    return np.array(found.core[:n]) // case.ppn


def contenders(case: Case, large: bool) -> dict[str, Callable[[], Any]]:
    """Return the mappers that can run here."""
    found: dict[str, Callable[[], Any]] = {"nidmap graph": lambda: ours(case)}
    modes = ("eco",) if large else ("fast", "eco", "strong")
    if find_spec("chszlablib"):
        found |= {f"SharedMap {m}": lambda m=m: sharedmap(case, m) for m in modes}  # type: ignore[misc]
    if find_spec("kahip"):
        found |= {
            f"KaHIP {m} {e:.0%}": lambda m=m, e=e: kahip(case, m.upper(), e)  # type: ignore[misc]
            for m in modes
            for e in ((0.03,) if large else (0.0, 0.03))
        }
    if shutil.which("scotch_gmap"):
        found["Scotch"] = lambda: scotch(case)
    if "TREEMATCH" in os.environ and not large:  # its matrix of 65,536 ranks needs 34 GB
        found["TreeMatch"] = lambda: treematch(case)
    return found


def nodes(case: Case) -> int:
    """Return how many nodes the tree has."""
    return int(np.prod(case.sizes))


def distance(case: Case) -> Any:
    """Return the tree's distances."""
    import nidmap
    from nidmap.rankmap.score.distance import machine_distance

    sizes, far = "x".join(map(str, case.sizes)), ":".join(map(str, case.far))
    return machine_distance(nidmap.load_machine(f"tree:{sizes},dist={far}"))


def user() -> float:
    """Return the user seconds of this process and its children."""
    whom = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(resource.getrusage(w).ru_utime for w in whom)


def main() -> None:
    """Print J of each mapper as a ratio to ours, and its user seconds."""
    from nidmap.rankmap.score.traffic import cost_of

    for large in (False, True):
        for case in cases(large):
            far, rows, base = distance(case), [], 0.0
            cold = user()
            ours(case)
            cold = user() - cold
            for name, run in contenders(case, large).items():
                start = user()
                node = run()
                spent = user() - start
                cost = cost_of(case.graph, node, far)
                base = base or cost
                most = int(np.bincount(node, minlength=nodes(case)).max())
                balance = "exact" if most == case.ppn else f"up to {most} of {case.ppn}"
                rows.append([name, f"{cost:,.0f}", f"{cost / base:.3f}", f"{spent:.2f} s", balance])
            header = ["mapper", "J", "ratio", "user", "ranks a node"]
            table(f"{case.name} (our first call: {cold:.1f} s)", header, rows)
