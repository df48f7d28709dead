# SPDX-License-Identifier: Apache-2.0
"""The command ``nidmap bench contention``: sizes and kinds, by sets of nodes.

They lie inside one leaf module, and across two, at equal N. All hold the
job's first node, so that its rank 0 sees every measurement.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING

import click

from nidmap.placement import lookup, switch_tree
from nidmap.placement.commands.common import ByteCount, machine_option
from nidmap.placement.errors import NidmapError, UsageError
from nidmap.placement.machine_option import machine_from
from nidmap.placement.support.quantities import size_text, time_text
from nidmap.placement.support.tables import align_columns
from nidmap.placement.ui import say
from nidmap.workloads.contention.trial import (
    KINDS,
    PRINTED_N,
    WARN,
    CaseSizes,
    Contention,
    Length,
    case_sizes,
    new_arrays,
    parse_length,
)
from nidmap.workloads.options import (
    Common,
    Number,
    Words,
    bench_callback,
    option_with_default,
)
from nidmap.workloads.session import Case, Repetitions, Session
from nidmap.workloads.trials import available_bytes
from nidmap.workloads.world import Comm, decide_on_root, processor, raise_together, rank_place

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine


#: The paper's numbers of nodes.
PAPER = (1, 3, 9, 18, 36)

#: The lengths of Tables 4.1 to 4.4.
_PAPER_LENGTHS = "512,512N,800N,810N,1024N"


def _parse_lengths(ctx: click.Context, param: click.Parameter, value: str) -> tuple[Length, ...]:
    text = _PAPER_LENGTHS if value == "paper" else value
    return tuple(parse_length(part.strip()) for part in text.split(","))


@click.command("contention")
@option_with_default(
    "--n", Number(), PRINTED_N, "Number of vectors over all ranks; a multiple of p^2."
)
@option_with_default(
    "--m lengths",
    str,
    "512",
    "Numbers in a vector: 512 (constant global memory), 512N (constant local), or paper.",
    callback=_parse_lengths,
)
@option_with_default(
    "--kind kinds",
    Words(KINDS),
    "all",
    "alltoall-int (one count per process), alltoallv-int, alltoallv-double, or all.",
)
@click.option(
    "--nodes",
    "counts",
    type=Number(several=True),
    help="Node counts to run on; default: those of 1,3,9,18,36 that fit the job.",
)
@click.option("--ppn", type=click.IntRange(min=1), help="Ranks per node to use; default: all.")
@click.option(
    "--memory", type=ByteCount(whole=True), help="Memory of a node; default: what is free."
)
@machine_option
@bench_callback
def contention(
    common: Common,
    n: int,
    lengths: tuple[Length, ...],
    kinds: tuple[str, ...],
    counts: tuple[int, ...] | None,
    ppn: int | None,
    memory: int | None,
    specs: tuple[str, ...],
) -> int:
    """Measure all-to-alls of large blocks within one leaf module and across two.

    With -m the leaves are known: for every number of nodes that fits into
    one leaf, the same number across two is measured in turn with it. Sizes
    above a node's memory are refused, and a warning is given from 75 % on:
    MPI's own buffers grow with the ranks, and the paper's runs failed there.

    \b
    nidmap bench contention -n 4 --n 746496 --m 8
    srun -N 36 --ntasks-per-node 8 nidmap bench contention -m tara --m paper
    nidmap bench contention -n 8 --n 746496 --m 8N --kind alltoallv-double
    """
    options = {"n": n, "m": [*map(str, lengths)], "kinds": list(kinds), "nodes": counts}
    options |= {"ppn": ppn, "memory": memory, "machine": list(specs)}
    with Session(common, "contention", options) as session:
        bench = _Bench(session, n, ppn, memory)
        for sets in _share_sets(session.comm, counts, specs):
            bench.measure(sets, lengths, kinds)
        if bench.cases and all(case.used > 1 for case in bench.cases):
            raise NidmapError("no case fits into a node's memory", "use a smaller --m or --n")
    _show_session(session, bench.cases)
    return session.exit_code


def _share_sets(
    comm: Comm, counts: tuple[int, ...] | None, specs: tuple[str, ...]
) -> list[list[NodeSet]]:
    """Return the node sets, computed on rank 0. Collective."""
    names = list(dict.fromkeys(comm.allgather(processor(comm))))

    def choose() -> list[list[NodeSet]]:
        named = specs or os.environ.get("NIDMAP_MACHINE")
        machine = machine_from(specs) if named else None
        leaf = leaves(machine, names) if machine else [-1] * len(names)
        wanted = counts or [count for count in PAPER if count <= len(names)]
        return [node_sets(leaf, count) for count in dict.fromkeys(wanted)]

    return decide_on_root(comm, choose)


@dataclass(frozen=True, slots=True)
class NodeSet:
    """Some of a job's nodes."""

    name: str  # ``one leaf``, ``two leaves``, ``3 leaves`` …, or ``any`` where leaves are not known
    nodes: tuple[int, ...]  # indices of the job's nodes


def leaves(machine: Machine, names: Sequence[str]) -> list[int]:
    """Return the leaf switch of each node of a job."""
    rows = lookup.rows_of(machine, names, "the job's nodes")
    leaf_of_node: list[int] = switch_tree.slurm_switches(machine).leaf_of[rows].tolist()
    for name, leaf in zip(names, leaf_of_node, strict=True):
        if leaf < 0:
            raise UsageError(f"node {name} is not attached to any leaf switch of {machine.name}")
    return leaf_of_node


def node_sets(leaf: Sequence[int], count: int) -> list[NodeSet]:
    """Return sets of this many nodes: within one leaf, and across as few as possible from two on.

    `leaf`: leaf of each of the job's nodes, the first being that of its rank 0; -1 where that is
    not known.
    """
    if not 1 <= count <= len(leaf):
        raise UsageError(f"{count} nodes requested, the job has {len(leaf)}")
    groups: dict[int, list[int]] = {}
    for node, where in enumerate(leaf):
        groups.setdefault(where, []).append(node)
    home = groups.pop(leaf[0])
    sets = []
    if len(home) >= count:
        sets.append(NodeSet("any" if leaf[0] < 0 else "one leaf", tuple(home[:count])))
    several = [home]
    for other in sorted(groups.values(), key=len, reverse=True):
        several.append(other)
        if len(several) <= count <= sum(map(len, several)):
            dealt = [node for turn in zip_longest(*several) for node in turn if node is not None]
            name = "two leaves" if len(several) == 2 else f"{len(several)} leaves"
            return [*sets, NodeSet(name, tuple(sorted(dealt[:count])))]
    return sets


@dataclass(slots=True)
class _MeasuredCase:
    """One case: sizes, its node set, its share of memory, its times (None: refused)."""

    sizes: CaseSizes
    where: str
    length: str
    used: float
    result: Repetitions | None = None


class _Bench:
    """All cases of a run."""

    def __init__(self, session: Session, n: int, ppn: int | None, memory: int | None) -> None:
        self.session, self.n, self.memory = session, n, memory
        self.here = rank_place(session.comm)
        least = min(session.comm.allgather(self.here.ranks))
        if ppn is not None and ppn > least:
            raise UsageError(f"--ppn {ppn}: a node has only {least} ranks")
        self.ppn = ppn or least
        self.cases: list[_MeasuredCase] = []

    def measure(
        self, sets: Sequence[NodeSet], lengths: Sequence[Length], kinds: Sequence[str]
    ) -> None:
        """Measure every length and kind on equal-sized sets at the same time."""
        parts = [self.session.part(self._joins(nodes)) for nodes in sets]
        for kind in kinds:
            # the ints do not depend on m
            for length in lengths if kind.endswith("double") else lengths[:1]:
                if not self.session.over():
                    self._side_by_side(sets, parts, length, kind)
        for part in parts:
            part.Free()

    def _joins(self, one: NodeSet) -> bool:
        """Tell whether this rank takes part on a set of nodes."""
        return self.here.node in one.nodes and self.here.local < self.ppn

    def _side_by_side(
        self, sets: Sequence[NodeSet], parts: Sequence[Comm], length: Length, kind: str
    ) -> None:
        """Measure a kind and length on equal-sized sets alternately, reusing two arrays."""
        comm, nodes = self.session.comm, len(sets[0].nodes)
        size = case_sizes(self.n, length.at(nodes), self.ppn * nodes, nodes, kind)
        room = min(comm.allgather(available_bytes()))
        used = size.node_need / max(min(self.memory or room, room), 1)
        cases = [_MeasuredCase(size, case_set.name, str(length), used) for case_set in sets]
        self.cases += cases
        if used > WARN and self.session.root:
            warned = "warned: MPI's own buffers grow with the ranks (Table 4.4)"
            say(
                f"nidmap: {kind} with m = {size.m} on {nodes} nodes takes "
                f"{size_text(size.node_need, 1024)} per node, {100 * used:.0f} % of its memory: "
                f"{'refused' if used > 1 else warned}"
            )
        if used > 1:
            return
        joins = [self._joins(case_set) for case_set in sets]
        with raise_together(comm):
            arrays = new_arrays(size) if any(joins) else None
        labels = {"kind": kind, "n": size.n, "m": size.m, "design": str(length)}
        labels |= {"nodes": nodes, "ranks": size.ranks}
        trials = [
            Case(
                Contention(part, n=size.n, m=size.m, kind=kind, arrays=arrays) if inside else None,
                {**labels, "leaves": case_set.name},
                part,
            )
            for case_set, part, inside in zip(sets, parts, joins, strict=True)
        ]
        for case, result in zip(cases, self.session.interleave(trials), strict=True):
            case.result = result or None


def _show_session(session: Session, cases: Sequence[_MeasuredCase]) -> None:
    document = session.document()
    document["refused"] = [
        {"kind": c.sizes.kind, "m": c.sizes.m, "nodes": c.sizes.nodes, "used": c.used}
        for c in cases
        if c.used > 1
    ]
    columns = ["call", "m", "N", "p", "nodes in", "local", "block", "memory"]
    head = [*columns, "best", "median", "worst"]
    session.common.show(
        document, align_columns([head, *map(_case_row, cases)]) + _ratio_lines(cases)
    )


def _case_row(case: _MeasuredCase) -> list[object]:
    size = case.sizes
    times = ["refused" if case.used > 1 else "not run", "", ""]
    if case.result is not None:
        total = case.result.summary()["total"]
        times = [time_text(total[k]) for k in ("best", "median", "worst")]
    length = case.length if size.kind.endswith("double") else "-"
    memory = [size_text(count, 1024) for count in (size.local_bytes, size.block_bytes)]
    what = [size.kind, length, size.nodes, size.ranks, case.where]
    return [*what, *memory, f"{100 * case.used:.0f} %", *times]


def _ratio_lines(cases: Sequence[_MeasuredCase]) -> str:
    """Return one line for each pair with equal N: two leaves relative to one."""
    lines = [
        f"{smaller.sizes.kind}, m = {smaller.length}, {smaller.sizes.nodes} nodes: {larger.where}"
        f" take {larger.result.median() / smaller.result.median():.2f} times as long as"
        f" {smaller.where}\n"
        for smaller, larger in pairwise(cases)
        if smaller.sizes == larger.sizes
        and smaller.length == larger.length
        and smaller.result
        and larger.result
    ]
    return "\n" + "".join(lines) if lines else ""
