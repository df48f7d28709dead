# SPDX-License-Identifier: Apache-2.0
"""Rank 0's work when a running program's ranks are reordered.

The program asks in Python (`nidmap.rankmap.runtime`), or by the library before it
(`nidmap.rankmap.runtime.inside`), whose question is a text.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from nidmap.placement.errors import NidmapError, UsageError, error_text
from nidmap.placement.load import load_machine
from nidmap.placement.machine import Machine
from nidmap.placement.permutation import inverse
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Ints
from nidmap.rankmap.emit import read_order_file
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.pattern import Pattern, graph
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.score import cost
from nidmap.rankmap.search.auto_order import order_by_strategy

#: First line of a question.
_HEAD = "nidmap 1"

#: Words on a request's second line other than a pattern.
_GRAPH, _WORLD = "graph", "world"

#: Of each process: its host, and Slurm's name for it, '' for none.
Hosts = Sequence[tuple[str, str]]


class Reranked(NamedTuple):
    """The processes in their new order."""

    ranks: Ints  # (n,), entry r is the old rank of the process that gets rank r
    warning: str  # deviations from the request; '' for none
    # Criterion of the choice, time or J, and the expected gain; '' if it was not chosen here
    remark: str = ""


def answer(
    question: str,
    job: Mapping[str, Any] | None = None,
    machine: str = "",
    strategy: str = "",
    order_file: str = "",
) -> Reranked:
    """Return the processes in their new order.

    `job`: what a `Job` takes; without a ``pattern`` the question says who talks to whom.
    `machine`: specs as ``-m`` takes them, '' for ``$NIDMAP_MACHINE``.
    """
    pattern, hosts, edges = _parse_request(question)
    words = dict(job or {})
    if not (words.get("pattern") or order_file):
        words["pattern"] = _named_pattern(pattern, hosts, edges)
    return rerank(hosts, Job(**words), machine or None, strategy, order_file)


def rerank(
    hosts: Hosts,
    job: Job,
    machine: str | Machine | None = None,
    strategy: str = "",
    order_file: str = "",
) -> Reranked:
    """Return the processes in their new order, given where they run.

    `hosts`: of each process, in its old order: its processor's name, and Slurm's name for the
    node ('' for none), which counts where it tells as much and the machine does not know the
    other. `job`: who talks to whom, by new ranks. `machine`: a machine spec; None means
    ``$NIDMAP_MACHINE``. `strategy`: '' for the best there is, as
    `nidmap.rankmap.search.auto_order` finds it, and the old order where that is not better.
    `order_file`: a file with the order, of the format that its name states; '' for none.
    """
    processors, nodes = map(list, zip(*hosts, strict=True))
    named = [processors]  # of each process's node, the ones to trust first
    if all(nodes) and len(set(hosts)) == len(set(nodes)):
        named = [nodes, processors]
    _, first, back = np.unique(named[0], return_index=True, return_inverse=True)
    node = inverse(np.argsort(first))[back]
    at_slot = np.argsort(node, kind="stable")
    machine = machine or os.environ.get("NIDMAP_MACHINE", "").strip()
    placement, talk = _find_slots(
        [[names[k] for k in np.sort(first)] for names in named], node, machine
    )
    if order_file:
        return Reranked(at_slot[read_order_file(order_file, None, placement).slot_of_rank], talk)
    if strategy:
        return Reranked(at_slot[arrange(placement, job.pattern, strategy).slot_of_rank], talk)
    before = placement.with_order(inverse(at_slot))
    try:
        best = order_by_strategy(placement, job, "auto")
    except NidmapError:
        raise
    except Exception as error:  # a program that runs already goes on as it is
        broke = f"strategy auto failed ({error_text(error)})"
        return Reranked(np.arange(len(at_slot)), broke, "the ranks keep their order")
    remark = best.origin.remark
    moved = not np.array_equal(best.node_of_rank, before.node_of_rank)
    if moved and not _beats_order(best, before, job):
        best, remark = before, f"{remark}; no better than the ranks' own order, which is kept"
    return Reranked(at_slot[best.slot_of_rank], talk, remark)


def _beats_order(best: Placement, before: Placement, job: Job) -> bool:
    """Tell whether an order is better than another, by the criterion it was chosen by."""
    by_time = best.origin.optimised is not None and best.origin.optimised["by"] == "time"
    if not by_time or best.machine is None:
        return cost(best, job.pattern) < cost(before, job.pattern)
    predictor = Predictor(best.machine, job.on(best.counts.tolist()))
    return predictor.time(best) < predictor.time(before)


def _find_slots(
    listed: list[list[str]], node: Ints, machine: str | Machine
) -> tuple[Placement, str]:
    """Return the slots on the machine's rows, or on names alone and why."""
    counts = np.bincount(node)
    why = "no machine is named (machine=, NIDMAP_MACHINE)"
    spellings = [(names, [name.partition(".")[0] for name in names]) for names in listed]
    try:
        if machine:
            why = ""
            known = load_machine(*machine.split()) if isinstance(machine, str) else machine
            for spelled in chain(*spellings):
                try:
                    return place_ranks(known, spelled, counts.tolist()), ""
                except NidmapError as error:
                    why = why or error_text(error)
    except Exception as error:
        why = error_text(error)
    return Placement(np.array(listed[0]), counts), f"{why}: only nodes are distinguished"


def _parse_request(text: str) -> tuple[str, Hosts, str]:
    """Return the request: its pattern, its processes' hosts, the edges of its graph."""
    head, pattern, sizes, *rest = text.split("\n", 3) if text.count("\n") > 3 else [""] * 3
    if head != _HEAD:
        raise UsageError("the preload library is from another nidmap version")
    cells, size = map(int, sizes.split())
    lines = rest[0].split("\n", size)
    named = [line.split() for line in lines[:cells]]
    hosts = [(host, "" if node == "-" else node) for host, node in named]
    return pattern, hosts, lines[size]


def _named_pattern(pattern: str, hosts: Hosts, edges: str) -> str | Pattern:
    """Return the pattern of a request; a graph that is a grid gets a name."""
    if pattern == _WORLD:
        raise UsageError("the pattern of MPI_COMM_WORLD is not known", "give --pattern")
    if pattern != _GRAPH:
        return pattern
    a, b, weight = np.array(edges.split(), dtype=np.int64).reshape(-1, 3).T
    edges_graph = graph.from_edges(len(hosts), a, b, weight.astype(float))
    grid = graph.stencil_of(edges_graph)
    return grid.spec if grid else edges_graph
