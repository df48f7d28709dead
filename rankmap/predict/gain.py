# SPDX-License-Identifier: Apache-2.0
"""The gain of one placement over another, as a range over the machine's unknowns.

Loads of links are exact, but what programs and networks make of them is only partly
known: whether routers send packets around full links, which algorithm the MPI library
takes, what one rank can send, how much of the wire is payload, what other jobs send,
what copies inside a node cost, whether an exchange is posted at once or dimension by
dimension, how far ranks run ahead from step to step,
what a recorded program does next to communication. Each of these is an *unknown* with a
likely value and another one, unless the caller or the site states it. A gain is the ratio of two
times under the same values:

* `likely` takes the likely value of every unknown;
* each unknown alone set to its other value moves the gain by some factor;
* unknowns are independent, so `low` and `high` add the factors below and above 1 up as
  independent errors are: the logarithms' squares, and their root.
"""

from __future__ import annotations

import math
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from nidmap.placement.placement import Placement
from nidmap.placement.support.quantities import time_text
from nidmap.rankmap.predict.constants import NOTHING, Constants, RunSeconds
from nidmap.rankmap.predict.model import Model, Timed
from nidmap.rankmap.predict.unknowns import (
    comparable_recording,
    other_seconds,
    run_seconds,
    unknowns_of,
)
from nidmap.rankmap.progress import advance

#: Share of communication in a recorded run below which it is reported.
HALF_OF_RUN = 0.5

#: Largest factor between predicted communication and recorded seconds in MPI that still fits.
FITS = 1.5

#: An unknown that moves a figure by no larger share is not spoken of.
SAME = 5e-3


class Unknown(NamedTuple):
    """An unknown, and its effect on a gain."""

    # ``routing``, ``algorithm``, ``process``, ``payload``, ``others``, ``memory``, ``staging``,
    # ``overlap``, ``hops``, ``interface``, ``fit`` or ``rest``
    name: str
    question: str  # the question to be answered
    # low, high: the gain with this unknown alone at its other values
    low: float
    high: float
    lowest: str = ""  # the value at which the gain is `low`; '' if that is the likely one


class RecordedFit(NamedTuple):
    """How well a prediction matches the recorded run, in the program's own seconds."""

    predicted_s: float  # of its messages, on the baseline's nodes
    in_mpi_s: float  # that ranks were recorded in MPI

    @property
    def fits(self) -> bool:
        """Whether the two roughly agree."""
        low, high = sorted(self)
        return high <= FITS * low

    @property
    def words(self) -> str:
        """Both times as text."""
        recorded, predicted = time_text(self.in_mpi_s), time_text(self.predicted_s)
        return f"ranks were recorded {recorded} in MPI, {predicted} of messages were predicted"


class Gain(NamedTuple):
    """How many times as fast one placement is as another."""

    # low, likely, high: of an independent error each, and never beyond what all unknowns do
    # together
    low: float
    likely: float
    high: float
    # The unknowns with the largest effect first, without those that have none
    unknowns: tuple[Unknown, ...] = ()
    # Maximum share of communication in the baseline's run: 1, except for a recording with known
    # times
    communicates: float = 1.0
    # None for anything not recorded on this machine with its times
    recorded: RecordedFit | None = None

    @property
    def misfit(self) -> str:
        """Say that the recording contradicts its prediction; '' if it does not."""
        if self.recorded is None or self.recorded.fits:
            return ""
        return f"the recording does not fit: {self.recorded.words}"

    @property
    def told(self) -> bool:
        """Whether it is a gain at all plausible values of the unknowns."""
        return self.low > 1 + SAME

    @property
    def untold(self) -> str:
        """A qualification for uncertain gains; '' for certain ones, and for losses."""
        known = self.told or self.high < 1 - SAME or self.low == self.high
        return "" if known else "no clear gain: "

    @property
    def range_text(self) -> str:
        """The range as text: ``1.1 to 1.3 x``, or ``1.2 x`` if nothing is uncertain."""
        if math.isinf(self.likely):
            return "any number of times"
        low, high = (f"{value:.2f}".rstrip("0").rstrip(".") for value in (self.low, self.high))
        return f"{low} x" if low == high else f"{low} to {high} x"

    @property
    def loses_if(self) -> str:
        """Say at which plausible value alone the placement loses most; '' if at none."""
        worst = min(self.unknowns, key=lambda unknown: unknown.low, default=None)
        if worst is None or worst.low >= 1 - SAME:
            return ""
        return f"{1 / worst.low:.2f} times slower if {worst.lowest}"

    @property
    def of_run(self) -> str:
        """Say how well a recorded run matches, and its share of communication if below half."""
        fit = self.recorded.words if self.recorded is not None and self.recorded.fits else ""
        if self.communicates > HALF_OF_RUN:
            return fit
        most = 1 / (1 - self.communicates)
        share = (
            f"communication is at most {self.communicates:.1%} of the recorded run:"
            f" no placement gains more than {most:.3g} x"
        )
        return f"{fit}; {share}" if fit else share

    @property
    def most_unsure(self) -> str:
        """The unknown with the largest effect, as a question; '' if there is none."""
        return self.unknowns[0].question if self.unknowns else ""

    def document(self) -> dict[str, Any]:
        """Return the gain as JSON; None if the placement takes no time at all."""
        ends = (self.low, self.likely, self.high)
        low, likely, high = (value if math.isfinite(value) else None for value in ends)
        return {
            "low": low,
            "likely": likely,
            "high": high,
            "unknowns": [unknown._asdict() for unknown in self.unknowns],
            "communicates": self.communicates,
            "recorded": None if self.recorded is None else self.recorded._asdict(),
        }


class Gains:
    """How many times as fast placements are as a baseline, over all unknowns.

    `model`: what the caller and the site state; the rest is unknown.
    """

    def __init__(self, model: Model, base: Placement) -> None:
        self.model = model
        self._base = Timed(model, base)
        self._run, self._communicates, self._fit = _run_of(model, self._base)

    def of(self, plan: Placement) -> Gain:
        """Return how many times as fast a placement is; exactly 1 for the baseline itself."""
        if _same_placement(plan, self._base.placement):
            return Gain(1.0, 1.0, 1.0)
        times = [Timed(self.model, plan), self._base]
        gain = range_of_unknowns(self.model, times, self._run)
        gain = gain._replace(communicates=self._communicates, recorded=self._fit)
        if not gain.misfit:
            return gain
        return gain._replace(low=min(gain.low, 1.0), high=max(gain.high, 1.0))


def _same_placement(plan: Placement, base: Placement) -> bool:
    """Tell whether the same ranks are on the same nodes, as the caller lists them."""
    same = np.array_equal(plan.rows, base.rows)
    return same and np.array_equal(plan.slot_of_rank, base.slot_of_rank)


def time_range(model: Model, plan: Placement) -> Gain:
    """Return the seconds of a placement as a range over all unknowns.

    Its figures are seconds.
    """
    return range_of_unknowns(model, [Timed(model, plan)])


def range_of_unknowns(model: Model, times: list[Timed], run: RunSeconds = NOTHING) -> Gain:
    """Return a placement's time, or its gain over another placement, as a range.

    `run`: what a recorded run does next to its communication.
    """

    def under(assumed: list[Constants]) -> float:
        advance()
        plan, *base = (
            one.run.with_messages(timed.seconds(one))
            for one, timed in zip(assumed, times, strict=True)
        )
        if not base:
            return plan
        return base[0] / plan if plan > 0 else math.inf if base[0] > 0 else 1.0

    assumed = [replace(timed.model.constants, run=run) for timed in times]
    likely = under(assumed)
    if not 0 < likely < math.inf:
        return Gain(likely, likely, likely)
    unknowns, lowest, highest = [], assumed, assumed
    for name, question, others in unknowns_of(model, times):
        outcomes = sorted(
            ((under(other.change(assumed)), other) for other in others), key=itemgetter(0)
        )
        (low, slower), (high, faster) = outcomes[0], outcomes[-1]
        if not 0 < low <= high < math.inf:
            continue
        lowest = slower.change(lowest) if low < likely else lowest
        highest = faster.change(highest) if high > likely else highest
        low, high, at = min(low, likely), max(high, likely), slower.words if low < likely else ""
        if high > low * (1 + SAME):
            unknowns.append(Unknown(name, question, low, high, at))
    unknowns.sort(key=lambda unknown: -unknown.high / unknown.low)
    down = math.hypot(*(math.log(likely / unknown.low) for unknown in unknowns))
    up = math.hypot(*(math.log(unknown.high / likely) for unknown in unknowns))
    together = [under(lowest), under(highest), likely]
    together += [end for unknown in unknowns for end in (unknown.low, unknown.high)]
    low = max(likely / math.exp(down), min(together))
    high = min(likely * math.exp(up), max(together))
    return Gain(low, likely, high, tuple(unknowns))


def _run_of(model: Model, base: Timed) -> tuple[RunSeconds, float, RecordedFit | None]:
    """Return a recorded run's work besides communication, and its share of communication.

    Nothing where no run's seconds are known. What kept ranks in MPI on another machine than the
    model's says nothing of this one. Of the baseline's run, at most.
    """
    recording = comparable_recording(model)
    if recording is None:
        return NOTHING, 1.0, None
    took_s, work_s = run_seconds(model, recording)
    sent_s, scale = base.seconds(model.constants), model.constants.slowed or 1.0
    communicates = min(1.0, range_of_unknowns(model, [base]).high / took_s)
    if not recording.ran_on(model.machine):
        return RunSeconds(work_s), communicates, None
    fit = RecordedFit(sent_s * scale, (took_s - work_s) * scale) if recording.exchange_s else None
    return other_seconds(model, recording, sent_s), communicates, fit
