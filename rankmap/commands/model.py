"""The options that say what a job sends, and how the network and its MPI take it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from placement.commands.common import say
from placement.commands.quantities import Bytes
from placement.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from placement.machine import Machine
    from rankmap.predict import Predictor
    from rankmap.predict.background import Other

__all__ = ["background", "job_of", "model_options", "predictor", "sending_options"]

_MODEL: tuple[Callable[..., Any], ...] = (
    click.option(
        "--bytes",
        "size",
        type=Bytes(),
        metavar="B",
        help="Payload of one message (64KiB); a multiplier for graph:, matrix:, sends:, training:.",
    ),
    click.option("--routing", default="", metavar="R", help="minimal, adaptive … as it applies."),
    click.option(
        "--algorithm",
        default="library",
        metavar="A",
        help="A collective's: library (the default: as its MPI does), pairwise, ring, openmpi …",
    ),
    click.option(
        "--latency",
        type=float,
        metavar="US",
        help="Of a short message; 0 switches off all that does not grow with the bytes.",
    ),
    click.option(
        "--memory",
        type=float,
        metavar="GBS",
        help="GB/s inside a node; else as the site states, or 20; inf: it costs nothing.",
    ),
    click.option(
        "--process",
        type=float,
        metavar="GBS",
        help="GB/s that one rank can send; else as the site states, inf for no limit.",
    ),
    click.option(
        "--payload",
        type=float,
        metavar="SHARE",
        help="Share of the bandwidth between routers that is payload; else the site's, or 1.",
    ),
    click.option(
        "--first-contact",
        "contact",
        type=float,
        metavar="S",
        help="Seconds that connecting to each other rank takes; default 0: all are connected.",
    ),
    click.option(
        "--background",
        "others",
        metavar="FILE|slurm",
        help="Other jobs: a node list a line, or what Slurm runs now.",
    ),
    click.option(
        "--background-load",
        "load",
        type=float,
        metavar="GBS",
        help="GB/s that each of their nodes sends to the others; default 1, an assumption.",
    ),
    click.option("--fair", is_flag=True, help="Share links max-min fairly in time."),
)

#: What a job calls what the options say.
_JOB_WORDS = {
    "size": "bytes", "routing": "routing", "algorithm": "algorithm", "latency": "latency",
    "memory": "memory", "process": "process", "payload": "payload", "contact": "first_contact",
    "others": "background", "load": "background_load",
}  # fmt: skip


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the model, which ``predict`` and ``compare`` share."""
    for option in reversed(_MODEL):
        command = option(command)
    return command


def sending_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add those of them that a search knows, which ``order`` and ``run`` share."""
    for option in reversed(_MODEL[:-1]):
        command = option(command)
    return command


def job_of(model: dict[str, Any]) -> dict[str, Any]:
    """Take the options of `sending_options` out of others; return those given as a job has them.

    Returns
    -------
    dict
        As `rankmap.joint.job.predictor` takes it.
    """
    given = {name: model.pop(option) for option, name in _JOB_WORDS.items()}
    return {name: value for name, value in given.items() if value not in (None, "", "library")}


def predictor(
    machine: Machine, pattern: str, ppn: int | str | Sequence[int], model: dict[str, Any]
) -> Predictor:
    """Return the model that the options of `model_options` ask for."""
    from rankmap.predict import Predictor

    return Predictor(
        machine,
        pattern,
        ppn,
        model["size"],
        model["routing"],
        algorithm=model["algorithm"],
        latency=model["latency"],
        memory=model["memory"],
        background=background(machine, model["others"], model["load"]),
        fair=model["fair"],
        process=model["process"],
        payload=model["payload"],
        first_contact=model["contact"],
    )


def background(machine: Machine, source: str | None, load: float | None) -> list[Other]:
    """Return the jobs that ``--background`` names.

    Raises
    ------
    UsageError
        A load without jobs, or one that makes no sense.
    ParseError, LaunchError
        A file that cannot be read; a Slurm that does not answer.
    """
    if source is None:
        if load is not None:
            raise UsageError("--background-load goes with --background")
        return []
    from rankmap.predict.background import USUAL_LOAD, from_file, from_slurm

    each = USUAL_LOAD if load is None else load
    if source == "slurm":
        jobs, notes = from_slurm(machine, each)
        for note in notes:
            say(f"nidmap: {note}")
        return jobs
    from rankmap.order_file import read_text

    text, name = read_text(source)
    return from_file(machine, text, name, each)
