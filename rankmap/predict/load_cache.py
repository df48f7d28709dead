# SPDX-License-Identifier: Apache-2.0
"""Results that a scenario may need again: loads, phases, other jobs."""

from __future__ import annotations

from typing import Any

import numpy as np

from nidmap.placement.network import Loads
from nidmap.placement.support.array_types import Ints
from nidmap.rankmap.predict.background import Other, SharedLoads
from nidmap.rankmap.predict.phase import Phase

#: Numbers of loads that are kept.
KEPT = 32_000_000

#: Flows between places that are kept of the last orders.
KEPT_FLOWS = 1 << 21


class LoadCache:
    """The latest results, keyed by everything that they depend on."""

    def __init__(self) -> None:
        self.shared: SharedLoads | None = None  # load of all other jobs on the links
        self._crowd = Other(np.zeros(0, dtype=np.int64))
        self._loads: dict[tuple[str, tuple[int, ...]], list[Loads]] = {}
        self._orders: dict[tuple[Any, ...], list[Phase]] = {}

    def job_on(self, rows: Ints) -> Other:
        """Return the job assumed on busy nodes if nobody says what runs there.

        The last one is kept, with its loads: what a search compares leaves the same nodes busy.
        """
        if not np.array_equal(self._crowd.rows, rows):
            self._crowd = Other(rows)
        return self._crowd

    def find_loads(self, key: tuple[str, tuple[int, ...]]) -> list[Loads] | None:
        """Return the loads of several steps' demands; None if they are not cached."""
        return self._loads.pop(key, None)

    def keep_loads(self, key: tuple[str, tuple[int, ...]], step_loads: list[Loads]) -> None:
        """Cache loads as the latest."""
        self._loads[key] = step_loads
        numbers = sum(3 * len(loads.used) + len(loads.injection) for loads in step_loads)
        while len(self._loads) > 1 and len(self._loads) * numbers > KEPT:  # others: about alike
            del self._loads[next(iter(self._loads))]

    def find_phases(self, key: tuple[Any, ...]) -> list[Phase] | None:
        """Return the phases of an order; None if they are not cached."""
        return self._orders.pop(key, None)

    def keep_phases(self, key: tuple[Any, ...], phases: list[Phase]) -> None:
        """Cache an order's phases as the latest."""
        self._orders[key] = phases
        while len(self._orders) > 1 and self._kept_flows() > KEPT_FLOWS:
            del self._orders[next(iter(self._orders))]

    def _kept_flows(self) -> int:
        """Return how many flows are cached, counting each phase as several."""
        traffic = (phase.traffic for known in self._orders.values() for phase in known)
        return sum(1000 + len(sent) + len(sent.all_to_alls.end) for sent in traffic)
