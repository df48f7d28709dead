# SPDX-License-Identifier: Apache-2.0
"""What is said of a job's traffic, for planners that predict: its words, not what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class JobWords:
    """What a job is said to send; `nidmap.rankmap.predict.job.Job` reads and checks it.

    Attributes
    ----------
    pattern : object
        Who talks to whom: a text, or the pattern that it names; '' where nothing says.
    ppn : int, str, sequence of int or None
        Ranks on each node; None: as often as a list names the node, else 1.
    bytes : float or None
        Payload of one message; None: the usual one of the pattern.
    algorithm : str
        How a collective is done; ``library``: as the machine's MPI does it.
    background : object
        Jobs that run at the same time: a file, ``slurm``, or those jobs.
    """

    pattern: object = ""
    ppn: int | str | Sequence[int] | None = None
    bytes: float | None = None
    algorithm: str = "library"
    background: object = ()
