"""Planners ``slurm-none``, ``-tree``, ``-dragonfly``, ``-block``: what Slurm itself would choose.

The baseline is Slurm 22.05.8 with select/cons_tres and CR_Core, giving whole
nodes (``sbatch -N n --exclusive``): what it allocates, not what
``sbatch --test-only`` prints, which ignores node weights in that version.
The rules were learnt from the facts and Slurm's documentation and sources and
held against a real slurmctld; tests/placement/planners repeats that on random
occupancies with holes, weights, required nodes and unequal nodes. topology/block,
which 22.05 has not, was held against 24.11.5 the same way.

In all of them a request's `include` is Slurm's ``-w`` with a larger ``-N``;
`weights`, or else the machine's own, are Slurm's node weights; and the rows
come in Slurm's node order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import PlanError, UsageError
from placement.planners import planner, slurm_runs
from placement.planners._units import free_rows
from placement.planners.slurm_job import Job, job_of
from placement.scheduler.node_order import slurm_order
from placement.scheduler.switches import slurm_switches

if TYPE_CHECKING:
    from collections.abc import Callable

    from placement.machine import Machine, Switches
    from placement.request import Request
    from placement.support.array_types import Ints

    #: Returns the chosen node indices in any order, None where the job would wait.
    Pick = Callable[["Job"], Ints | None]

__all__ = ["slurm_block", "slurm_dragonfly", "slurm_none", "slurm_tree"]


@planner("slurm-none")
def slurm_none(machine: Machine, request: Request) -> Ints:
    """Choose as Slurm does without a topology plugin: runs of consecutive free nodes.

    The run of equal weight that is enough and tightest, else the largest run
    and so on; with ``request.contiguous`` one run that is enough
    (`placement.planners.slurm_runs`). Equal to the real slurmctld's
    allocations on random occupancies with holes and node weights.

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
    return _choose(machine, request, slurm_runs.pick)


@planner("slurm-tree")
def slurm_tree(machine: Machine, request: Request) -> Ints:
    """Choose as Slurm does under topology/tree: few leaf switches, best fit first.

    The switches are the machine's topology.conf or those of
    `placement.scheduler.switches.slurm_switches`. With ``request.contiguous`` Slurm
    ignores them and looks for one run of consecutive nodes. Equal to the real
    slurmctld's allocations on random occupancies, weights and (uneven,
    disjoint) trees.

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
    from placement.planners.slurm_switches import pick_tree

    return _choose_on_switches(machine, request, pick_tree)


@planner("slurm-dragonfly")
def slurm_dragonfly(machine: Machine, request: Request) -> Ints:
    """Choose as Slurm does with TopologyParam=Dragonfly: one leaf, else spread over all.

    Switches, ``request.contiguous`` and errors are as in `slurm_tree`.

    Examples
    --------
    >>> import numpy as np
    >>> from placement.specs import parse_spec
    >>> from placement.request import Request
    >>> machine = parse_spec("tree:4x4x4")
    >>> free = np.ones(64, dtype=bool)
    >>> free[[1, 5, 6, 9, 15]] = False
    >>> slurm_dragonfly(machine, Request(count=8, free=free)).tolist()
    [0, 4, 8, 12, 16, 20, 24, 28]
    """
    from placement.planners.slurm_switches import pick_dragonfly

    return _choose_on_switches(machine, request, pick_dragonfly)


@planner("slurm-block")
def slurm_block(machine: Machine, request: Request) -> Ints:
    """Choose as Slurm does under topology/block: one block, few of the blocks inside it.

    ``request.segment`` is Slurm's ``--segment``. `placement.planners.slurm_blocks`
    has the rules. A job that would need more base blocks than its nodes
    would fill waits, whatever is free.

    Raises
    ------
    PlanError
        Where too few nodes are free, or Slurm would let the job wait.
    UsageError
        Where the machine has no topology/block.
    """
    from placement.planners.slurm_blocks import pick_blocks

    blocks = _switches_of(machine, "block", "BlockName")
    return _choose(machine, request, lambda job: pick_blocks(job, blocks, request.segment))


def _choose_on_switches(
    machine: Machine, request: Request, pick: Callable[[Job, Switches], Ints | None]
) -> Ints:
    """Let `pick` choose on the machine's switches, `leaf_of` in Slurm's node order."""
    tree = _switches_of(machine, "tree", "SwitchName")
    if request.contiguous:
        return _choose(machine, request, slurm_runs.pick)
    return _choose(machine, request, lambda job: pick(job, tree))


def _switches_of(machine: Machine, kind: str, word: str) -> Switches:
    """Return the machine's switches of a kind, `leaf_of` in Slurm's node order."""
    switches = slurm_switches(machine)
    if switches.kind != kind:
        raise UsageError(
            f"{machine.name} has Slurm's topology/{switches.kind}, not topology/{kind}",
            f"use another strategy, or give a topology.conf with {word} lines",
        )
    return replace(switches, leaf_of=switches.leaf_of[slurm_order(machine.names)])


def _choose(machine: Machine, request: Request, pick: Pick) -> Ints:
    """Return the rows that `pick` chooses, in Slurm's node order.

    Where it finds nothing it is asked again without the nodes of the fewest
    CPUs, and so on: Slurm does so against knapsack problems.
    """
    free_rows(request)  # refuses where too few are free or too many included
    order = slurm_order(machine.names)
    job = job_of(machine, request, order)
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
