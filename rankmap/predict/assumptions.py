# SPDX-License-Identifier: Apache-2.0
"""What a predicted time assumes besides loads: one value per unknown figure."""

from __future__ import annotations

import math
from typing import NamedTuple

from nidmap.placement.machine import Machine
from nidmap.placement.network import usual_loss
from nidmap.rankmap.predict.constants import Constants

#: Share of what sending all at once would win that ranks win by running ahead of each other in the
#: steps of an exchange. On mini-Crays none is off by 3.0 % in the median, all by 1.8 %
#: (docs/minicray.md); Piz Daint's all-to-all on minimal paths lies half way (De Sensi and others).
AHEAD = 0.5


class RunSeconds(NamedTuple):
    """The work of a run besides its communication."""

    work: float = 0.0  # seconds outside MPI that come on top
    # Seconds in MPI that come on top, for other causes: processors that handle messages, ranks that
    # come late
    rest: float = 0.0
    # The part that overlaps with messages in flight, in seconds that it would take alone
    meanwhile: float = 0.0

    def with_messages(self, communication_s: float) -> float:
        """Return the seconds of the run, given those of its messages."""
        return self.work + self.rest + math.hypot(communication_s, self.meanwhile)


#: For anything but a recorded run.
NOTHING = RunSeconds()


class Values(NamedTuple):
    """One assumption for each unknown figure of the machine or the library."""

    loss: float  # relative cost of diverting all bytes
    algorithm: str
    # process, posted: GB/s of one rank that sends to everyone, and of one that sends to a few alone
    process: float | None
    posted: float | None
    payload: float
    reach: float  # share of nodes' own links that exchanges reach
    memory: float | None
    hop_ns: float
    others: bool = False
    staged: bool = False
    routing: str = ""  # '' is the machine's
    # For each placement how far ranks run ahead from step to step, 0 to 1
    ahead: tuple[float, ...] = (0.0, 0.0)
    run: RunSeconds = NOTHING  # a recorded run's work besides its communication
    # How many times as long as predicted the first placement's communication takes, and as short
    # the second's
    fit: float = 1.0


def likely_values(machine: Machine, known: Constants, algorithm: str) -> Values:
    """Return the likely value of every unknown, which is the stated one if there is one."""
    return Values(
        loss=usual_loss(machine),
        algorithm=algorithm,
        process=known.process_gbs,
        posted=known.posted_gbs,
        payload=known.payload,
        reach=known.reach,
        memory=known.memory_gbs,
        hop_ns=known.hop_ns,
        ahead=(AHEAD, AHEAD),
    )
