# SPDX-License-Identifier: Apache-2.0
"""Run the benchmarks named on the command line, or all of them."""

from __future__ import annotations

import sys
from importlib import import_module

from benchmarks.timing import calibration

ALL = (
    "cold", "readers", "planners", "loads", "lists", "orders", "mappers", "simgrid_check", "ranks",
    "sorts", "isx", "ffts", "auto", "questions", "costs", "jobs", "web", "page", "overhead",
)  # fmt: skip


def main(names: list[str]) -> None:
    """Run each benchmark and print the calibration once."""
    unknown = [n for n in names if n not in ALL]
    if unknown:
        sys.exit(f"unknown benchmark {unknown[0]!r}; choose from {', '.join(ALL)}")
    sys.argv[1:] = []  # what stands there are not the parts of one of them
    for name in names or ALL:
        import_module(f"benchmarks.{name}").main()
    print(f"\ncalibration: numpy sorts 10^7 int64 in {1e3 * calibration():.0f} ms here")


if __name__ == "__main__":
    main(sys.argv[1:])
