"""Host file for MPICH's Hydra, in rank order: ``host:count`` for each run of ranks.

Hydra gives ranks out in the order of the lines of ``-f FILE``, and a host may
stand there again. Two things are lost with it (checked on MPICH 5.0.2): under
``-launcher slurm`` the order of the lines, and for a host that stands there
again the shared memory between its ranks, each entry being a node of its own
to MPICH. Where Hydra knows ``-rankmap``, ``nidmap run`` therefore uses that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankmap.emit.hosts import from_runs, host_counts, write_counts

if TYPE_CHECKING:
    from rankmap.order import Order
    from rankmap.slots import Slots

__all__ = ["read", "write"]


def write(order: Order) -> str:
    """Return ``host:count`` a line for each run of consecutive ranks on one node."""
    return write_counts(order)


def read(text: str, on: Slots, source: str) -> Order:
    """Return the order that a host file holds; a line without a count is one rank.

    Raises
    ------
    ParseError, BrokenOrderError
        See `rankmap.emit.read_order`.
    """
    return from_runs(host_counts(text, source), on, source)
