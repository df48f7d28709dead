"""What a job sends, from the words of a caller or of the command line to a predictor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from placement.errors import UsageError, printable
from placement.machine import Machine
from rankmap.predict import Predictor
from rankmap.predict.background import USUAL_LOAD, Other, from_file, from_slurm

__all__ = ["ASSUMED", "KEYS", "predictor"]

#: What is said where no pattern is given.
ASSUMED = "no pattern is given: an all-to-all of {} is assumed (--pattern says another)"

#: What may be said of a job.
KEYS = (
    "pattern", "ppn", "bytes", "algorithm", "background", "predictor", "deadline",
    "progress",
)  # fmt: skip


def predictor(machine: Machine, job: Mapping[str, Any]) -> tuple[Predictor, tuple[str, ...]]:
    """Return the model of a job, and what was assumed of it.

    Parameters
    ----------
    machine : Machine
    job : mapping
        ``pattern`` (a text or a `Pattern`), ``ppn``, ``bytes``,
        ``algorithm`` as `Predictor` takes them; ``background``: a file, ``slurm``
        or a sequence of `Other`; or ``predictor`` instead of all.

    Raises
    ------
    UsageError
        An unknown word, or one that makes no sense.

    Examples
    --------
    >>> import nidmap
    >>> predictor(nidmap.load_machine("torus:4x4"), {})[1]
    ('no pattern is given: an all-to-all of 1 rank a node is assumed (--pattern says another)',)
    """
    unknown = [word for word in job if word not in KEYS]
    if unknown:
        shown = printable(str(unknown[0]), 40)
        known = ", ".join(word for word in KEYS if word not in ("predictor", "progress"))
        raise UsageError(f"'{shown}' is nothing that is known of a job", f"there are {known}")
    if job.get("predictor") is not None:
        found: Predictor = job["predictor"]
        return found, ()
    pattern = job.get("pattern")
    ppn = job.get("ppn") or 1
    made = Predictor(
        machine,
        pattern or "alltoall",
        ppn,
        job.get("bytes"),
        algorithm=job.get("algorithm") or "library",
        background=_background(machine, job.get("background")),
    )
    each = "1 rank a node" if ppn == 1 else f"{ppn} ranks a node"
    return made, () if pattern else (ASSUMED.format(each),)


def _background(machine: Machine, source: str | Sequence[Other] | None) -> list[Other]:
    """Return the other jobs: those that ``--background`` names, or those given.

    Raises
    ------
    ParseError, LaunchError
        A file that cannot be read; a Slurm that does not answer.
    """
    if source is None:
        return []
    if not isinstance(source, str):
        return list(source)
    each = machine.topology.parameters.get("background_load", USUAL_LOAD)
    if source == "slurm":
        from placement.commands.common import say

        jobs, notes = from_slurm(machine, each)
        for note in notes:
            say(f"nidmap: {note}")
        return jobs
    from rankmap.order_file import read_text

    text, name = read_text(source)
    return from_file(machine, text, name, each)
