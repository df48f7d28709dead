# SPDX-License-Identifier: Apache-2.0
"""Sections III-C, IV-A and IV-B of the FFT paper: exponents and bandwidths by size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.study.fragments import busy
from benchmarks.study.ordering import PPN, grid
from benchmarks.study.placing import (
    DETOURS,
    FAR,
    ROUTING,
    bandwidth_left,
    lost_winners,
    saving_of_blades,
)
from benchmarks.study.published import FFT
from benchmarks.study.result import Check, Table, Term, ratio_words, three
from benchmarks.study.setting import COMMON, Setting
from benchmarks.study.timing import POINT, Exchange, Stepped, Transform, greener, predictor
from benchmarks.study.verdict import inside, near, over, under

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nidmap.placement.machine import Machine
    from nidmap.placement.support.array_types import Ints


#: Random occupancies of the exponents with and without ``--contiguous``.
SEEDS = 1
#: Factor by which an exponent may be off: they are printed with one or two digits.
NEAR = 1.06
#: Times the bandwidth of green links that stands for detours inside a chassis.
WIDER = 4
#: GFlop/s of a core in an FFT [assumed], and what is tried instead.
CORE, CORES, SLOW_CORE = 1.0, (0.5, 1.0, 2.0), 0.2
#: Bytes a message of the bandwidth test that are swept: the paper states none.
MESSAGES = (1024, 4096, 16384, 32768, 65536, 262144, 1048576)
#: Grids of Figure 4 that are tried: its grid is not stated.
SIDES = (1536, 2048, 3072)
#: Nodes of Figure 4's two regions.
SMALL, LARGE = (2, 4, 8, 16, 32, 60), (64, 256, 1024, 4096, 6144)


def exponent(counts: Sequence[int], seconds: Sequence[float]) -> float:
    """Return g of the best T = C · p^-g.

    Examples
    --------
    >>> round(exponent([1, 2, 4], [8.0, 4.0, 2.0]), 3)
    1.0
    """
    return -float(np.polyfit(np.log(counts), np.log(seconds), 1)[0])


def computing(side: int, ranks: int, core: float = CORE) -> float:
    """Return the seconds of one real transform's arithmetic."""
    points = float(side) ** 3
    return 2.5 * points * float(np.log2(points)) / (ranks * core * 1e9)


def transform(machine: Machine, rows: Ints, others: Any = (), how: str = "") -> Transform:
    """Return the FFT's communication on these nodes with 32 ranks each."""
    dims = grid(len(rows) * PPN)
    text = f"fft:{dims[0]}x{dims[1]}"
    return Transform(Exchange(machine, rows, text, PPN, COMMON, others, how=how), dims)


def contiguous(machine: Machine) -> tuple[Table, list[Check]]:
    """Return the exponents of section IV-A, with and without ``--contiguous``."""
    rows, checks = [], []
    for side, (published, apart, cores) in FFT.CONTIGUOUS.items():
        counts = [cores // PPN // k for k in (4, 2, 1)]
        one, other, ratio = _exponents(machine, side, counts, SEEDS)
        wide, wider, _ = _exponents(greener(machine, WIDER), side, counts, 1)
        slow = _exponents(machine, side, counts, 1, SLOW_CORE)[:2]
        rows.append(
            (
                f"{side} cubed, {counts[0] * PPN} to {cores:,} cores", f"{published:g}",
                f"{apart:g}", f"{one:.2f}", f"{other:.2f}", f"{ratio:.2f}",
                f"{wide:.2f} and {wider:.2f}",
            )
        )  # fmt: skip
        checks.append(
            Check(
                f"IV-A, {side} cubed: exponents contiguous and not",
                f"{published:g} and {apart:g}",
                f"{one:.2f} and {other:.2f}",
                near([one, other], [published, apart], NEAR),
                f"with green links {WIDER} times as fast (detours inside a chassis) {wide:.2f} and"
                f" {wider:.2f}; at {counts[-1]} nodes the default takes {ratio:.2f} times as long;"
                f" with {SLOW_CORE:g} GFlop/s a core {slow[0]:.2f} and {slow[1]:.2f}, but Figure 4"
                " wants a faster one",
                needs="how much of the time is communication: the seconds of the arithmetic at one"
                " number of cores would decide",
            )
        )
        checks.append(
            Check(
                f"IV-A, {side} cubed: contiguous nodes scale at least as well",
                "yes",
                f"{one:.2f} against {other:.2f}",
                over(one - other, -0.005),
            )
        )
    return (
        Table(
            "IV-A: exponents with and without --contiguous",
            ("grid", "paper, contiguous", "paper, not", "model, contiguous", "model, not",
             "time not / contiguous, most nodes", f"both with green x {WIDER}"),
            tuple(rows),
            f"Total time with {CORE:g} GFlop/s a core assumed, {PPN} ranks a node, one"
            " occupancy. Contiguous: the first run of compute nodes that is free.",
        ),
        checks,
    )  # fmt: skip


def _exponents(
    machine: Machine, side: int, counts: list[int], seeds: int, core: float = CORE
) -> tuple[float, float, float]:
    """Return median exponents on contiguous and other nodes, and the ratio of their times."""
    found = []
    for seed in range(seeds):
        one, other = (_times(machine, seed, counts, side, near, core) for near in (True, False))
        found.append((exponent(counts, one), exponent(counts, other), other[-1] / one[-1]))
    near, far, ratio = np.median(found, axis=0).tolist()
    return near, far, ratio


def _times(
    machine: Machine, seed: int, counts: list[int], side: int, near: bool, core: float
) -> list[float]:
    """Return the total seconds for each number of nodes."""
    seconds = []
    for count in counts:
        found = busy(machine, seed, COMMON.share, COMMON.load)
        rows = found.contiguous(count) if near else found.room(count)
        sent = transform(machine, rows, found.jobs).seconds(side)
        seconds.append(sent + computing(side, count * PPN, core))
    return seconds


def bandwidths(machine: Machine) -> tuple[Table, list[Check], dict[str, Any]]:
    """Return the all-to-all bandwidths of section IV-B."""
    rows: list[tuple[str, ...]] = []
    series: dict[str, list[float]] = {"nodes": [], "one": [], "full": [], "idle": [], "wide": []}
    wide = greener(machine, WIDER)
    for nodes in (8, 32, 128, 512):
        one, _ = _best(machine, nodes, 1, COMMON)
        full, size = _best(machine, nodes, PPN, COMMON)
        idle, _ = _best(machine, nodes, PPN, replace(COMMON, load=0.0))
        more, _ = _best(wide, nodes, PPN, COMMON)
        found = {"nodes": nodes, "one": one, "full": full, "idle": idle, "wide": more}
        for key, value in found.items():
            series[key].append(value)
        paper = FFT.FULL_NODE_GBS.get(nodes)
        rows.append(
            (str(nodes), three(one), f"{paper:g}" if paper else "", three(full), three(idle),
             three(more), f"{size:,}")
        )  # fmt: skip
    series["around"] = [_around(machine, nodes) for nodes in FFT.FULL_NODE_GBS]
    table = Table(
        "IV-B: all-to-all bandwidth, GB/s",
        ("nodes", "model, a process at 1 a node", "paper, a node at 32", "model, a node at 32",
         "model, no other jobs", f"model, green x {WIDER}", "best message, B"),
        tuple(rows),
        f"Bytes sent over time, the best of messages from {MESSAGES[0]:,} to"
        f" {MESSAGES[-1]:,} B (the paper's size is not stated); one occupancy. The paper's 9 and 1"
        " GB/s are 300 and 40 MB/s a process at 256 and 16,384 processes.",
    )  # fmt: skip
    cost = lost_winners(saving_of_blades(machine, ROUTING, FAR))
    return table, _limits(series, cost), series


def full_nodes(machine: Machine, nodes: int, routings: Sequence[str]) -> list[float]:
    """Return the best GB/s per node with 32 ranks per node, for each routing."""
    return [_best(machine, nodes, PPN, replace(COMMON, routing=how))[0] for how in routings]


def _around(machine: Machine, nodes: int) -> float:
    """Return the best GB/s per node with 32 ranks per node and detours within groups."""
    found = busy(machine, 0, COMMON.share, COMMON.load)
    rows, rest = found.room(nodes), bandwidth_left(found, "minimal", COMMON)
    sent = Stepped(predictor(machine, "alltoall", PPN, "at-once"), rows)
    far, peers = FAR, nodes * PPN - 1
    times = {size: sent.seconds(rest, [size], COMMON.process, far) for size in MESSAGES}
    return max(PPN * peers * size / seconds / 1e9 for size, seconds in times.items())


def _limits(series: dict[str, list[float]], cost: str) -> list[Check]:
    most, first, last = max(series["one"]), series["full"][0], series["full"][-1]
    return [
        Check("IV-B: GB/s a process at 1 a node", "2 at most", three(most),
              inside(most, 1.5, 1.025 * FFT.ONE_RANK_GBS),
              "2 GB/s is what a rank is given: only that nothing else is the bottleneck is found"),
        Check("IV-B: GB/s a node at 32 a node, 8 nodes", "9", three(first),
              near(first, FFT.FULL_NODE_GBS[8]),
              f"{ratio_words(first / 9)}: four nodes of a blade share one green link under"
              f" minimal; with green links {WIDER} times as fast {three(series['wide'][0])}",
              Term(f"{DETOURS}; it is made from this figure, and Table IV is what tests it",
                   (series["around"][0],), three(series["around"][0]), cost)),
        Check("IV-B: GB/s a node at 32 a node, 512 nodes", "1", three(last),
              near(last, FFT.FULL_NODE_GBS[512]),
              f"without other jobs {three(series['idle'][-1])}, green links {WIDER} times as fast"
              f" {three(series['wide'][-1])}, with detours inside groups"
              f" {three(series['around'][-1])}"),
    ]  # fmt: skip


def _exchange(machine: Machine, nodes: int, ppn: int, setting: Setting) -> Exchange:
    key = ("study", "alltoall", nodes, ppn, setting)
    kept: dict[Any, Any] = machine._cache
    if key not in kept:
        found = busy(machine, 0, setting.share, setting.load)
        rows = found.room(nodes)
        kept[key] = Exchange(machine, rows, "alltoall", ppn, setting, found.jobs)
    made: Exchange = kept[key]
    return made


def _at(machine: Machine, nodes: int, ppn: int, setting: Setting, size: int) -> float:
    """Return GB/s per node (per process with 1 rank per node) for one message size."""
    ranks = nodes * ppn
    seconds = _exchange(machine, nodes, ppn, setting).seconds([size], [ranks])
    return ppn * (ranks - 1) * size / seconds / 1e9


def _best(machine: Machine, nodes: int, ppn: int, setting: Setting) -> tuple[float, int]:
    """Return the best GB/s per node over all sizes, and that size."""
    return max((_at(machine, nodes, ppn, setting, size), size) for size in MESSAGES)


def regions(machine: Machine) -> tuple[Table, list[Check], dict[str, Any]]:
    """Return Figure 4's exponents, up to 60 nodes and from 64 on."""
    made = _fft_by_nodes(machine, SMALL + LARGE)
    total = {core: [_two(made, side, core) for side in SIDES] for core in CORES}
    only = [_two(made, side, None) for side in SIDES]
    rows = [
        (f"{side} cubed", *(f"{g:.2f}" for g in (*total[CORE][k], *only[k])))
        for k, side in enumerate(SIDES)
    ]
    series = {
        "nodes": list(SMALL + LARGE),
        "sides": {str(side): _total(made, side, CORE) for side in SIDES},
    }
    table = Table(
        "Figure 4: exponents of the strong scaling, 32 ranks a node",
        ("grid", "total, 2 to 60 nodes", "total, 64 to 6,144", "communication only, 2 to 60",
         "communication only, 64 to 6,144"),
        (("paper (grid not stated)", *(f"{g:g}" for g in FFT.REGIONS), "", ""), *rows),
        f"One occupancy; arithmetic at {CORE:g} GFlop/s a core.",
    )  # fmt: skip
    inner, outer = np.median(total[CORE], axis=0).tolist()
    varied = {
        f"{core:g} GFlop/s a core": np.median(total[core], axis=0).tolist()
        for core in CORES
        if core != CORE
    }
    count = SIDES[-1]
    varied[f"green links {WIDER} times as fast ({count} cubed)"] = _two(
        _fft_by_nodes(greener(machine, WIDER), SMALL + LARGE), count, CORE
    )
    varied[f"everything at once ({count} cubed)"] = _two(
        _fft_by_nodes(machine, SMALL + LARGE, "at-once"), count, CORE
    )
    checks = _two_regions(inner, outer, varied, _lacking(made, count))
    return table, [*checks, _boundary(made)], series


def _boundary(made: dict[int, Transform]) -> Check:
    """Return whether the time jumps where the job outgrows its chassis."""
    last, first = SMALL[-1], LARGE[0]
    ratios = [made[first].seconds(side) / made[last].seconds(side) for side in SIDES]
    return Check(
        "Figure 4: a sharp change of the time beyond the chassis",
        "seen",
        f"communication on {first} nodes takes {min(ratios):.2f} to {max(ratios):.2f} times that"
        f" on {last}",
        over(ratios, 1.0),
    )


def _lacking(made: dict[int, Transform], side: int) -> str:
    """Return what the model lacks at the most nodes for the exponent beyond a chassis."""
    first, last = LARGE[0], LARGE[-1]
    times = dict(zip(made, _total(made, side, CORE), strict=True))
    missing = times[first] * (last / first) ** -FFT.REGIONS[1] - times[last]
    ranks = sum(made[last].dims)
    size = POINT * side**3 / (last * PPN) / max(made[last].dims)
    return (
        f"{three(missing)} s a transform at {last:,} nodes ({side} cubed),"
        f" {1e6 * missing / ranks:.0f} us for each of {ranks} messages of a rank: an all-to-all of"
        f" {size / 1e3:.1f} kB timed there would decide whether messages cost it or arithmetic"
    )


def _two_regions(
    inner: float, outer: float, varied: dict[str, Sequence[float]], lacking: str
) -> list[Check]:
    one, other = FFT.REGIONS
    why = ["; ".join(f"{pair[k]:.2f} with {name}" for name, pair in varied.items()) for k in (0, 1)]
    slower = f"{CORES[0]:g} GFlop/s a core"
    slow = varied[slower][0]
    return [
        Check("Figure 4: exponent within a chassis", f"{one:g}", f"{inner:.2f}",
              near(inner, one, NEAR), why[0],
              Term(f"{slower} (the speed is not published)", (slow,), f"{slow:.2f}")),
        Check("Figure 4: exponent beyond a chassis", f"{other:g}", f"{outer:.2f}",
              near(outer, other, NEAR), why[1], needs=lacking),
        Check("Figure 4: the exponent is smaller beyond a chassis", f"{other:g} < {one:g}",
              f"{outer:.2f} and {inner:.2f}", under(outer, inner),
              "; ".join(f"{b:.2f} and {a:.2f} with {name}" for name, (a, b) in varied.items()),
              needs=lacking),
    ]  # fmt: skip


def _fft_by_nodes(machine: Machine, counts: Sequence[int], how: str = "") -> dict[int, Transform]:
    """Return the FFT's communication for each number of nodes, at one occupancy."""
    found = {}
    for count in counts:
        one = busy(machine, 0, COMMON.share, COMMON.load)
        rows = one.room(count)
        found[count] = transform(machine, rows, one.jobs, how)
    return found


def _total(made: dict[int, Transform], side: int, core: float | None) -> list[float]:
    """Return the seconds for each number of nodes; None: communication only."""
    return [
        one.seconds(side) + (computing(side, nodes * PPN, core) if core else 0.0)
        for nodes, one in made.items()
    ]


def _two(made: dict[int, Transform], side: int, core: float | None) -> tuple[float, float]:
    """Return the exponents of both regions."""
    total = dict(zip(made, _total(made, side, core), strict=True))
    near, far = (exponent(part, [total[n] for n in part]) for part in (SMALL, LARGE))
    return near, far
