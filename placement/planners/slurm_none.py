"""``slurm-none``: what Slurm chooses without a topology plugin (its default)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.planners import planner
from placement.planners._slurm import choose
from placement.planners._slurm_runs import pick

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.request import Request

__all__ = ["slurm_none"]


@planner("slurm-none")
def slurm_none(machine: Machine, request: Request) -> NDArray[np.int64]:
    """Choose as Slurm does under topology/none: runs of consecutive free nodes.

    The run of equal weight that is enough and tightest, else the largest run
    and so on; with ``request.contiguous`` one run that is enough
    (`placement.planners._slurm_runs`). The baseline is
    `placement.planners.BASELINE`; equal to the real slurmctld's
    allocations on random occupancies with holes and node weights.

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
