"""A job as Slurm's choices take it: its nodes in Slurm's node order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from placement.machine import Machine
    from placement.request import Request
    from placement.support.array_types import Ints, Mask


__all__ = ["Job", "Pool", "job_of", "lightest_that_fit"]


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


def job_of(machine: Machine, request: Request, order: Ints) -> Job:
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
