"""Figure 7 of the DASH paper: hierarchical mapping against the launcher's, on sparse nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.study.fragments import busy, first_free
from benchmarks.study.ordering import slots
from benchmarks.study.published import DASH
from benchmarks.study.result import Check, Part, Table, three
from benchmarks.study.setting import COMMON, Setting
from benchmarks.study.timing import Line, lines, predictor
from rankmap.orders import arrange
from rankmap.pattern import parse_pattern

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine

    Ints = NDArray[np.int64]

__all__ = ["dash"]

#: The balanced grid of 9,216 units.
GRID = "24x24x16"
#: Message sizes: 1 byte to 1 MB.
SIZES = tuple(4**k for k in range(11))
#: Random fragmentations.
SEEDS = 9
#: Other orders that are shown beside the paper's.
OTHERS = ("hilbert",)


def dash() -> Part:
    """Return Figure 7 beside the model: a distribution, since its node set is not published."""
    import nidmap

    machine = nidmap.load_machine("hazelhen")
    factors: dict[str, list[list[float]]] = {"hierarchical": [], **{one: [] for one in OTHERS}}
    runs = []
    for seed in range(SEEDS):
        found = busy(machine, seed, COMMON.share, COMMON.load)
        rows = first_free(found, DASH.NODES)
        runs.append(float(DASH.NODES / (1 + (np.diff(machine.nid[rows]) != 1).sum())))
        base = _line(machine, rows, found.jobs, None)
        for name, curve in factors.items():
            if name == "hierarchical" or seed == 0:
                line = _line(machine, rows, found.jobs, name)
                curve.append([base.seconds(size) / line.seconds(size) for size in SIZES])
    return _part(factors, runs, _varied(machine))


def _line(
    machine: Machine,
    rows: Ints,
    others: Any,
    strategy: str | None,
    setting: Setting = COMMON,
) -> Line:
    """Return the seconds of one exchange as a line in the bytes of a message."""
    asked = predictor(machine, f"stencil:{GRID}", DASH.PPN, "", setting, others)
    order = None
    if strategy is not None:
        order = arrange(slots(machine, rows, DASH.PPN), parse_pattern(f"stencil:{GRID}"), strategy)
    (line,) = lines(asked, rows, order)
    return line


def _varied(machine: Machine) -> dict[str, tuple[float, float]]:
    """Return the factors at 1 byte and at 1 MB with one thing varied, for one fragmentation."""
    found = busy(machine, 0, COMMON.share, COMMON.load)
    rows = first_free(found, DASH.NODES)
    settings = {
        "common setting": COMMON,
        "no other jobs": replace(COMMON, load=0.0),
        "no other jobs, routing valiant": replace(COMMON, load=0.0, routing="valiant"),
        "no other jobs, routing adaptive": replace(COMMON, load=0.0, routing="adaptive"),
        "other jobs send 2 GB/s a node": replace(COMMON, load=2.0),
        "64 % of the wire is payload": replace(COMMON, payload=0.64),
        "latency and messages switched off": replace(COMMON, latency=0.0),
    }
    out = {}
    for name, setting in settings.items():
        base, line = (_line(machine, rows, found.jobs, s, setting) for s in (None, "hierarchical"))
        out[name] = (
            base.seconds(1) / line.seconds(1),
            base.seconds(SIZES[-1]) / line.seconds(SIZES[-1]),
        )
    out["every message off its node waited for, one by one"] = _waited(machine, rows)
    return out


def _waited(machine: Machine, rows: Ints) -> tuple[float, float]:
    """Return the ratio of messages that leave the busiest node (blocking puts), for any size."""
    asked = predictor(machine, f"stencil:{GRID}", DASH.PPN, "")
    places = asked.slots(rows)
    mapped = arrange(places, parse_pattern(f"stencil:{GRID}"), "hierarchical")
    leaving = [
        sum(phase.a_node for phase in asked.phases(asked.pattern, places, order))
        for order in (None, mapped)
    ]
    return leaving[0] / leaving[1], leaving[0] / leaving[1]


def _part(
    factors: dict[str, list[list[float]]],
    runs: list[float],
    varied: dict[str, tuple[float, float]],
) -> Part:
    found = np.array(factors["hierarchical"])
    low, high = (float(f(found)) for f in (np.min, np.max))
    rows = tuple(
        (f"{size:,} B", three(float(np.median(found[:, k]))),
         f"{three(float(found[:, k].min()))} to {three(float(found[:, k].max()))}",
         *(three(factors[one][0][k]) for one in OTHERS))
        for k, size in enumerate(SIZES)
    )  # fmt: skip
    table = Table(
        f"Figure 7: factor of hierarchical mapping, {DASH.NODES} nodes of {DASH.PPN} ranks",
        ("message", "model, median", f"over {SEEDS} fragmentations",
         *(f"with {one}, one fragmentation" for one in OTHERS)),
        rows,
        f"Paper: {DASH.FACTOR[0]} to {DASH.FACTOR[1]} over all sizes. Stencil {GRID}; the mean run"
        f" of consecutive nodes is {np.mean(runs):.0f} nodes long"
        f" ({min(runs):.0f} to {max(runs):.0f}).",
    )  # fmt: skip
    second = Table(
        "One thing varied at a time: factor at 1 byte and at 1 MB",
        ("varied", "1 B", "1 MB"),
        tuple((name, three(one), three(other)) for name, (one, other) in varied.items()),
        "One fragmentation.",
    )
    short, long = float(np.median(found[:, 0])), float(np.median(found[:, -1]))
    least, most = DASH.FACTOR
    checks = (
        Check("Figure 7: hierarchical mapping is faster", "at every size", f"{low:.2f} at least",
              low > 1),
        Check("Figure 7: factor at 1 byte", f"{least} to {most}", f"{short:.2f}",
              least <= short <= most,
              f"the paper's puts block: with each message off the node waited for it is"
              f" {varied['every message off its node waited for, one by one'][0]:.2f}"),
        Check("Figure 7: factor at 1 MB", f"{least} to {most}", f"{long:.2f}",
              least <= long <= most,
              f"without other jobs {varied['no other jobs'][1]:.2f}, adaptive without them"
              f" {varied['no other jobs, routing adaptive'][1]:.2f}, counting messages only"
              f" {varied['every message off its node waited for, one by one'][1]:.2f}"),
        Check("Figure 7: the whole range", f"{least} to {most}", f"{low:.2f} to {high:.2f}",
              low >= 0.9 * least and high <= 1.1 * most,
              f"with latency and messages switched off"
              f" {varied['latency and messages switched off'][0]:.2f} at every size: what is below"
              " the paper's range is the cost of messages that both orders post alike"),
    )  # fmt: skip
    text = (
        "The paper's 384 nodes were sparse, with small contiguous blocks, and are not published:"
        f" the model takes {SEEDS} random fragmentations of Hazel Hen, on which ALPS hands out the"
        " first free nodes, and predicts the stencil's exchange in the launcher's order (row-major"
        " on ascending NIDs) and in DASH's (`--strategy hierarchical`).",
    )
    series = {"sizes": list(SIZES), "hierarchical": found.tolist(), "runs": runs} | {
        one: factors[one][0] for one in OTHERS
    }
    return Part(
        "dash", "DASH: hierarchical mapping on Hazel Hen", text, (table, second), checks, series
    )
