# SPDX-License-Identifier: Apache-2.0
"""What the preload library adds to each call when recording, or reordering ranks inside."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.timing import table
from nidmap.rankmap.preload import build, find_compilers

#: Rounds in which every contender runs once; what is told is the difference of the least.
ROUNDS = 5

SOURCE = Path(__file__).with_suffix(".c")


def main() -> None:
    """Print ns per call without the library and its overhead, for the MPI of the mpicc found."""
    beside = os.path.dirname(sys.executable)  # the MPI of this environment comes first
    os.environ["PATH"] = beside + os.pathsep + os.environ.get("PATH", "")
    with tempfile.TemporaryDirectory() as folder:
        compiler = find_compilers((), os.environ)[0]
        program, order = Path(folder) / "overhead", Path(folder) / "order.slots"
        subprocess.run([compiler.path, "-O2", "-o", program, SOURCE], check=True)
        order.write_text("1\n0\n")
        library = {"LD_PRELOAD": build(compiler, os.environ)}
        contenders = {
            "bare": {},
            "record": {**library, "NIDMAP_RECORD": f"{folder}/counts"},
            "inside": {**library, "NIDMAP_ORDER": str(order), "NIDMAP_WORLD": "1"},
        }
        runs = [
            {name: _ns(program, ranks, more) for name, more in contenders.items()}
            for ranks in (1, 2)
            for _ in range(ROUNDS)
        ]
    rows = []
    for call in dict.fromkeys(call for run in runs for call in run["bare"]):
        least = {
            name: min(run[name][call] for run in runs if call in run[name]) for name in contenders
        }
        added = [f"{least[name] - least['bare']:+.1f}" for name in ("record", "inside")]
        rows.append([call, f"{least['bare']:.1f}", *added])
    header = ["call", "ns without", "recording adds", "reordering adds"]
    table(f"What a call costs more, {compiler.abi} {compiler.version}", header, rows)


def _ns(program: Path, ranks: int, more: dict[str, str]) -> dict[str, float]:
    """Return the ns per call as measured by the program itself."""
    command = ["mpiexec", "-n", str(ranks), str(program)]
    done = subprocess.run(
        command, env={**os.environ, **more}, check=True, capture_output=True, text=True
    )
    return {name: float(ns) for name, ns in (line.split() for line in done.stdout.splitlines())}
