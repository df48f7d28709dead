# SPDX-License-Identifier: Apache-2.0
"""The ISx paper's bandwidth limit, and its two ways of exchanging, on Edison."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.study.fragments import busy, first_free
from benchmarks.study.published import FFT, ISX
from benchmarks.study.result import Check, Part, Table, Term, percent, three
from benchmarks.study.scaling import full_nodes
from benchmarks.study.setting import COMMON, Setting
from benchmarks.study.timing import lines, predictor
from benchmarks.study.verdict import falling, inside, near, over
from nidmap.placement.options import with_figures
from nidmap.rankmap.predict import Job, Predictor

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine


#: Random occupancies of the two runs.
SEEDS = 3
#: The two ends between which adaptive routing lies.
VIA = ("minimal", "valiant")
#: GB/s a node of other jobs that are tried beside the usual.
MORE = 2.0
#: What is tried with routing valiant, and what other jobs send.
VALIANT = {
    "at random, 64 %, valiant": COMMON.load,
    f"at random, 64 %, valiant, other jobs {MORE:g} GB/s": MORE,
}
#: Bytes of a message: 2^27 keys of 4 bytes a rank, sent alike to all.
LOCAL = 4 * 2**27


def whole(machine: Machine, payload: float, routing: str = "minimal") -> float:
    """Return GB/s per node of a machine-wide all-to-all, limited by links between groups alone.

    One rank a node: with all nodes in it every group pair carries the same.
    """
    rows = np.flatnonzero(machine.free)
    asked = Predictor(
        with_figures(machine, routing=routing, latency=0, payload=payload),
        Job("alltoall", 1, 1.0, algorithm=""),
    )
    placement = asked.place(rows)
    (phase,) = asked.phases(placement)
    loads = asked.loads(phase.total, asked.left(placement))
    return (len(rows) - 1) / loads.by_class()["blue"] / 1e9


def stated_global_share(machine: Machine) -> float:
    """Return the paper's figure: GB/s of a group's outgoing links per node slot."""
    topology = machine.topology
    groups = len(np.unique(machine.coords[:, 0]))
    places = int(np.prod(topology.extents[1:]))
    links = float(topology.parameters["global"])
    return (groups - 1) * links * topology.bandwidth["blue"] / places


def isx() -> Part:
    """Compare ISx's limits and its runs with the model."""
    import nidmap

    machine = nidmap.load_machine("edison")
    configured, all_to_all = stated_global_share(machine), whole(machine, 1.0)
    shrunk = whole(machine, ISX.PAYLOAD)
    runs = {name: _run(machine, pes) for name, pes in ISX.RUNS.items()}
    table = Table(
        "Section 4.2: bandwidth a node between groups, GB/s",
        ("", "paper", "model"),
        (
            ("links out of a group over its 384 places", three(ISX.CONFIGURED_GBS),
             three(configured)),
            ("the same at 64 % payload", three(ISX.PAYLOAD_GBS), three(configured * ISX.PAYLOAD)),
            ("all-to-all of the whole machine, blue links alone", "", three(all_to_all)),
            ("the same at 64 % payload", "", three(shrunk)),
            ("the same, routing valiant", "", three(whole(machine, ISX.PAYLOAD, "valiant"))),
        ),
        "An all-to-all gets a little more than the links out of a group over its nodes, since 1"
        " byte in 15 stays in its group.",
    )  # fmt: skip
    return _part(table, configured, runs, _elsewhere())


def _elsewhere() -> str:
    """Return what IV-B of the FFT paper says about packets routed via third groups."""
    import nidmap

    nodes, paper = max(FFT.FULL_NODE_GBS.items())
    found = float(np.sqrt(np.prod(full_nodes(nidmap.load_machine("shaheen2"), nodes, VIA))))
    holds = near(found, paper).holds
    return (
        "" if holds else f", but IV-B's {nodes} nodes of Shaheen II would get {three(found)} GB/s"
    )


def _part(
    table: Table, configured: float, runs: dict[str, dict[str, list[float]]], cost: str
) -> Part:
    second = Table(
        f"Section 4.2 and Figure 3: exchange of 512 MB a rank, {ISX.PPN} ranks a node, GB/s a node",
        ("run", *next(iter(runs.values()))),
        tuple(
            (name, *(_span(values) for values in found.values())) for name, found in runs.items()
        ),
        f"First free nodes of a machine in use, {SEEDS} occupancies: median (least to most)."
        f" Observed: {ISX.OBSERVED_GBS[0]} to {ISX.OBSERVED_GBS[1]} GB/s. Figure 3 states no keys"
        " a rank: 2^27, those of the paper's Figure 4, are taken.",
    )
    least, most = ISX.OBSERVED_GBS
    every = [v for found in runs.values() for v in found["at random, 64 % payload"]]
    wire = [v for found in runs.values() for v in found["at random"]]
    idle = [v for found in runs.values() for v in found["at random, 64 %, no other jobs"]]
    halfway = [float(np.sqrt(one * other)) for found in runs.values()
               for one, other in zip(found["at random, 64 % payload"], found[next(iter(VALIANT))],
                                     strict=True)]  # fmt: skip
    wide, full = ([v for found in runs.values() for v in found[how]] for how in VALIANT)
    ring = {name: float(np.median(found["round robin"])) for name, found in runs.items()}
    rand = {name: float(np.median(found["at random"])) for name, found in runs.items()}
    lost = [1 - ring[name] / rand[name] for name in runs]
    checks = (
        Check("4.2: Edison's limit as configured", "4 GB/s a node", three(configured),
              near(configured, ISX.CONFIGURED_GBS, 1.05)),
        Check("4.2: at 64 % payload", "2.6 GB/s a node", three(configured * ISX.PAYLOAD),
              near(configured * ISX.PAYLOAD, ISX.PAYLOAD_GBS, 1.05)),
        Check("4.2: observed, at the paper's 64 % payload", f"{least} to {most} GB/s a node",
              f"{three(min(every))} to {three(max(every))}", inside(every, least, most),
              f"with all of the wire as payload {three(min(wire))} to {three(max(wire))}, without"
              f" other jobs {three(min(idle))} to {three(max(idle))}: neither brings both"
              f" runs there; with every packet over a third group (valiant) {three(min(wide))} to"
              f" {three(max(wide))}, and {three(min(full))} to {three(max(full))} where other jobs"
              f" send {MORE:g} GB/s a node",
              Term("packets half way, by logarithms, between shortest paths and third groups",
                   tuple(halfway), f"{three(min(halfway))} to {three(max(halfway))}", cost),
              needs="how many packets go over third groups, and what other jobs sent: the counters"
              " of the blue links during a run would decide"),
        Check("Figure 3: at random beats round robin at 12k and 16k", "at both",
              " and ".join(percent(x) for x in lost) + " lost", over(lost, 0.0)),
        Check("Figure 3: 12k gets more a node than 16k (at random)", "more",
              f"{three(rand['12k'])} and {three(rand['16k'])}",
              falling([rand["12k"], rand["16k"]])),
    )  # fmt: skip
    text = (
        "Edison has 24 of at most 68 blue links a group pair; the paper derives 4 GB/s a node, and"
        " 2.6 at a payload of 64 % of the wire. Its MPI and SHMEM exchanges send to one rank after"
        " the other: in a random order (`at-once` here) or round robin (`ring`).",
    )
    drawn = {
        name: {how: values for how, values in found.items() if how not in VALIANT}
        for name, found in runs.items()
    }
    series: dict[str, Any] = {"configured": configured, "runs": drawn}
    return Part("isx", "ISx: the bandwidth limit of Edison", text, (table, second), checks, series)


def _span(values: list[float]) -> str:
    return f"{three(float(np.median(values)))} ({three(min(values))} to {three(max(values))})"


def _run(machine: Machine, pes: int) -> dict[str, list[float]]:
    """Return GB/s per node of an exchange of this many processes, one value per occupancy."""
    nodes = -(-pes // ISX.PPN)
    counts = [ISX.PPN] * (nodes - 1) + [pes - ISX.PPN * (nodes - 1)]
    ways: dict[str, tuple[str, Setting]] = {
        "at random": ("at-once", COMMON),
        "round robin": ("ring", COMMON),
        "at random, 64 % payload": ("at-once", replace(COMMON, payload=ISX.PAYLOAD)),
        "at random, 64 %, no other jobs": (
            "at-once",
            replace(COMMON, payload=ISX.PAYLOAD, load=0.0),
        ),
    } | {
        name: ("at-once", replace(COMMON, payload=ISX.PAYLOAD, routing="valiant", load=load))
        for name, load in VALIANT.items()
    }
    out: dict[str, list[float]] = {name: [] for name in ways}
    for seed in range(SEEDS):
        found = busy(machine, seed, COMMON.share, COMMON.load)
        rows = first_free(found, nodes)
        for name, (how, setting) in ways.items():
            asked = predictor(machine, "alltoall", counts, how, setting, found.jobs)
            (line,) = lines(asked, rows)
            out[name].append(LOCAL / line.seconds(LOCAL / pes) * ISX.PPN / 1e9)
    return out
