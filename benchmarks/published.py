# SPDX-License-Identifier: Apache-2.0
"""Others' measurements on networks with adaptive routing, against nidmap's predictions.

``python -m benchmarks.published [FILE] [--leave-out]`` predicts every record of FILE
(``published.toml``) from its own text and prints low, likely and high beside the measurement.
``ratio`` is likely over measured. With ``--leave-out`` the predictor's constants are chosen anew
for each machine, by what was measured on all others; the errors are those on the machine that was
left out. A record has:

name, source
    What was measured, and where it is from.
machine
    As ``-m`` takes it: a site or a synthetic network, with figures of its own.
nodes
    As ``--nodes`` takes them (``#0-7``); or ``groups``, ``routers`` and ``nodes`` as numbers: that
    many nodes on consecutive routers of the first groups, spread as evenly as possible; or
    ``strategy`` and a number of nodes. None: all compute nodes.
shared
    Whether other jobs ran on the rest of the machine.
pattern, bytes, ppn, algorithm
    As ``--pattern`` and so on take them. Patterns of records alone: ``halves`` and ``pairs``
    (everyone in a half, or in a group, with everyone in the other; ``bytes`` a rank in all), and
    ``routers:WHERE`` of a grid of routers, each node to its like: ``row+K``, ``transposed``,
    ``mirrored``, ``shift+K``; ``stencil:?x?x?`` where the process grid is not stated: the likely
    figure is the median of all grids, and the range goes from that of the lowest to that of the
    highest.
unit
    ``ms``, ``us``; ``GB/s``, ``Gb/s`` and ``TB/s`` of what leaves a rank (``per = "rank"``), a node
    (``"node"``, the default) or all together (``"all"``); ``gain`` over ``against``, a table with
    what differs there.
measured
    One figure, or the least and the largest.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import nidmap
from benchmarks.timing import table
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.pattern.graph import from_entries
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.constants import Constants
from nidmap.rankmap.predict.gain import range_of_unknowns
from nidmap.rankmap.predict.model import Model, Timed
from nidmap.rankmap.readers.entries import Entries

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RECORDS = Path(__file__).with_name("published.toml")

#: What each constant of the predictor may be: what detours of all bytes cost, how far ranks run
#: ahead, how much longer steps take that meet, what exchanges reach of Slingshot's interfaces, and
#: GB/s of one rank in all-to-alls on Aries.
CHOICES = {
    "loss": (0.12, 0.18, 0.24, 0.3, 0.36),
    "ahead": (0.25, 0.5, 0.75),
    "meeting": (0.1, 0.27, 0.4),
    "reach": (0.7, 0.75, 0.8, 0.85, 0.9),
    "process": (2.5, 3.2, 4.0),
}

#: Rounds in which one constant after the other is chosen.
ROUNDS = 2

#: Seconds, or bytes a second, of each unit.
UNITS = {"ms": 1e-3, "us": 1e-6, "GB/s": 1e9, "Gb/s": 1.25e8, "TB/s": 1e12}


class Question:
    """A record with everything needed to predict it with any constants."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.record = record
        self.machine = record["name"].partition(",")[0].partition(":")[0]
        self.measured = np.atleast_1d(np.asarray(record["measured"], dtype=float))
        self.middle = math.sqrt(float(self.measured[0] * self.measured[-1]))
        model, placement = _predictor(record)
        self.times = [Timed(model, placement)]
        if record["unit"] == "gain":
            self.times.append(Timed(*_predictor({**record, **record["against"]})))

    def figure(self, seconds: float) -> float:
        """Return the seconds in the record's unit; gains are returned unchanged."""
        unit = UNITS.get(self.record["unit"], 1.0)
        if self.record["unit"] in ("ms", "us", "gain"):
            return seconds / unit
        placement = self.times[0].placement
        senders = {"rank": placement.ranks, "node": len(placement.rows), "all": 1}
        sent = _sent_bytes(self.times[0].model, placement) / unit
        return float(sent / senders[self.record.get("per", "node")] / seconds)

    def range(self) -> tuple[float, float, float]:
        """Return the low, likely and high figure."""
        found = range_of_unknowns(self.times[0].model, self.times)
        low, likely, high = sorted(self.figure(seconds) for seconds in found[:3])
        return low, likely, high

    def likely(self, constants: dict[str, float] | None = None) -> float:
        """Return the likely figure with given constants; None: the predictor's own."""
        seconds = [times.seconds(_assumed(times.model, constants)) for times in self.times]
        return seconds[1] / seconds[0] if len(seconds) > 1 else self.figure(*seconds)

    def error(self, likely: float) -> float:
        """Return the likely figure's error, as the ratio of the larger to the smaller."""
        return max(likely / self.middle, self.middle / likely) - 1


class AnyGrid(Question):
    """A record whose process grid is not stated: one question for each grid that there is."""

    def __init__(self, record: dict[str, Any]) -> None:
        ranks, dims = record["nodes"] * record.get("ppn", 1), record["pattern"].count("?")
        patterns = ["stencil:" + "x".join(map(str, grid)) for grid in _grids(ranks, dims)]
        self.grids = [Question({**record, "pattern": pattern}) for pattern in patterns]
        super().__init__({**record, "pattern": patterns[0]})

    def range(self) -> tuple[float, float, float]:
        """Return the median of all grids, and the ends of the lowest and of the highest."""
        likely = [grid.likely() for grid in self.grids]
        lowest, highest = (self.grids[int(find(likely))] for find in (np.argmin, np.argmax))
        return lowest.range()[0], statistics.median(likely), highest.range()[2]

    def likely(self, constants: dict[str, float] | None = None) -> float:
        """Return the median of all grids."""
        return statistics.median(grid.likely(constants) for grid in self.grids)


def _grids(ranks: int, dims: int) -> list[tuple[int, ...]]:
    """Return the process grids of some ranks, with two of them or more along each dimension.

    Examples
    --------
    >>> _grids(12, 2)
    [(2, 6), (3, 4), (4, 3), (6, 2)]
    """
    if dims == 1:
        return [(ranks,)] if ranks > 1 else []
    parts = [extent for extent in range(2, ranks) if ranks % extent == 0]
    return [(part, *rest) for part in parts for rest in _grids(ranks // part, dims - 1)]


def _assumed(model: Model, constants: dict[str, float] | None) -> Constants:
    """Return what is assumed with some constants, where the machine uses them."""
    known = model.constants
    if constants is None:
        return known
    changes: dict[str, Any] = {"ahead": constants["ahead"]}
    if "loss" not in model.machine.topology.parameters:
        changes["loss"] = constants["loss"]
    if known.reach < 1:
        changes["reach"] = constants["reach"]
    if known.process_gbs and known.posted_gbs is None:
        changes["process_gbs"] = constants["process"]
    if known.meeting:
        changes["meeting"] = constants["meeting"]
    return replace(known, **changes)


def choose_constants(questions: list[Question]) -> dict[str, float]:
    """Return the constants with the least error over the questions (geometric mean)."""

    def off(constants: dict[str, float]) -> float:
        return statistics.fmean(math.log1p(x.error(x.likely(constants))) for x in questions)

    chosen = {name: values[len(values) // 2] for name, values in CHOICES.items()}
    for _ in range(ROUNDS):
        for name, values in CHOICES.items():
            chosen = min(({**chosen, name: value} for value in values), key=off)
    return chosen


def leave_out(questions: list[Question]) -> None:
    """Print each machine's error with the constants that fit all others."""
    lines, errors = [], []
    for machine in dict.fromkeys(question.machine for question in questions):
        own = [question for question in questions if question.machine == machine]
        chosen = choose_constants([x for x in questions if x.machine != machine])
        off = [question.error(question.likely(chosen)) for question in own]
        errors += off
        figures = [f"{statistics.median(off):.1%}", f"{max(off):.1%}"]
        lines.append([machine, str(len(own)), *map(str, chosen.values()), *figures])
    head = ["left out", "records", *CHOICES, "off, median", "worst"]
    table("constants by the other machines", head, lines)
    print(
        f"\nleft out: likely off by {statistics.median(errors):.1%} in the median,"
        f" {max(errors):.1%} at worst"
    )


def _sent_bytes(model: Model, placement: Any) -> float:
    """Return what all ranks send to others, within and between nodes."""
    ranks, size = placement.ranks, model.size
    if model.pattern.spec == "alltoall":
        return ranks * (ranks - 1) * size
    if model.pattern.spec.startswith("routers:"):  # those to oneself count too
        return ranks * size
    return sum(float(phase.total.total) for phase in model.phases(placement))


def _predictor(record: dict[str, Any]) -> tuple[Predictor, Any]:
    """Return a record's predictor, and its ranks on their nodes."""
    machine = nidmap.load_machine(record.get("machine", ""))
    rows = _rows(machine, record)
    if record.get("shared"):
        others = machine.compute.copy()
        others[rows] = False
        machine = replace(machine, state=np.where(others, "allocated", machine.state))
    ppn = record.get("ppn", 1)
    placement = place_ranks(machine, rows, ppn)
    pattern = record["pattern"]
    if pattern.partition(":")[0] in ("halves", "pairs", "routers"):
        pattern = _traffic_graph(machine, placement, pattern)
    job = Job(pattern, ppn, record.get("bytes"), algorithm=record.get("algorithm", "library"))
    return Predictor(machine, job), placement


def _rows(machine: Any, record: dict[str, Any]) -> Any:
    """Return the rows of a record's nodes."""
    nodes = record.get("nodes")
    if nodes is None or isinstance(nodes, str):
        return place_ranks(machine, nodes, 1).rows
    if "strategy" in record:
        return nidmap.plan(machine, nodes, strategy=record["strategy"]).rows
    group = machine.coords[:, 0]
    rows: list[int] = []
    groups = record["groups"]
    for place in range(groups):
        count = _share(nodes, groups, place)
        here = np.flatnonzero(machine.compute & (group == place))
        switches = np.unique(machine.router[here, 0])
        if "routers" in record:
            switches = switches[: _share(record["routers"], groups, place)]
        by_router = [here[machine.router[here, 0] == switch].tolist() for switch in switches]
        turns = [node for turn in range(99) for x in by_router for node in x[turn : turn + 1]]
        if "routers" not in record:
            turns = here.tolist()
        turns += [node for node in here.tolist() if node not in turns]  # where some are short
        rows += sorted(turns[:count])
    return np.array(rows)


def _share(total: int, parts: int, place: int) -> int:
    """Return a part's share of `total` if it is dealt out evenly."""
    return total // parts + (place < total % parts)


def _traffic_graph(machine: Any, placement: Any, words: str) -> Any:
    """Return the pattern for a name that only records use, one byte per rank."""
    kind, _, where = words.partition(":")
    ranks = placement.ranks
    rank = np.arange(ranks)
    if kind == "routers":
        source, target, size = rank, _router_goals(machine, ranks, where), 1.0
    else:
        group = machine.coords[placement.rows[placement.node_of_rank], 0]
        part = np.unique(group, return_inverse=True)[1]
        if kind == "halves":
            part = (part >= (part.max() + 1) // 2).astype(int)
        other = part ^ 1
        source = np.repeat(rank, ranks)
        target = np.tile(rank, ranks)
        meets = part[target] == other[source]
        source, target = source[meets], target[meets]
        size = 1.0 / np.bincount(source, minlength=ranks)[source]
    sent = Traffic.of(source, target, size)
    graph = from_entries(Entries(ranks, sent), both=True, spec=words)
    return replace(graph, directed=sent.away())


def _router_goals(machine: Any, ranks: int, where: str) -> Any:
    """Return each node's destination on a grid of routers."""
    _, chassis, blades = machine.topology.extents[:3]
    each = ranks // (chassis * blades)
    router, place = np.divmod(np.arange(ranks), each)
    row, column = np.divmod(router, blades)
    name, _, number = where.partition("+")
    by = int(number or 0)
    goals = {
        "row": (row, (column + by) % blades),
        "shift": ((row + by) % chassis, (column + by) % blades),
        "transposed": (column, row),
        "mirrored": (chassis - 1 - row, blades - 1 - column),
    }
    to_row, to_column = goals[name]
    return (to_row * blades + to_column) * each + place


def show(questions: list[Question]) -> None:
    """Print every record with its range, and the errors."""
    lines, errors, inside = [], [], 0
    by_kind: dict[str, list[float]] = {}
    for question in questions:
        low, likely, high = question.range()
        measured, record = question.measured, question.record
        holds = low * (1 - 5e-3) <= measured[-1] and measured[0] <= high * (1 + 5e-3)
        errors.append(question.error(likely))
        inside += holds
        by_kind.setdefault(record.get("kind", "other"), []).append(errors[-1])
        words = " to ".join(f"{value:.4g}" for value in measured) + f" {record['unit']}"
        figures = [*(f"{value:.3g}" for value in (low, likely, high))]
        ratio, held = f"{likely / question.middle:.2f}", "yes" if holds else "no"
        lines.append([record["name"], words, *figures, ratio, held])
    table("published", ["record", "measured", "low", "likely", "high", "ratio", "in range"], lines)
    print(
        f"\n{len(errors)} records: likely off by {statistics.median(errors):.1%} in the median,"
        f" {max(errors):.1%} at worst; {inside} in the range"
    )
    for kind, some in by_kind.items():
        print(f"{kind}: {statistics.median(some):.1%} in the median, {max(some):.1%} at worst")


def read_records(file: Path) -> list[dict[str, Any]]:
    """Return the records of a file."""
    records: list[dict[str, Any]] = tomllib.loads(file.read_text())["record"]
    return records


def main() -> None:
    """Predict all records and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published")
    parser.add_argument("file", type=Path, nargs="?", default=RECORDS, help="records of that form")
    parser.add_argument("--leave-out", action="store_true", help="constants by other machines")
    wanted = parser.parse_args()
    records = read_records(wanted.file)
    questions = [(AnyGrid if "?" in x["pattern"] else Question)(x) for x in records]
    if wanted.leave_out:
        leave_out(questions)
    else:
        show(questions)


if __name__ == "__main__":
    main()
