"""What the planners ``slurm-…`` share: a job as Slurm takes it, its nodes in Slurm's node order.

The baseline is Slurm 22.05.8 with select/cons_tres and CR_Core, giving whole
nodes (``sbatch -N n --exclusive``): what it allocates, not what
``sbatch --test-only`` prints, which ignores node weights in that version.
The rules were learnt from the facts and Slurm's documentation and sources and
held against a real slurmctld; tests/placement/planners repeats that on random
occupancies with holes, weights, required nodes and unequal nodes. topology/block,
which 22.05 has not, was held against 24.11.5 the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import PlanError, UsageError
from placement.planners._units import free_rows
from placement.scheduler.node_order import slurm_order
from placement.scheduler.switches import slurm_switches

if TYPE_CHECKING:
    from collections.abc import Callable

    from placement.machine import Machine, Switches
    from placement.request import Request
    from placement.support.array_types import Ints, Mask

    Pick = Callable[["Job"], Ints | None]

__all__ = ["Job", "Pool", "choose", "lightest_that_fit", "switches_in_node_order"]


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A job that wants nodes, all arrays in Slurm's node order.

    Attributes
    ----------
    count : int
        Nodes wanted.
    free : bool (n,)
    must : bool (n,)
        Required nodes (``-w``), a part of `free`.
    weight : int64 (n,)
        Node weights; Slurm takes low ones first.
    cpus : int64 (n,)
        CPUs of each node, 1 everywhere where they are equal or unknown.
    contiguous : bool
    """

    count: int
    free: Mask
    must: Mask
    weight: Ints
    cpus: Ints
    contiguous: bool = False


def _job_of(machine: Machine, request: Request, order: Ints) -> Job:
    """Return a request as Slurm would get it, in the node order given."""
    must = np.zeros(len(machine), dtype=bool)
    must[request.include] = True
    ones = np.ones(len(machine), dtype=np.int64)
    weight = request.weights if request.weights is not None else machine.weight
    cores = machine.cores if bool((machine.cores[request.free] > 0).all()) else ones
    return Job(
        count=request.count,
        free=request.free[order],
        must=must[order],
        weight=(ones if weight is None else weight)[order],
        cpus=cores[order],
        contiguous=request.contiguous,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The nodes to choose from once weights have had their say.

    Attributes
    ----------
    taken : bool (n,)
        Already decided: required, or of a weight all of which is needed.
    open : bool (n,)
        Those of the next weight as well: some of them are taken.
    left : int
        Nodes still to be taken out of `open` and not `taken`.
    """

    taken: Mask
    open: Mask
    left: int


def lightest_that_fit(job: Job, part: Mask) -> Pool | None:
    """Return what weights leave of the free nodes of a part; None: too few.

    All nodes of the low weights are taken, and a choice is left only among
    those of the last weight that is needed.
    """
    left = job.count - int(job.must.sum())
    loose = job.free & part & ~job.must
    weights, many = np.unique(job.weight[loose], return_counts=True)
    last = int(np.searchsorted(np.cumsum(many), max(left, 1)))
    if last == len(weights):
        return None
    lower = loose & (job.weight < weights[last])
    taken = job.must | lower
    same = loose & (job.weight == weights[last])
    return Pool(taken, taken | same, left - int(lower.sum()))


def choose(machine: Machine, request: Request, pick: Pick) -> Ints:
    """Return the rows that `pick` chooses, in Slurm's node order.

    Where it finds nothing it is asked again without the nodes of the fewest
    CPUs, and so on: Slurm does so against knapsack problems.

    Parameters
    ----------
    machine : Machine
    request : Request
        Its `include` is Slurm's ``-w`` with a larger ``-N``; its `weights`, or else the
        machine's own, are Slurm's node weights.
    pick : callable
        Returns the nodes of a `Job` that Slurm takes, in any order; None where it would wait.

    Raises
    ------
    PlanError
        Where too few nodes are free, or Slurm would let the job wait.
    """
    free_rows(request)  # refuses where too few are free or too many included
    order = slurm_order(machine.names)
    job = _job_of(machine, request, order)
    for few in [-1, *sorted(set(job.cpus[job.free].tolist()))[:-1]]:
        found = pick(replace(job, free=job.free & ((job.cpus > few) | job.must)))
        if found is not None:
            return order[np.sort(found)]
    free = int(request.free.sum())
    why = "no run of consecutive nodes is" if request.contiguous else "no top switch is"
    hint = "leave --contiguous out" if request.contiguous else "Slurm starts no job across several"
    if slurm_switches(machine).kind == "block":
        why, hint = (
            "no block is",
            "topology/block takes as few blocks as could hold the job: --segment",
        )
    raise PlanError(
        f"Slurm would let the job wait: {free} nodes are free, {request.count} wanted, but {why} "
        "enough for it",
        hint,
    )


def switches_in_node_order(machine: Machine, kind: str, word: str) -> Switches:
    """Return the machine's switches of a kind, `leaf_of` in Slurm's node order.

    Raises
    ------
    UsageError
        Where they are of another kind; `word` begins their lines in a topology.conf.
    """
    switches = slurm_switches(machine)
    if switches.kind != kind:
        raise UsageError(
            f"{machine.name} has Slurm's topology/{switches.kind}, not topology/{kind}",
            f"use another strategy, or give a topology.conf with {word} lines",
        )
    return replace(switches, leaf_of=switches.leaf_of[slurm_order(machine.names)])
