# SPDX-License-Identifier: Apache-2.0
"""Every planner on a large torus and a large dragonfly, and how its time grows."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.timing import interleave, ms, table

TORUS = "torus:24x24x24,nodes=2"
SIZES = (33, 65, 130, 261)  # groups of 384 nodes: 12,672 to 100,224 nodes


def main() -> None:
    """Print times and growth exponents at 30 % occupancy, with N a tenth of the machine."""
    from nidmap.placement.errors import UsageError
    from nidmap.placement.planners import BUNDLED
    from nidmap.placement.specs import parse_spec

    torus = parse_spec(TORUS)
    flies = [parse_spec(f"dragonfly:groups={g},chassis=6,blades=16,nodes=4") for g in SIZES]
    rows = []
    for strategy in BUNDLED:
        row = [strategy]
        for machine in (torus, flies[-1]):
            try:
                row.append(ms(measure(machine, strategy)))
            except UsageError:
                row.append("does not apply")
        row.append(growth(flies, strategy))
        rows.append(row)
    header = ["strategy", f"{len(torus):,} torus", f"{len(flies[-1]):,} dragonfly", "growth"]
    table("Planners, 30 % occupied, a tenth asked for", header, rows)


def measure(machine, strategy: str) -> list[float]:
    """Return the seconds of three runs of one planner."""
    from nidmap.placement.plan import plan

    free = np.random.default_rng(7).random(len(machine)) > 0.3
    count = len(machine) // 10

    def run() -> None:
        plan(machine, count, strategy=strategy, candidates=free & machine.free)

    return interleave({"": run}, rounds=3)[""]


def growth(machines, strategy: str) -> str:
    """Return the exponent of time against n log n over the dragonflies."""
    sizes = [len(m) * math.log(len(m)) for m in machines]
    try:
        seconds = [min(measure(m, strategy)) for m in machines]
    except Exception as error:  # one planner must not end the table
        return type(error).__name__
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    return f"(n log n)^{slope:.2f}"
