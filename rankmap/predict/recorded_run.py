"""What a recorded run does beside the communication that is predicted of it.

From its first message to its last a rank is in MPI or works outside. Work comes on top of
communication. Time in MPI beyond the predicted communication has other causes: processors that
handle messages, ranks that come late. These pass in part while links carry, so that both together
take more than the longer of them and less than their sum. The root of the sum of their squares
lies between, whatever their sizes. Only a little more than predicted is the prediction's own error.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from rankmap.pattern.graph import Graph
from rankmap.predict.model import Model
from rankmap.recording import Recording

#: Communication may take so many times what is predicted of it before another cause is looked for:
#: about what predictions of programs are off by in the median, and at worst (docs/minicray.md).
A_LITTLE_SHORT, TOO_SHORT = 1.05, 1.25


class RunSeconds(NamedTuple):
    """What a run does beside its communication.

    Attributes
    ----------
    work : float
        Seconds outside MPI that come on top.
    rest : float
        What passes in part while links carry, in seconds that it would take alone.
    """

    work: float = 0.0
    rest: float = 0.0

    def with_messages(self, communication_s: float) -> float:
        """Return the seconds of the run.

        Examples
        --------
        >>> RunSeconds(1.0, 3.0).with_messages(4.0)
        6.0
        """
        return self.work + math.hypot(communication_s, self.rest)

    def least(self, communication_s: float) -> RunSeconds:
        """Return the least that it may be: the prediction is too short, and nothing passes at once.

        Communication counts as what is predicted of it, in the same proportion.

        Examples
        --------
        >>> round(RunSeconds(1.0, 3.0).least(4.0).work, 3)
        0.8
        """
        in_mpi_s = math.hypot(communication_s, self.rest)
        longer = min(in_mpi_s / communication_s, TOO_SHORT) if communication_s else 1.0
        return RunSeconds((self.work + in_mpi_s) / longer - communication_s)


#: Of what is no recorded run.
NOTHING = RunSeconds()


def comparable_recording(model: Model) -> Recording | None:
    """Return the recording whose run's seconds are comparable with the model's; None for none."""
    recording = model.pattern.recording if isinstance(model.pattern, Graph) else None
    if recording is None or recording.window or recording.seconds <= 0:
        return None
    return None if model.constants.slowed is None else recording


def run_seconds(model: Model, recording: Recording) -> tuple[float, float]:
    """Return how long a recorded run took from its first message to its last, and its work.

    An older recording has its whole run, and no work: nobody knows how much it was.

    Parameters
    ----------
    model : Model
    recording : Recording
        That is comparable.

    Returns
    -------
    float, float
        Seconds, as the model's are.
    """
    scale = model.size / (model.constants.slowed or 1.0)
    return (recording.exchange_s or recording.seconds) * scale, recording.work_s * scale


def beside_communication(model: Model, recording: Recording, communication_s: float) -> RunSeconds:
    """Return what a run does beside predicted communication, if it was recorded so.

    Ranks that are in MPI for less than communication takes work meanwhile: as much as makes up for
    it, or all that they work. Where they are in MPI for a little more, the prediction is short: all
    is told in its seconds, as much shorter.
    """
    took_s, work_s = run_seconds(model, recording)
    in_mpi_s = took_s - work_s
    if 0 < communication_s < in_mpi_s:
        longer = min(in_mpi_s / communication_s, A_LITTLE_SHORT)
        work_s, in_mpi_s = work_s / longer, in_mpi_s / longer
    excess = in_mpi_s**2 - communication_s**2
    if excess >= 0:
        return RunSeconds(work_s, math.sqrt(excess))
    meanwhile_s = min(work_s, -excess / (2 * in_mpi_s)) if in_mpi_s > 0 else work_s
    return RunSeconds(work_s - meanwhile_s, meanwhile_s)
