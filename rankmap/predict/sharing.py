"""Max-min fair sharing in time, where the caller asks for it.

Every message is a flow of its own; all flows of a phase start at once, share
the links fairly, and leave them when they are done
(`placement.network.maxmin`). That needs one path a flow, so it goes with the
routings that have one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.network import Channels
    from rankmap.predict.phases import Job
    from rankmap.predict.summing import Summed

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["SINGLE_PATH", "fair_seconds"]

#: Routings that have one path for each pair of nodes.
SINGLE_PATH = ("single", "dimension-order", "d-mod-k")

#: Flows at most: more cost minutes.
MOST_FLOWS = 1 << 20


def fair_seconds(job: Job, sums: Summed, channels: Channels, injection: Floats) -> float:
    """Return when the last of so many messages is done.

    Parameters
    ----------
    job : Job
    sums : Summed
        What goes between the job's nodes, and in how many messages.
    channels : Channels
        Of a routing with one path a pair; with what is left of their bandwidth.
    injection : float64 (n,)
        GB/s of each node of the machine.

    Raises
    ------
    UsageError
        More messages than can be followed.
    """
    from placement.network.maxmin import Paths, finish

    many = sums.messages.astype(np.int64)
    if int(many.sum()) > MOST_FLOWS:
        raise UsageError(
            f"{int(many.sum())} messages are too many to share links fairly in time",
            f"at most {MOST_FLOWS} are followed; leave --fair out",
        )
    flow = np.repeat(np.arange(len(many)), many)
    size = (sums.weight / sums.messages)[flow]
    source, target = job.rows[sums.source[flow]], job.rows[sums.target[flow]]
    which, channel = _paths(job, source, target, channels)
    bandwidth = np.concatenate([channels.bandwidth, injection, injection])
    paths = Paths(which, channel, np.ones(len(which)))
    return float(finish(size, paths, bandwidth).makespan)


def _paths(job: Job, source: Ints, target: Ints, channels: Channels) -> tuple[Ints, Ints]:
    """Return (flow, channel) of every step of every flow, the nodes' own links behind the rest."""
    from placement.network import next_channel

    table = next_channel(job.machine)
    everyone = np.arange(len(source))
    own = len(channels)
    flows = [everyone, everyone]
    steps = [own + source, own + len(job.machine) + target]
    here = job.machine.router[source, 0].astype(np.int64)
    going = everyone
    while len(going):
        step = table[here[going], target[going]].astype(np.int64)
        going, step = going[step >= 0], step[step >= 0]
        flows.append(going)
        steps.append(step)
        here[going] = channels.target[step]
    flow, channel = np.concatenate(flows), np.concatenate(steps)
    order = np.argsort(flow, kind="stable")
    return flow[order], channel[order]
