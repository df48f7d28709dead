# SPDX-License-Identifier: Apache-2.0
"""The seconds of one placement under any assumptions.

What links carry is worked out once for each way of sending; another figure then costs little more
than a division.
"""

from __future__ import annotations

from dataclasses import replace

from nidmap.placement.placement import Placement
from nidmap.rankmap.predict.constants import Constants
from nidmap.rankmap.predict.model import Model
from nidmap.rankmap.predict.phase import Phase
from nidmap.rankmap.predict.phase_cost import PhaseLoads, phase_cost

#: Jobs of more nodes are large, and steps of their exchanges that are looked at by an algorithm
#: that is not the likely one.
LARGE, SOME_STEPS = 1024, 2


class Timed:
    """One placement, and its seconds under any assumptions."""

    def __init__(self, model: Model, placement: Placement) -> None:
        self.model, self.placement = model, placement
        self._known: dict[tuple[str, str, bool, bool], list[PhaseLoads]] = {}

    @property
    def phases(self) -> list[Phase]:
        """What is sent as is likely."""
        return [loads.phase for loads in self._loads(self.model.constants)]

    def seconds(self, assumed: Constants) -> float:
        """Return the seconds under some assumptions."""
        costs = (phase_cost(loads, assumed).seconds for loads in self._loads(assumed))
        return sum(costs, self.model.histogram(self.placement)) * assumed.fit

    def _loads(self, assumed: Constants) -> list[PhaseLoads]:
        """Return the loads of links as messages are sent under some assumptions."""
        key = assumed.algorithm, assumed.routing, assumed.staged, assumed.others
        if key not in self._known:
            model = replace(self.model, stated=assumed)
            if assumed.algorithm and len(self.placement.rows) > LARGE:
                model = replace(model, steps=SOME_STEPS)
            left = model.left(self.placement)
            every = (model.phase_loads(phase, left) for phase in model.phases(self.placement))
            self._known[key] = [
                replace(loads, steps=None if loads.steps is None else tuple(loads.steps))
                for loads in every
            ]
        return self._known[key]
