"""Max-min fair sharing in time, where the caller asks for it.

Every message is a flow of its own; all flows of a phase start at once, share
the links fairly, and leave them when they are done
(`placement.network.fair_sharing`). That needs one path a flow, so it goes with the
routings that have one.
"""

from __future__ import annotations

import numpy as np

from placement.errors import UsageError
from placement.network import Channels
from placement.support.array_types import Floats
from rankmap.predict.phase import Job
from rankmap.predict.summing import Summed

__all__ = ["fair_seconds"]

#: Flows at most: more cost minutes.
MOST_FLOWS = 1 << 20


def fair_seconds(
    job: Job, sums: Summed, channels: Channels, injection: Floats, routing: str
) -> float:
    """Return when the last of so many messages is done.

    Parameters
    ----------
    job : Job
    sums : Summed
        What goes between the job's nodes, and in how many messages; those of
        one entry are alike.
    channels : Channels
        Of the routing; with what is left of their bandwidth.
    injection : float64 (n,)
        GB/s of each node of the machine.
    routing : str
        One of `placement.network.SINGLE_PATH`.

    Raises
    ------
    UsageError
        More messages than can be followed.
    """
    from placement.network.fair_sharing import fair_ends

    many = int(sums.messages.sum())
    if many > MOST_FLOWS:
        raise UsageError(
            f"{many} messages are too many to share links fairly in time",
            f"at most {MOST_FLOWS} are followed; leave --fair out",
        )
    ends = fair_ends(
        job.machine,
        job.rows[sums.source],
        job.rows[sums.target],
        sums.weight / sums.messages,
        routing,
        many=sums.messages,
        bandwidth=np.concatenate([channels.bandwidth, injection, injection]),
    )
    return float(ends.max(initial=0.0))
