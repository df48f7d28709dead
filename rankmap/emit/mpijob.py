"""Host file with slots, ``host slots=N`` a line: that of Kubeflow's MPIJob, in the order's nodes.

The MPI operator writes ``/etc/mpi/hostfile`` with a line a worker, by their numbers. Which node
a worker is on Kubernetes decides: the lines are to be put in this order by the nodes of
their pods (docs/launching.md). Ranks fill line after line, so that only orders that keep the
ranks of each node together can be said. Open MPI puts the node of mpirun first where it is
one of them; a launcher's pod is on none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from placement.errors import ParseError, printable
from rankmap.emit.hosts import order_of_runs, whole_runs
from rankmap.emit.text import numbered_lines

if TYPE_CHECKING:
    from rankmap.order import Order
    from rankmap.slots import Slots

__all__ = ["read", "write"]

_LINE = re.compile(r"(\S+)\s+slots\s*=\s*([0-9]{1,9})", re.ASCII)


def write(order: Order) -> str:
    """Return ``host slots=N`` for each node.

    Raises
    ------
    UsageError
        Where a node's ranks are not consecutive.
    """
    pairs = whole_runs(order, "a host file with slots")
    return "".join(f"{host} slots={count}\n" for host, count in pairs)


def read(text: str, on: Slots, source: str) -> Order:
    """Return the order that a host file with slots holds.

    Raises
    ------
    ParseError, BrokenOrderError
        See `rankmap.emit.read_order`.
    """
    found = []
    for number, line in numbered_lines(text):
        match = _LINE.fullmatch(line)
        if not match:
            raise ParseError(source, number, f"'{printable(line, 40)}' is not host slots=N")
        found.append((match[1], int(match[2]), number))
    return order_of_runs(found, on, source)
