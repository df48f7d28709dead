"""What each term of the predictor is worth: promised gains against measured ones, without it.

``python -m benchmarks.terms FOLDER [--cases]``

FOLDER holds placements with their times. ``promises-MACHINE.json`` is what `benchmarks.promises`
wrote with ``-o``: exchanges of a mini-Cray's ranks. A program's files are those that
`benchmarks.journey` wrote for each machine that it ran on, ``PROGRAM-….state.json`` (the
``machine`` as ``-m`` takes it, the recording as its ``pattern``, the nodes ``given`` and those of
the ``plan``, a file of each arm's order) and ``PROGRAM-….samples`` (block, arm and seconds, a line
each): ``default`` is the nodes given, ``nodes`` those of the plan as Slurm sorts them, every other
arm an order.

Every gain is promised with all terms and without each. Printed are how far the likely gain is off,
in the median and at worst, how many ranges hold the measured gain, and the width of the ranges; of
all terms for each program as well.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.exchanges import exchanges
from benchmarks.promises import AGAIN, LEAST_NOISE, write_matrix
from benchmarks.timing import table
from nidmap import load_machine
from nidmap.placement.lookup import rows_of
from nidmap.placement.options import with_figures
from nidmap.placement.placement import Placement
from nidmap.rankmap.pattern.graph import Graph
from nidmap.rankmap.pattern.structured import Lines, Stencil
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.gain import Gain, Gains


@dataclass
class Measured:
    """A placement of a program or an exchange, and how many times as fast as the default it was."""

    name: str
    source: str
    predictor: Predictor
    base: Placement
    placed: Placement
    gain: float
    noise: float = LEAST_NOISE


def _without_following(asked: Predictor) -> None:
    asked.follows = False


def _without_latency(asked: Predictor) -> None:
    asked.constants = replace(
        asked.constants, mpi_us=0.0, hop_ns=0.0, message_us=0.0, nic_us=0.0, gap_us=0.0
    )


def _without_steps(asked: Predictor) -> None:
    if isinstance(asked.pattern, Graph):
        if (recording := asked.pattern.recording) is not None:
            unordered = replace(recording, order=None, phases=())
            asked.pattern = replace(asked.pattern, recording=unordered)
    elif isinstance(asked.pattern, Stencil):
        asked.pattern = replace(asked.pattern, staged=False)
    elif isinstance(asked.pattern, Lines):
        asked.algorithm = "at-once"


def _without_rest(asked: Predictor) -> None:
    asked.constants = replace(asked.constants, slowed=None)


#: What is left out, by name.
TERMS: dict[str, Callable[[Predictor], None]] = {
    "all terms": lambda asked: None,
    "no ranks followed": _without_following,
    "no latency, no messages": _without_latency,
    "no steps: all at once": _without_steps,
    "communication alone": _without_rest,
}


def exchanges_measured(path: Path, folder: str) -> Iterator[Measured]:
    """Yield the placements that `benchmarks.promises` measured."""
    machine = load_machine(f"minicray:{path.stem.partition('-')[2]}")
    machine = with_figures(machine, routing="single", latency=0, process=math.inf)
    cases = json.loads(path.read_text())
    again = [abs(case["gain"] - 1) for case in cases if case["placement"] == AGAIN]
    noise = max(LEAST_NOISE, float(np.quantile(again, 0.9)))
    cases = [case for case in cases if case["placement"] != AGAIN]
    count = len(cases[0]["nodes"])
    known = {one.name: one for one in exchanges(count, 0)}
    for case in cases:
        one = known[case["exchange"]]
        rows = rows_of(machine, case["nodes"])
        if case["placement"] == "slurm":
            pattern = one.pattern if one.pattern != "matrix" else write_matrix(folder, one, count)
            predictor = Predictor(machine, Job(pattern, 1, one.size, algorithm=one.algorithm))
            base = predictor.place(rows)
            continue
        name = f"{case['exchange']}, {case['placement']}"
        yield Measured(name, path.stem, predictor, base, predictor.place(rows), case["gain"], noise)


def programs_measured(path: Path) -> Iterator[Measured]:
    """Yield the placements of a program, from what its state file says."""
    state, stem = json.loads(path.read_text()), path.name.removesuffix(".state.json")
    recording = path.with_name(Path(state["pattern"].partition(":")[2]).name)
    words = state["machine"].replace(" known:", ",")
    machine = load_machine(words)
    seconds = defaultdict(dict)
    for line in path.with_name(f"{stem}.samples").read_text().splitlines():
        row = json.loads(line)
        seconds[row["block"]][row["arm"]] = row["s"]
    given, plan = (rows_of(machine, state[name]) for name in ("given", "plan"))
    predictor = Predictor(machine, Job(f"measured:{recording}"))
    placed = {"nodes": predictor.place(np.sort(plan))}
    for arm, file in state["orders"].items():
        order = json.loads(path.with_name(file).read_text())
        placed[arm] = predictor.place(rows_of(machine, order["nodes"]), np.array(order["slots"]))
    for arm, placement in placed.items():
        ratios = [block["default"] / block[arm] for block in seconds.values()
                  if {"default", arm} <= block.keys()]  # fmt: skip
        if ratios:
            found = Measured(
                f"{stem}, {arm}",
                "programs",
                predictor,
                predictor.place(given),
                placement,
                median(ratios),
            )
            yield found


def read_measured(folder: Path, scratch: str) -> list[Measured]:
    """Return all placements of a folder."""
    every: list[Measured] = []
    for path in sorted(folder.glob("promises-*.json")):
        every += exchanges_measured(path, scratch)
    for path in sorted(folder.glob("*.state.json")):
        every += programs_measured(path)
    return every


def promise(case: Measured, change: Callable[[Predictor], None]) -> Gain:
    """Return the gain that is promised of a placement, with a term left out."""
    asked = copy(case.predictor)
    asked._known = {}
    change(asked)
    return Gains(asked, case.base).of(case.placed)


def holds(gain: Gain, case: Measured) -> bool:
    """Return whether a range holds a measured gain, within what times are good to."""
    return gain.low / (1 + case.noise) <= case.gain <= gain.high * (1 + case.noise)


def figures_of(some: list[tuple[Measured, Gain]]) -> list[str]:
    """Return how many placements there are, how far they are off, how many are held, how wide."""
    off = [abs(gain.likely / case.gain - 1) for case, gain in some]
    held = sum(holds(gain, case) for case, gain in some)
    wide = median(gain.high / gain.low for _, gain in some)
    held_text = f"{held} of {len(some)}"
    return [str(len(some)), f"{median(off):.1%}", f"{max(off):.1%}", held_text, f"{wide:.2f}"]


def show(cases: list[Measured], every: bool) -> None:
    """Print the table of terms, and every case where that is asked for."""
    sources = list(dict.fromkeys(case.source for case in cases))
    promised = {
        term: [(case, promise(case, change)) for case in cases] for term, change in TERMS.items()
    }
    rows = [
        [term, source, *figures_of([pair for pair in pairs if source in ("all", pair[0].source)])]
        for term, pairs in promised.items()
        for source in (*sources, "all")[: len(sources) + (len(sources) > 1)]
    ]
    for term, pairs in promised.items() if every else ():
        lines = [
            [case.name, *(f"{x:.2f}" for x in (case.gain, gain.low, gain.likely, gain.high))]
            for case, gain in pairs
        ]
        table(term, ["placement", "measured", "low", "likely", "high"], lines)
    by_program = defaultdict(list)
    for case, gain in promised["all terms"]:
        if case.source == "programs":
            by_program[case.name.partition("-")[0]].append((case, gain))
    lines = [[program, *figures_of(pairs)] for program, pairs in by_program.items()]
    head = ["placements", "off, median", "worst", "range holds", "high/low"]
    table("all terms, by program", ["program", *head], lines)
    table("promised gains", ["terms", "of", *head], rows)


def main() -> None:
    """Read, promise, print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.terms", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("folder", type=Path, help="placements with their times")
    parser.add_argument("--cases", action="store_true", help="every placement, term by term")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        show(read_measured(asked.folder, scratch), asked.cases)


if __name__ == "__main__":
    main()
