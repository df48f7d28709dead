# SPDX-License-Identifier: Apache-2.0
"""Random questions about nodes and order, by seed, and the answers of strategy ``auto``.

``python -m benchmarks.questions [N [SEED [WHICH]]]`` draws N questions (40; WHICH is ``wide``,
``tight`` or ``all``) over all sites and some synthetic machines: nodes free in stretches, as jobs
leave them, 10 to 90 % busy; patterns of every kind; jobs of 8 to 4,096 nodes, tight ones 12 to 24
of 26 to 104 that are free. Shown for each kind of network, as geometric means and worst:

auto
    The fastest that it has judged; its answer may keep closer together.
plain / auto
    The least time of any node choice with rank r on slot r, over auto's.
start / auto
    The least time of any planner with any order by name, judged here one by one, over auto's: 1
    where none is clearly faster, or auto has lost.
row / auto
    The largest likely gain of any row of ``compare`` that spreads the job no further over that of
    its row ``auto``: at most 1.
no steps / auto
    Auto's time without exchanges of nodes.
likely, width
    The likely gain over the scheduler's own choice; the high end of its range over the low one.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import nidmap
from benchmarks.timing import table
from nidmap.placement.errors import NidmapError, PlanError
from nidmap.placement.node_request import NodeRequest
from nidmap.placement.plan import request_for
from nidmap.placement.planners import PREDICTING, find, names
from nidmap.placement.scheduler.baseline import baseline_of
from nidmap.placement.sites import site_names
from nidmap.rankmap import orders
from nidmap.rankmap.compare import compare_strategies
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.job import fit_pattern
from nidmap.rankmap.search.budget import LIMITS
from nidmap.rankmap.search.search import Enumeration
from nidmap.rankmap.search.ties import spread_of

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine
    from nidmap.placement.support.array_types import Mask

#: Machines beside those of the sites: one of each kind of network, not too large for tight ones.
SYNTHETIC = (
    "dragonfly:groups=9,chassis=3,blades=8,nodes=4,global=24,injection=10",
    "slingshot:groups=12,switches=16,nodes=8,global=4,injection=25",
    "dragonfly+:groups=8,leaves=8,spines=8,nodes=8,injection=25",
    "torus:12x8x10,nodes=2,bw=4.68,injection=6",
    "fattree:leaf=18,leaves=24,spines=9,bw=12.5",
    "tree:16x12x4,bw=12.5",
)


@dataclass(frozen=True)
class Question:
    """A job's request for nodes on a partly occupied machine.

    Attributes
    ----------
    seed : int
    machine : str
    count : int
    free : bool (n,)
    job : dict
        Pattern, ranks a node, bytes.
    """

    seed: int
    machine: str
    count: int
    free: Mask
    job: dict[str, Any]

    def __str__(self) -> str:
        free = int(self.free.sum())
        words = " ".join(f"{key}={value}" for key, value in self.job.items())
        return f"#{self.seed} {self.machine.partition(',')[0]} -N {self.count} of {free} {words}"


def draw(seed: int, which: str = "all") -> Question:
    """Return the question for a seed, reproducible on any computer."""
    rng = np.random.default_rng(seed)
    machines = [*site_names(), *SYNTHETIC]
    tight = which == "tight" or (which == "all" and rng.random() < 0.3)
    while True:
        name = machines[int(rng.integers(len(machines)))]
        machine = nidmap.load_machine(name)
        free = free_in_stretches(machine, float(rng.uniform(0.1, 0.9)), rng)
        rows = np.flatnonzero(free)
        if tight:
            wanted = int(rng.integers(26, 105))
            start = int(rng.integers(max(1, len(rows) - 2 * wanted)))
            window = rows[start : start + 2 * wanted]
            rows = np.sort(rng.permutation(window)[:wanted])
            free = np.isin(np.arange(len(machine)), rows)
            count = int(rng.integers(12, 25))
        else:
            count = (
                int(2 ** rng.integers(3, 13))
                if rng.random() < 0.5
                else 8 + 4 * int(rng.integers(0, 64))
            )
        if count <= 0.9 * len(rows):
            return Question(seed, name, count, free, draw_job(count, rng))


def free_in_stretches(machine: Machine, busy: float, rng: np.random.Generator) -> Mask:
    """Return which nodes are free if jobs of many sizes occupy stretches of nodes."""
    rows = np.flatnonzero(machine.compute)
    left = np.ones(len(rows), dtype=bool)
    while left.mean() > 1 - busy:
        size, start = int(2 ** rng.uniform(1, 9)), int(rng.integers(len(rows)))
        left[start : start + size] = False
    return np.isin(np.arange(len(machine)), rows[left])


def draw_job(count: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return a pattern for this many nodes, ranks per node, and sometimes bytes."""
    ppn = int(rng.choice([1, 4, 8, 16, 32])) if count <= 512 else int(rng.choice([1, 2, 4]))
    ranks = count * ppn
    kind = str(rng.choice(["alltoall", "fft", "fft", "stencil", "stencil", "ring", "collective",
                           "training"]))  # fmt: skip
    pattern = kind
    if kind == "fft":
        rows, columns = split(ranks, 2, rng)
        pattern = f"fft:{rows}x{columns}"
    elif kind == "stencil":
        sides = split(ranks, int(rng.integers(2, 4)), rng)
        pattern = f"stencil:{'x'.join(map(str, sides))}{',periodic' if rng.random() < 0.3 else ''}"
    elif kind == "collective":
        pattern = str(rng.choice(["allreduce", "allgather", "bcast"]))
    elif kind == "training":
        tp = math.gcd(ppn, 8)
        pattern = f"training:tp={tp},pp=1,dp={ranks // tp}"
    job: dict[str, Any] = {"pattern": pattern, "ppn": ppn}
    if kind in ("alltoall", "fft", "stencil"):
        job["bytes"] = float(rng.choice([1e4, 1e5, 1e6]))
    return job


def split(ranks: int, parts: int, rng: np.random.Generator) -> list[int]:
    """Return factors of a number, as even as its divisors allow, in random order."""
    sides = []
    for left in range(parts, 0, -1):
        root = ranks ** (1 / left)
        side = min(divisors(ranks), key=lambda d: abs(math.log(d / root)))
        sides.append(side)
        ranks //= side
    return [int(side) for side in rng.permutation(sides)]


def divisors(number: int) -> list[int]:
    """Return all divisors.

    Examples
    --------
    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    low = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return sorted({*low, *(number // d for d in low)})


def faster_starts(
    model: Predictor, question: Question, below: float, by_name: bool = True
) -> dict[str, float]:
    """Return the seconds of those planners, and named orders on their nodes, that take less.

    Parameters
    ----------
    model : Predictor
    question : Question
    below : float
        Seconds: no judgement goes on where it certainly takes no less.
    by_name : bool
        Whether each planner is judged with all orders by name, not with rank r on slot r alone.
    """
    machine = model.machine
    request = request_for(machine, NodeRequest(question.count, question.free))
    seconds: dict[str, float] = {}
    for name in (name for name in names() if name not in PREDICTING):
        try:
            start = model.place(find(name)(machine, request))
        except NidmapError:
            continue  # does not apply
        seconds[name] = model.time(start, below)
        for order in orders.QUICK if by_name else ():
            try:
                ordered = orders.find(order)(fit_pattern(model.pattern, start), start)
            except NidmapError:
                continue
            seconds[f"{name}, {order}"] = model.time(ordered, below)
    return {name: took for name, took in sorted(seconds.items()) if took < below}


def answer(question: Question, steps: bool = True) -> tuple[dict[str, Any], float]:
    """Return the answer of ``auto`` to a question, and its processor seconds."""
    machine = nidmap.load_machine(question.machine)
    take_steps = Enumeration.take_steps
    if not steps:
        Enumeration.take_steps = lambda self, cost: None  # type: ignore[method-assign]
    began = time.process_time()
    plan = nidmap.plan(
        machine, question.count, candidates=question.free, strategy="auto",
        baseline=baseline_of(machine, ""), job=Job(**question.job),
    )  # fmt: skip
    Enumeration.take_steps = take_steps  # type: ignore[method-assign]
    return dict(plan.facts["predicted"]), time.process_time() - began


def largest_row(model: Predictor, question: Question) -> float:
    """Return the largest likely gain of any ``compare`` row relative to that of ``auto``.

    Of rows that touch no more groups, switches … : others may be likely faster by what cannot be
    told.
    """
    machine = model.machine
    entries = compare_strategies(model, NodeRequest(question.count, question.free)).entries
    auto = entries[0]
    most = spread_of(machine, auto.plan.rows)
    close = [entry for entry in entries if spread_of(machine, entry.plan.rows) <= most]
    return max(entry.gain.likely for entry in close) / auto.gain.likely


def mean(values: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def main() -> None:
    """Ask the questions and print the tables."""
    count, seed, which = (*sys.argv[1:], *("40", "0", "all")[len(sys.argv) - 1 :])[:3]
    columns: dict[str, dict[str, list[float]]] = {}
    for number in range(int(seed), int(seed) + int(count)):
        question = draw(number, which)
        machine = nidmap.load_machine(question.machine)
        model = Predictor(machine, Job(**question.job))
        try:
            facts, took = answer(question)
        except PlanError as error:  # its nodes are not of one kind
            print(f"{question}: {error.message}", flush=True)
            continue
        small = question.count <= 512
        time_s = facts["search"]["best"]["cost"]
        row = {"plain": facts["search"]["plain"]["cost"] / time_s if time_s else 1.0}
        starts = faster_starts(model, question, time_s * (1 - LIMITS.clearly), small)
        row["start"] = min([time_s, *starts.values()]) / time_s if time_s else 1.0
        row["row"] = largest_row(model, question)
        if small:
            without = answer(question, steps=False)[0]["search"]["best"]["cost"]
            row["no steps"] = without / time_s if time_s else 1.0
        gain = facts["gain"]
        if gain:
            row |= {"likely": gain["likely"], "width": gain["high"] / gain["low"]}
        row["cpu"] = took
        said = "  ".join(f"{name} {value:.3f}" for name, value in row.items())
        lost = " LOST" if min(row["start"], 1 / row["row"]) < 1 - LIMITS.clearly else ""
        print(f"{question}: {said}{lost}", flush=True)
        kind = machine.topology.fabric or machine.topology.kind
        for name, value in row.items():
            columns.setdefault(kind, {}).setdefault(name, []).append(value)
    names_ = ("plain", "start", "row", "no steps", "likely", "width", "cpu")
    lines = [
        [kind, str(len(values["plain"])),
         *(f"{mean(values[name]):.3f} ({max(values[name]):.2f})" if name in values else ""
           for name in names_)]
        for kind, values in sorted(columns.items())
    ]  # fmt: skip
    table("questions", ["network", "questions", *names_], lines)


if __name__ == "__main__":
    main()
