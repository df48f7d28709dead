"""What Slurm's own choices share: the job in Slurm's node order, weights, retries.

The baseline is Slurm 22.05.8 with select/cons_tres and CR_Core, giving whole
nodes (``sbatch -N n --exclusive``): what it allocates, not what
``sbatch --test-only`` prints, which ignores node weights in that version.
The rules were learnt from the facts and Slurm's documentation and sources and
held against a real slurmctld; tests/placement/planners repeats that on random
occupancies with holes, weights, required nodes and unequal nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import PlanError, UsageError
from placement.node_order import slurm_order
from placement.switches import slurm_switches

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from placement.machine import Machine, Switches
    from placement.request import Request

    #: Returns the chosen node indices in any order, None where the job would wait.
    Pick = Callable[["Job"], "NDArray[np.int64] | None"]

__all__ = ["Job", "Pool", "choose", "pool_of", "tree_of"]


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
    free: NDArray[np.bool_]
    must: NDArray[np.bool_]
    weight: NDArray[np.int64]
    cpus: NDArray[np.int64]
    contiguous: bool = False


def choose(machine: Machine, request: Request, pick: Pick) -> NDArray[np.int64]:
    """Return the rows that `pick` chooses, in Slurm's node order.

    Raises
    ------
    PlanError
        Where too few nodes are free, or Slurm would let the job wait.
    """
    request.rows()  # refuses where too few are free
    order = slurm_order(machine.names)
    job = _job(machine, request, order)
    found = _retried(job, pick)
    if found is None:
        raise _would_wait(request)
    return order[np.sort(found)]


def _job(machine: Machine, request: Request, order: NDArray[np.int64]) -> Job:
    must = np.zeros(len(machine), dtype=bool)
    must[request.include] = True
    if int(must.sum()) > request.count:
        raise UsageError(f"{int(must.sum())} nodes are included, but only {request.count} wanted")
    weight = request.weights if request.weights is not None else machine.weight
    if weight is None:
        weight = np.ones(len(machine), dtype=np.int64)
    cores = machine.cores
    if not bool((cores[request.free] > 0).all()):
        cores = np.ones(len(machine), dtype=np.int64)
    return Job(
        count=request.count,
        free=request.free[order],
        must=must[order],
        weight=weight[order],
        cpus=cores[order],
        contiguous=request.contiguous,
    )


def _retried(job: Job, pick: Pick) -> NDArray[np.int64] | None:
    """Call `pick`; where it finds nothing, without the nodes of the fewest CPUs, and so on.

    Slurm does so against knapsack problems; on equal nodes it changes nothing.
    """
    found = pick(job)
    if found is not None:
        return found
    for few in np.unique(job.cpus[job.free])[:-1]:
        found = pick(replace(job, free=job.free & ((job.cpus > few) | job.must)))
        if found is not None:
            return found
    return None


def _would_wait(request: Request) -> PlanError:
    free = int(request.free.sum())
    why = "no run of consecutive nodes is" if request.contiguous else "no top switch is"
    return PlanError(
        f"Slurm would let the job wait: {free} nodes are free, {request.count} wanted, but {why} "
        "enough for it",
        "use another strategy, or slurm-none without --contiguous",
    )


def tree_of(machine: Machine, order: NDArray[np.int64] | None = None) -> Switches:
    """Return the machine's switches with `leaf_of` in Slurm's node order.

    Raises
    ------
    UsageError
        Where the topology.conf given has blocks or rings instead of switches.
    """
    switches = slurm_switches(machine)
    if switches.kind != "tree":
        raise UsageError(
            f"{machine.name} has Slurm's topology/{switches.kind}, not topology/tree",
            "use another strategy, or give a topology.conf with SwitchName lines",
        )
    at = slurm_order(machine.names) if order is None else order
    return replace(switches, leaf_of=switches.leaf_of[at])


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

    taken: NDArray[np.bool_]
    open: NDArray[np.bool_]
    left: int


def pool_of(job: Job, under: NDArray[np.bool_]) -> Pool | None:
    """Return what weights leave of the free nodes below the top switch (`under`).

    None where they are too few: all nodes of the low weights are taken, and a
    choice is left only among those of the last weight that is needed.
    """
    left = job.count - int(job.must.sum())
    loose = job.free & under & ~job.must
    weights, many = np.unique(job.weight[loose], return_counts=True)
    reached = np.cumsum(many)
    last = int(np.searchsorted(reached, max(left, 1)))
    if last == len(weights):
        return None
    lower = loose & (job.weight < weights[last])
    taken = job.must | lower
    return Pool(
        taken=taken,
        open=taken | (loose & (job.weight == weights[last])),
        left=left - int(lower.sum()),
    )
