# SPDX-License-Identifier: Apache-2.0
"""Interleaved timing: every round runs each contender once, in turn.

A machine that others share drifts; contenders that alternate drift together,
so their ratio round by round means something where absolute times do not.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np

Contender = Callable[[], object]


def interleave(contenders: dict[str, Contender], rounds: int = 7) -> dict[str, list[float]]:
    """Return the seconds of each contender, round by round, after one warm-up each."""
    for run in contenders.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            seconds[name].append(once(run))
    return seconds


def once(run: Contender) -> float:
    """Return the seconds that one call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def ratio(times: list[float], reference: list[float]) -> float:
    """Return the median of the ratios round by round."""
    return median(a / b for a, b in zip(times, reference, strict=True))


def process(*argv: str) -> Contender:
    """Return a contender that runs a complete process of this Python."""

    def run() -> None:
        subprocess.run([sys.executable, *argv], check=True, capture_output=True)

    return run


def calibration() -> float:
    """Return the seconds of the reference work: numpy sorts 10^7 int64."""
    values = np.random.default_rng(0).integers(0, 2**62, 10_000_000)
    return min(once(lambda: np.sort(values)) for _ in range(3))


def table(title: str, header: list[str], rows: list[list[str]]) -> None:
    """Print a Markdown table, in the documentation's form."""
    print(f"\n### {title}\n")
    widths = [max(len(r[i]) for r in [header, *rows]) for i in range(len(header))]
    for row in [header, ["-" * w for w in widths], *rows]:
        print("| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |")


def ms(times: list[float]) -> str:
    """Return the median in milliseconds."""
    return f"{1e3 * median(times):.1f} ms"
