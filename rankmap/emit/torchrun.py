"""Node ranks for torchrun: one node a line, ``node-rank host nproc-per-node``.

torchrun gives each node a stretch of consecutive ranks, in the order of the
node ranks; orders that are not of this kind cannot be said to it. The numbers
hold with static rendezvous only (``--rdzv-backend static``, the default): the
c10d one sorts the nodes by host name and ignores ``--node-rank``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from placement.errors import ParseError, printable
from rankmap.emit.hosts import Run, order_of_runs, whole_runs
from rankmap.emit.text import BrokenOrderError, numbered_lines

if TYPE_CHECKING:
    from rankmap.order import Order
    from rankmap.slots import Slots

__all__ = ["read", "write"]

_LINE = re.compile(r"([0-9]{1,9})\s+(\S+)\s+([0-9]{1,9})", re.ASCII)


def write(order: Order) -> str:
    """Return the node rank, host and number of processes of each node.

    Raises
    ------
    UsageError
        Where a node's ranks are not consecutive.
    """
    pairs = whole_runs(order, "torchrun")
    return (
        "# node-rank host nproc-per-node; on each node, with static rendezvous:\n"
        f"# torchrun --nnodes={len(pairs)} --node-rank=RANK --nproc-per-node=N"
        f" --master-addr={pairs[0][0]} --master-port=PORT\n"
    ) + "".join(f"{k} {host} {count}\n" for k, (host, count) in enumerate(pairs))


def read(text: str, on: Slots, source: str) -> Order:
    """Return the order that a file of node ranks holds.

    Raises
    ------
    ParseError, BrokenOrderError
        See `rankmap.emit.read_order`.
    """
    found: list[Run] = []
    for number, line in numbered_lines(text):
        match = _LINE.fullmatch(line)
        if not match:
            wanted = "node-rank host nproc-per-node"
            raise ParseError(source, number, f"'{printable(line, 40)}' is not {wanted}")
        if int(match[1]) != len(found):
            said = f"node rank {match[1]}, {len(found)} comes next"
            raise BrokenOrderError(source, number, said)
        found.append((match[2], int(match[3]), number))
    return order_of_runs(found, on, source)
