"""What a job sends, from the words of a caller or of the command line to a predictor."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from placement.errors import UsageError, printable
from placement.network import channels
from rankmap.joint import work
from rankmap.joint.tuning import TUNING
from rankmap.pattern.structured import Lines
from rankmap.predict import Predictor
from rankmap.predict.phases import ALGORITHMS
from rankmap.slots import parse_counts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from placement.machine import Machine
    from placement.support.array_types import Ints
    from rankmap.predict.background import Other

__all__ = ["ASSUMED", "KEYS", "predictor", "stand_in"]

#: Routings that are too slow to search with, and the one that stands in for them.
SLOW = {"adaptive": "minimal"}

#: What is said where no pattern is given.
ASSUMED = "no pattern is given: an all-to-all of {} is assumed (--pattern says another)"

#: What may be said of a job.
KEYS = (
    "pattern", "grid", "ppn", "bytes", "routing", "algorithm", "latency", "memory", "process",
    "payload", "first_contact", "background", "background_load", "predictor", "deadline",
    "progress",
)  # fmt: skip


def predictor(machine: Machine, job: Mapping[str, Any]) -> tuple[Predictor, tuple[str, ...]]:
    """Return the model of a job, and what was assumed of it.

    Parameters
    ----------
    machine : Machine
    job : mapping
        ``pattern`` (a text or a `Pattern`) or ``grid``; ``ppn``, ``bytes``,
        ``routing``, ``algorithm``, ``latency``, ``memory``, ``process``,
        ``payload``, ``first_contact`` as `Predictor` takes them; ``background``:
        a file, ``slurm`` or a sequence of `Other`, with ``background_load``;
        or ``predictor`` instead of all.

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
        algorithm=job.get("algorithm") or "library",
        latency=job.get("latency"),
        memory=job.get("memory"),
        process=job.get("process"),
        payload=job.get("payload"),
        first_contact=job.get("first_contact"),
        background=_background(machine, job.get("background"), job.get("background_load")),
    )
    each = "1 rank a node" if ppn == 1 else f"{ppn} ranks a node"
    return made, () if pattern else (ASSUMED.format(each),)


def stand_in(asked: Predictor, rows: Ints) -> Predictor:
    """Return the predictor to search with: where that takes too long, one that stands in for it.

    Routing `adaptive` is searched as `minimal`, and of the steps of an
    all-to-all so many are looked at as there is time for, none rank by rank. Where the library
    chooses to go step by step and that is slow, the links alone are looked
    at, with everything posted at once.

    Parameters
    ----------
    asked : Predictor
    rows : int64 (n,)
        Any nodes that the job could have.
    """
    quick = copy(asked)
    quick.follows = False
    if asked.routing in SLOW:
        found = channels(asked.machine, SLOW[asked.routing])
        quick.routing, quick._all = SLOW[asked.routing], None
        quick.channels = replace(found, bandwidth=found.bandwidth * asked.constants.payload)
    us, most = work.judging(quick, rows), TUNING.stand_in * TUNING.budget
    if asked.algorithm == "library" and isinstance(asked.pattern, Lines) and us > most:
        quick.algorithm = ALGORITHMS[0]
        quick.constants = replace(asked.constants, process_gbs=None)
        return quick
    if asked.algorithm != ALGORITHMS[0] and us > most:
        steps = int(parse_counts(asked.ppn, len(rows)).sum())
        quick.steps = max(TUNING.least_steps, int(most / us * steps))
    same = (quick.routing, quick.steps) == (asked.routing, asked.steps)
    return asked if same and not asked.following else quick


def _words() -> str:
    return ", ".join(word for word in KEYS if word not in ("predictor", "progress"))


def _pattern(pattern: Any, grid: str | None) -> Any:
    if not grid:
        return pattern
    if pattern:
        raise UsageError("--pattern and --grid exclude each other")
    from rankmap.pattern.structured import Stencil, parse_extents

    return Stencil(parse_extents(grid, "--grid")).spec


def _background(machine: Machine, source: Any, load: float | None) -> list[Other]:
    if source is None or isinstance(source, str):
        from rankmap.commands.model import background

        return background(machine, source, load)
    return list(source)
