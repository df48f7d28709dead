# SPDX-License-Identifier: Apache-2.0
"""The seconds of one placement under any values of the machine's unknowns.

What links carry is worked out once for each way of sending; a value of an unknown then costs
little more than a division.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nidmap.placement.network import Channels
from nidmap.placement.placement import Placement
from nidmap.rankmap.pattern.structured import Stencil
from nidmap.rankmap.predict.assumptions import Values
from nidmap.rankmap.predict.background import shared_channels
from nidmap.rankmap.predict.job import fit_pattern
from nidmap.rankmap.predict.model import Model
from nidmap.rankmap.predict.phase_cost import PhaseLoads, phase_cost

#: Jobs of more nodes are large, and steps of their exchanges that are looked at by values of the
#: unknowns that are not likely.
LARGE, SOME_STEPS = 1024, 2


class PlacementTimes:
    """Seconds of one placement under any values of the unknowns."""

    def __init__(self, model: Model, placement: Placement) -> None:
        self.model, self.placement = model, placement
        self.pattern = fit_pattern(model.pattern, placement)
        self._known: dict[tuple[str, bool, str, bool], list[PhaseLoads]] = {}
        self.left = model.left(placement)
        self.others = self._load_of_unknown_jobs()
        likely = [loads.phase for loads in self.loads(model.values)]
        # Whether anything is sent inside a node
        self.inside = any(phase.inside for phase in likely)
        # Whether anything is sent in steps that no barrier parts
        self.stepwise = any(phase.steps is not None and not phase.dependent for phase in likely)
        # Whether the pattern could be sent direction by direction, which nothing says
        self.staging = isinstance(self.pattern, Stencil) and not self.pattern.staged

    def _load_of_unknown_jobs(self) -> Channels | None:
        """Return the load, on every channel, of busy nodes that belong to no known job."""
        model, machine = self.model, self.model.machine
        busy = machine.compute & ~machine.free
        busy[self.placement.rows] = False
        if busy.sum() < 2:
            return None
        usable = self.left or model.channels
        crowd = shared_channels(machine, [model.cache.job_on(np.flatnonzero(busy))], model.routing)
        payload = model.constants.payload
        return replace(usable, bandwidth=crowd.left(usable.bandwidth / payload) * payload)

    def loads(self, values: Values) -> list[PhaseLoads]:
        """Return the messages under some values, and the links that they use."""
        busy = values.others and self.others is not None
        key = values.algorithm, values.staged, values.routing, busy
        if key not in self._known:
            model, pattern = self.model, self.pattern
            if values.algorithm != model.algorithm:
                model = model.assuming(algorithm=values.algorithm)
            if values.staged and isinstance(pattern, Stencil):
                pattern = replace(pattern, staged=True)
            large = len(self.placement.rows) > LARGE and model is not self.model
            left, most = self.others if busy else self.left, SOME_STEPS if large else None
            every = (
                model.phase_loads(phase, left, values.routing, most, exact=True)
                for phase in model.phases(self.placement, pattern)
            )
            self._known[key] = [
                replace(loads, steps=None if loads.steps is None else tuple(loads.steps))
                for loads in every
            ]
        return self._known[key]

    def seconds(self, values: Values, place: int) -> float:
        """Return the `place`-th placement's seconds under some values of the unknowns."""
        total = self.model.histogram(self.placement)
        for loads in self.loads(values):
            cost = phase_cost(loads, self.model.constants, values, self.model.nics, place)
            total += cost.seconds
        return total / values.fit if place else total * values.fit
