"""A job as Slurm's choices take it: its nodes in Slurm's node order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from placement.machine import Machine
    from placement.request import Request
    from placement.support.array_types import Ints, Mask


__all__ = ["Job", "job_of"]


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
