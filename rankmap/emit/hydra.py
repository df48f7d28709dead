"""``host:count`` for each run of consecutive ranks: Hydra (``hydra``), Intel MPI (``intel``).

Hydra gives ranks out in the order of the lines of ``-f FILE``, and a host may
stand there again. Two things are lost with it (checked on MPICH 5.0.2): under
``-launcher slurm`` the order of the lines, and for a host that stands there
again the shared memory between its ranks, each entry being a node of its own
to MPICH. Where Hydra knows ``-rankmap``, ``nidmap run`` therefore uses that.

Intel MPI takes the same text as ``-machinefile F``; a host that stands there
again stays one node (checked on Intel MPI 2021). ``-f F``, which looks alike,
ignores the counts, and inside a batch job the scheduler's placement wins over
both unless ``I_MPI_JOB_RESPECT_PROCESS_PLACEMENT=off`` is set.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from placement.errors import ParseError, printable
from rankmap.emit.hosts import order_of_runs, runs
from rankmap.emit.text import numbered_lines

if TYPE_CHECKING:
    from rankmap.order import Order
    from rankmap.slots import Slots

__all__ = ["read", "write"]

_ENTRY = re.compile(r"([^\s:#]+)(?::([0-9]{1,9}))?(?:\s.*)?", re.ASCII)


def write(order: Order) -> str:
    """Return ``host:count`` a line for each run of consecutive ranks on one node."""
    hosts, many = runs(order)
    pairs = zip(hosts.tolist(), many.tolist(), strict=True)
    return "".join(f"{host}:{count}\n" for host, count in pairs)


def read(text: str, on: Slots, source: str) -> Order:
    """Return the order that a host file holds; a line without a count is one rank.

    Raises
    ------
    ParseError, BrokenOrderError
        See `rankmap.emit.read_order`.
    """
    found = []
    for number, line in numbered_lines(text):
        match = _ENTRY.fullmatch(line)
        if not match:
            raise ParseError(source, number, f"'{printable(line, 40)}' is no host or host:count")
        found.append((match[1], int(match[2] or 1), number))
    return order_of_runs(found, on, source)
