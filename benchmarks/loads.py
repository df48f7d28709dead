# SPDX-License-Identifier: Apache-2.0
"""Loads of trees and fat trees by their own formulas, against a path search on any graph.

Both route alike (`single`), which is checked. The search goes through the whole machine, whatever
the job; a search for placements asks for loads some hundred times.
"""

from __future__ import annotations

import numpy as np

from benchmarks.timing import interleave, ms, ratio, table

MACHINES = (
    "tara", "tree:40x40x10,bw=12.5", "fattree:leaf=18,leaves=24,spines=9",
    "fattree:leaf=32,leaves=512,spines=32",
)  # fmt: skip
NODES = (64, 512)


def main() -> None:
    """Print times and their ratio for an all-to-all and a ring."""
    from nidmap import load_machine

    rows = []
    for spec in MACHINES:
        machine = load_machine(spec)
        for nodes in NODES:
            if nodes <= len(machine):
                rows += [[spec, f"{nodes}", *row] for row in measure(machine, nodes)]
    header = ["machine", "nodes", "sent", "own formula", "search of paths", "ratio"]
    table("Loads of trees by formula and by search", header, rows)


def measure(machine, nodes: int) -> list[list[str]]:
    """Return one row per pattern: its name, both times, and their ratio."""
    from nidmap.placement.network import Demand, switches, trees
    from nidmap.placement.traffic import Traffic

    job = np.sort(np.random.default_rng(1).choice(len(machine), nodes, replace=False))
    patterns = {
        "all-to-all": Traffic.everyone(job, 1, 1.0),
        "ring": Traffic.of(job, np.roll(job, 1), 1.0),
    }
    rows = []
    for name, traffic in patterns.items():
        demand = Demand.of(machine, traffic)

        def by_formula(demand=demand):
            return trees.loads(machine, demand, "single")

        def by_search(demand=demand):
            return switches.loads(machine, demand, "single")

        np.testing.assert_allclose(by_formula(), by_search(), atol=1e-9)
        times = interleave({"formula": by_formula, "search": by_search}, rounds=3)
        slower = ratio(times["search"], times["formula"])
        rows.append([name, ms(times["formula"]), ms(times["search"]), f"{slower:.0f}"])
    return rows
