# SPDX-License-Identifier: Apache-2.0
"""Measured gains of recorded programs from their placements, against the predicted ones.

``python -m benchmarks.programs FOLDER... [--short] [--leave-out]``

A folder holds programs that were recorded and then run on several placements, in turns. Of each
NAME there is ``NAME.state.json`` (the ``machine`` as ``-m`` takes it; as ``arms`` the nodes by rank
of each placement, or the nodes ``given``, those of a ``plan`` and a file of each arm's order, as
`benchmarks.journey` writes them; ``pattern`` where the recording has another name),
``NAME.samples`` (block, arm and seconds of a launch in each line) and the recording, ``NAME.npz``.
The arm ``default`` is what gains are against.

With ``--leave-out`` two constants are chosen anew for each program by what all others say: how far
ranks run ahead (the least error in the mean), and how far predictions are off (the narrowest
ranges that hold nine of ten).

Every gain is promised by the predictor as it is. Beside it stands what the plain busiest link says:
the bytes of the whole run with their headers, on the paths of the machine, and nothing else.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from benchmarks.timing import table
from nidmap import load_machine
from nidmap.placement.lookup import rows_of
from nidmap.placement.machine import Machine
from nidmap.placement.network import loads
from nidmap.placement.placement import Placement
from nidmap.placement.traffic import Traffic, join_traffic
from nidmap.rankmap.predict import Job, Predictor, constants, unknowns
from nidmap.rankmap.predict.gain import Gain, Gains
from nidmap.rankmap.recording import Recording
from nidmap.rankmap.recording.file import load_recording
from nidmap.workloads.minicray.net import HEADER, MTU, segment_bytes

#: Placements that nidmap itself proposes.
OWN = ("order", "nodes", "both")

#: Medians of times are as good as this.
NOISE = 1.03

#: What may be chosen for `nidmap.rankmap.predict.constants.AHEAD`, and for
#: `nidmap.rankmap.predict.unknowns.MISFIT`.
AHEAD = (0.0, 0.25, 0.5, 0.75, 1.0)
MISFIT = (1.05, 1.1, 1.15, 1.2)


@dataclass
class Arm:
    """A placement of a program: its measured and its predicted gain."""

    program: str
    stem: str
    name: str
    measured: float
    gain: Gain
    plain: float

    @property
    def off(self) -> float:
        """The likely gain's error."""
        return abs(self.gain.likely / self.measured - 1)

    @property
    def held(self) -> bool:
        """Whether the range contains the measured gain, within the noise."""
        return self.gain.low / NOISE <= self.measured <= self.gain.high * NOISE


def read_arms(path: Path) -> Iterator[Arm]:
    """Yield the measured placements in one state file, except the default."""
    state, stem = json.loads(path.read_text()), path.name.removesuffix(".state.json")
    machine = load_machine(state["machine"].replace(" known:", ","))
    recording = _recording_of(path, stem, state)
    predictor = Predictor(machine, Job(f"measured:{recording}"))
    placed = {name: predictor.place(*where) for name, where in _places(path, state, machine)}
    seconds: dict[str, dict[str, float]] = defaultdict(dict)
    for line in path.with_name(f"{stem}.samples").read_text().splitlines():
        sample = json.loads(line)
        seconds[sample["block"]][sample["arm"]] = sample["s"]
    base = placed.pop("default")
    gains = Gains(predictor, base)
    recorded = load_recording(str(recording))
    plain_s = busiest_link_s(machine, base, recorded)
    for name, placement in placed.items():
        ratios = [block["default"] / block[name]
                  for block in seconds.values() if {"default", name} <= block.keys()]  # fmt: skip
        if ratios:
            plain = plain_s / busiest_link_s(machine, placement, recorded)
            program = stem.partition("-")[0]
            yield Arm(program, stem, name, median(ratios), gains.of(placement), plain)


def _recording_of(path: Path, stem: str, state: dict[str, Any]) -> Path:
    """Return the recording of a state file."""
    names = [Path(state.get("pattern", "").partition(":")[2]).name, f"{stem}.npz"]
    names.append(f"{stem.partition('-')[0]}.npz")
    return next(file for name in names if name and (file := path.with_name(name)).exists())


def _places(
    path: Path, state: dict[str, Any], machine: Machine
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield rows and, if stated, the order of each arm."""
    if "arms" in state:
        for name, nodes in state["arms"].items():
            yield name, (rows_of(machine, ",".join(nodes)),)
        return
    yield "default", (rows_of(machine, state["given"]),)
    yield "nodes", (np.sort(rows_of(machine, state["plan"])),)  # as Slurm lists them
    for name, file in state["orders"].items():
        order = json.loads(path.with_name(file).read_text())
        yield name, (rows_of(machine, order["nodes"]), np.array(order["slots"]))


def busiest_link_s(machine: Machine, placement: Placement, recording: Recording) -> float:
    """Return the seconds of the busiest link, for all bytes of a run including headers.

    Each segment of TCP has one header, and every second one is acknowledged (RFC 1122).
    """
    sent = recording.total().away()
    full = segment_bytes(MTU)
    segments = np.maximum(1, np.ceil(sent.bytes / np.maximum(1, sent.messages) / full))
    headers = HEADER * segments * sent.messages
    there = Traffic.of(sent.source, sent.target, sent.bytes + headers)
    back = Traffic.of(sent.target, sent.source, headers / 2)
    by_node = join_traffic([there, back]).by_node(placement.node_of_rank, len(placement.rows))
    carried = loads(machine, placement.demand(by_node), "single")
    return float(carried.seconds().max(initial=0.0))


def figures_of(arms: list[Arm]) -> list[str]:
    """Return the predictions' errors, how many ranges hold, and how wide they are."""
    plain = [abs(arm.plain / arm.measured - 1) for arm in arms]
    widths = [arm.gain.high / arm.gain.low for arm in arms]
    off = [arm.off for arm in arms]
    return [
        str(len(arms)), f"{median(off):.1%}", f"{max(off):.1%}",
        f"{sum(arm.held for arm in arms)} of {len(arms)}",
        f"{median(widths):.2f}", f"{max(widths):.2f}",
        f"{median(plain):.1%}", f"{max(plain):.1%}",
    ]  # fmt: skip


def show(arms: list[Arm], short: bool) -> None:
    """Print every placement, unless a short output is requested, and the summary."""
    head = ["measured", "low", "likely", "high", "off", "held", "width", "busiest link", "off"]
    rows = []
    for arm in arms:
        low, likely, high = arm.gain[:3]
        figures = [f"{value:.2f}" for value in (arm.measured, low, likely, high)]
        plain = f"{arm.plain:.2f}", f"{arm.plain / arm.measured - 1:+.1%}"
        off, width = f"{likely / arm.measured - 1:+.1%}", f"{high / low:.2f}"
        rows.append([f"{arm.stem}, {arm.name}", *figures, off, "yes" if arm.held else "no", width])
        rows[-1] += plain
    if not short:
        table("placements", ["placement", *head], rows)
    groups = {"own": [arm for arm in arms if arm.name in OWN]}
    groups["others"] = [arm for arm in arms if arm.name not in OWN]
    groups["all"] = arms
    for program in dict.fromkeys(arm.program for arm in arms):
        groups[program] = [arm for arm in arms if arm.program == program]
    summary = ["of", "off, median", "worst", "held", "width, median", "widest", "busiest link off"]
    lines = [[name, *figures_of(some)] for name, some in groups.items() if some]
    table("promised gains", ["arms", *summary, "worst"], lines)


def leave_out(paths: list[Path]) -> list[Arm]:
    """Return the arms of each program, predicted with constants fitted to all others."""
    by_values: dict[tuple[float, float], list[Arm]] = {}
    for ahead, misfit in itertools.product(AHEAD, MISFIT):
        constants.AHEAD, unknowns.MISFIT = ahead, misfit
        by_values[ahead, misfit] = [arm for path in paths for arm in read_arms(path)]
    programs = {arm.program for arms in by_values.values() for arm in arms}
    left_out: list[Arm] = []
    for program in sorted(programs):
        others = {
            values: [arm for arm in arms if arm.program != program]
            for values, arms in by_values.items()
        }
        ahead = min(AHEAD, key=lambda a: mean(arm.off for arm in others[a, MISFIT[0]]))
        enough = [
            m
            for m in MISFIT
            if sum(a.held for a in others[ahead, m]) >= 0.9 * len(others[ahead, m])
        ]
        values = ahead, (enough or MISFIT[-1:])[0]
        print(f"without {program}: {values}")
        left_out += [arm for arm in by_values[values] if arm.program == program]
    return left_out


def main() -> None:
    """Read, predict, print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.programs", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("folders", type=Path, nargs="+", help="programs with their times")
    parser.add_argument("--short", action="store_true", help="the summary alone")
    parser.add_argument(
        "--leave-out", action="store_true", help="fit constants to the other programs"
    )
    wanted = parser.parse_args()
    paths = [path for folder in wanted.folders for path in sorted(folder.glob("*.state.json"))]
    if wanted.leave_out:
        show(leave_out(paths), wanted.short)
    else:
        show([arm for path in paths for arm in read_arms(path)], wanted.short)


if __name__ == "__main__":
    main()
