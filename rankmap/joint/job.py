"""What a job sends, from the words of a caller or of the command line to a predictor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placement.errors import UsageError, printable
from rankmap.predict import Predictor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from placement.machine import Machine
    from rankmap.predict.background import Other

__all__ = ["ASSUMED", "KEYS", "predictor"]

#: What is said where no pattern is given.
ASSUMED = "no pattern is given: an all-to-all of {} is assumed (--pattern says another)"

#: What may be said of a job.
KEYS = (
    "pattern", "grid", "ppn", "bytes", "routing", "algorithm", "latency", "memory", "background",
    "background_load", "predictor", "deadline", "progress",
)  # fmt: skip


def predictor(machine: Machine, job: Mapping[str, Any]) -> tuple[Predictor, tuple[str, ...]]:
    """Return the model of a job, and what was assumed of it.

    Parameters
    ----------
    machine : Machine
    job : mapping
        ``pattern`` (a text or a `Pattern`) or ``grid``; ``ppn``, ``bytes``,
        ``routing``, ``algorithm``, ``latency``, ``memory`` as `Predictor`
        takes them; ``background``: a file, ``slurm`` or a sequence of
        `Other`, with ``background_load``; or ``predictor`` instead of all.

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
        raise UsageError(f"'{shown}' is nothing that is known of a job", f"there are {_words()}")
    if job.get("predictor") is not None:
        found: Predictor = job["predictor"]
        return found, ()
    pattern = _pattern(job.get("pattern"), job.get("grid"))
    ppn = job.get("ppn") or 1
    made = Predictor(
        machine,
        pattern or "alltoall",
        ppn,
        job.get("bytes"),
        job.get("routing") or "",
        algorithm=job.get("algorithm") or "",
        latency=job.get("latency"),
        memory=job.get("memory"),
        background=_background(machine, job.get("background"), job.get("background_load")),
    )
    each = "1 rank a node" if ppn == 1 else f"{ppn} ranks a node"
    return made, () if pattern else (ASSUMED.format(each),)


def _words() -> str:
    return ", ".join(word for word in KEYS if word not in ("predictor", "progress"))


def _pattern(pattern: Any, grid: str | None) -> Any:
    if not grid:
        return pattern
    if pattern:
        raise UsageError("--pattern and --grid exclude each other")
    from rankmap.structured import Stencil, parse_extents

    return Stencil(parse_extents(grid, "--grid")).spec


def _background(machine: Machine, source: Any, load: float | None) -> list[Other]:
    if source is None or isinstance(source, str):
        from rankmap.commands_predict import background

        return background(machine, source, load)
    return list(source)
