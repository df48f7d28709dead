"""The communication model: bytes that a node sends in one exchange, and its bandwidth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workloads.places import place
from workloads.sort.ranks import Ranks

if TYPE_CHECKING:
    from mpi4py import MPI
    from numpy.typing import NDArray

    from workloads.isx.problem import Problem

__all__ = ["Traffic", "counted", "modelled"]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that one node sends in one exchange.

    Attributes
    ----------
    ranks : float
        To other ranks, those on the node among them.
    off_node : float
        To other nodes.
    """

    ranks: float
    off_node: float


def modelled(problem: Problem, ppn: int) -> Traffic:
    """Return what uniform keys make a node of so many ranks send.

    Each of its keys stays on its rank with probability 1/P and on its node
    with ppn/P.

    Examples
    --------
    >>> from workloads.isx.problem import problem
    >>> modelled(problem("weak", 48, 1000), 24)
    Traffic(ranks=94000.0, off_node=48000.0)
    """
    size = 4 if problem.dtype == "i4" else 8
    node = ppn * problem.keys / problem.ranks * size
    return Traffic(ranks=node * (1 - 1 / problem.ranks), off_node=node * (1 - ppn / problem.ranks))


def counted(comm: MPI.Intracomm, send: NDArray[np.int64], itemsize: int) -> Traffic:
    """Return what was sent, as the mean over nodes. Collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    send : int64 (P,)
        Keys that this rank sent to each rank.
    itemsize : int
        Bytes of a key.
    """
    ranks, here = Ranks(comm), place(comm)
    nodes = ranks.share(np.array([here.node], np.int64))[:, 0]
    others = int(send.sum() - send[ranks.rank])
    off = int(send[nodes != here.node].sum())
    sums = ranks.total(np.array([others, off], np.int64)) * itemsize / here.nodes
    return Traffic(float(sums[0]), float(sums[1]))
