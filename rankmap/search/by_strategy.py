"""The order of a job's ranks by the name of a strategy: what commands, page and Python ask for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from placement.machine import Machine
from placement.nodelist import NodeList
from placement.support.array_types import Ints
from rankmap.order import Order
from rankmap.orders import arrange
from rankmap.pattern import Pattern
from rankmap.search.auto_order import auto_order
from rankmap.slots import Slots, slots_of

__all__ = ["AUTO", "order", "order_by_strategy"]

#: The strategy that compares orders, by predicted time or by J.
AUTO = "auto"


def order(
    machine: Machine,
    nodes: str | NodeList | Sequence[str] | Ints | None = None,
    ppn: str | int | Sequence[int] | None = None,
    *,
    pattern: str | Pattern,
    strategy: str = "row-major",
    **job: Any,
) -> Order:
    """Order the ranks of a job on its nodes.

    Parameters
    ----------
    machine : Machine
    nodes : str, NodeList, names, int64 rows (n,) or None
        The job's nodes in the order that numbers the slots; None: all free
        compute nodes in NID order (see `rankmap.slots.slots_of`).
    ppn : str, int, sequence of int or None
        Ranks on each node; None: as often as the list names it.
    pattern : str or Pattern
        Who talks to whom (see `rankmap.pattern.parse_pattern`).
    strategy : str
        An ordering's name (see `rankmap.orders.names`); ``auto`` chooses by predicted
        time where the machine states bandwidths, else by J: the order's remark says which.
    **job
        What else ``auto`` is told of what the job sends: bytes, algorithm …
        (see `rankmap.search.job.predictor`).

    Returns
    -------
    Order

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
    >>> nidmap.order(m, "nid[00000-00003]", 4, pattern="fft:4x4", strategy="morton").slots.tolist()
    [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]
    """
    return order_by_strategy(slots_of(machine, nodes, ppn), pattern, strategy, job)


def order_by_strategy(
    slots: Slots,
    pattern: str | Pattern,
    strategy: str,
    job: Mapping[str, Any] | None = None,
    seconds: float = math.inf,
) -> Order:
    """Return the order that a strategy makes on slots that are known already; see `order`.

    Parameters
    ----------
    slots : Slots
    pattern : str or Pattern
    strategy : str
    job : mapping or None
        What else is said of what the job sends, which ``auto`` alone looks at.
    seconds : float
        Of processor time that there are for ``auto``.
    """
    if strategy == AUTO:
        return auto_order(slots, pattern, job, seconds)
    return arrange(slots, pattern, strategy)
