"""The order of a job's ranks by the name of a strategy: what commands, page and Python ask for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from placement.machine import Machine
from placement.nodelist import NodeList
from placement.support.array_types import Ints
from rankmap.orders import arrange
from rankmap.place_ranks import place_ranks
from rankmap.placement import Placement
from rankmap.predict import Job
from rankmap.search.auto_order import auto_order

#: The strategy that compares orders, by predicted time or by J.
AUTO = "auto"


def order(
    machine: Machine,
    nodes: str | NodeList | Sequence[str] | Ints | None = None,
    job: Job | None = None,
    *,
    strategy: str = "row-major",
) -> Placement:
    """Order the ranks of a job on its nodes.

    Parameters
    ----------
    machine : Machine
    nodes : str, NodeList, names, int64 rows (n,) or None
        The job's nodes in the order that numbers the slots; None: all free
        compute nodes in NID order (see `rankmap.place_ranks.place_ranks`).
    job : Job or None
        Who talks to whom, and how many ranks a node has; None: an all-to-all.
    strategy : str
        An ordering's name (see `rankmap.orders.names`); ``auto`` chooses by predicted
        time where the machine states bandwidths, else by J: the order's remark says which.

    Returns
    -------
    Placement

    Raises
    ------
    UsageError
        A pattern whose ranks are not the slots, or a strategy that does not apply to it.
    ParseError
        A node that the machine does not have.

    Examples
    --------
    >>> import nidmap
    >>> m = nidmap.load_machine("torus:4x4x4")
    >>> job = nidmap.Job("fft:4x4", ppn=4)
    >>> nidmap.order(m, "0-3", job, strategy="morton").slot_of_rank.tolist()
    [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]
    """
    job = job or Job()
    return order_by_strategy(place_ranks(machine, nodes, job.ppn), job, strategy)


def order_by_strategy(
    placement: Placement, job: Job, strategy: str, seconds: float = math.inf
) -> Placement:
    """Return the order that a strategy makes on slots that are known already; see `order`.

    Parameters
    ----------
    placement : Placement
    job : Job
    strategy : str
    seconds : float
        Of processor time that there are for ``auto``.
    """
    if strategy == AUTO:
        return auto_order(placement, job, seconds)
    return arrange(placement, job.pattern or job.sent, strategy)
