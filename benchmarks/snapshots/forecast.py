# SPDX-License-Identifier: Apache-2.0
"""A replay's predictions for a snapshot's jobs: alone and together, quickly and routed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nidmap.workloads.replay.sharing import Sharing, rounds_per_second

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.snapshots.drawing import Running
    from nidmap.workloads.replay.check import Routed
    from nidmap.workloads.replay.sharing import Network


class Forecast(NamedTuple):
    """Seconds of communication per round; `best` is alone on an empty machine's best nodes."""

    best: float
    alone: float
    beside: float


def quick_forecasts(network: Network, jobs: Sequence[Running]) -> list[Forecast]:
    """Return a replay's estimates for jobs, once all have started one after another."""
    alone, sharing = Sharing(network), Sharing(network)
    prints = [network.footprint(job.app, job.rows) for job in jobs]
    for k, (job, footprint) in enumerate(zip(jobs, prints, strict=True)):
        sharing.add(k, footprint, job.app.share)
    beside = sharing.slowdowns().tolist()
    return [
        Forecast(footprint.best, alone.slowdown(footprint) * footprint.best, slow * footprint.best)
        for footprint, slow in zip(prints, beside, strict=True)
    ]


def routed_forecasts(routed: Routed, jobs: Sequence[Running]) -> list[Forecast]:
    """Return the predictor's times with every link routed, next to equally slow jobs."""
    best = [routed.best(job.app, len(job.rows)) for job in jobs]
    alone = [routed.slowdown(job.app, job.rows, []) for job in jobs]
    beside = alone
    for _ in range(_TURNS):
        rounds = [
            rounds_per_second(job.app.share, *known)
            for job, *known in zip(jobs, best, beside, strict=True)
        ]
        slowed = [
            routed.slowdown(
                job.app, job.rows,
                [(o.app, o.rows, r) for o, r in zip(jobs, rounds, strict=True) if o is not job],
                own,
            )
            for job, own in zip(jobs, rounds, strict=True)
        ]  # fmt: skip
        beside = np.sqrt(np.array(slowed) * beside).tolist()
    times = zip(best, alone, beside, strict=True)
    return [Forecast(least, one * least, many * least) for least, one, many in times]


#: How often the jobs' times are worked out anew from those of the others.
_TURNS = 20
