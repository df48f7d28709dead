# SPDX-License-Identifier: Apache-2.0
"""Predicts how long a pattern takes on a job's nodes, and says what the answer rests on.

From a pattern, nodes and an order to a demand on the network, phase by phase
(`nidmap.rankmap.predict.phases`), to the load of every link (`nidmap.placement.network`),
to seconds and to what limits them. Nothing here is fitted to a measurement:
docs/trust/time.md lists every constant with its source.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.machine import Machine
from nidmap.placement.nodelist import NodeList
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Ints
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.predict.gain import time_range
from nidmap.rankmap.predict.job import Job
from nidmap.rankmap.predict.model import Model
from nidmap.rankmap.predict.prediction import Prediction, report

__all__ = ["Job", "Prediction", "Predictor", "predict"]


class Predictor(Model):
    """Predicts one pattern on one machine for many sets of nodes and orders.

    Takes what `Model` takes.
    """

    def ranged(self, placement: Placement, strategy: str = "") -> Prediction:
        """Return the prediction with its range over the machine's unknowns."""
        prediction = self.predict(placement, strategy)
        return replace(prediction, between=time_range(self, placement))

    def predict(self, placement: Placement, strategy: str = "") -> Prediction:
        """Return the full prediction for a placement; see `time`.

        `strategy`: what ordered its ranks, for whoever reads the answer; '' where unknown.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # refused below, in a sentence
            prediction = report(self, placement, strategy)
        if not math.isfinite(prediction.time_s):
            raise UsageError(
                f"the bytes of {self.pattern.spec} add up to more than can be counted",
                "are its weights right?",
            )
        return prediction


def predict(
    machine: Machine,
    nodes: str | NodeList | Sequence[str] | Ints | None = None,
    job: Job | None = None,
    *,
    order: Placement | Ints | None = None,
) -> Prediction:
    """Predict the time of a job on its nodes.

    Parameters
    ----------
    machine : Machine
        That the job runs on; its figures decide the times.
    nodes : str, NodeList, names, int64 rows (n,) or None
        The job's nodes in the order that numbers the slots; None: all free
        compute nodes (see `nidmap.rankmap.place_ranks.place_ranks`).
    job : Job or None
        None: an all-to-all.
    order : Placement, int64 (ranks,) or None
        Slot of each rank; None: rank r on slot r.

    Returns
    -------
    Prediction

    Raises
    ------
    UsageError
        A pattern whose ranks are not the slots.
    ParseError
        A node that the machine does not have, other jobs that cannot be read.

    Examples
    --------
    >>> import nidmap
    >>> m = nidmap.load_machine("torus:8x8x8,bw=4.68,latency=0")
    >>> found = predict(m, "0-63", nidmap.Job("alltoall", bytes=1e6))
    >>> found.bottleneck.kind, round(found.time_s * 1e3, 2)
    ('x', 17.09)
    """
    job = job or Job()
    placement = place_ranks(machine, nodes, job.ppn)
    predictor = Predictor(machine, job.on(placement.counts.tolist()))
    if isinstance(order, Placement):
        return predictor.ranged(placement.with_order(order.slot_of_rank), order.origin.strategy)
    return predictor.ranged(placement.with_order(order))
