# SPDX-License-Identifier: Apache-2.0
"""What each layer of the network's loads and of the predictor wins: everything without it.

``python -m benchmarks.ablation [N [SEED [LAYER…]]]`` puts the simple thing in place of one layer at
a time and then plans N drawn questions (10) of up to 512 nodes by ``auto``
(`benchmarks.questions`), predicts the published records whose process grid is stated
(`benchmarks.published`) and divides the bytes of 60 drawn networks
(`tests.placement.network.test_adaptive`). Shown are the seconds of the plans, judged with all
layers, over those planned with all (geometric mean, worst), the processor seconds of all plans
over those with all layers, how far likely figures are off, and the busiest link over a linear
program's (median, worst).
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import nidmap
from benchmarks import published, questions
from benchmarks.questions import Question, mean
from benchmarks.timing import table
from nidmap.placement.network import ENOUGH
from nidmap.placement.network.adaptive import divide
from nidmap.placement.scheduler.baseline import baseline_of
from nidmap.rankmap.predict import Job, Predictor
from tests.placement.network.small_dragonflies import listed_demand
from tests.placement.network.test_adaptive import largest, least, question

NETWORK, PREDICT, SEARCH = (
    "nidmap.placement.network",
    "nidmap.rankmap.predict",
    "nidmap.rankmap.search",
)


def _latest(best: Any, least: Any, minimal: Any, largest: Any, enough: Any) -> Any:
    return minimal, largest


#: What stands in for each layer.
LAYERS: dict[str, tuple[str, Any]] = {
    "nothing (all once more)": (f"{NETWORK}.ENOUGH", ENOUGH),
    "shares of single router pairs": (f"{NETWORK}.adaptive.FEW", 0),
    "a few third groups for all": (f"{NETWORK}.touched.FEW_THIRDS", 10**9),
    "the mean of what groups pass on": (f"{NETWORK}.touched.MANY", 10**9),
    "the best division come by": (f"{NETWORK}.adaptive._choose_fewest", _latest),
    "division that is enough": (f"{NETWORK}.ENOUGH", 0.0),
    "rows and columns of a grid": (f"{NETWORK}.local_paths._grid_sides", lambda joined: None),
    "all-to-alls of a torus by sums": (f"{NETWORK}.torus.FEW_PAIRS", math.inf),
    "links of a torus, message by message": (
        f"{PREDICT}.model.busiest_link_s", lambda *question: None,
    ),
    "what cuts need at least": (f"{PREDICT}.model.cut_time", lambda *question: 0.0),
    "what later phases need at least": (f"{PREDICT}.model.Model._floor", lambda *question: 0.0),
    "loads that are kept, but the last": (f"{PREDICT}.load_cache.KEPT", 0),
    "phases that are kept, but the last": (f"{PREDICT}.load_cache.KEPT_OF_ORDERS", 0),
    "steps divided together": (f"{PREDICT}.model.DIVIDED", 1),
    "exchanges of nodes": (f"{SEARCH}.search.Enumeration.take_steps", lambda self, cost: None),
}  # fmt: skip


class Answers(NamedTuple):
    """What all parts say, with or without a layer."""

    seconds: list[float]  # of each question's plan, judged with all layers
    took: float  # processor seconds of all plans
    published: list[float]  # how far each record is off
    linear: list[float]  # the busiest link over the linear program's, for each network


class Parts:
    """The drawn questions, the published records and the networks."""

    def __init__(self, count: int, seed: int) -> None:
        self.questions: list[tuple[Question, Predictor]] = []
        while len(self.questions) < count:
            drawn, seed = questions.draw(seed), seed + 1
            if drawn.count <= 512:
                machine = nidmap.load_machine(drawn.machine)
                self.questions.append((drawn, Predictor(machine, Job(**drawn.job))))
        records = published.read_records(published.RECORDS)
        self.records = [record for record in records if "?" not in record["pattern"]]
        self.least = [least(*question(seed)) for seed in range(60)]

    def answer(self, without: Callable[[], AbstractContextManager[Any]]) -> Answers:
        """Return all answers without a layer."""
        seconds, took = [], 0.0
        for drawn, judge in self.questions:
            with without():
                began = time.process_time()
                machine = nidmap.load_machine(drawn.machine)
                plan = nidmap.plan(
                    machine, drawn.count, candidates=drawn.free, strategy="auto",
                    baseline=baseline_of(machine, ""), job=Job(**drawn.job),
                )  # fmt: skip
                took += time.process_time() - began
            seconds.append(judge.time(plan.order or judge.place(plan.rows)))
        with without():
            records = [published.Question(record) for record in self.records]
            off = [record.error(record.likely()) for record in records]
            networks = [question(seed) for seed in range(60)]
            loads = [
                largest(machine, divide(machine, listed_demand(machine, sent)).best)
                for machine, sent in networks
            ]
        linear = [load / best for load, best in zip(loads, self.least, strict=True) if best]
        return Answers(seconds, took, off, linear)


def main() -> None:
    """Answer everything with all layers and without each, and print the table."""
    words = sys.argv[1:]
    count, seed = (*map(int, words[:2]), *(10, 0)[len(words[:2]) :])
    parts = Parts(count, seed)
    parts.answer(nullcontext)  # compiles and fills caches, for nobody's time
    with_all, rows = parts.answer(nullcontext), []
    print(f"{with_all.took:.1f} processor seconds with all layers", file=sys.stderr, flush=True)
    for name in words[2:] or LAYERS:
        without = parts.answer(partial(patch, *LAYERS[name]))
        plans = [a / b for a, b in zip(without.seconds, with_all.seconds, strict=True) if b]
        off, linear = without.published, without.linear
        rows.append([
            name, f"{mean(plans):.3f} ({max(plans):.2f})", f"{without.took / with_all.took:.2f}",
            f"{statistics.median(off):.1%} ({max(off):.1%})",
            f"{statistics.median(linear):.3f} ({max(linear):.2f})",
        ])  # fmt: skip
        print(rows[-1], file=sys.stderr, flush=True)
    head = [
        "without",
        "plans' seconds",
        "processor time",
        "published, off",
        "over the linear program",
    ]
    table("layers", head, rows)


if __name__ == "__main__":
    main()
