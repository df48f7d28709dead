# SPDX-License-Identifier: Apache-2.0
"""The expected gain of an order over the launcher's own, as a range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nidmap.placement.errors import NidmapError
from nidmap.placement.permutation import inverse
from nidmap.placement.placement import Placement
from nidmap.rankmap.predict import Predictor
from nidmap.rankmap.predict.gain import Gains
from nidmap.rankmap.predict.job import fit_pattern
from nidmap.rankmap.search.cost import without_time

if TYPE_CHECKING:
    from nidmap.rankmap.predict import Job

#: Text before, or instead of, an expected gain that has not been computed.
UNKNOWN = "its gain is not known"


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected gain of an order."""

    words: str  # a clause in words
    # For JSON (`nidmap.rankmap.predict.gain.Gain.document`); None if unknown
    gain: dict[str, Any] | None = None


def expectation(
    order: Placement, job: Job, keeps_list: bool = False, default: Placement | None = None
) -> Expectation:
    """Return the expected gain of an order over the launcher's default order.

    `job`: its pattern is '' where none is known. `keeps_list`: whether the launcher takes the
    nodes in the order of its list; else it sorts them. `default`: the launcher's own order on the
    same nodes; None means it fills node after node.
    """
    try:
        why = without_time(order) if job.pattern else "no --pattern is given"
        if why:
            return Expectation(f"{UNKNOWN}: {why}")
        default = default or default_order(order, keeps_list)
        predictor = Predictor(order.known_machine, job.on(order.counts.tolist()))
        fit_pattern(predictor.pattern, order)
        if np.array_equal(default.node_of_rank, order.node_of_rank):
            same = {"low": 1.0, "likely": 1.0, "high": 1.0, "unknowns": []}
            return Expectation("which is the default order", same)
        gain = Gains(predictor, default).of(order)
    except NidmapError as error:
        return Expectation(f"{UNKNOWN}: {error.message}")
    words = f"{gain.misfit}; " if gain.misfit else ""
    words += f"{gain.untold}expected {gain.range_text} as fast as the default order"
    if gain.unknowns:
        words += f" (likely {gain.likely:.2f} x; largest uncertainty: {gain.most_unsure})"
    return Expectation(words + (f"; {gain.of_run}" if gain.of_run else ""), gain.document())


def default_order(order: Placement, keeps_list: bool) -> Placement:
    """Return the launcher's default order on an order's nodes."""
    if keeps_list:
        return order.with_order(None)
    positions = order.sorting()
    return order.take(positions).renumbered(inverse(positions))
