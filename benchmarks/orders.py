# SPDX-License-Identifier: Apache-2.0
"""Rank orders: a million ranks."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.timing import interleave, ms, table


def main() -> None:
    """Print the time of each order on 1,048,576 ranks over 32,768 nodes."""
    import nidmap

    machine = nidmap.load_machine("dragonfly:groups=86,chassis=6,blades=16,nodes=4")
    nodes = np.arange(32768)
    rows = []
    for pattern in ("fft:1024x1024", "stencil:128x128x64"):
        times = interleave(
            {
                name: partial(nidmap.order, machine, nodes, nidmap.Job(pattern, 32), strategy=name)
                for name in ("row-major", "morton", "hilbert")
            },
            rounds=3,
        )
        rows += [[pattern, name, ms(t)] for name, t in times.items()]
    table("Orders of 1,048,576 ranks", ["pattern", "order", "median"], rows)
