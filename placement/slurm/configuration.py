"""What the live Slurm says of itself: ``scontrol show config``."""

from __future__ import annotations

from placement.slurm.command import Deadline, ask

__all__ = ["configuration"]


def configuration(deadline: Deadline | None = None) -> dict[str, str]:
    """Return Slurm's settings by name, as ``TopologyPlugin``, ``SLURM_VERSION``.

    Parameters
    ----------
    deadline : Deadline or None
        Until when Slurm may answer; None: the usual few seconds.

    Raises
    ------
    LaunchError
        Slurm is missing, down or slow.
    """
    answer = ask(["scontrol", "show", "config"], deadline=deadline)
    pairs = (line.partition("=") for line in answer.output.splitlines())
    return {name.strip(): value.strip() for name, mark, value in pairs if mark}
