"""What a launch expects of its order: how many times as fast as the launcher's own, as a range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import NidmapError
from rankmap.permutation import inverse
from rankmap.placement import Placement
from rankmap.predict import Predictor
from rankmap.predict.gain import Gains
from rankmap.predict.job import fit_pattern
from rankmap.search.cost import without_time

if TYPE_CHECKING:
    from rankmap.predict import Job
    from rankmap.predict.gain import Gain

#: What is said before, or instead of, an expectation that nobody has worked out.
UNKNOWN = "its gain is not known"


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is expected of an order.

    Attributes
    ----------
    words : str
        A clause for a person.
    gain : dict or None
        As JSON takes it (`rankmap.predict.gain.Gain.document`); None where
        nothing is known.
    """

    words: str
    gain: dict[str, Any] | None = None


def expectation(order: Placement, job: Job, keeps_list: bool = False) -> Expectation:
    """Return what an order is expected to win over the launcher's default order.

    Parameters
    ----------
    order : Placement
    job : Job
        Its pattern is '' where none is known.
    keeps_list : bool
        Whether the launcher takes the nodes in the order of its list; else it sorts them.
    """
    try:
        why = without_time(order)
        if not job.pattern:
            why = "no --pattern is given"
        if why:
            return Expectation(f"{UNKNOWN}: {why}")
        gain = _gain_of(order, job, keeps_list)
    except NidmapError as error:
        return Expectation(f"{UNKNOWN}: {error.message}")
    if gain is None:
        same = {"low": 1.0, "likely": 1.0, "high": 1.0, "unknowns": []}
        return Expectation("which is the default order", same)
    more = ""
    if gain.unknowns:
        more = f" (likely {gain.likely:.2f} x; largest uncertainty: {gain.most_unsure})"
    if gain.of_run:
        more += f"; {gain.of_run}"
    words = f"expected {gain.range_text} as fast as the default order{more}"
    return Expectation(words, gain.document())


def default_order(order: Placement, keeps_list: bool) -> Placement:
    """Return the launcher's own order on the nodes of an order.

    Examples
    --------
    >>> from rankmap.placement import Placement
    >>> on = Placement(np.array(["nid2", "nid1"]), np.array([1, 2]))
    >>> default_order(on, keeps_list=False).slot_of_rank.tolist()
    [1, 2, 0]
    """
    if keeps_list:
        return order.with_order(None)
    positions = order.sorting()
    return order.take(positions).renumbered(inverse(positions))


def _gain_of(order: Placement, job: Job, keeps_list: bool) -> Gain | None:
    """Return what an order wins; None where it is the default order."""
    default = default_order(order, keeps_list)
    assert order.machine is not None
    model = Predictor(order.machine, job.on(order.counts.tolist()))
    fit_pattern(model.pattern, order)
    if np.array_equal(default.node_of_rank, order.node_of_rank):
        return None
    return Gains(model, default).of(order)
