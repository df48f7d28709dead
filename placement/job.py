# SPDX-License-Identifier: Apache-2.0
"""A job's traffic as stated by the user, for planners that predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class JobWords:
    """The description of a job's traffic; `nidmap.rankmap.predict.job.Job` parses and checks it."""

    # Who talks to whom: a text, or the pattern that it names; '' where unknown
    pattern: object = ""
    # Ranks on each node; None means as often as a list names the node, else 1
    ppn: int | str | Sequence[int] | None = None
    bytes: float | None = None  # payload of one message; None means the usual one of the pattern
    # How a collective is done; ``library``: as the machine's MPI does it
    algorithm: str = "library"
    background: object = ()  # jobs that run at the same time: a file, ``slurm``, or those jobs
