"""Rounds of readings, interleaved: what disturbs a machine for a while disturbs all alike."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from workloads.ab.statistics import FEWEST
from workloads.progress import Progress
from workloads.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workloads.calibrate.readings import Reading

__all__ = ["Rounds"]


class Rounds(Session):
    """A calibration: whole rounds are kept, and enough of them are a result.

    Attributes
    ----------
    finished : list of dict of str to float
        Readings of each round by their names; the same on all ranks.
    """

    rounds: list[dict[str, float]]

    @property
    def enough(self) -> bool:
        """Whether intervals can be given."""
        return len(self.rounds) >= FEWEST

    def ending(self) -> str:
        """Say that the run ended early, and what of it counts."""
        done = f"{self.ended} after {len(self.rounds)} of {self.common.repeat} rounds"
        if self.enough:
            return f"{done}: the figures rest on these"
        return f"{done}: nothing is written, as {FEWEST} rounds are the fewest that say anything"

    def measure_rounds(self, readings: Sequence[Reading]) -> None:
        """Take all readings in every round, each round in an order of its own. Collective.

        A first round does not count: connections are made in it, and sizes found.
        """
        self.rounds = []
        self._say_remark()
        order = random.Random(self.common.seed)  # noqa: S311  # an order, no secret
        done, total = 0, len(readings) * (self.common.repeat + 1)
        with Progress("calibrate", total, shown=self.root) as progress:
            for number in range(self.common.repeat + 1):
                values: dict[str, float] = {}
                for reading in order.sample(list(readings), len(readings)):
                    began = time.monotonic()
                    values |= {name: max(s, 1e-12) for name, s in reading().items()}
                    done += 1
                    progress.at(done)
                    if self.over(time.monotonic() - began):
                        return
                if number:
                    self.rounds.append(values)
