# SPDX-License-Identifier: Apache-2.0
"""Questions that make sense, drawn at random: any machine, pattern and options, all small."""

import random

#: Extents of synthetic machines: kind, its options with the most of each.
_KINDS = {
    "dragonfly": {"groups": 9, "chassis": 4, "blades": 8, "nodes": 4},
    "dragonfly+": {"groups": 9, "leaves": 6, "spines": 6, "nodes": 8},
    "slingshot": {"groups": 8, "switches": 8, "nodes": 8},
    "fattree": {"leaf": 9, "leaves": 9, "spines": 5},
}
_MORE = ("", "", "", ",header=99", ",global=3", ",bw=4", ",injection=2")
_PATTERNS = (
    "alltoall", "sort", "ring", "bcast", "reduce", "gather", "scatter", "allreduce", "allgather",
    "reducescatter", "barrier", "permutation", "stencil:auto", "training:tp=2",
    "training:tp=2,pp=2",
)  # fmt: skip
_OPTIONS = {
    "--bytes": ("1", "1000", "50000", "1e6", "1e9"),
    "--algorithm": ("at-once", "pairwise", "ring", "bruck", "mpich", "openmpi", "binomial"),
}


_FIGURES = {
    "routing": ("minimal", "single", "valiant", "adaptive", "dimension-order"),
    "latency": ("0", "2"),
    "process": ("2", "inf", "-1"),
    "mpi": ("mpich", "openmpi"),
}


def question(data):
    """Return the words of a command line that the bytes stand for."""
    rng = random.Random(data)
    spec, most = _machine(rng)
    nodes = rng.randint(1, min(most, 24))
    ppn = rng.choice((1, 1, 2, 3, 4))
    words = [rng.choice(("plan", "plan", "order", "predict", "compare", "score")), "-m", spec]
    for figure, values in _FIGURES.items():
        if rng.random() < 0.2:
            words[-1] += f",{figure}={rng.choice(values)}"
    words += ["--ppn", str(ppn), "--pattern", _pattern(rng, nodes * ppn)]
    for option, values in _OPTIONS.items():
        if rng.random() < 0.25:
            words += [option, rng.choice(values)]
    if words[0] in ("plan", "compare"):
        words += ["-N", str(nodes)]
    else:
        words += ["--nodes", "#" + ",".join(map(str, sorted(rng.sample(range(most), nodes))))]
    if words[0] == "plan":
        words += rng.choice(([], ["--segment", str(rng.randint(1, 6))], ["--exclude", "#0"]))
    return words + rng.choice(([], ["--json"]))


def _machine(rng):
    """Return the spec of a machine and how many nodes it has."""
    if rng.random() < 0.3:
        extents = [rng.randint(1, 6) for _ in range(rng.randint(1, 4))]
        kind = rng.choice(("torus", "tree"))
    else:
        kind = rng.choice(list(_KINDS))
        extents = [rng.randint(1, most) for most in _KINDS[kind].values()]
    if kind in _KINDS:
        said = ",".join(f"{name}={n}" for name, n in zip(_KINDS[kind], extents, strict=True))
    else:
        said = "x".join(map(str, extents))
    count = 1
    for name, extent in zip(_KINDS.get(kind, extents), extents, strict=True):
        count *= 1 if name == "spines" else extent
    return f"{kind}:{said}{rng.choice(_MORE)}", count


def _pattern(rng, ranks):
    """Return a pattern of so many ranks."""
    a = rng.choice([n for n in range(1, ranks + 1) if ranks % n == 0])
    b = rng.choice([n for n in range(1, ranks // a + 1) if ranks // a % n == 0])
    grid = [f"{a}x{ranks // a}", f"{a}x{b}x{ranks // a // b}"]
    return rng.choice([
        f"stencil:{rng.choice(grid)}{rng.choice(('', ',periodic', ',staged', ',points=27'))}",
        f"fft:{grid[0]}", f"sweep:{grid[0]}", f"transposition:{grid[0]}", f"bcast:root={ranks - 1}",
        *rng.sample(_PATTERNS, 4),
    ])  # fmt: skip
