"""Predicts one pattern on one machine, with all that the prediction rests on."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import UsageError
from rankmap.predict.asked import fit_pattern
from rankmap.predict.gain import Placed, time_range
from rankmap.predict.model import Model
from rankmap.predict.report import report

if TYPE_CHECKING:
    from placement.support.array_types import Ints
    from rankmap.order import Order
    from rankmap.predict.prediction import Prediction
    from rankmap.slots import Slots


__all__ = ["Predictor"]


class Predictor(Model):
    """Predicts one pattern on one machine, for one set of nodes and order after another.

    Takes what `Model` takes.

    Examples
    --------
    >>> import nidmap
    >>> m = nidmap.load_machine("torus:4x4,bw=1")
    >>> one = Predictor(m, "alltoall", 1, 1e9, latency=0)
    >>> one.predict(np.arange(4)).bottleneck.name
    'x0y0->x1y0 x'
    """

    def predict(self, rows: Ints, order: Order | Ints | None = None) -> Prediction:
        """Return the whole prediction for a job on these nodes; see `time`."""
        return self.on(self.slots(rows), order)

    def ranged(self, slots: Slots, order: Order | Ints | None = None) -> Prediction:
        """Return the prediction with its range over what is not known of the machine."""
        found = self.on(slots, order)
        if self.fair or slots.rows is None:
            return found
        return replace(found, between=time_range(self, Placed(slots.rows, order)))

    def on(self, slots: Slots, order: Order | Ints | None = None) -> Prediction:
        """Return the whole prediction for a job on slots that are known already."""
        with np.errstate(over="ignore", invalid="ignore"):  # refused below, in a sentence
            found = report(self, fit_pattern(self.pattern, slots), slots, order)
        if not math.isfinite(found.time_s):
            raise UsageError(
                f"the bytes of {self.pattern.spec} add up to more than can be counted",
                "are its weights right?",
            )
        return found
