"""What the formats that name a node for every rank have in common.

They say nothing of the place inside a node: read back, the ranks of a node
stand in ascending places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.errors import ParseError, UsageError, printable
from rankmap.emit.text import CUT_SHORT, BrokenOrderError
from rankmap.order import Order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from rankmap.arrays import Ints
    from rankmap.slots import Slots

__all__ = ["Run", "nodes_of", "order_of_runs", "runs", "whole_runs"]

#: Host, ranks in a row there, line of the file.
Run = tuple[str, int, int]


def runs(order: Order) -> tuple[NDArray[np.str_], Ints]:
    """Return the host and the length of each run of consecutive ranks on one node.

    Examples
    --------
    >>> from rankmap.slots import Slots
    >>> on = Slots(np.array(["nid00003", "nid00009"]), np.array([2, 1]))
    >>> hosts, many = runs(Order(np.array([0, 2, 1]), on))
    >>> hosts.tolist(), many.tolist()
    (['nid00003', 'nid00009', 'nid00003'], [1, 1, 1])
    """
    node = order.node
    first = np.flatnonzero(np.append(True, node[1:] != node[:-1]))
    return order.on.names[node[first]], np.diff(np.append(first, len(node)))


def whole_runs(order: Order, what: str) -> list[tuple[str, int]]:
    """Return each node and its count of ranks, in the order of the ranks.

    Parameters
    ----------
    order : Order
    what : str
        What gives each node consecutive ranks.

    Raises
    ------
    UsageError
        Where a node's ranks are not consecutive.
    """
    hosts, many = runs(order)
    if len(hosts) != len(order.on.counts):
        torn, times = np.unique(hosts, return_counts=True)
        node = torn[int(np.argmax(times > 1))]
        raise UsageError(
            f"{what} gives each node consecutive ranks, and this order does not ({node})",
            "reorder in the program (process groups), or use another launcher",
        )
    return [*zip(hosts.tolist(), many.tolist(), strict=True)]


def nodes_of(
    hosts: Sequence[str], many: Sequence[int], line_of: Callable[[int], int], on: Slots, source: str
) -> Ints:
    """Return the node of each rank, host after host.

    Parameters
    ----------
    hosts : sequence of str
    many : sequence of int
        Ranks on each of `hosts`, in a row.
    line_of : callable
        Line of the file on which an entry of `hosts` stands; the last for one behind them.
    on : Slots
    source : str

    Raises
    ------
    ParseError
        A node that is not one of `on`.
    BrokenOrderError
        A node that gets more or fewer ranks than it has slots.
    """
    index = {name: k for k, name in enumerate(on.names.tolist())}
    found = list(map(index.get, hosts))
    if None in found:
        at = found.index(None)
        known = f"one of the job's {len(on.counts)} nodes"
        raise ParseError(source, line_of(at), f"'{printable(hosts[at], 40)}' is not {known}")
    node = np.array(found, dtype=np.int64)
    have = np.bincount(node, many, minlength=len(on.counts)).astype(np.int64)
    over, short = np.flatnonzero(have > on.counts), np.flatnonzero(have < on.counts)
    for k in [*over.tolist(), *short.tolist()]:
        fault = f"{on.names[k]} gets {have[k]} ranks and has {on.counts[k]} slots"
        if have[k] > on.counts[k]:
            mine = np.flatnonzero(node == k)
            held = np.cumsum(np.array(many)[mine])
            at = int(mine[np.searchsorted(held, on.counts[k], side="right")])
            raise BrokenOrderError(source, line_of(at), fault)
        text = f"{have.sum()} ranks for {len(on)} slots: {fault}"
        raise BrokenOrderError(source, line_of(len(hosts)), text, CUT_SHORT)
    return np.repeat(node, many)


def order_of_runs(found: Sequence[Run], on: Slots, source: str) -> Order:
    """Return the order that puts the ranks on these nodes, in this sequence; see `nodes_of`."""
    hosts, many, lines = zip(*found, strict=True) if found else ((), (), (1,))
    return Order.of_nodes(
        nodes_of(hosts, many, lambda at: lines[min(at, len(lines) - 1)], on, source), on
    )
