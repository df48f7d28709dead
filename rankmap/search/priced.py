# SPDX-License-Identifier: Apache-2.0
"""The predicted cost of a plain strategy's nodes, as for ``auto``, next to the default's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.placement import Placement
from nidmap.placement.planners import Choice, Request
from nidmap.placement.support.quantities import time_text
from nidmap.rankmap.predict import Job, Prediction, Predictor
from nidmap.rankmap.predict.gain import Gain, Gains
from nidmap.rankmap.predict.prediction import worst_document
from nidmap.rankmap.score import plain_number
from nidmap.rankmap.search.cost import HopCost, without_time
from nidmap.rankmap.search.node_sets import scheduler_nodes


def price_choice(machine: Machine, request: Request, choice: Choice) -> Choice:
    """Return a choice of nodes with the predicted cost of the requested job on them.

    Ranks are on the nodes as listed, rank r on slot r, as `nidmap compare` has them.
    """
    job = request.job
    assert isinstance(job, Job)
    model = Predictor(machine, job)
    priced = _PricedNodes(model, request, model.place(choice.rows))
    warnings = (*choice.warnings, *filter(None, [job.assumed]), *priced.warnings())
    facts = {**choice.facts, **priced.facts()}
    return replace(choice, why=priced.sentence, facts=facts, warnings=warnings)


@dataclass(frozen=True)
class _PricedNodes:
    """Some nodes and the scheduler's own, with the job's predicted time on both."""

    model: Predictor
    request: Request
    placement: Placement

    @cached_property
    def timeless(self) -> str:
        """Why no time can be predicted; '' if it can."""
        return without_time(self.placement)

    @cached_property
    def base(self) -> Placement | None:
        """The scheduler's own nodes; None if it would choose none."""
        rows = scheduler_nodes(self.model.machine, self.request)
        return None if rows is None else self.model.place(rows)

    @cached_property
    def prediction(self) -> Prediction:
        """The prediction for the nodes, with its range."""
        return self.model.ranged(self.placement)

    @cached_property
    def default(self) -> Prediction | None:
        """The prediction for the scheduler's own nodes."""
        return None if self.base is None else self.model.ranged(self.base)

    @cached_property
    def gain(self) -> Gain:
        """How many times as fast as the default; 1 if there is none."""
        same = self.base is None or np.array_equal(self.base.rows, self.placement.rows)
        if same or self.base is None:
            return Gain(1.0, 1.0, 1.0)
        return Gains(self.model, self.base).of(self.placement)

    @property
    def sentence(self) -> str:
        """The job's cost on the nodes, and on the default's."""
        words = self.request.baseline.words
        if self.timeless:
            cost, usual = self._costs()
            against = "" if usual is None else f", {usual:,} for {words}"
            return f"J = {cost:,}{against} (no time: {self.timeless})"
        ours = _time_and_range(self.prediction)
        if self.default is None:
            return f"{ours} expected; {words} would start no such job"
        gain = self.gain
        likely = f", likely {gain.likely:.2f} x" if gain.unknowns else ""
        unsure = f"{likely}; largest uncertainty: {gain.most_unsure}" if gain.unknowns else ""
        return (
            f"{ours} expected against {_time_and_range(self.default)} for {words}: "
            f"{gain.untold}{gain.range_text} as fast{unsure}"
        )

    def _costs(self) -> tuple[float, float | None]:
        """Return J of the nodes and of the default's."""
        cost = HopCost(self.model)
        usual = None if self.base is None else plain_number(cost.of(self.base))
        return plain_number(cost.of(self.placement)), usual

    def facts(self) -> dict[str, Any]:
        """Return the figures and the default's, under the names that ``auto`` uses."""
        ours, default = self.prediction, self.default
        before = None if default is None else default.time_s
        same = ("pattern", "ranks", "ppn", "bytes", "algorithm", "background")
        return {
            **{key: ours.asked[key] for key in same},
            "routing": ours.loads.routing,
            "time_s": ours.time_s,
            "between": None if ours.between is None else ours.between.document(),
            "default_time_s": before,
            "gain": None if default is None else self.gain.document(),
            "ratio": ours.time_s / before if before else (1.0 if before == 0 else None),
            "bound_s": ours.bound_s,
            "percent_of_bound": 100 * ours.share,
            "bottleneck": worst_document(ours.bottleneck),
            "default_bottleneck": None if default is None else worst_document(default.bottleneck),
            "by_class": ours.by_class,
            "terms": {term.name: term.seconds for term in ours.terms},
            "chosen": {"by": "strategy", **self._j_facts()},
            "rests_on": list(ours.notes),
        }

    def _j_facts(self) -> dict[str, Any]:
        """Return J if no time can be predicted."""
        if not self.timeless:
            return {}
        cost, usual = self._costs()
        return {"why": self.timeless, "cost": cost, "default_cost": usual}

    def warnings(self) -> Iterator[str]:
        """Warn if a launcher that sorts the nodes makes it slower."""
        sorting = self.placement.sorting()
        if self.timeless or np.array_equal(sorting, np.arange(len(sorting))):
            return
        listed = self.model.time(self.model.place(self.placement.rows[sorting]))
        ratio = listed / self.prediction.time_s if self.prediction.time_s else 1.0
        if ratio >= 1.005:
            yield f"{ratio:.2f}x slower where the launcher sorts these nodes, as Slurm does"


def _time_and_range(prediction: Prediction) -> str:
    """Return the time, and its range if something is unknown."""
    span = prediction.between
    if span is None or not span.unknowns:
        return time_text(prediction.time_s)
    return f"{time_text(prediction.time_s)} ({time_text(span.low)} to {time_text(span.high)})"
