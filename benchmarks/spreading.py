# SPDX-License-Identifier: Apache-2.0
"""Gains predicted for all-to-alls and FFTs on other nodes, under adaptive routing.

``python -m benchmarks.spreading [N [SEED]]`` draws N questions (100) over all sites of Aries and
Slingshot: nodes free in stretches as jobs leave them, a job of 8 to 512 of them, an all-to-all or
an FFT of pencils. Each is put to several planners; shown are those in which the largest likely
gain over the scheduler's own choice is above 1.5. Beside it stands the gain that the best division
of bytes between minimal ways and detours says by itself: detours cost nothing, and messages of
different steps do not hold each other up. Published gains on such networks are 1 to 17 % of an
exchange.
"""

from __future__ import annotations

import math
import statistics
import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import nidmap
from benchmarks.questions import free_in_stretches
from benchmarks.timing import table
from nidmap.placement.errors import NidmapError
from nidmap.placement.fabrics import known_fabric
from nidmap.placement.node_request import NodeRequest
from nidmap.placement.plan import request_for
from nidmap.placement.planners import find
from nidmap.placement.scheduler.baseline import baseline_of
from nidmap.placement.sites import site_names
from nidmap.rankmap.predict import Job, Predictor

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine
    from nidmap.placement.placement import Placement

#: Planners that are asked for nodes.
PLANNERS = ("compact", "spread", "level-spread", "hilbert", "blades", "random", "slurm-dragonfly")

#: Likely gains above this are shown.
MOST = 1.5


class Promise(NamedTuple):
    """A question's largest likely gain, and the ideal splitting's gain on the same nodes."""

    question: str
    planner: str
    likely: float
    best: float


def adapting_sites() -> list[str]:
    """Return the sites whose fabric is Aries or Slingshot."""
    fabrics = ("Aries", "Slingshot")
    return [
        name
        for name in site_names()
        if known_fabric(nidmap.load_machine(name).topology).title in fabrics
    ]


def best_seconds(model: Predictor, placement: Placement) -> float:
    """Return the seconds if detours cost nothing and no step delays another."""
    return model.assuming(meeting=0.0, loss=0.0).time(placement)


def ask(machine: Machine, seed: int) -> Promise | None:
    """Return what is predicted for a random question; None if too few nodes are free."""
    rng = np.random.default_rng(seed)
    free = free_in_stretches(machine, float(rng.uniform(0.1, 0.9)), rng)
    count, ppn = int(2 ** rng.integers(3, 10)), int(rng.choice([1, 4, 16]))
    if count > 0.9 * free.sum():
        return None
    pattern = "alltoall"
    if rng.random() < 0.5:
        rows = 2 ** int(rng.integers(1, int(math.log2(count * ppn))))
        pattern = f"fft:{rows}x{count * ppn // rows}"
    model = Predictor(machine, Job(pattern, ppn, float(10 ** rng.uniform(4, 6))))
    try:
        request = request_for(machine, NodeRequest(count, free, seed=seed))
    except NidmapError:
        return None  # not so many of one kind
    base = model.place(find(baseline_of(machine).strategy)(machine, request))
    base_s, best = model.time(base), Promise("", "", 0.0, 0.0)
    words = f"#{seed} {machine.name} -N {count} --ppn {ppn} {pattern} {model.size:.0f} B"
    for planner in PLANNERS:
        try:
            plan = model.place(find(planner)(machine, request))
        except NidmapError:
            continue  # does not apply
        if (likely := base_s / model.time(plan)) > best.likely:
            best = Promise(words, planner, likely, likely)
            if likely > MOST:
                by_itself = best_seconds(model, base) / best_seconds(model, plan)
                best = best._replace(best=by_itself)
    return best


def main() -> None:
    """Draw, ask, count."""
    count, seed = (int(word) for word in (*sys.argv[1:3], *("100", "0")[len(sys.argv[1:3]) :]))
    machines = [nidmap.load_machine(name) for name in adapting_sites()]
    promises: list[Promise] = []
    while len(promises) < count:
        if (promise := ask(machines[seed % len(machines)], seed)) is not None:
            promises.append(promise)
            print(promise, file=sys.stderr, flush=True)
        seed += 1
    large = [promise for promise in promises if promise.likely > MOST]
    lines = [[p.question, p.planner, f"{p.likely:.2f}", f"{p.best:.2f}"] for p in large]
    table("likely gains", ["question", "planner", "likely", "best division"], lines)
    alone = sum(promise.best <= MOST for promise in large)
    print(
        f"\n{len(promises)} questions on {len(machines)} machines: likely gains of"
        f" {statistics.median(p.likely for p in promises):.2f} in the median,"
        f" {max(p.likely for p in promises):.2f} at most; {len(large)} above {MOST},"
        f" of which the best division alone says no more in {alone}"
    )


if __name__ == "__main__":
    main()
