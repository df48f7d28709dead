# SPDX-License-Identifier: Apache-2.0
"""Planner ``slurm-none``: Slurm's choice without a topology; shared parts of ``slurm-…``.

They share a job as Slurm takes it, with its nodes in Slurm's node order.

Without a topology Slurm cuts its node table into runs of consecutive free
nodes of equal weight and takes whole runs until the job is full: the run that
is enough for what is left (the tightest, the first of equals), else the
largest, lighter weights first, runs with a required node before those
without. What decides is a walk over the runs in which one replaces the best
so far, and that walk has no total order (a larger run that is not enough
replaces a smaller one that is, where nodes have different CPUs), so it is
walked, but only over the runs that can matter: of each stretch between two
runs with required nodes, those of the lowest weight, and of these only the
largest while none is enough.

The baseline is Slurm 22.05.8 with select/cons_tres and CR_Core, giving whole
nodes (``sbatch -N n --exclusive``): what it allocates, not what
``sbatch --test-only`` prints, which ignores node weights in that version.
The rules were learnt from the facts and Slurm's documentation and sources and
compared with a real slurmctld; tests/placement/planners repeats that on random
occupancies with holes, weights, required nodes and unequal nodes. topology/block,
which 22.05 has not, was compared with 24.11.5 the same way, and so was
topology/tree with 24.11.5 and 26.05.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nidmap.placement.errors import PlanError
from nidmap.placement.machine import Machine, Switches, once
from nidmap.placement.planners import Request, free_rows, planner
from nidmap.placement.support.array_types import Ints, Mask
from nidmap.placement.switch_tree import machine_slurm_order, slurm_switches

if TYPE_CHECKING:
    Pick = Callable[["SlurmJob"], Ints | None]


@dataclass(frozen=True, slots=True, eq=False)
class SlurmJob:
    """A job's request for nodes, all arrays in Slurm's node order."""

    count: int  # nodes wanted
    free: Mask  # (n,)
    must: Mask  # (n,), required nodes (``-w``), a part of `free`
    weight: Ints  # (n,), node weights; Slurm takes low ones first
    cpus: Ints  # (n,), CPUs of each node, 1 everywhere where they are equal or unknown


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The nodes to choose from after weights have been considered."""

    taken: Mask  # (n,), already decided: required, or of a weight that is needed completely
    open: Mask  # (n,), those of the next weight as well: some of them are taken
    left: int  # nodes still to be taken out of `open` and not `taken`


def lightest_that_fit(job: SlurmJob, part: Mask) -> Pool | None:
    """Return the free nodes of a part that weights permit; None if too few.

    All nodes of the low weights are taken, and a choice is left only among
    those of the last weight that is needed.
    """
    left = job.count - int(job.must.sum())
    loose = job.free & part & ~job.must
    weights, counts = np.unique(job.weight[loose], return_counts=True)
    last = int(np.searchsorted(np.cumsum(counts), max(left, 1)))
    if last == len(weights):
        return None
    lower = loose & (job.weight < weights[last])
    taken = job.must | lower
    same = loose & (job.weight == weights[last])
    return Pool(taken, taken | same, left - int(lower.sum()))


def choose_rows(machine: Machine, request: Request, pick: Pick) -> Ints:
    """Return the rows that `pick_nodes` chooses, in Slurm's node order.

    Where it finds nothing it is asked again without the nodes of the fewest
    CPUs, and so on: Slurm does so against knapsack problems.

    `request`: its `include` is Slurm's ``-w`` with a larger ``-N``; its `weights`, or else the
    machine's own, are Slurm's node weights. `pick`: returns the nodes of a `SlurmJob` that Slurm
    takes, in any order; None where it would wait.
    """
    free_rows(request)  # refuses where too few are free or too many included
    order, weight, cpus, ones = _node_columns(machine)
    free = request.free[order]
    must = np.zeros(len(machine), dtype=bool)
    must[request.include] = True
    job = SlurmJob(
        count=request.count,
        free=free,
        must=must[order] if len(request.include) else must,
        weight=weight if request.weights is None else request.weights[order],
        cpus=cpus if bool((cpus[free] > 0).all()) else ones,
    )
    rows = pick(job)
    for fewest in np.unique(job.cpus[free])[:-1].tolist() if rows is None else []:
        rows = pick(replace(job, free=free & ((job.cpus > fewest) | job.must)))
        if rows is not None:
            break
    if rows is not None:
        return order[np.sort(rows)]
    idle = int(request.free.sum())
    why, hint = "no top switch is", "Slurm runs no job across several"
    if slurm_switches(machine).kind == "block":
        why, hint = (
            "no block is",
            "topology/block takes as few blocks as could hold the job: --segment",
        )
    raise PlanError(
        f"Slurm would leave the job pending: {idle} nodes are free, {request.count} wanted, "
        f"but {why} enough for it",
        hint,
    )


def first_of_lightest(machine: Machine, request: Request) -> Ints:
    """Return the node that Slurm 26.05 and later give a one-node job on any topology."""

    def first(job: SlurmJob) -> Ints:
        wanted = np.flatnonzero(job.must if job.must.any() else job.free)
        return wanted[[np.argmin(job.weight[wanted])]]

    return choose_rows(machine, request, first)


@once
def _node_columns(machine: Machine) -> tuple[Ints, Ints, Ints, Ints]:
    """Return Slurm's node order and, in it, the nodes' weights, CPUs, and ones."""
    order = machine_slurm_order(machine)
    ones = np.ones(len(machine), dtype=np.int64)
    weight = ones if machine.weight is None else machine.weight[order]
    return order, weight, machine.cores[order], ones


def switches_in_node_order(machine: Machine) -> Switches:
    """Return the machine's switches, with `leaf_of` in Slurm's node order."""
    switches = slurm_switches(machine)
    return replace(switches, leaf_of=switches.leaf_of[machine_slurm_order(machine)])


@planner("slurm-none")
def slurm_none(machine: Machine, request: Request) -> Ints:
    """Choose as Slurm does without a topology plugin: runs of consecutive free nodes.

    The run of equal weight that is enough and tightest, else the largest run
    and so on. Equal to the real
    slurmctld's allocations on random occupancies with holes and node weights.
    """
    return choose_rows(machine, request, pick_nodes)


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """Runs of free nodes, one per row, in the order of the node table."""

    nodes: Ints  # (m,), the free nodes that are not required, ascending
    # first, last: (r,), each run is ``nodes[first:last]``
    first: Ints
    last: Ints
    required: Ints  # (r,), the first required node in it, -1 for none
    # weight, cpus, size: (r,), of the run; its size without required nodes
    weight: Ints
    cpus: Ints
    size: Ints


def pick_nodes(job: SlurmJob) -> Ints | None:
    """Return the nodes that Slurm takes; None if the job would wait."""
    chosen = [np.flatnonzero(job.must)]
    left = job.count - len(chosen[0])
    if left <= 0:
        return chosen[0]
    runs = _cut_runs(job)
    if left == job.count and _are_alike(job, runs):
        return _take_alike(runs, left)
    stretches = _required_stretches(runs)
    while left > 0:
        if not stretches:
            return None
        lightest = [classes[-1] for classes in stretches]
        able = [  # as long as none is large enough, only the first can be best
            alike if runs.size[alike].max() >= left else alike[:1] for alike in lightest
        ]
        best = _best_run(runs, np.sort(np.concatenate(able)), left)
        chosen.append(_take_nodes(job, runs, best, left))
        left -= len(chosen[-1])
        for classes in stretches:
            rest = classes[-1][classes[-1] != best]
            classes[-1:] = [rest] if len(rest) else []
        stretches = [classes for classes in stretches if classes]
    return np.concatenate(chosen)


def _cut_runs(job: SlurmJob) -> _Runs:
    """Cut the node table into runs, node by node.

    A required node has no weight of its own to give to its run, but ends a
    run of another weight; one that comes first in its run after such an end
    is forgotten when the next node has another weight than 0 (Slurm leaves a
    0 there, where it means "none yet" elsewhere).
    """
    free, nodes = np.flatnonzero(job.free), np.flatnonzero(job.free & ~job.must)
    if len(free) == len(nodes):  # fast path for the usual case
        breaks = (np.diff(nodes) != 1) | (np.diff(job.weight[nodes]) != 0)
        edges = np.concatenate([[0], np.flatnonzero(breaks) + 1, [len(nodes)]])
        first, last = (edges[:-1], edges[1:]) if len(nodes) else (edges[:0], edges[:0])
        return _runs_between(job, nodes, first, last, np.full(len(first), -1))
    columns = (free, job.must[free], job.weight[free], np.searchsorted(nodes, free))
    runs: list[list[int]] = []  # first and last place in `nodes`, first required node or -1
    before, weight, required, size = -2, -1, -1, 0  # weight -1: none yet
    for node, is_must, its_weight, place in zip(*(c.tolist() for c in columns), strict=True):
        if node != before + 1:
            weight, required, size = -1, -1, 0
        elif weight not in (-1, its_weight):
            required = -1
            weight, size = (0, 0) if size else (weight, 0)
        before = node
        if is_must:
            required = node if required < 0 else required
            if size:
                runs[-1][2] = required
            continue
        if not size:
            runs.append([place, place, required])
        runs[-1][1] = place + 1
        size, weight = size + 1, its_weight
    first, last, required_node = np.array(runs, dtype=np.int64).reshape(-1, 3).T
    return _runs_between(job, nodes, first, last, required_node)


def _runs_between(job: SlurmJob, nodes: Ints, first: Ints, last: Ints, required: Ints) -> _Runs:
    """Return the runs of `nodes` with their weights and sizes."""
    cpus = np.add.reduceat(job.cpus[nodes], first) if len(first) else first
    return _Runs(nodes, first, last, required, job.weight[nodes[last - 1]], cpus, last - first)


def _are_alike(job: SlurmJob, runs: _Runs) -> bool:
    """Tell whether runs, none with a required node, differ only in their sizes."""
    columns = runs.weight, job.cpus[runs.nodes]
    return all(bool((column == column[:1]).all()) for column in columns)


def _take_alike(runs: _Runs, left: int) -> Ints | None:
    """Return the largest runs' nodes, then those of the tightest run that fits the rest."""
    order = np.argsort(-runs.size, kind="stable")
    size = runs.size[order]
    rest = left - np.cumsum(size) + size  # what is still to be taken as it is a run's turn
    enough = np.flatnonzero(size >= rest)
    if not len(enough):
        return None
    turn = int(enough[0])
    able = order[turn:][size[turn:] >= rest[turn]]
    tightest = int(able[np.lexsort((able, runs.size[able]))[0]])
    whole = [runs.nodes[runs.first[run] : runs.last[run]] for run in order[:turn].tolist()]
    begin = runs.first[tightest]
    return np.concatenate([*whole, runs.nodes[begin : begin + rest[turn]]])


def _required_stretches(runs: _Runs) -> list[list[Ints]]:
    """Return the runs between two with a required node, and each of the latter alone.

    Of each stretch the runs of one weight, the lightest at the end; of these
    those with most CPUs first, the first of equals.
    """
    required = runs.required >= 0
    stretch = 2 * np.cumsum(required) - required
    order = np.lexsort((-runs.cpus, -runs.weight, stretch))
    return [_cut_where_changed(part, runs.weight) for part in _cut_where_changed(order, stretch)]


def _cut_where_changed(runs: Ints, column: Ints) -> list[Ints]:
    """Split a list of runs wherever their entry in a column changes."""
    parts = np.split(runs, np.flatnonzero(np.diff(column[runs])) + 1)
    return parts if len(runs) else []


def _best_run(runs: _Runs, offered: Ints, left: int) -> int:
    """Walk the runs as Slurm does and return the one it takes; -1 if none."""
    best, best_weight, best_cpus, best_enough, best_required = -1, 0, 0, False, False
    columns = (offered, runs.weight[offered], runs.cpus[offered])
    masks = (runs.size[offered] >= left, runs.required[offered] >= 0)
    rows = zip(*(column.tolist() for column in (*columns, *masks)), strict=True)
    for run, weight, cpus, enough, required in rows:
        tighter = enough and (not best_enough or cpus < best_cpus)
        larger = not enough and cpus > best_cpus
        if (
            best < 0
            or weight < best_weight
            or (required and not best_required)
            or (weight == best_weight and (tighter or larger))
        ):
            best, best_weight, best_cpus = run, weight, cpus
            best_enough, best_required = enough, required
    return best


def _take_nodes(job: SlurmJob, runs: _Runs, run: int, left: int) -> Ints:
    """Return the nodes that the job gets from a run."""
    nodes = runs.nodes[runs.first[run] : runs.last[run]]
    required = int(runs.required[run])
    if required >= 0:  # up from the first required node, then down from it
        above = int(np.searchsorted(nodes, required))
        return np.concatenate([nodes[above:], nodes[:above][::-1]])[:left]
    if left <= 1:  # the node with the fewest CPUs
        fewest = int(np.argmin(job.cpus[nodes]))
        return nodes[fewest : fewest + 1]
    return nodes[:left]
