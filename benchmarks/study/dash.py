# SPDX-License-Identifier: Apache-2.0
"""Figure 7 of the DASH paper: hierarchical mapping against the launcher's, on sparse nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.study.fragments import busy, first_free
from benchmarks.study.ordering import slots
from benchmarks.study.published import DASH
from benchmarks.study.result import Check, Part, Table, Term, three
from benchmarks.study.setting import COMMON, Setting
from benchmarks.study.timing import Line, lines, predictor
from benchmarks.study.verdict import inside, over
from nidmap.placement.options import with_figures
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.predict.constants import machine_constants

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine
    from nidmap.placement.support.array_types import Ints


#: The balanced grid of 9,216 units.
GRID = "24x24x16"
#: Message sizes: 1 byte to 1 MB.
SIZES = tuple(4**k for k in range(11))
#: Random fragmentations.
SEEDS = 9
#: The one term that the common setting lacks.
ADAPTIVE = "adaptive routing, as the paper says Aries has it (one fragmentation, no other jobs)"
#: Other orders that are shown beside the paper's.
OTHERS = ("hilbert",)


def dash() -> Part:
    """Compare Figure 7 with the model, as a distribution, since its node set is not published."""
    import nidmap

    machine = nidmap.load_machine("hazelhen")
    factors: dict[str, list[list[float]]] = {"hierarchical": [], **{one: [] for one in OTHERS}}
    runs = []
    for seed in range(SEEDS):
        found = busy(machine, seed, COMMON.share, COMMON.load)
        rows = first_free(found, DASH.NODES)
        runs.append(float(DASH.NODES / (1 + (np.diff(machine.nid[rows]) != 1).sum())))
        base = _exchange(machine, rows, found.jobs, None)
        for name, curve in factors.items():
            if name == "hierarchical" or seed == 0:
                other = _exchange(machine, rows, found.jobs, name)
                curve.append([base.seconds(size) / other.seconds(size) for size in SIZES])
    return _part(factors, runs, _factors_by_variation(machine))


class Puts(NamedTuple):
    """An exchange of blocking puts: each rank completes one before it begins the next.

    Attributes
    ----------
    together : Line
        All messages at once: what the links take at least.
    waited : float
        Messages off its node of a rank of the busiest node, in the mean.
    message : Line
        One message.
    """

    together: Line
    waited: float
    message: Line

    def seconds(self, size: float) -> float:
        """Return the seconds of the exchange with messages of this many bytes."""
        shared = self.together.slope * size
        return max(self.waited * self.message.seconds(size), shared)


def _exchange(
    machine: Machine,
    rows: Ints,
    others: Any,
    strategy: str | None,
    setting: Setting = COMMON,
) -> Puts:
    """Return an exchange in the launcher's order, or in a strategy's."""
    asked = predictor(machine, f"stencil:{GRID}", DASH.PPN, "", setting, others)
    order = None
    if strategy is not None:
        order = arrange(slots(machine, rows, DASH.PPN), parse_pattern(f"stencil:{GRID}"), strategy)
    (line,) = lines(asked, rows, order)
    leaving = sum(
        phase.a_node
        for phase in asked.phases(asked.place(rows, None if order is None else order.slot_of_rank))
    )
    known = machine_constants(with_figures(machine, process=setting.process))
    message = Line(known.mpi_us / 1e6, 1e-9 / (setting.process or np.inf))
    return Puts(line, leaving / DASH.PPN, message)


def _factors_by_variation(machine: Machine) -> dict[str, tuple[float, float]]:
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
    }
    out = {}
    for name, setting in settings.items():
        base, other = (
            _exchange(machine, rows, found.jobs, order, setting) for order in (None, "hierarchical")
        )
        if name == "common setting":
            ends = [base.together.seconds(b) / other.together.seconds(b) for b in (1, SIZES[-1])]
            out["all puts at once"] = (ends[0], ends[1])
        out[name] = (
            base.seconds(1) / other.seconds(1),
            base.seconds(SIZES[-1]) / other.seconds(SIZES[-1]),
        )
    return out


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
    around = varied["no other jobs, routing adaptive"]
    once = (
        f"with all puts at once {varied['all puts at once'][0]:.2f} at 1 byte and"
        f" {varied['all puts at once'][1]:.2f} at 1 MB"
    )
    checks = (
        Check("Figure 7: hierarchical mapping is faster", "at every size", f"{low:.2f} at least",
              over(found.ravel(), 1.0), once),
        Check("Figure 7: factor at 1 byte", f"{least} to {most}", f"{short:.2f}",
              inside(short, least, most), once),
        Check("Figure 7: factor at 1 MB", f"{least} to {most}", f"{long:.2f}",
              inside(long, least, most),
              f"{once}; blocking, without other jobs {varied['no other jobs'][1]:.2f}",
              Term(ADAPTIVE, (around[1],), f"{around[1]:.2f}")),
        Check("Figure 7: the whole range", f"{least} to {most}", f"{low:.2f} to {high:.2f}",
              inside([low, high], least, most, 1.1), once,
              Term(ADAPTIVE, around, f"{around[0]:.2f} to {around[1]:.2f}")),
    )  # fmt: skip
    text = (
        "The paper's 384 nodes were sparse, with small contiguous blocks, and are not published:"
        f" the model takes {SEEDS} random fragmentations of Hazel Hen, on which ALPS hands out the"
        " first free nodes, and predicts the stencil's exchange in the launcher's order (row-major"
        " on ascending NIDs) and in DASH's (`--strategy hierarchical`). The paper's puts block, so"
        " that a rank waits for each message off its node before it sends the next; where the links"
        " take longer than that, they bind.",
    )
    series = {"sizes": list(SIZES), "hierarchical": found.tolist(), "runs": runs} | {
        one: factors[one][0] for one in OTHERS
    }
    return Part(
        "dash", "DASH: hierarchical mapping on Hazel Hen", text, (table, second), checks, series
    )
