"""Planner ``slurm-none``, Slurm's choice without a topology: runs of nodes of one weight.

Slurm cuts its node table into runs of consecutive free nodes of equal weight
and takes whole runs until the job is full: the run that is enough for what is
left (the tightest, the first of equals), else the largest, lighter weights
first, runs with a required node before those without. What decides is a walk
over the runs in which one replaces the best so far, and that walk has no
total order (a larger run that is not enough replaces a smaller one that is,
where nodes have different CPUs), so it is walked, but only over the runs that
can matter: of each stretch between two runs with required nodes, those of the
lowest weight, and of these only the largest while none is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.planners import planner
from placement.planners.slurm_job import Job, choose

if TYPE_CHECKING:
    from placement.machine import Machine
    from placement.request import Request
    from placement.support.array_types import Ints, Mask


__all__ = ["pick", "slurm_none"]


@planner("slurm-none")
def slurm_none(machine: Machine, request: Request) -> Ints:
    """Choose as Slurm does without a topology plugin: runs of consecutive free nodes.

    The run of equal weight that is enough and tightest, else the largest run
    and so on; with ``request.contiguous`` one run that is enough. Equal to the real
    slurmctld's allocations on random occupancies with holes and node weights.

    Raises
    ------
    PlanError
        Where too few nodes are free, or Slurm would let the job wait.

    Examples
    --------
    >>> import numpy as np
    >>> from placement.specs import parse_spec
    >>> from placement.request import Request
    >>> machine = parse_spec("tree:4x4x4")
    >>> free = np.ones(64, dtype=bool)
    >>> free[[1, 5, 6, 9, 15]] = False
    >>> slurm_none(machine, Request(count=4, free=free)).tolist()
    [10, 11, 12, 13]
    """
    return choose(machine, request, pick)


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """The runs, one a row in the order of the node table.

    Attributes
    ----------
    nodes : int64 (m,)
        The free nodes that are not required, ascending.
    first, last : int64 (r,)
        Each run is ``nodes[first:last]``.
    required : int64 (r,)
        The first required node in it, -1 for none.
    weight, cpus, size : int64 (r,)
        Of the run; its size without required nodes.
    """

    nodes: Ints
    first: Ints
    last: Ints
    required: Ints
    weight: Ints
    cpus: Ints
    size: Ints


def pick(job: Job) -> Ints | None:
    """Return the nodes that Slurm takes, None where the job would wait."""
    must = job.must
    if job.contiguous and must.any():  # all nodes between required ones are required, too
        at = np.flatnonzero(must)
        must = np.zeros_like(must)
        must[at[0] : at[-1] + 1] = True
        if not job.free[must].all() or int(must.sum()) > job.count:
            return None
    chosen = [np.flatnonzero(must)]
    left = job.count - len(chosen[0])
    if left <= 0:
        return chosen[0]
    runs = _runs(job, must)
    if job.contiguous:
        found = _one_run(runs, left, bool(must.any()))
        return None if found < 0 else np.concatenate([*chosen, _take(job, runs, found, left)])
    stretches = _stretches(runs)
    while left > 0:
        if not stretches:
            return None
        offered = np.concatenate([_offer_runs(runs, classes[-1], left) for classes in stretches])
        best = _best(runs, np.sort(offered), left)
        chosen.append(_take(job, runs, best, left))
        left -= len(chosen[-1])
        for classes in stretches:
            rest = classes[-1][classes[-1] != best]
            classes[-1:] = [rest] if len(rest) else []
        stretches = [classes for classes in stretches if classes]
    return np.concatenate(chosen)


def _runs(job: Job, must: Mask) -> _Runs:
    """Cut the node table into runs."""
    nodes = np.flatnonzero(job.free & ~must)
    weight = job.weight[nodes]
    if must.any():
        first, last, required = _cut_at_required(job, must, nodes).T
    else:
        cut = np.diff(nodes, prepend=-2) != 1
        if not job.contiguous:
            cut |= np.diff(weight, prepend=0) != 0
        first = np.flatnonzero(cut)
        last = np.append(first[1:], len(nodes))[: len(first)]
        required = np.full(len(first), -1, dtype=np.int64)
    cpus = np.add.reduceat(job.cpus[nodes], first) if len(first) else first
    # A contiguous run may mix weights; Slurm remembers its last node's.
    return _Runs(nodes, first, last, required, weight[last - 1], cpus, last - first)


def _cut_at_required(job: Job, must: Mask, nodes: Ints) -> Ints:
    """Cut the table into runs where some nodes are required, node by node.

    A required node has no weight of its own to give to its run, but ends a
    run of another weight; one that comes first in its run after such an end
    is forgotten when the next node has another weight than 0 (Slurm leaves a
    0 there, where it means "none yet" elsewhere).

    Returns
    -------
    int64 (k, 3)
        First and last place in `nodes`, first required node or -1.
    """
    free = np.flatnonzero(job.free)
    columns = (free, must[free], job.weight[free], np.searchsorted(nodes, free))
    runs: list[list[int]] = []
    before, weight, required, size = -2, -1, -1, 0  # weight -1: none yet
    for node, is_must, its_weight, place in zip(*(c.tolist() for c in columns), strict=True):
        if node != before + 1:
            weight, required, size = -1, -1, 0
        elif not job.contiguous and weight not in (-1, its_weight):
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
    return np.array(runs, dtype=np.int64).reshape(-1, 3)


def _stretches(runs: _Runs) -> list[list[Ints]]:
    """Return the runs between two with a required node, and each of those alone.

    Of each stretch the runs of one weight, the lightest at the end; of these
    those with most CPUs first, the first of equals.
    """
    required = runs.required >= 0
    stretch = 2 * np.cumsum(required) - required
    order = np.lexsort((-runs.cpus, -runs.weight, stretch))
    return [_cut(part, runs.weight) for part in _cut(order, stretch)]


def _cut(runs: Ints, column: Ints) -> list[Ints]:
    """Cut a list of runs where their entry in a column changes."""
    parts = np.split(runs, np.flatnonzero(np.diff(column[runs])) + 1)
    return parts if len(runs) else []


def _offer_runs(runs: _Runs, lightest: Ints, left: int) -> Ints:
    """Return those of a stretch's lightest runs that can be the best for `left` nodes.

    While none of them is enough only the first can.
    """
    return lightest if runs.size[lightest].max() >= left else lightest[:1]


def _best(runs: _Runs, offered: Ints, left: int, contiguous: bool = False) -> int:
    """Walk the runs as Slurm does and return the one it takes, -1 for none."""
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
            or (contiguous and enough and not best_enough)
            or (weight == best_weight and (tighter or larger))
        ):
            best, best_weight, best_cpus = run, weight, cpus
            best_enough, best_required = enough, required
    return best


def _one_run(runs: _Runs, left: int, required: bool) -> int:
    """Return the run for ``--contiguous``, -1 where the walk does not end at one that is enough."""
    offered = np.flatnonzero(runs.required >= 0)[:1] if required else np.arange(len(runs.size))
    best = _best(runs, offered, left, contiguous=True)
    return best if best >= 0 and runs.size[best] >= left else -1


def _take(job: Job, runs: _Runs, run: int, left: int) -> Ints:
    """Return the nodes that the job gets of a run."""
    nodes = runs.nodes[runs.first[run] : runs.last[run]]
    required = int(runs.required[run])
    if required >= 0:  # up from the first required node, then down from it
        above = int(np.searchsorted(nodes, required))
        return np.concatenate([nodes[above:], nodes[:above][::-1]])[:left]
    if left <= 1:  # the node with the fewest CPUs
        fewest = int(np.argmin(job.cpus[nodes]))
        return nodes[fewest : fewest + 1]
    return nodes[:left]
