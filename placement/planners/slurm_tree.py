"""``slurm-tree``: what Slurm chooses with topology/tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.planners import planner
from placement.planners._slurm import choose, tree_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.planners._slurm import Job
    from placement.request import Request

__all__ = ["slurm_tree"]


@planner("slurm-tree")
def slurm_tree(machine: Machine, request: Request) -> NDArray[np.int64]:
    """Choose as Slurm does under topology/tree: few leaf switches, best fit first.

    The switches are the machine's topology.conf or those of
    `placement.switches.slurm_switches`. With ``request.contiguous`` Slurm
    ignores them and looks for one run of consecutive nodes. The baseline is
    `placement.planners.BASELINE`; equal to the real slurmctld's
    allocations on random occupancies, weights and (uneven, disjoint) trees.

    Parameters
    ----------
    machine : Machine
    request : Request
        `include` is Slurm's ``-w`` with a larger ``-N``; `weights` or else
        the machine's own are Slurm's node weights.

    Returns
    -------
    int64 (count,)
        Rows in Slurm's node order.

    Raises
    ------
    PlanError
        Where too few nodes are free, or no top switch has enough of them.
    UsageError
        Where the machine's topology.conf has blocks or rings.

    Examples
    --------
    >>> import numpy as np
    >>> from placement.specs import parse_spec
    >>> from placement.request import Request
    >>> machine = parse_spec("tree:4x4x4")
    >>> free = np.ones(64, dtype=bool)
    >>> free[[1, 5, 6, 9, 15]] = False
    >>> slurm_tree(machine, Request(count=8, free=free)).tolist()
    [0, 2, 3, 4, 7, 8, 10, 11]
    """
    switches = tree_of(machine)

    def pick(job: Job) -> NDArray[np.int64] | None:
        from placement.planners import _slurm_runs, _slurm_tree

        return _slurm_runs.pick(job) if job.contiguous else _slurm_tree.pick(job, switches)

    return choose(machine, request, pick)
