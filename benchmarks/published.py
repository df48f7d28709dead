# SPDX-License-Identifier: Apache-2.0
"""What others measured on networks that adapt, and what nidmap says of it.

``python -m benchmarks.published [FILE]`` predicts every record of FILE (``published.toml``) from
its own text and prints low, likely and high beside the measurement. ``ratio`` is likely over
measured. A record has:

name, source
    What was measured, and where it is from.
machine
    As ``-m`` takes it: a site or a synthetic network, with figures of its own.
nodes
    As ``--nodes`` takes them (``#0-7``); or ``groups``, ``routers`` and ``nodes`` as numbers: that
    many nodes on consecutive routers of the first groups, spread as evenly as can be; or
    ``strategy`` and a number of nodes. None: all compute nodes.
shared
    Whether other jobs ran on the rest of the machine.
pattern, bytes, ppn, algorithm
    As ``--pattern`` and so on take them. Patterns of records alone: ``halves`` and ``pairs``
    (everyone in a half, or in a group, with everyone in the other; ``bytes`` a rank in all), and
    ``routers:WHERE`` of a grid of routers, each node to its like: ``row+K``, ``transposed``,
    ``mirrored``, ``shift+K``.
unit
    ``ms``, ``us``; ``GB/s``, ``Gb/s`` and ``TB/s`` of what leaves a rank (``per = "rank"``), a node
    (``"node"``, the default) or all together (``"all"``); ``gain`` over ``against``, a table with
    what differs there.
measured
    One figure, or the least and the largest.
"""

from __future__ import annotations

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
from nidmap.rankmap.predict.gain import range_of_unknowns, time_range
from nidmap.rankmap.predict.placement_times import PlacementTimes
from nidmap.rankmap.readers.entries import Entries

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RECORDS = Path(__file__).with_name("published.toml")

#: Seconds, or bytes a second, of each unit.
UNITS = {"ms": 1e-3, "us": 1e-6, "GB/s": 1e9, "Gb/s": 1.25e8, "TB/s": 1e12}


def predict_record(record: dict[str, Any]) -> tuple[float, float, float]:
    """Return the low, likely and high figure of a record in its unit."""
    model, placement = _predictor(record)
    if record["unit"] == "gain":
        other = {**record, **record["against"]}
        base_model, base = _predictor(other)
        times = [PlacementTimes(model, placement), PlacementTimes(base_model, base)]
        gain = range_of_unknowns(model, times)
        return gain.low, gain.likely, gain.high
    seconds = time_range(model, placement)
    unit = UNITS[record["unit"]]
    if record["unit"] in ("ms", "us"):
        return seconds.low / unit, seconds.likely / unit, seconds.high / unit
    sent = _sent_bytes(model, placement) / unit
    senders = {"rank": placement.ranks, "node": len(placement.rows), "all": 1}
    sent /= senders[record.get("per", "node")]
    return sent / seconds.high, sent / seconds.likely, sent / seconds.low


def _sent_bytes(model: Predictor, placement: Any) -> float:
    """Return what all ranks send to others, inside their nodes or not."""
    ranks, size = placement.ranks, model.size
    if model.pattern.spec == "alltoall":
        return ranks * (ranks - 1) * size
    if model.pattern.spec.startswith("routers:"):  # those to oneself count too
        return ranks * size
    return sum(float(phase.total.total) for phase in model.phases(placement))


def _predictor(record: dict[str, Any]) -> tuple[Predictor, Any]:
    """Return the predictor of a record, and its ranks on their nodes."""
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
    """Return how many of `total` a part has where they are dealt out evenly."""
    return total // parts + (place < total % parts)


def _traffic_graph(machine: Any, placement: Any, words: str) -> Any:
    """Return the pattern of records alone that words name, a byte a rank."""
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
    """Return where each node of a grid of routers sends."""
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


def main() -> None:
    """Predict all records and print the table."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    document = tomllib.loads(path.read_text())
    lines, errors, inside, by_kind = [], [], 0, {}
    for record in document["record"]:
        low, likely, high = predict_record(record)
        measured = np.atleast_1d(np.asarray(record["measured"], dtype=float))
        middle = math.sqrt(float(measured[0] * measured[-1]))
        holds = low * (1 - 5e-3) <= measured[-1] and measured[0] <= high * (1 + 5e-3)
        error = max(likely / middle, middle / likely) - 1
        errors.append(error)
        inside += holds
        by_kind.setdefault(record.get("kind", "other"), []).append(error)
        lines.append(
            [
                record["name"],
                " to ".join(f"{value:.4g}" for value in measured) + f" {record['unit']}",
                *(f"{value:.3g}" for value in (low, likely, high)),
                f"{likely / middle:.2f}",
                "yes" if holds else "no",
            ]
        )
        print(lines[-1], file=sys.stderr, flush=True)
    table("published", ["record", "measured", "low", "likely", "high", "ratio", "in range"], lines)
    print(
        f"\n{len(errors)} records: likely off by {statistics.median(errors):.1%} in the median,"
        f" {max(errors):.1%} at worst; {inside} in the range"
    )
    for kind, some in by_kind.items():
        print(f"{kind}: {statistics.median(some):.1%} in the median, {max(some):.1%} at worst")


if __name__ == "__main__":
    main()
