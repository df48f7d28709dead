"""A job that has or had nodes, as every list of jobs is read."""

from __future__ import annotations

import math
from dataclasses import dataclass

from placement.nodelist import NodeList

__all__ = ["JobRecord"]


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job that has or had nodes.

    Attributes
    ----------
    id : str
        ``4711``; ``4711_3`` of an array, ``4711+1`` of a heterogeneous job.
    nodes : NodeList
    name, user : str
        As the user wrote them: any characters, to be escaped wherever they
        are shown. '' where nothing safe says them.
    partition : str
        Slurm's partition, PBS's queue.
    start, end : float
        Unix time in seconds; NaN for a start that is not known, inf for a job that runs.
    state : str
        Slurm's word, ``COMPLETED``; '' where nothing says.
    """

    id: str
    nodes: NodeList
    name: str = ""
    user: str = ""
    partition: str = ""
    start: float = math.nan
    end: float = math.inf
    state: str = ""
