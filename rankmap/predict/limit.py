"""How fast it could be: what no placement of so many nodes on this machine could go below."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rankmap.predict.phase import Phase

__all__ = ["limit"]

#: Rounding that sums of many loads may have, as a share.
ROUNDING = 1e-9


def limit(phase: Phase, seconds: float) -> tuple[float, str]:
    """Return the seconds that a phase's bytes need on any nodes of the machine, and why.

    Parameters
    ----------
    phase : Phase
    seconds : float
        What the bytes take as they are placed: a bound that exceeds it by
        rounding is taken for equal.

    Notes
    -----
    Only so much of the phase is used: what its nodes send at least, what the
    busiest sends or receives, and what one node sends to another at most
    (`placement.network.bounds.best_bound`). Any order of the ranks with the
    same three figures has the same limit.
    """
    from placement.network.bounds import best_bound

    job, demand = phase.job, phase.total
    sent, received = demand.out[job.rows], demand.into[job.rows]
    among = job.machine.compute
    if not among[job.rows].all():
        among = among.copy()
        among[job.rows] = True
    found = best_bound(
        job.machine,
        len(job.rows),
        out=float(sent.min()),
        pair=phase.a_pair,
        busiest=float(np.maximum(sent, received).max()),
        among=among,
    )
    bound = found.seconds
    if seconds < bound <= seconds * (1 + ROUNDING):
        bound = seconds
    return bound, found.why
