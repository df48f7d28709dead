"""Slurm's choice without a topology: runs of consecutive nodes of one weight.

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

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.planners._slurm import Job

__all__ = ["pick"]


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs, one a row in the order of the node table.

    Attributes
    ----------
    nodes : int64 (m,)
        The free nodes that are not required, ascending.
    first, last : int64 (m,)
        Each run is ``nodes[first:last]``.
    weight, cpus : int64 (m,)
        Of the run.
    required : int64 (m,)
        The first required node in it, -1 for none.
    size : int64 (m,)
        Nodes that it has to give.
    """

    nodes: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    weight: NDArray[np.int64]
    cpus: NDArray[np.int64]
    required: NDArray[np.int64]
    size: NDArray[np.int64]


def pick(job: Job) -> NDArray[np.int64] | None:
    """Return the nodes that Slurm takes, None where the job would wait."""
    must = job.must
    if job.contiguous and must.any():
        bridged = _bridged(job)
        if bridged is None:
            return None
        must = bridged
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
        offered = np.sort(np.concatenate([_offered(runs, s[-1], left) for s in stretches]))
        best = _best(runs, offered, left)
        chosen.append(_take(job, runs, best, left))
        _drop(best, stretches)
        left -= len(chosen[-1])
    return np.concatenate(chosen)


def _bridged(job: Job) -> NDArray[np.bool_] | None:
    """Require all nodes between required ones, too, as ``--contiguous`` does."""
    at = np.flatnonzero(job.must)
    must = np.zeros_like(job.must)
    must[at[0] : at[-1] + 1] = True
    fits = bool(job.free[must].all()) and int(must.sum()) <= job.count
    return must if fits else None


def _runs(job: Job, must: NDArray[np.bool_]) -> _Runs:
    """Cut the node table into runs."""
    nodes = np.flatnonzero(job.free & ~must)
    weight = job.weight[nodes]
    cut = np.diff(nodes, prepend=-2) != 1
    if not job.contiguous:
        cut |= np.diff(weight, prepend=0) != 0
    first = np.flatnonzero(cut)
    last = np.append(first[1:], len(nodes)) if len(first) else first
    required = np.full(len(first), -1, dtype=np.int64)
    if must.any() and len(nodes):
        first, last, required = _with_required(job, must, nodes, first, last)
    cpus = np.add.reduceat(job.cpus[nodes], first) if len(first) else first
    # A contiguous run may mix weights; Slurm remembers its last node's.
    run_weight = weight[last - 1] if len(first) else first
    return _Runs(nodes, first, last, run_weight, cpus, required, last - first)


def _with_required(
    job: Job,
    must: NDArray[np.bool_],
    nodes: NDArray[np.int64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Join runs that only required nodes part, and note the first of these in each run."""
    free = np.flatnonzero(job.free)
    block_of = np.cumsum(np.diff(free, prepend=-2) != 1)
    touched = np.isin(block_of, block_of[must[free]])
    joined = _walk(job, must, free[touched], block_of[touched], nodes)
    plain = ~np.isin(nodes[first], free[touched])
    start = np.concatenate([first[plain], joined[:, 0]])
    order = np.argsort(start, kind="stable")
    end = np.concatenate([last[plain], joined[:, 1]])
    none = np.full(int(plain.sum()), -1, dtype=np.int64)
    return start[order], end[order], np.concatenate([none, joined[:, 2]])[order]


def _walk(
    job: Job,
    must: NDArray[np.bool_],
    free: NDArray[np.int64],
    block_of: NDArray[np.int64],
    nodes: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Cut the blocks of consecutive nodes that have a required one, node by node.

    A required node has no weight of its own to give to its run, but ends a
    run of another weight; one that comes first in its run after such an end
    is forgotten when the next node has another weight than 0 (Slurm leaves a
    0 there, where it means "none yet" elsewhere).

    Returns
    -------
    int64 (k, 3)
        First and last place in `nodes`, first required node or -1.
    """
    runs: list[list[int]] = []
    places = np.searchsorted(nodes, free).tolist()
    rows = zip(
        free.tolist(),
        block_of.tolist(),
        must[free].tolist(),
        job.weight[free].tolist(),
        places,
        strict=True,
    )
    block, weight, required = -1, -1, -1  # weight -1: none yet
    size = 0
    for node, its_block, is_must, its_weight, place in rows:
        if its_block != block:
            block, weight, required, size = its_block, -1, -1, 0
        elif not job.contiguous and weight not in (-1, its_weight):
            required = -1
            weight, size = (0, 0) if size else (weight, 0)
        if is_must:
            required = node if required < 0 else required
            if size:
                runs[-1][2] = required
            continue
        if size:
            runs[-1][1] = place + 1
        else:
            runs.append([place, place + 1, required])
        size, weight = size + 1, its_weight
    return np.array(runs, dtype=np.int64).reshape(-1, 3)


def _stretches(runs: _Runs) -> list[list[NDArray[np.int64]]]:
    """Return the runs between two with a required node, and each of those alone.

    Of each stretch the runs of one weight, the lightest at the end; of these
    those with most CPUs first, the first of equals.
    """
    required = runs.required >= 0
    stretch = 2 * np.cumsum(required) - required
    order = np.lexsort((-runs.cpus, -runs.weight, stretch))
    found: dict[int, list[NDArray[np.int64]]] = {}
    keys = np.stack([stretch[order], runs.weight[order]])
    cuts = np.flatnonzero((np.diff(keys) != 0).any(axis=0)) + 1
    for alike in np.split(order, cuts) if len(order) else []:
        found.setdefault(int(stretch[alike[0]]), []).append(alike)
    return list(found.values())


def _offered(runs: _Runs, lightest: NDArray[np.int64], left: int) -> NDArray[np.int64]:
    """Return those of a stretch's lightest runs that can be the best for `left` nodes.

    While none of them is enough only the first can.
    """
    return lightest if runs.size[lightest].max() >= left else lightest[:1]


def _drop(run: int, stretches: list[list[NDArray[np.int64]]]) -> None:
    """Take a run out, and what is empty then."""
    for classes in stretches:
        rest = classes[-1][classes[-1] != run]
        if len(rest) < len(classes[-1]):
            classes[-1:] = [rest] if len(rest) else []
            if not classes:
                stretches.remove(classes)
            return


def _best(runs: _Runs, offered: NDArray[np.int64], left: int) -> int:
    """Walk the runs as Slurm does and return the one it takes, -1 for none."""
    best = -1
    best_enough, best_cpus, best_weight, best_required = False, 0, 0, False
    columns = (runs.weight, runs.cpus, runs.size, runs.required)
    rows = zip(*(column[offered].tolist() for column in columns), strict=True)
    for run, (weight, cpus, size, node) in zip(offered.tolist(), rows, strict=True):
        enough, required = size >= left, node >= 0
        if (
            best < 0
            or (required and not best_required)
            or weight < best_weight
            or (weight == best_weight and _fits_better(enough, cpus, best_enough, best_cpus))
        ):
            best = run
            best_enough, best_cpus = enough, cpus
            best_weight, best_required = weight, required
    return best


def _fits_better(enough: bool, cpus: int, best_enough: bool, best_cpus: int) -> bool:
    """Tell whether a run of equal weight replaces the best so far."""
    if enough:
        return not best_enough or cpus < best_cpus
    return cpus > best_cpus


def _one_run(runs: _Runs, left: int, required: bool) -> int:
    """Return the run for ``--contiguous``, -1 where the walk does not end at one that is enough."""
    if required:
        with_one = np.flatnonzero(runs.required >= 0)
        return int(with_one[0]) if len(with_one) and runs.size[with_one[0]] >= left else -1
    best = -1
    best_enough, best_cpus, best_weight = False, 0, 0
    columns = (runs.weight, runs.cpus, runs.size >= left)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for run, (weight, cpus, enough) in enumerate(rows):
        better = best < 0 or weight < best_weight or (enough and not best_enough)
        if better or (weight == best_weight and _fits_better(enough, cpus, best_enough, best_cpus)):
            best, best_enough, best_cpus, best_weight = run, enough, cpus, weight
    return best if best_enough else -1


def _take(job: Job, runs: _Runs, run: int, left: int) -> NDArray[np.int64]:
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
